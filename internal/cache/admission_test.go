package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// admission is a fake Admission that the test controls. Each reservation waits until the test sends a verdict or the cache releases
// the reservation.
type admission struct {
	mu       sync.Mutex
	entered  []*ticket
	released int
	waiting  int
	scarce   bool
	verdict  chan error
}

func newAdmission() *admission { return &admission{verdict: make(chan error)} }

// ticket is a reservation of an admission.
type ticket struct {
	admitAll
	owner   *admission
	request upstream.CallRequest
	turn    time.Time
	decided chan struct{}
	gone    chan struct{}
	err     error
}

func (a *admission) Scarce(string, upstream.Endpoint) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scarce
}

func (a *admission) Reserve(want upstream.CallRequest) upstream.Reservation {
	t := &ticket{owner: a, request: want, decided: make(chan struct{}), gone: make(chan struct{})}
	a.mu.Lock()
	a.entered = append(a.entered, t)
	a.waiting++
	a.mu.Unlock()
	go func() {
		select {
		case err := <-a.verdict:
			a.mu.Lock()
			defer a.mu.Unlock()
			t.err = err
		case <-t.gone:
			a.mu.Lock()
			defer a.mu.Unlock()
			t.err = context.Canceled
		}
		a.waiting--
		close(t.decided)
	}()
	return t
}

func (t *ticket) Decided() <-chan struct{} { return t.decided }

func (t *ticket) Err() error {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	return t.err
}

func (t *ticket) Late(deadline time.Time) error {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	if t.turn.IsZero() || deadline.IsZero() || t.turn.Before(deadline) {
		return nil
	}
	return upstream.RateLimited(time.Until(t.turn))
}

func (t *ticket) Join(want upstream.CallRequest) {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	t.request.Priority = max(t.request.Priority, want.Priority)
	if want.Deadline.IsZero() || !t.request.Deadline.IsZero() && want.Deadline.After(t.request.Deadline) {
		t.request.Deadline = want.Deadline
	}
}

func (t *ticket) Release(bool) {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	select {
	case <-t.gone:
		return
	default:
		close(t.gone)
	}
	select {
	case <-t.decided:
		if t.err == nil {
			t.owner.released++
		}
	default:
	}
}

// request returns the request of reservation n, counted from 0. Join may have raised the priority and the deadline of the request.
func (a *admission) request(n int) upstream.CallRequest {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entered[n].request
}

func (a *admission) state() (waiting, released, entered int) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting, a.released, len(a.entered)
}

func withAdmission(a Admission) func(*Config) { return func(cfg *Config) { cfg.Admission = a } }

func TestKeysWaitForAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a))
		var waiting []chan prices
		for _, id := range ids("t", 0, 30) {
			waiting = append(waiting, fetch(t.Context(), c, id))
		}
		if n, _, _ := a.state(); n != 1 || len(v.calls()) != 0 {
			t.Fatalf("got %d waiting reservations and %d calls, want 1 and 0", n, len(v.calls()))
		}
		a.verdict <- nil
		for i, ch := range waiting {
			wantPrices(t, receive(t, ch), fmt.Sprintf("t%03d", i))
		}
		if n, released, _ := a.state(); n != 0 || released != 1 || len(v.calls()) != 1 {
			t.Errorf("got %d waiting reservations, %d released, %d calls; want 0, 1, 1", n, released, len(v.calls()))
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestEachBatchIsAdmitted checks that each batch waits for its own admission if one batch cannot hold all keys.
func TestEachBatchIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a))
		waiting := fetch(t.Context(), c, ids("t", 0, 250)...)
		if n, _, _ := a.state(); n != 7 {
			t.Fatalf("got %d waiting reservations, want 7", n)
		}
		for i := range 7 {
			a.verdict <- nil
			if synctest.Wait(); len(v.calls()) != i+1 {
				t.Fatalf("got %d calls after %d admissions, want one for each", len(v.calls()), i+1)
			}
		}
		wantPrices(t, receive(t, waiting), ids("t", 0, 250)...)
		if n, released, _ := a.state(); n != 0 || released != 7 {
			t.Errorf("got %d waiting and %d released reservations, want 0 and 7", n, released)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

func TestRefusedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a))
		refusal := &market.Error{Code: market.CodeRateLimited, Message: "later", RetryAfter: time.Minute}
		first, second := fetch(t.Context(), c, "a"), fetch(t.Context(), c, "a", "b")
		a.verdict <- refusal
		for _, r := range slices.Concat(receive(t, first), receive(t, second)) {
			var e *market.Error
			if !errors.As(r.Err, &e) || e != refusal {
				t.Errorf("got %+v, want the refusal", r)
			}
		}
		if s := statsOf(c, "price"); len(v.calls()) != 0 || s.Calls != 0 || s.Keys != 0 {
			t.Errorf("got %+v, want no calls after a refusal", s)
		}
		wantIdle(t, c.prices.routes[0])
		again := fetch(t.Context(), c, "a")
		a.verdict <- nil
		wantPrices(t, receive(t, again), "a")
	})
}

