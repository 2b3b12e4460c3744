package admission

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/httpapi/quota"
)

var errBusy = errors.New("busy")

type clientKey struct{}

func clientIn(ctx context.Context) quota.Client {
	client, _ := ctx.Value(clientKey{}).(quota.Client)
	return client
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(clientIn, 3, 3, time.Second, errBusy) // one client may have two of the three operations
		acquire := func(ctx context.Context) (func(), error) { return g.Acquire(ctx) }
		leave1, err1 := acquire(t.Context())
		leave2, err2 := acquire(t.Context())
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		type result struct {
			leave func()
			err   error
		}
		results := make(chan result, 2)
		for range 2 {
			go func() {
				leave, err := acquire(t.Context())
				results <- result{leave, err}
			}()
		}
		synctest.Wait()
		if _, err := acquire(t.Context()); err != errBusy {
			t.Errorf("an operation beyond the queue: got the error %v, want errBusy", err)
		}
		leave1()
		synctest.Wait()
		first := <-results
		if first.err != nil {
			t.Fatal(first.err)
		}
		time.Sleep(time.Second) // the other waiting operation times out
		if late := <-results; late.err != errBusy {
			t.Errorf("the operation that timed out in the queue: got the error %v, want errBusy", late.err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		go func() {
			_, err := acquire(ctx)
			results <- result{err: err}
		}()
		synctest.Wait()
		cancel(gone)
		if r := <-results; !errors.Is(r.err, gone) {
			t.Errorf("the operation whose client left: got the error %v, want %v", r.err, gone)
		}
		first.leave()
		leave2()
		if g.waiting != 0 || g.running != 0 || len(g.clients) != 0 {
			t.Errorf("at the end %d operations wait and %d run, of %d clients; want none", g.waiting, g.running, len(g.clients))
		}
	})
}

// contextOf returns the context of a client with an address.
func contextOf(t *testing.T, address string) context.Context {
	return context.WithValue(t.Context(), clientKey{}, quota.Anonymous(netip.MustParseAddr(address)))
}

// crowd acquires places for the operations of one client, and counts how many operations were admitted and refused.
type crowd struct {
	mu              sync.Mutex
	leaves          []func()
	inside, refused int
}

func (c *crowd) acquire(ctx context.Context, g *Limiter, n int) {
	for range n {
		go func() {
			leave, err := g.Acquire(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.refused++
				return
			}
			c.inside++
			c.leaves = append(c.leaves, leave)
		}()
	}
	synctest.Wait()
}

func (c *crowd) leave(n int) {
	c.mu.Lock()
	leaves := c.leaves[:n]
	c.leaves = c.leaves[n:]
	c.mu.Unlock()
	for _, leave := range leaves {
		leave()
	}
	synctest.Wait()
}

func (c *crowd) expect(t *testing.T, inside, refused int) {
	t.Helper()
	if c.inside != inside || c.refused != refused {
		t.Errorf("%d operations were admitted and %d refused, want %d and %d", c.inside, c.refused, inside, refused)
	}
}

// TestOneClientLeavesRoom checks that other clients are admitted while one client starts more operations than the Limiter allows.
func TestOneClientLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(clientIn, 256, 512, time.Second, errBusy)
		var greedy, neighbour, other crowd
		greedy.acquire(contextOf(t, "2001:db8::1"), g, 700)
		greedy.acquire(contextOf(t, "2001:db8::2"), g, 100) // an address of the same network, so the same client
		greedy.expect(t, 192, 800-192-384)
		neighbour.acquire(contextOf(t, "192.0.2.1"), g, 1)
		neighbour.expect(t, 1, 0)
		other.acquire(contextOf(t, "192.0.2.2"), g, 1)
		other.expect(t, 1, 0)
		neighbour.leave(1)
		other.leave(1)
		time.Sleep(time.Second) // the waiting operations time out
		synctest.Wait()
		greedy.expect(t, 192, 800-192)
		greedy.leave(192)
		if g.running != 0 || g.waiting != 0 || len(g.clients) != 0 {
			t.Errorf("at the end %d operations run and %d wait, of %d clients; want none", g.running, g.waiting, len(g.clients))
		}
	})
}

