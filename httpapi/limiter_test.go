package httpapi

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiter(3, 3, time.Second) // one client may have two of the three operations
		enter := func(ctx context.Context) (func(), error) { return g.acquire(ctx) }
		leave1, err1 := enter(t.Context())
		leave2, err2 := enter(t.Context())
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
				leave, err := enter(t.Context())
				results <- result{leave, err}
			}()
		}
		synctest.Wait()
		var full *httpError
		if _, err := enter(t.Context()); !errors.As(err, &full) || full.status != 503 {
			t.Errorf("beyond the queue: %v", err)
		}
		leave1()
		synctest.Wait()
		first := <-results
		if first.err != nil {
			t.Fatal(first.err)
		}
		time.Sleep(time.Second) // the other waiting operation times out
		if late := <-results; !errors.As(late.err, &full) {
			t.Errorf("after its patience: %v", late.err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		go func() {
			_, err := enter(ctx)
			results <- result{err: err}
		}()
		synctest.Wait()
		cancel(gone)
		if r := <-results; !errors.Is(r.err, gone) {
			t.Errorf("cancelled client: got %v", r.err)
		}
		first.leave()
		leave2()
		if g.waiting != 0 || g.running != 0 || len(g.clients) != 0 {
			t.Errorf("%d wait, %d are inside, of %d clients", g.waiting, g.running, len(g.clients))
		}
	})
}

// from returns the context of a client with an address.
func from(t *testing.T, address string) context.Context {
	return &requestContext{Context: t.Context(), identity: identity{client: netip.MustParseAddr(address)}}
}

// crowd acquires operations of a limiter and counts how many were admitted and refused.
type crowd struct {
	mu              sync.Mutex
	leaves          []func()
	inside, refused int
}

func (c *crowd) enter(ctx context.Context, g *limiter, n int) {
	for range n {
		go func() {
			leave, err := g.acquire(ctx)
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
		t.Errorf("%d came inside and %d were refused, want %d and %d", c.inside, c.refused, inside, refused)
	}
}

// TestOneClientLeavesRoom checks that other clients are admitted while one client starts more operations than the limiter allows.
func TestOneClientLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiter(256, 512, time.Second)
		var greedy, neighbour, other crowd
		greedy.enter(from(t, "2001:db8::1"), g, 700)
		greedy.enter(from(t, "2001:db8::2"), g, 100) // an address of the same network, so the same client
		greedy.expect(t, 192, 800-192-384)
		neighbour.enter(from(t, "192.0.2.1"), g, 1)
		neighbour.expect(t, 1, 0)
		other.enter(from(t, "192.0.2.2"), g, 1)
		other.expect(t, 1, 0)
		neighbour.leave(1)
		other.leave(1)
		time.Sleep(time.Second) // the waiting operations time out
		synctest.Wait()
		greedy.expect(t, 192, 800-192)
		greedy.leave(192)
		if g.running != 0 || g.waiting != 0 || len(g.clients) != 0 {
			t.Errorf("%d are inside, %d wait, of %d clients", g.running, g.waiting, len(g.clients))
		}
	})
}

// TestFreePlaces checks that the waiting client with the fewest running operations is admitted next.
func TestFreePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiter(8, 100, time.Minute)
		var a, b, late crowd
		a.enter(from(t, "192.0.2.1"), g, 20)
		b.enter(from(t, "192.0.2.2"), g, 20)
		a.expect(t, 6, 0)
		b.expect(t, 1, 0)
		late.enter(from(t, "192.0.2.3"), g, 20)
		late.expect(t, 1, 0)
		a.leave(3)
		if b.inside+late.inside != 4 || b.inside == 0 || late.inside == 0 || a.inside != 6 {
			t.Errorf("of three that left, %d, %d and %d are inside", a.inside-3, b.inside, late.inside)
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
			t.Errorf("%d are inside, %d wait, of %d clients", g.running, g.waiting, len(g.clients))
		}
	})
}

func TestTheLimiterAllocatesNothing(t *testing.T) {
	g, ctx := newLimiter(256, 512, time.Second), from(t, "192.0.2.1")
	if n := testing.AllocsPerRun(100, func() {
		leave, err := g.acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
