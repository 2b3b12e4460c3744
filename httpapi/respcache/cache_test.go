package respcache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// TestServedWhileValid checks that the cache serves a response while its dependencies are valid. After that, the cache must execute
// again.
func TestServedWhileValid(t *testing.T) {
	session := &reads.Session{}
	type basis struct {
		handles []*reads.Handle
		session *reads.Session
		until   time.Time
	}
	tests := map[string]func(g *rig, b *basis){
		"a handle expires":          func(g *rig, _ *basis) { g.clock.Advance(2 * time.Second) },
		"the day ends":              func(g *rig, b *basis) { g.clock.Advance(b.until.Sub(g.clock.Now())) },
		"the stream's session ends": func(g *rig, b *basis) { b.session.End(g.clock.Now()) },
	}
	for i := range 5 {
		tests[fmt.Sprintf("entry %d was replaced", i)] = func(_ *rig, b *basis) { b.handles[i].Invalidate() }
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := newRig(1 << 20)
			*session = reads.Session{}
			b := basis{session: session, until: g.clock.Now().Add(1500 * time.Millisecond)}
			b.handles = []*reads.Handle{
				g.freshHandle(time.Minute), g.freshHandle(2 * time.Second), reads.NewStreamHandle(session), g.freshHandle(3 * time.Second), reads.NewStreamHandle(&reads.Session{}),
			}
			key := g.keyFor("q", g.Identity(nil))
			if name == "a handle expires" {
				b.until = time.Time{}
			}
			g.ask(t, key, func(_ context.Context, r *request.Dependencies) {
				recording(b.handles...)(nil, r)
				if !b.until.IsZero() {
					r.Until(b.until.Add(time.Hour))
					r.Until(b.until)
				}
			})
			g.clock.Advance(1499 * time.Millisecond)
			g.want(t, "before", key, Hit)
			g.clock.Advance(-1499 * time.Millisecond)
			change(g, &b)
			g.want(t, "after", key, Executed)
			if s := g.Stats(); s.Invalidated != 1 {
				t.Errorf("got %d invalidated responses, want 1", s.Invalidated)
			}
		})
	}
	t.Run("nothing changes", func(t *testing.T) {
		g := newRig(1 << 20)
		key := g.keyFor("q", g.Identity(nil))
		g.ask(t, key, recording())
		g.clock.Advance(maxAge - 1)
		g.want(t, "before its maxAge", key, Hit)
		g.clock.Advance(1)
		g.want(t, "at its maxAge", key, Executed)
	})
}

// TestStaleResponses checks that a response with a stale value is served until the value is replaced, but for at most staleAge.
func TestStaleResponses(t *testing.T) {
	g := newRig(1 << 20)
	key := g.keyFor("q", g.Identity(nil))
	stale := reads.Meta{Handle: g.freshHandle(-time.Minute), Stale: true}
	read := func(_ context.Context, r *request.Dependencies) {
		request.RecordAll(r, []reads.Result[int]{{Value: reads.Value[int]{Meta: stale}}})
	}
	g.ask(t, key, read)
	g.clock.Advance(staleAge - 1)
	g.want(t, "before its staleAge", key, Hit)
	g.clock.Advance(1)
	if _, outcome := g.ask(t, key, read); outcome != Executed {
		t.Errorf("at its staleAge: the outcome is %d, want an execution", outcome)
	}
	stale.Handle.Invalidate()
	g.want(t, "after the refresh", key, Executed)
}

// refreshes counts the keys of RefreshKeys.
type refreshes int

func (n *refreshes) RefreshKeys(_ context.Context, keys []any) { *n += refreshes(len(keys)) }