// TestFewestRunningOperationsFirst checks that the waiting client with the fewest running operations is admitted next.
func TestFewestRunningOperationsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(clientIn, 8, 100, time.Minute, errBusy)
		var a, b, late crowd
		a.acquire(contextOf(t, "192.0.2.1"), g, 20)
		b.acquire(contextOf(t, "192.0.2.2"), g, 20)
		a.expect(t, 6, 0)
		b.expect(t, 1, 0)
		late.acquire(contextOf(t, "192.0.2.3"), g, 20)
		late.expect(t, 1, 0)
		a.leave(3)
		if b.inside+late.inside != 4 || b.inside == 0 || late.inside == 0 || a.inside != 6 {
			t.Errorf("after three operations of a left, the clients a, b and late have had %d, %d and %d admitted operations, want 6, and 4 for b and late together", a.inside, b.inside, late.inside)
		}
		for range 60 {
			for _, c := range []*crowd{&a, &b, &late} {
				c.leave(len(c.leaves))
			}
		}
		for _, c := range []*crowd{&a, &b, &late} {
			c.expect(t, 20, 0)
		}
		if g.running != 0 || g.waiting != 0 || len(g.clients) != 0 {
			t.Errorf("at the end %d operations run and %d wait, of %d clients; want none", g.running, g.waiting, len(g.clients))
		}
	})
}

func TestTheLimiterAllocatesNothing(t *testing.T) {
	g, ctx := New(clientIn, 256, 512, time.Second, errBusy), contextOf(t, "192.0.2.1")
	if n := testing.AllocsPerRun(100, func() {
		leave, err := g.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}); n > 0 {
		t.Errorf("Acquire and release need %v allocations, want 0", n)
	}
}

// TestOperationsThatWaitForTheVenueLeaveRoom checks that half of the places stay for operations that do not wait for the venue, and
// that quota.Fair divides the other half.
func TestOperationsThatWaitForTheVenueLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(clientIn, 16, 16, time.Second, errBusy)
		greedy, other := contextOf(t, "192.0.2.1"), contextOf(t, "192.0.2.2")
		begin := func(ctx context.Context) *Slot {
			s := &Slot{}
			if err := l.Begin(ctx, s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		counts := func() (running, away, waiting int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.running, l.away[0], l.waiting
		}
		waits := func(s *Slot) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.share != nil
		}
		var slots []*Slot
		results := make(chan error, 12)
		for range 12 {
			slots = append(slots, begin(greedy))
		}
		for _, s := range slots {
			go func() { results <- s.Await(greedy, 1) }()
		}
		synctest.Wait()
		if running, away, waiting := counts(); running != 6 || away != 6 || waiting != 6 {
			t.Errorf("of 12 operations, %d have a place, %d of them wait for the venue, and %d wait for a place; want 6 of each", running, away, waiting)
		}
		for range 6 {
			slots = append(slots, begin(greedy)) // an operation that needs no call
		}
		slots = append(slots, begin(other))
		if err := slots[len(slots)-1].Await(other, 1); err != nil {
			t.Errorf("an operation of another client cannot wait for the venue: %v", err)
		}
		slots[len(slots)-1].End()
		slots[slices.IndexFunc(slots, waits)].End() // its place goes to one in the queue
		synctest.Wait()
		if _, away, waiting := counts(); away != 6 || waiting != 5 || len(results) != 7 {
			t.Errorf("after one has ended, %d operations wait for the venue, %d wait for a place, and %d have a result; want 6, 5 and 7", away, waiting, len(results))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		refused := 0
		for range 12 {
			if <-results == errBusy {
				refused++
			}
		}
		for _, s := range slots {
			s.End()
		}
		if running, away, waiting := counts(); refused != 5 || running != 0 || away != 0 || waiting != 0 || len(l.clients) != 0 {
			t.Errorf("%d operations were refused, want 5; at the end %d run, %d wait for the venue and %d wait, of %d clients; want none", refused, running, away, waiting, len(l.clients))
		}
	})
}

