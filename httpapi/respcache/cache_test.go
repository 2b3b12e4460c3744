package respcache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// TestServedWhileValid checks that the cache serves a response while its dependencies are valid. After that, the cache must execute
// again.
func TestServedWhileValid(t *testing.T) {
	session := &market.Session{}
	type basis struct {
		handles []*market.Handle
		session *market.Session
		until   time.Time
	}
	tests := map[string]func(g *rig, b *basis){
		"the first instant that one is not fresh": func(g *rig, _ *basis) { g.clock.Advance(2 * time.Second) },
		"the end of the day":                      func(g *rig, b *basis) { g.clock.Advance(b.until.Sub(g.clock.Now())) },
		"the end of the stream's session":         func(g *rig, b *basis) { b.session.End(g.clock.Now()) },
	}
	for i := range 5 {
		tests[fmt.Sprintf("entry %d was replaced", i)] = func(_ *rig, b *basis) { b.handles[i].Invalidate() }
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := newRig(1 << 20)
			*session = market.Session{}
			b := basis{session: session, until: g.clock.Now().Add(1500 * time.Millisecond)}
			b.handles = []*market.Handle{
				g.fresh(time.Minute), g.fresh(2 * time.Second), market.NewStreamHandle(session), g.fresh(3 * time.Second), market.NewStreamHandle(&market.Session{}),
			}
			key := g.question("q", g.Identity(nil))
			if strings.HasPrefix(name, "the first") {
				b.until = time.Time{}
			}
			g.ask(t, key, func(_ context.Context, r *reqctx.Dependencies) {
				on(b.handles...)(nil, r)
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
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		g := newRig(1 << 20)
		key := g.question("q", g.Identity(nil))
		g.ask(t, key, on())
		g.clock.Advance(maxAge - 1)
		g.want(t, "before its maxAge", key, Hit)
		g.clock.Advance(1)
		g.want(t, "at its maxAge", key, Executed)
	})
}

func TestNeverStored(t *testing.T) {
	ended := &market.Session{}
	ended.End(time.Now())
	for name, record := range map[string]func(g *rig, r *reqctx.Dependencies){
		"a read that failed":          func(g *rig, r *reqctx.Dependencies) { r.Record(g.fresh(time.Minute)); r.Record(nil) },
		"what was stale":              func(g *rig, r *reqctx.Dependencies) { r.Record(g.fresh(0)) },
		"what was streamed":           func(g *rig, r *reqctx.Dependencies) { r.Record(market.NewStreamHandle(ended)) },
		"what changed while it ran":   func(g *rig, r *reqctx.Dependencies) { h := g.fresh(time.Minute); r.Record(h); h.Invalidate() },
		"what went past while it ran": func(g *rig, r *reqctx.Dependencies) { r.Record(g.fresh(time.Second)); g.clock.Advance(time.Second) },
		"a day that ended":            func(g *rig, r *reqctx.Dependencies) { r.Until(g.clock.Now()) },
	} {
		g := newRig(1 << 20)
		key := g.question("q", g.Identity(nil))
		g.ask(t, key, func(_ context.Context, r *reqctx.Dependencies) { record(g, r) })
		if s := g.Stats(); s.Stored != 0 || s.Entries != 0 || s.Bytes != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	g := newRig(1 << 20)
	for name, r := range map[string]*Response{
		"errors":          NewResponse([]byte("x"), nil, nil),
		"a huge response": NewResponse(make([]byte, 1<<16), nil, new(reqctx.Dependencies)),
	} {
		if _, _, err := g.Do(t.Context(), g.question(name, Identity{1}), func(context.Context) *Response { return r }); err != nil {
			t.Fatal(err)
		}
		if s := g.Stats(); s.Stored != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestCallersAreKeptApart checks that callers with different credentials do not share a response whose execution read the
// credentials. All callers share other responses.
func TestCallersAreKeptApart(t *testing.T) {
	g := newRig(1 << 20)
	alice, bob, nobody := g.Identity(account(t, "alice")), g.Identity(account(t, "bob")), g.Identity(nil)
	if alice != g.Identity(account(t, "alice")) || alice == bob || nobody == (Identity{}) || alice == (Identity{}) {
		t.Error("identities do not match their callers")
	}
	if newRig(1).Identity(account(t, "alice")) == alice {
		t.Error("an identity is known without the process's key")
	}
	for name, makes := range map[string]func(...*market.Handle) func(context.Context, *reqctx.Dependencies){"personal": personally, "public": on} {
		for _, first := range []Identity{alice, nobody} {
			g := newRig(1 << 20)
			g.ask(t, g.question(name, first), makes(g.fresh(time.Second)))
			for _, other := range []Identity{alice, bob, nobody} {
				want := Executed
				if other == first || name == "public" {
					want = Hit
				}
				if _, got := g.ask(t, g.question(name, other), makes(g.fresh(time.Second))); got != want {
					t.Errorf("%s, from %x to %x: %d, want %d", name, first[:2], other[:2], got, want)
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
				t.Errorf("%s has two hashes", name)
			}
		}
	}
}

func TestForget(t *testing.T) {
	g := newRig(1 << 20)
	alice, bob := g.Identity(account(t, "alice")), g.Identity(account(t, "bob"))
	g.ask(t, g.question("q", alice), personally(g.fresh(time.Second)))
	g.ask(t, g.question("q", bob), personally(g.fresh(time.Second)))
	g.ask(t, g.question("public", alice), on(g.fresh(time.Second)))
	g.ask(t, g.question("while it runs", alice), func(ctx context.Context, r *reqctx.Dependencies) {
		personally(g.fresh(time.Second))(ctx, r)
		g.Forget(account(t, "alice"))
	})
	g.want(t, "a response made for alice", g.question("q", alice), Executed)
	g.want(t, "a response being made for alice", g.question("while it runs", alice), Executed)
	g.want(t, "a response made for bob", g.question("q", bob), Hit)
	g.want(t, "a response for everybody", g.question("public", alice), Hit)
}

func TestBound(t *testing.T) {
	g := newRig(64 << 10)
	key := func(i int) Key { return g.question(fmt.Sprint(i), Identity{1}) }
	last := 0
	for i := range 500 {
		for range 2 { // a full cache stores a response at the second request
			g.ask(t, key(i), on(g.fresh(time.Second)))
		}
		g.want(t, "the first response, requested again and again", key(0), Hit)
		s := g.Stats()
		if s.Bytes > 64<<10 || s.Bytes <= 0 {
			t.Fatalf("%d: %+v", i, s)
		}
		if s.Evicted > 0 && last == 0 {
			last = i
		}
	}
	s := g.Stats()
	if last < 30 || s.Evicted+uint64(s.Entries) != s.Stored || s.Invalidated != 0 {
		t.Errorf("the first eviction is at %d, %+v", last, s)
	}
	g.want(t, "the second", key(1), Executed)

	// The cache also counts encoded bodies that are added to a stored response, until the response leaves the cache.
	r, _, _ := g.Do(t.Context(), key(0), nil)
	before := g.Stats().Bytes
	for range 3 {
		r.Encoded("br")
		r.Encoded("zstd")
	}
	if grown := g.Stats().Bytes - before; grown < int64(2*len(r.Body)) || grown > 2048 {
		t.Errorf("two codings take %d bytes", grown)
	}
	for i := range 1000 {
		g.ask(t, key(1000+i/2), on(g.fresh(time.Second)))
	}
	r.Encoded("gzip") // not counted, because the cache has evicted the response
	for i := range 2000 {
		g.clock.Advance(time.Hour)
		g.want(t, "an expired response", key(1000+i%500), Executed)
	}
	if got := g.Stats(); got.Bytes != g.counted() {
		t.Errorf("%+v, but there are %d bytes", got, g.counted())
	}
}

// TestAskedOnceDisplacesNone checks that a full cache does not store a response at the first request. At the second request, the
// response must evict others.
func TestAskedOnceDisplacesNone(t *testing.T) {
	g := newRig(256 << 10)
	g.ask(t, g.question("in use", Identity{1}), on(g.fresh(time.Hour)))
	for i := range 1000 {
		g.ask(t, g.question(fmt.Sprint("once ", i), Identity{1}), on(g.fresh(time.Hour)))
	}
	if s := g.Stats(); s.Evicted != 0 || s.Entries < 30 {
		t.Errorf("%+v", s)
	}
	g.want(t, "a response stored before", g.question("in use", Identity{1}), Hit)
	for _, want := range []Outcome{Executed, Executed, Hit} {
		if _, outcome := g.ask(t, g.question("new", Identity{1}), on(g.fresh(time.Hour))); outcome != want {
			t.Errorf("the outcome is %v, want %v", outcome, want)
		}
	}

	// After the stored responses have expired, a response is stored at the first request.
	g.clock.Advance(2 * time.Hour)
	for i := range 150 {
		g.ask(t, g.question(fmt.Sprint("later ", i), Identity{1}), on(g.fresh(time.Hour)))
	}
	g.want(t, "a response requested once, later", g.question(fmt.Sprint("later ", 149), Identity{1}), Hit)
}

// counted returns the sum of the sizes of the stored responses.
func (g *rig) counted() (n int64) {
	for _, r := range g.lru.Values() {
		n += r.size
	}
	return n
}

// TestInvalidResponsesAreSwept checks that invalid responses are removed even if they are not requested again.
func TestInvalidResponsesAreSwept(t *testing.T) {
	g := newRig(1 << 30)
	dead := g.fresh(time.Hour)
	for i := range 300 {
		g.ask(t, g.question(fmt.Sprint("dead ", i), Identity{1}), on(dead))
	}
	dead.Invalidate()
	for i := range 1000 {
		g.ask(t, g.question(fmt.Sprint("alive ", i), Identity{1}), on(g.fresh(time.Hour)))
	}
	if s := g.Stats(); s.Entries != 1000 || s.Invalidated != 300 || s.Bytes != g.counted() {
		t.Errorf("%+v", s)
	}
}

// TestBytesAreCounted checks that the cache counts at least the bytes by which the heap grows, and at most three times as many.
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
			key := g.question(fmt.Sprint(i), Identity{1})
			r, _, err := g.Do(t.Context(), key, func(context.Context) *Response {
				var recorder reqctx.Dependencies
				for range test.handles {
					recorder.Record(g.fresh(time.Hour))
				}
				return NewResponse(make([]byte, test.body), nil, &recorder)
			})
			if err != nil {
				t.Fatal(err)
			}
			g.StoreRequest(r, "", fmt.Appendf(nil, "%500d", i), always)
		}
		if held, counted := heap()-before, g.Stats().Bytes; held > counted || counted > 3*held {
			t.Errorf("%d bytes, %d handles: the heap holds %d a response, %d are counted", test.body, test.handles, held/int64(n), counted/int64(n))
		} else {
			t.Logf("%d bytes, %d handles: the heap holds %d a response, %d are counted", test.body, test.handles, held/int64(n), counted/int64(n))
		}
		runtime.KeepAlive(g)
	}
}

func always() bool { return true }

func TestFindRequest(t *testing.T) {
	g := newRig(1 << 20)
	alice, bob := g.Identity(account(t, "alice")), g.Identity(account(t, "bob"))
	var moved atomic.Bool
	remember := func(key Key, body string, record func(context.Context, *reqctx.Dependencies)) {
		t.Helper()
		g.ask(t, key, record)
		r, _, _ := g.Do(t.Context(), key, nil)
		g.StoreRequest(r, "POST", []byte(body), func() bool { return !moved.Load() })
	}
	want := func(what string, identity Identity, form, body string, found bool) {
		t.Helper()
		if r := g.FindRequest(identity, form, []byte(body)); (r != nil) != found {
			t.Errorf("%s: %v", what, r)
		}
	}
	mine, public := g.fresh(time.Second), g.fresh(time.Second)
	remember(g.question("mine", alice), "{ mine }", personally(mine))
	remember(g.question("public", alice), "{ public }", on(public))
	want("the owner", alice, "POST", "{ mine }", true)
	want("another caller", bob, "POST", "{ mine }", false)
	want("another form", alice, "GET", "{ mine }", false)
	want("another body", alice, "POST", "{  mine }", false)
	want("the body for all, by the one", alice, "POST", "{ public }", true)
	want("the body for all, by the other", bob, "POST", "{ public }", true)
	moved.Store(true)
	want("a body that means something else now", alice, "POST", "{ mine }", false)
	moved.Store(false)
	want("a body that means the same again", alice, "POST", "{ mine }", true)
	mine.Invalidate()
	want("after a change", alice, "POST", "{ mine }", false)
	want("an unchanged response", alice, "POST", "{ public }", true)
	if len(g.requests) != 1 {
		t.Errorf("%d requests are stored", len(g.requests))
	}
	remember(g.question("mine", alice), "{ mine }", personally(g.fresh(time.Second)))
	want("the owner, again", alice, "POST", "{ mine }", true)
	g.Forget(account(t, "alice"))
	want("after the account is gone", alice, "POST", "{ mine }", false)

	r := g.FindRequest(bob, "POST", []byte("{ public }"))
	for i := range 100 {
		g.StoreRequest(r, "POST", fmt.Appendf(nil, "{ public %d }", i), always)
	}
	if len(g.requests) != maxRequests {
		t.Errorf("%d requests are stored", len(g.requests))
	}
	g.StoreRequest(r, "POST", make([]byte, 1<<16), always)
	if s := g.Stats(); s.Bytes != g.counted() || s.Bytes > 10_000 {
		t.Errorf("%+v", s)
	}
	public.Invalidate()
	want("after a change, too", bob, "POST", "{ public }", false)
	g.StoreRequest(r, "POST", []byte("{ late }"), always)
	if s := g.Stats(); len(g.requests) != 0 || s.Bytes != 0 || s.Entries != 0 {
		t.Errorf("%d requests are stored, %+v", len(g.requests), s)
	}
}

// TestHashCollision checks that a request never gets the response to another request with the same hash.
func TestHashCollision(t *testing.T) {
	g := newRig(1 << 20)
	g.ask(t, g.question("q", Identity{1}), on(g.fresh(time.Second)))
	r, _, _ := g.Do(t.Context(), g.question("q", Identity{1}), nil)
	g.StoreRequest(r, "POST", []byte("{ one }"), always)
	for key, q := range g.requests {
		q.body = []byte("{ another }")
		g.requests[key] = q
	}
	if g.FindRequest(Identity{1}, "POST", []byte("{ one }")) != nil {
		t.Error("bodies are not compared")
	}
}

func TestEncodedOnce(t *testing.T) {
	g := newRig(1 << 20)
	r, _, _ := g.Do(t.Context(), g.question("q", Identity{1}), func(context.Context) *Response {
		return NewResponse([]byte("body"), "note", new(reqctx.Dependencies))
	})
	var wg sync.WaitGroup
	for range 8 {
		for _, coding := range codings {
			wg.Go(func() {
				if got := string(r.Encoded(coding)); got != coding+":body" {
					t.Errorf("%s: %s", coding, got)
				}
			})
		}
	}
	wg.Wait()
	if g.encodings != 3 || r.Note != "note" {
		t.Errorf("encoded %d times", g.encodings)
	}
}

func TestAHitAllocatesNothing(t *testing.T) {
	g := newRig(1 << 20)
	c, body := account(t, "alice"), bytes.Repeat([]byte("x"), 2000)
	handles := make([]*market.Handle, 150)
	for i := range handles {
		handles[i] = g.fresh(time.Second)
	}
	key := g.question("q", g.Identity(c))
	g.ask(t, key, personally(handles...))
	r, _, _ := g.Do(t.Context(), key, nil)
	g.StoreRequest(r, "POST", body, always)
	r.Encoded("br")
	ctx := t.Context()
	for name, f := range map[string]func() bool{
		"FindRequest": func() bool { return g.FindRequest(key.Identity, "POST", body) == r },
		"Do":          func() bool { got, _, _ := g.Do(ctx, key, nil); return got == r },
		"Encoded":     func() bool { return r.Encoded("br") != nil },
	} {
		if !f() {
			t.Errorf("%s does not find it", name)
		}
		if n := testing.AllocsPerRun(100, func() { f() }); n > 0 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
	}
}

// TestNothingOldIsServed checks that a request after a change gets the changed value or a later value.
func TestNothingOldIsServed(t *testing.T) {
	g := newRig(256 << 10)
	const values = 8
	type value struct {
		n      int
		handle *market.Handle
	}
	var now [values]atomic.Pointer[value]
	for i := range now {
		now[i].Store(&value{0, g.fresh(time.Hour)})
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
			now[i].Store(&value{old.n + 1, g.fresh(time.Hour)})
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
				r, _, err := g.Do(t.Context(), g.question(fmt.Sprint(i), Identity{byte(1 + random.IntN(2))}), func(ctx context.Context) *Response {
					ctx, recorder := reqctx.WithDependencies(ctx)
					reqctx.CredentialsFrom(ctx)
					a, b := now[i].Load(), now[j].Load()
					recorder.Record(a.handle)
					recorder.Record(b.handle)
					return NewResponse(fmt.Appendf(nil, "%d %d", a.n, b.n), nil, recorder)
				})
				if err != nil {
					t.Error(err)
					return
				}
				var got [2]int
				if _, err := fmt.Sscan(string(r.Body), &got[0], &got[1]); err != nil || got[0] < least[0] || got[1] < least[1] {
					t.Errorf("got %v, %v after %v", got, err, least)
					return
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
	if s := g.Stats(); s.Hits == 0 || s.Invalidated == 0 || s.Bytes != g.counted() {
		t.Errorf("%+v", s)
	}
}