// TestEachCallIsAdmitted checks that each key waits for its own admission while the venue needs a call for each key.
func TestEachCallIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		oneByOne := true
		v.cost = func(keys int) int {
			if oneByOne {
				return keys
			}
			return 1
		}
		c := open(t, v, withAdmission(a))
		first := fetch(t.Context(), c, "a", "b", "a")
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("got %d waiting reservations, want 2", n)
		}
		a.verdict <- nil
		a.verdict <- nil
		wantPrices(t, receive(t, first), "a", "b", "a")

		// When the venue accepts lists again, one call reads 40 of the waiting keys, which is the maximum for one list.
		second := fetch(t.Context(), c, ids("t", 0, 50)...)
		if n, _, _ := a.state(); n != 50 {
			t.Fatalf("got %d waiting reservations, want 50", n)
		}
		oneByOne = false
		a.verdict <- nil
		if n, _, _ := a.state(); n != 10 {
			t.Fatalf("got %d waiting reservations, want 10", n)
		}
		wantPending(t, second)
		a.verdict <- nil
		wantPrices(t, receive(t, second), ids("t", 0, 50)...)
		var sizes []int
		for _, call := range v.calls() {
			sizes = append(sizes, len(call.keys))
		}
		if !slices.Equal(sizes, []int{1, 1, 40, 10}) {
			t.Errorf("got calls of %v keys, want 1, 1, 40, 10", sizes)
		}
		if n, released, _ := a.state(); n != 0 || released != 4 {
			t.Errorf("got %d waiting and %d released reservations, want 0 and 4", n, released)
		}
		if s := statsOf(c, "price"); s.Calls != 4 {
			t.Errorf("got %+v, want 4 calls", s)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestDeadlineOfWaiters checks that a call has the greatest priority and the latest deadline of its waiters. Waiters that join
// after the call was sent must also raise these values.
func TestDeadlineOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{blocked: make(chan struct{})}, newAdmission()
		c := open(t, v, withAdmission(a))
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		start := time.Now()
		queued := func(n int, want time.Duration) {
			t.Helper()
			w := a.request(n)
			if w.Priority != upstream.PriorityPrices || w.Deadline.IsZero() != (want == 0) || want > 0 && !w.Deadline.Equal(start.Add(want)) {
				t.Errorf("reservation %d has priority %s and deadline %s, want priority prices and deadline %s", n, w.Priority, w.Deadline.Sub(start), want)
			}
		}
		expect := func(call upstream.Waiters, want time.Duration) {
			t.Helper()
			queued(0, want)
			at, ok := call.Deadline()
			if call.Priority() != upstream.PriorityPrices || ok != (want > 0) || ok && !at.Equal(start.Add(want)) {
				t.Errorf("the call has priority %s and deadline %s (%v), want priority prices and deadline %s", call.Priority(), at.Sub(start), ok, want)
			}
		}
		fetch(within(10*time.Second), c, "a")
		queued(0, 10*time.Second)
		fetch(within(5*time.Second), c, "b") // an earlier deadline
		queued(0, 10*time.Second)
		fetch(within(20*time.Second), c, "a") // the same key
		queued(0, 20*time.Second)
		fetch(within(30*time.Second), c, "c") // another key
		queued(0, 30*time.Second)

		a.verdict <- nil
		synctest.Wait()
		sent := v.calls()[0].call.Waiters
		if sent == nil {
			t.Fatal("got a call without upstream.Waiters in its context")
		}
		expect(sent, 30*time.Second)
		fetch(within(40*time.Second), c, "b")
		expect(sent, 40*time.Second)
		fetch(within(15*time.Second), c, "b")
		expect(sent, 40*time.Second)
		fetch(t.Context(), c, "c")
		expect(sent, 0)
		fetch(within(50*time.Second), c, "a")
		expect(sent, 0)

		fetch(t.Context(), c, "x")
		queued(1, 0)
		<-v.blocked
		a.verdict <- nil
		<-v.blocked
		synctest.Wait()
		wantIdle(t, c.prices.routes[0])
	})
}

func TestAdmissionEndsWithWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a))
		ctx, cancel := context.WithCancel(t.Context())
		other, leave := context.WithCancel(t.Context())
		first, second := fetch(ctx, c, ids("t", 0, 50)...), fetch(other, c, "t000", "t049")
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("got %d waiting reservations, want 2", n)
		}
		cancel()
		wantErrors(t, receive(t, first), market.CodeInternal)
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("got %d waiting reservations, want 2: both batches have a waiter", n)
		}
		leave()
		wantErrors(t, receive(t, second), market.CodeInternal)
		if n, _, _ := a.state(); n != 0 {
			t.Errorf("got %d waiting reservations after all callers left, want 0", n)
		}
		wantIdle(t, c.prices.routes[0])

		third := fetch(t.Context(), c, "t000") // this read is not cancelled
		a.verdict <- nil
		wantPrices(t, receive(t, third), "t000")
		if len(v.calls()) != 1 {
			t.Errorf("got %d calls, want 1", len(v.calls()))
		}
	})
}

// TestEmptyBatchStopsWaiting checks that a batch releases its reservation when its last caller is cancelled. The next admission
// must then go to another batch.
func TestEmptyBatchStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a))
		ctx, cancel := context.WithCancel(t.Context())
		first := fetch(ctx, c, ids("t", 0, 40)...)
		second := fetch(t.Context(), c, "b")
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("got %d waiting reservations, want 2", n)
		}
		cancel()
		receive(t, first)
		a.verdict <- nil
		wantPrices(t, receive(t, second), "b")
		if n, released, _ := a.state(); n != 0 || released != 1 {
			t.Errorf("got %d waiting and %d released reservations, want 0 and 1", n, released)
		}
		wantIdle(t, c.prices.routes[0])
	})
}