// TestJoinedOperationsLeaveRoom checks that operations that wait for an equal one do not take the place that this one needs.
func TestJoinedOperationsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ctx := New(clientIn, 16, 16, time.Second, errBusy), contextOf(t, "192.0.2.1")
		slots := make([]Slot, 12)
		for i := range slots {
			if err := l.Begin(ctx, &slots[i]); err != nil {
				t.Fatal(err)
			}
		}
		results := make(chan error, 12)
		for i := range slots[1:] {
			go func() { results <- slots[1+i].Join(ctx, &slots[0]) }()
		}
		synctest.Wait()
		if l.away[0] != 5 || l.waiting != 6 {
			t.Errorf("of 11 operations, %d have a place and %d wait for one; want 5 and 6", l.away[0], l.waiting)
		}
		start := time.Now()
		if err := slots[0].Await(ctx, 1); err != nil || time.Since(start) > 0 {
			t.Errorf("the operation that the others wait for got the error %v after %v, want a place at once", err, time.Since(start))
		}
		for i := range slots {
			slots[i].End()
		}
		synctest.Wait()
		if len(results) != 11 || l.running != 0 || l.away[0] != 0 {
			t.Errorf("at the end, %d of 11 operations have a result, %d run and %d wait for the venue; want 11, 0 and 0", len(results), l.running, l.away[0])
		}
	})
}

// TestVenueShare fills the part of a venue that hangs, and counts operations of three venues where they wait. Operations of the same client
// that wait for other venues get their places at once.
func TestVenueShare(t *testing.T) {
	const a, b, c = 1, 2, 4
	synctest.Test(t, func(t *testing.T) {
		l, ctx := New(clientIn, 48, 48, time.Second, errBusy), contextOf(t, "192.0.2.1")
		l.Venues = 3 // one client may have 6 of the 8 places of a part
		flight, land := context.WithCancel(ctx)
		var slots []*Slot
		begin := func() *Slot {
			s := &Slot{}
			if err := l.Begin(ctx, s); err != nil {
				t.Fatal(err)
			}
			slots = append(slots, s)
			return s
		}
		expect := func(what string, waiting int, want ...int) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if !slices.Equal(l.away[:3], want) || l.waiting != waiting {
				t.Errorf("%s: %v operations wait in the parts and %d for a place, want %v and %d", what, l.away[:3], l.waiting, want, waiting)
			}
		}
		results := make(chan error, 10)
		first := begin()
		for range 3 {
			s := begin()
			go func() { results <- s.Join(flight, first) }()
		}
		expect("joined one that waits for nothing yet", 0, 0, 0, 0)
		for i, at := range []Venues{a | b, b, b} {
			if err := first.Await(ctx, at); err != nil {
				t.Fatal(err)
			}
			expect("a leader and those that joined it", 0, []int{4, 0, 0}[i], []int{0, 4, 4}[i], 0)
		}
		for range 4 {
			s := begin()
			go func() { results <- s.Await(ctx, b) }()
		}
		expect("two too many", 2, 0, 6, 0)
		mixed := begin()
		if err := mixed.Await(ctx, b|c); err != nil {
			t.Fatal(err)
		}
		expect("waits for the hung venue and another one", 2, 0, 6, 1)
		go func() { results <- mixed.Await(ctx, b) }()
		expect("waits only for the hung venue", 3, 0, 6, 0)
		start := time.Now()
		for range 12 {
			if err := begin().Await(ctx, []Venues{a, c, a | b, b | c}[len(slots)%4]); err != nil || time.Since(start) > 0 {
				t.Errorf("an operation that waits for another venue got the error %v after %v", err, time.Since(start))
			}
		}
		expect("waits for other venues", 3, 6, 6, 6)
		land()
		time.Sleep(time.Second)
		synctest.Wait()
		refused := 0
		for range len(results) {
			if <-results == errBusy {
				refused++
			}
		}
		for _, s := range slots {
			s.End()
		}
		if synctest.Wait(); refused != 3 || l.running != 0 || l.away != [nowhere + 1]int{} {
			t.Errorf("%d operations were refused, want 3; at the end, %d run, and %v wait for venues", refused, l.running, l.away)
		}
	})
}