// TestServedWhileRefreshed checks that the use of a response refreshes its stale values, and that the cache serves the response
// while the refreshed values are equal. A response that shows when its values were read is executed again.
func TestServedWhileRefreshed(t *testing.T) {
	for _, dated := range []bool{false, true} {
		g, asked := newRig(1<<20), refreshes(0)
		g.dated = dated
		h := g.freshHandle(2 * time.Second)
		h.SetRefresher(&asked, "key")
		fresh := func() { h.Renew(g.clock.Now().Add(2*time.Second), g.clock.Now().Add(3*time.Second)) }
		fresh()
		key := g.keyFor("q", g.Identity(nil))
		read := func(_ context.Context, r *request.Dependencies) {
			stale := !g.clock.Now().Before(time.Unix(0, h.FreshUntil()))
			request.RecordAll(r, []reads.Result[int]{{Value: reads.Value[int]{Meta: reads.Meta{Handle: h, Stale: stale}}}})
		}
		steps := []struct {
			what    string
			do      func()
			undated Outcome
			dated   Outcome
			asked   refreshes
		}{
			{"at first", func() {}, Executed, Executed, 0},
			{"while the value is fresh", func() { g.clock.Advance(2*time.Second - 1) }, Hit, Hit, 0},
			{"when it is stale", func() { g.clock.Advance(1) }, Hit, Executed, 1},
			{"when it has been stale for a while", func() { g.clock.Advance(time.Second / 2) }, Hit, Hit, 1},
			{"after its refresh", fresh, Hit, Executed, 1},
			{"when it is too old", func() { g.clock.Advance(3 * time.Second) }, Executed, Executed, 1},
			{"after it has changed", func() { fresh(); h.Invalidate() }, Executed, Executed, 1},
		}
		for _, s := range steps {
			s.do()
			want := s.undated
			if dated {
				want = s.dated
			}
			if _, got := g.ask(t, key, read); got != want {
				t.Errorf("dated %v, %s: the outcome is %d, want %d", dated, s.what, got, want)
			}
			if !dated && asked != s.asked {
				t.Errorf("%s: %d keys were refreshed, want %d", s.what, asked, s.asked)
			}
		}
	}
}

func TestNeverStored(t *testing.T) {
	ended := &reads.Session{}
	ended.End(time.Now())
	for name, record := range map[string]func(g *rig, r *request.Dependencies){
		"a read failed":                           func(g *rig, r *request.Dependencies) { r.Record(g.freshHandle(time.Minute)); r.Record(nil) },
		"a value expires at once":                 func(g *rig, r *request.Dependencies) { r.Record(g.freshHandle(0)) },
		"the stream session of a value has ended": func(g *rig, r *request.Dependencies) { r.Record(reads.NewStreamHandle(ended)) },
		"a value changes during the execution":    func(g *rig, r *request.Dependencies) { h := g.freshHandle(time.Minute); r.Record(h); h.Invalidate() },
		"a handle expires during the execution": func(g *rig, r *request.Dependencies) {
			r.Record(g.freshHandle(time.Second))
			g.clock.Advance(time.Second)
		},
		"the day has ended": func(g *rig, r *request.Dependencies) { r.Until(g.clock.Now()) },
	} {
		g := newRig(1 << 20)
		key := g.keyFor("q", g.Identity(nil))
		g.ask(t, key, func(_ context.Context, r *request.Dependencies) { record(g, r) })
		if s := g.Stats(); s.Stored != 0 || s.Entries != 0 || s.Bytes != 0 {
			t.Errorf("%s: the counters are %+v, want no stored responses", name, s)
		}
	}
	g := newRig(1 << 20)
	for name, r := range map[string]*Response{
		"errors":          NewResponse([]byte("x"), nil, nil, false),
		"a huge response": NewResponse(make([]byte, 1<<16), nil, new(request.Dependencies), false),
	} {
		if _, _, err := g.Do(t.Context(), g.keyFor(name, Identity{1}), nil, func(context.Context) *Response { return r }); err != nil {
			t.Fatal(err)
		}
		if s := g.Stats(); s.Stored != 0 {
			t.Errorf("%s: got %d stored responses, want 0", name, s.Stored)
		}
	}
}

// TestCallersAreKeptApart checks that callers with different credentials do not share a response whose execution read the
// credentials. All callers share other responses.
func TestCallersAreKeptApart(t *testing.T) {
	g := newRig(1 << 20)
	alice, bob, nobody := g.Identity(account(t, "alice")), g.Identity(account(t, "bob")), g.Identity(nil)
	if alice != g.Identity(account(t, "alice")) || alice == bob || nobody == (Identity{}) || alice == (Identity{}) {
		t.Error("different callers have the same identity, one caller has two identities, or an identity is zero")
	}
	if newRig(1).Identity(account(t, "alice")) == alice {
		t.Error("two processes compute the same identity for the same credentials")
	}
	for name, makes := range map[string]func(...*reads.Handle) func(context.Context, *request.Dependencies){"personal": recordingPersonal, "public": recording} {
		for _, first := range []Identity{alice, nobody} {
			g := newRig(1 << 20)
			g.ask(t, g.keyFor(name, first), makes(g.freshHandle(time.Second)))
			for _, other := range []Identity{alice, bob, nobody} {
				want := Executed
				if other == first || name == "public" {
					want = Hit
				}
				if _, got := g.ask(t, g.keyFor(name, other), makes(g.freshHandle(time.Second))); got != want {
					t.Errorf("a %s response that was made for %x is requested by %x: the outcome is %d, want %d", name, first[:2], other[:2], got, want)
				}
			}
		}
	}
}

func TestOperationHash(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, document := range [][32]byte{{}, {1}} {
		for _, rest := range [][3]string{{"", "", ""}, {"a", "", ""}, {"", "a", ""}, {"", "", "a"}, {"", "", "b"}, {"", "b", ""}, {"b", "", ""}, {"a", "b", ""}, {"ab", "", ""}, {"", "ab", ""}, {"\x01a", "", ""}, {"", "\x01a", ""}} {
			q, name := OperationHash(document, rest[0], []byte(rest[1]), rest[2]), fmt.Sprintf("%x %q", document[:1], rest)
			if other, ok := seen[q]; ok {
				t.Errorf("%s has the same hash as %s", name, other)
			}
			seen[q] = name
			if q != OperationHash(document, rest[0], []byte(rest[1]), rest[2]) {
				t.Errorf("%s has a different hash at the second call", name)
			}
		}
	}
}

func TestForget(t *testing.T) {
	g := newRig(1 << 20)
	alice, bob := g.Identity(account(t, "alice")), g.Identity(account(t, "bob"))
	g.ask(t, g.keyFor("q", alice), recordingPersonal(g.freshHandle(time.Second)))
	g.ask(t, g.keyFor("q", bob), recordingPersonal(g.freshHandle(time.Second)))
	g.ask(t, g.keyFor("public", alice), recording(g.freshHandle(time.Second)))
	g.ask(t, g.keyFor("while it runs", alice), func(ctx context.Context, r *request.Dependencies) {
		recordingPersonal(g.freshHandle(time.Second))(ctx, r)
		g.Forget(account(t, "alice"))
	})
	g.want(t, "a response made for alice", g.keyFor("q", alice), Executed)
	g.want(t, "a response being made for alice", g.keyFor("while it runs", alice), Executed)
	g.want(t, "a response made for bob", g.keyFor("q", bob), Hit)
	g.want(t, "a response for everybody", g.keyFor("public", alice), Hit)
}

func TestBound(t *testing.T) {
	g := newRig(64 << 10)
	key := func(i int) Key { return g.keyFor(fmt.Sprint(i), Identity{1}) }
	last := 0
	for i := range 500 {
		for range 2 { // a full cache stores a response at the second request
			g.ask(t, key(i), recording(g.freshHandle(time.Second)))
		}
		g.want(t, "the first response, requested again and again", key(0), Hit)
		s := g.Stats()
		if s.Bytes > 64<<10 || s.Bytes <= 0 {
			t.Fatalf("after request %d the cache has %d bytes, want 1 to %d", i, s.Bytes, 64<<10)
		}
		if s.Evicted > 0 && last == 0 {
			last = i
		}
	}
	s := g.Stats()
	if last < 30 || s.Evicted+uint64(s.Entries) != s.Stored || s.Invalidated != 0 {
		t.Errorf("the first eviction was at request %d and the counters are %+v; want 30 or later, and Evicted + Entries = Stored", last, s)
	}
	g.want(t, "the second response, which was evicted", key(1), Executed)

	// The cache also counts encoded bodies that are added to a stored response, until the response leaves the cache.
	r, _, _ := g.Do(t.Context(), key(0), nil, nil)
	before := g.Stats().Bytes
	for range 3 {
		r.Encoded("br")
		r.Encoded("zstd")
	}
	if grown := g.Stats().Bytes - before; grown < int64(2*len(r.Body)) || grown > 2048 {
		t.Errorf("two encoded bodies take %d bytes, want %d to 2048", grown, 2*len(r.Body))
	}
	for i := range 1000 {
		g.ask(t, key(1000+i/2), recording(g.freshHandle(time.Second)))
	}
	r.Encoded("gzip") // not counted, because the cache has evicted the response
	for i := range 2000 {
		g.clock.Advance(time.Hour)
		g.want(t, "an expired response", key(1000+i%500), Executed)
	}
	if got := g.Stats(); got.Bytes != g.countedBytes() {
		t.Errorf("the cache counts %d bytes, but the stored responses have %d", got.Bytes, g.countedBytes())
	}
}

// TestFirstRequestEvictsNothing checks that a full cache does not store a response at the first request. At the second request, the
// response must evict others.
func TestFirstRequestEvictsNothing(t *testing.T) {
	g := newRig(256 << 10)
	g.ask(t, g.keyFor("in use", Identity{1}), recording(g.freshHandle(time.Hour)))
	for i := range 1000 {
		g.ask(t, g.keyFor(fmt.Sprint("once ", i), Identity{1}), recording(g.freshHandle(time.Hour)))
	}
	if s := g.Stats(); s.Evicted != 0 || s.Entries < 30 {
		t.Errorf("got %d evictions and %d entries, want none and at least 30", s.Evicted, s.Entries)
	}
	g.want(t, "a response stored before", g.keyFor("in use", Identity{1}), Hit)
	for _, want := range []Outcome{Executed, Executed, Hit} {
		if _, outcome := g.ask(t, g.keyFor("new", Identity{1}), recording(g.freshHandle(time.Hour))); outcome != want {
			t.Errorf("the new operation: the outcome is %d, want %d", outcome, want)
		}
	}

	// After the stored responses have expired, a response is stored at the first request.
	g.clock.Advance(2 * time.Hour)
	for i := range 150 {
		g.ask(t, g.keyFor(fmt.Sprint("later ", i), Identity{1}), recording(g.freshHandle(time.Hour)))
	}
	g.want(t, "a response requested once, later", g.keyFor(fmt.Sprint("later ", 149), Identity{1}), Hit)
}

// countedBytes returns the sum of the sizes of the stored responses.
func (g *rig) countedBytes() (n int64) {
	for _, r := range g.lru.Values() {
		n += r.size
	}
	return n
}

// TestInvalidResponsesAreSwept checks that invalid responses are removed even if they are not requested again.
func TestInvalidResponsesAreSwept(t *testing.T) {
	g := newRig(1 << 30)
	dead := g.freshHandle(time.Hour)
	for i := range 300 {
		g.ask(t, g.keyFor(fmt.Sprint("dead ", i), Identity{1}), recording(dead))
	}
	dead.Invalidate()
	for i := range 1000 {
		g.ask(t, g.keyFor(fmt.Sprint("alive ", i), Identity{1}), recording(g.freshHandle(time.Hour)))
	}
	if s := g.Stats(); s.Entries != 1000 || s.Invalidated != 300 || s.Bytes != g.countedBytes() {
		t.Errorf("the counters are %+v, want 1000 entries, 300 invalidated responses and %d bytes", s, g.countedBytes())
	}
}

// TestBytesAreCounted checks that the cache counts at least as many bytes as the heap grows by, and at most three times as many.
func TestBytesAreCounted(t *testing.T) {
	for _, test := range []struct{ body, handles int }{{30, 0}, {1000, 10}, {20_000, 150}} {
		g := newRig(1 << 40)
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		n := max(200, 10_000_000/(test.body+1000))
		before := heap()
		for i := range n {
			key := g.keyFor(fmt.Sprint(i), Identity{1})
			r, _, err := g.Do(t.Context(), key, nil, func(context.Context) *Response {
				var recorder request.Dependencies
				for range test.handles {
					recorder.Record(g.freshHandle(time.Hour))
				}
				return NewResponse(make([]byte, test.body), nil, &recorder, false)
			})
			if err != nil {
				t.Fatal(err)
			}
			g.StoreRequest(r, "", fmt.Appendf(nil, "%500d", i), nil)
		}
		if held, counted := heap()-before, g.Stats().Bytes; held > counted || counted > 3*held {
			t.Errorf("%d bytes, %d handles: a response takes %d bytes of the heap and counts %d, want 1 to 3 times as many", test.body, test.handles, held/int64(n), counted/int64(n))
		} else {
			t.Logf("%d bytes, %d handles: a response takes %d bytes of the heap and counts %d", test.body, test.handles, held/int64(n), counted/int64(n))
		}
		runtime.KeepAlive(g)
	}
}

func TestFindRequest(t *testing.T) {
	g := newRig(1 << 20)
	alice, bob := g.Identity(account(t, "alice")), g.Identity(account(t, "bob"))
	var moved atomic.Bool
	remember := func(key Key, body string, record func(context.Context, *request.Dependencies)) {
		t.Helper()
		g.ask(t, key, record)
		r, _, _ := g.Do(t.Context(), key, nil, nil)
		g.StoreRequest(r, "POST", []byte(body), func() bool { return !moved.Load() })
	}
	want := func(what string, identity Identity, form, body string, found bool) {
		t.Helper()
		if r := g.FindRequest(t.Context(), identity, form, []byte(body)); (r != nil) != found {
			t.Errorf("%s: found a response: %v, want %v", what, r != nil, found)
		}
	}
	mine, public := g.freshHandle(time.Second), g.freshHandle(time.Second)
	remember(g.keyFor("mine", alice), "{ mine }", recordingPersonal(mine))
	remember(g.keyFor("public", alice), "{ public }", recording(public))
	want("the owner", alice, "POST", "{ mine }", true)
	want("another caller", bob, "POST", "{ mine }", false)
	want("another form", alice, "GET", "{ mine }", false)
	want("another body", alice, "POST", "{  mine }", false)
	want("a public response, for the first caller", alice, "POST", "{ public }", true)
	want("a public response, for another caller", bob, "POST", "{ public }", true)
	moved.Store(true)
	want("a body that now means another operation", alice, "POST", "{ mine }", false)
	moved.Store(false)
	want("a body that means the same operation again", alice, "POST", "{ mine }", true)
	mine.Invalidate()
	want("after a change", alice, "POST", "{ mine }", false)
	want("an unchanged response", alice, "POST", "{ public }", true)
	if len(g.requests) != 1 {
		t.Errorf("%d requests are stored, want 1", len(g.requests))
	}
	remember(g.keyFor("mine", alice), "{ mine }", recordingPersonal(g.freshHandle(time.Second)))
	want("the owner, again", alice, "POST", "{ mine }", true)
	g.Forget(account(t, "alice"))
	want("after Forget", alice, "POST", "{ mine }", false)

	r := g.FindRequest(t.Context(), bob, "POST", []byte("{ public }"))
	for i := range 100 {
		g.StoreRequest(r, "POST", fmt.Appendf(nil, "{ public %d }", i), nil)
	}
	if len(g.requests) != maxRequests {
		t.Errorf("%d requests are stored, want %d", len(g.requests), maxRequests)
	}
	g.StoreRequest(r, "POST", make([]byte, 1<<16), nil)
	if s := g.Stats(); s.Bytes != g.countedBytes() || s.Bytes > 10_000 {
		t.Errorf("the cache counts %d bytes, want %d and at most 10,000", s.Bytes, g.countedBytes())
	}
	public.Invalidate()
	want("after a change of the public value", bob, "POST", "{ public }", false)
	g.StoreRequest(r, "POST", []byte("{ late }"), nil)
	if s := g.Stats(); len(g.requests) != 0 || s.Bytes != 0 || s.Entries != 0 {
		t.Errorf("%d requests are stored and the counters are %+v, want an empty cache", len(g.requests), s)
	}
}

// TestHashCollision checks that a request never gets the response to another request with the same hash.
func TestHashCollision(t *testing.T) {
	g := newRig(1 << 20)
	g.ask(t, g.keyFor("q", Identity{1}), recording(g.freshHandle(time.Second)))
	r, _, _ := g.Do(t.Context(), g.keyFor("q", Identity{1}), nil, nil)
	g.StoreRequest(r, "POST", []byte("{ one }"), nil)
	for key, q := range g.requests {
		q.body = []byte("{ another }")
		g.requests[key] = q
	}
	if g.FindRequest(t.Context(), Identity{1}, "POST", []byte("{ one }")) != nil {
		t.Error("got the response to another request with the same hash")
	}
}

func TestEncodedOnce(t *testing.T) {
	g := newRig(1 << 20)
	r, _, _ := g.Do(t.Context(), g.keyFor("q", Identity{1}), nil, func(context.Context) *Response {
		return NewResponse([]byte("body"), "note", new(request.Dependencies), false)
	})
	var wg sync.WaitGroup
	for range 8 {
		for _, coding := range codings {
			wg.Go(func() {
				if got := string(r.Encoded(coding)); got != coding+":body" {
					t.Errorf("the body in %s is %q, want %q", coding, got, coding+":body")
				}
			})
		}
	}
	wg.Wait()
	if g.encodings != 3 || r.Note != "note" {
		t.Errorf("the body was encoded %d times and the note is %v, want 3 times and note", g.encodings, r.Note)
	}
}

func TestAHitAllocatesNothing(t *testing.T) {
	g := newRig(1 << 20)
	c, body := account(t, "alice"), bytes.Repeat([]byte("x"), 2000)
	handles := make([]*reads.Handle, 150)
	for i := range handles {
		handles[i] = g.freshHandle(time.Second)
	}
	key := g.keyFor("q", g.Identity(c))
	g.ask(t, key, recordingPersonal(handles...))
	r, _, _ := g.Do(t.Context(), key, nil, nil)
	g.StoreRequest(r, "POST", body, nil)
	r.Encoded("br")
	ctx := t.Context()
	for name, f := range map[string]func() bool{
		"FindRequest": func() bool { return g.FindRequest(t.Context(), key.Identity, "POST", body) == r },
		"Do":          func() bool { got, _, _ := g.Do(ctx, key, nil, nil); return got == r },
		"Encoded":     func() bool { return r.Encoded("br") != nil },
	} {
		if !f() {
			t.Errorf("%s does not find the response", name)
		}
		if n := testing.AllocsPerRun(100, func() { f() }); n > 0 {
			t.Errorf("%s needs %.0f allocations, want 0", name, n)
		}
	}
}

// TestNothingOldIsServed checks that a request after a change gets the changed value or a later value.
func TestNothingOldIsServed(t *testing.T) {
	g := newRig(256 << 10)
	const values = 8
	type value struct {
		n      int
		handle *reads.Handle
	}
	var now [values]atomic.Pointer[value]
	for i := range now {
		now[i].Store(&value{0, g.freshHandle(time.Hour)})
	}
	var readers, writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		random := rand.New(rand.NewPCG(1, 1))
		for {
			select {
			case <-stop:
				return
			default:
			}
			i := random.IntN(values)
			old := now[i].Load()
			old.handle.Invalidate()
			now[i].Store(&value{old.n + 1, g.freshHandle(time.Hour)})
			runtime.Gosched()
		}
	})
	for seed := range uint64(6) {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(2, seed))
			for range 2000 {
				i := random.IntN(values)
				j := (i + 1) % values
				least := [2]int{now[i].Load().n, now[j].Load().n}
				r, _, err := g.Do(t.Context(), g.keyFor(fmt.Sprint(i), Identity{byte(1 + random.IntN(2))}), nil, func(ctx context.Context) *Response {
					recorder := &request.Dependencies{}
					ctx = request.With(ctx, func(r *request.Request) { r.Respond(recorder) })
					request.CredentialsFrom(ctx)
					a, b := now[i].Load(), now[j].Load()
					recorder.Record(a.handle)
					recorder.Record(b.handle)
					return NewResponse(fmt.Appendf(nil, "%d %d", a.n, b.n), nil, recorder, false)
				})
				if err != nil {
					t.Error(err)
					return
				}
				var got [2]int
				if _, err := fmt.Sscan(string(r.Body), &got[0], &got[1]); err != nil || got[0] < least[0] || got[1] < least[1] {
					t.Errorf("got the values %v (error %v), want at least %v", got, err, least)
					return
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
	if s := g.Stats(); s.Hits == 0 || s.Invalidated == 0 || s.Bytes != g.countedBytes() {
		t.Errorf("the counters are %+v, want hits, invalidated responses and %d bytes", s, g.countedBytes())
	}
}
