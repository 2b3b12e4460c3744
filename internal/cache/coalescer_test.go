package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
)

type prices = []market.Result[market.Read[*market.Price]]

// fetch reads prices in a goroutine; the answer comes on the channel.
func fetch(ctx context.Context, c *Cache, keys ...string) chan prices {
	out := make(chan prices, 1)
	go func() { out <- readAll(ctx, c.Prices(), keys...) }()
	synctest.Wait()
	return out
}

// done returns an answer that must have come.
func done(t *testing.T, ch chan prices) prices {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-ch:
		return r
	default:
		t.Fatal("no answer yet")
		return nil
	}
}

func pending(t *testing.T, ch chan prices) {
	t.Helper()
	synctest.Wait()
	if len(ch) > 0 {
		t.Fatalf("answered already: %+v", <-ch)
	}
}

func good(t *testing.T, rs prices, keys ...string) {
	t.Helper()
	if len(rs) != len(keys) {
		t.Fatalf("%d results for %d keys", len(rs), len(keys))
	}
	for i, r := range rs {
		if r.Err != nil || r.Value.Value == nil || r.Value.Value.TokenID != keys[i] {
			t.Fatalf("%s: %+v", keys[i], r)
		}
	}
}

func allFail(t *testing.T, rs prices, code market.Code) {
	t.Helper()
	for _, r := range rs {
		if market.CodeOf(r.Err) != code || r.Value.Value != nil || r.Value.Handle != nil {
			t.Fatalf("%+v; want %s", r, code)
		}
	}
}

// atRest checks that nothing is left of what was asked.
func atRest[K comparable, T any](t *testing.T, c *coalescer[K, T]) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.flights) != 0 || len(c.queue) != 0 || len(c.slots) != 0 || c.waiting.Load() != 0 {
		t.Errorf("%d flights, %d queued, %d calls, %d callers are left", len(c.flights), len(c.queue), len(c.slots), c.waiting.Load())
	}
}

func TestBatchesHaveALimit(t *testing.T) {
	for keys, calls := range map[int][]int{1: {1}, 40: {40}, 41: {20, 21}, 50: {25, 25}, 80: {40, 40}, 81: {27, 27, 27}, 200: {40, 40, 40, 40, 40}} {
		synctest.Test(t, func(t *testing.T) {
			v := &venue{}
			c := open(t, v)
			want := ids("t", 0, keys)
			good(t, readAll(t.Context(), c.Prices(), want...), want...)
			var got []int
			for _, a := range v.calls() {
				got = append(got, len(a.keys))
			}
			slices.Sort(got)
			if !slices.Equal(got, calls) {
				t.Errorf("%d keys left in calls of %v", keys, got)
			}
			atRest(t, c.prices.routes[0])
		})
	}
}

// The shares of a list that wait take in what others ask for, up to what a call carries.
func TestSharesAreFilledUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		first, second, third := fetch(t.Context(), c, ids("t", 0, 50)...), fetch(t.Context(), c, ids("u", 0, 30)...), fetch(t.Context(), c, "v", "v", "t000")
		if n, _, _ := a.state(); n != 3 {
			t.Fatalf("%d wait for admission", n)
		}
		for range 3 {
			a.verdict <- nil
		}
		good(t, done(t, first), ids("t", 0, 50)...)
		good(t, done(t, second), ids("u", 0, 30)...)
		good(t, done(t, third), "v", "v", "t000")
		var sizes []int
		for _, call := range v.calls() {
			sizes = append(sizes, len(call.keys))
		}
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{1, 40, 40}) {
			t.Errorf("asked for %v", sizes)
		}
		atRest(t, c.prices.routes[0])
	})
}

// What has come meanwhile and what is named twice is no reason for another call.
func TestSharesAreOfWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		good(t, readAll(t.Context(), c.Prices(), ids("t", 0, 10)...), ids("t", 0, 10)...)
		keys := slices.Concat(ids("t", 0, 40), ids("t", 20, 30))
		good(t, c.Prices().Fetch(t.Context(), keys), keys...)
		if calls := v.calls(); len(calls) != 2 || len(calls[1].keys) != 30 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

// Whoever asks, and with whatever else: each key is asked for once.
func TestEachKeyIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{latency: 20 * time.Millisecond}
		c := open(t, v)
		r := rand.New(rand.NewPCG(1, 2))
		var wg sync.WaitGroup
		for range 100 {
			var keys []string
			for _, i := range r.Perm(120)[:1+r.IntN(60)] {
				keys = append(keys, fmt.Sprintf("t%03d", i))
			}
			delay := time.Duration(r.IntN(60)) * time.Millisecond
			wg.Go(func() {
				time.Sleep(delay)
				good(t, readAll(t.Context(), c.Prices(), keys...), keys...)
			})
		}
		wg.Wait()
		for key, n := range v.counts() {
			if n != 1 {
				t.Errorf("%s was asked for %d times", key, n)
			}
		}
		if v.busiest > 4 {
			t.Errorf("%d calls at once", v.busiest)
		}
		atRest(t, c.prices.routes[0])
	})
}

func TestRepeatedKeysOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		first := fetch(ctx, c, "a", "a", "b", "a")
		<-v.gate
		good(t, done(t, first), "a", "a", "b", "a")
		if calls := v.calls(); len(calls) != 1 || !slices.Equal(calls[0].keys, []string{"a", "b"}) {
			t.Errorf("%+v", calls)
		}
		second := fetch(ctx, c, "c", "c")
		cancel()
		if r := done(t, second); r[0].Err == nil || r[1].Err == nil || v.calls()[1].ctx.Err() == nil {
			t.Errorf("a caller that is two waiters of a key cannot leave: %+v", r)
		}
		atRest(t, c.prices.routes[0])
	})
}

// N calls are in flight at most. What arrives meanwhile gathers and leaves together.
func TestKeysGatherWhileCallsAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		var waiting []chan prices
		for _, id := range ids("t", 0, 24) {
			waiting = append(waiting, fetch(t.Context(), c, id))
		}
		if calls := v.calls(); len(calls) != 4 {
			t.Fatalf("%d calls are in flight", len(calls))
		}
		for range 4 {
			<-v.gate
		}
		synctest.Wait()
		calls := v.calls()
		if len(calls) != 5 || len(calls[4].keys) != 20 {
			t.Fatalf("%d calls, the last of %d keys", len(calls), len(calls[len(calls)-1].keys))
		}
		<-v.gate
		for i, ch := range waiting {
			good(t, done(t, ch), fmt.Sprintf("t%03d", i))
		}
		if v.busiest != 4 {
			t.Errorf("%d at once", v.busiest)
		}
		atRest(t, c.prices.routes[0])
	})
}

// A value that arrived between a caller's look-up and its fetch is not asked for again.
func TestFetchFindsWhatHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		must(t, c.Prices(), "a")
		good(t, c.Prices().Fetch(t.Context(), []string{"a", "b"}), "a", "b")
		if n := v.counts(); n["a"] != 1 || n["b"] != 1 {
			t.Errorf("asked %v", n)
		}
	})
}

// admission is an Admission that a test decides on: every read waits for a verdict.
type admission struct {
	mu       sync.Mutex
	entered  []*ticket
	released int
	waiting  int
	spent    float64
	verdict  chan error
}

func newAdmission() *admission { return &admission{verdict: make(chan error)} }

// ticket is what an admission knows of a read. What it does not say itself is said by the open door.
type ticket struct {
	admitAll
	of      *admission
	want    reqctx.CallRequest
	turn    time.Time
	decided chan struct{}
	gone    chan struct{}
	err     error
}

// Left says that there is plenty, unless the test says less.
func (a *admission) Left() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return 1 - a.spent
}

func (a *admission) Reserve(want reqctx.CallRequest) reqctx.Reservation {
	t := &ticket{of: a, want: want, decided: make(chan struct{}), gone: make(chan struct{})}
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
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.err
}

func (t *ticket) ReadyAt() time.Time {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.turn
}

func (t *ticket) Join(want reqctx.CallRequest) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.want.Priority = max(t.want.Priority, want.Priority)
	if want.Deadline.IsZero() || !t.want.Deadline.IsZero() && want.Deadline.After(t.want.Deadline) {
		t.want.Deadline = want.Deadline
	}
}

func (t *ticket) Release(bool) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	select {
	case <-t.gone:
		return
	default:
		close(t.gone)
	}
	select {
	case <-t.decided:
		if t.err == nil {
			t.of.released++
		}
	default:
	}
}

// wants returns what the n-th read that entered wants by now.
func (a *admission) wants(n int) reqctx.CallRequest {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entered[n].want
}

func (a *admission) state() (waiting, released, entered int) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting, a.released, len(a.entered)
}

func admitBy(a Admission) func(*Config) { return func(cfg *Config) { cfg.Admission = a } }

func TestKeysGatherWhileAdmissionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		var waiting []chan prices
		for _, id := range ids("t", 0, 30) {
			waiting = append(waiting, fetch(t.Context(), c, id))
		}
		if n, _, _ := a.state(); n != 1 || len(v.calls()) != 0 {
			t.Fatalf("%d wait for admission, %d calls have left", n, len(v.calls()))
		}
		a.verdict <- nil
		for i, ch := range waiting {
			good(t, done(t, ch), fmt.Sprintf("t%03d", i))
		}
		if n, released, _ := a.state(); n != 0 || released != 1 || len(v.calls()) != 1 {
			t.Errorf("%d wait, %d released, %d calls", n, released, len(v.calls()))
		}
		atRest(t, c.prices.routes[0])
	})
}

// What gathers beyond one batch asks for a call of its own.
func TestMoreThanABatchWaitsForMoreAdmissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		waiting := fetch(t.Context(), c, ids("t", 0, 250)...)
		if n, _, _ := a.state(); n != 7 {
			t.Fatalf("%d wait for admission", n)
		}
		for i := range 7 {
			a.verdict <- nil
			if synctest.Wait(); len(v.calls()) != i+1 {
				t.Fatalf("%d calls after %d admissions", len(v.calls()), i+1)
			}
		}
		good(t, done(t, waiting), ids("t", 0, 250)...)
		if n, released, _ := a.state(); n != 0 || released != 7 {
			t.Errorf("%d wait, %d released", n, released)
		}
		atRest(t, c.prices.routes[0])
	})
}

func TestRefusedAdmissionFailsTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		refusal := &market.Error{Code: market.CodeRateLimited, Message: "later", RetryAfter: time.Minute}
		first, second := fetch(t.Context(), c, "a"), fetch(t.Context(), c, "a", "b")
		a.verdict <- refusal
		for _, r := range slices.Concat(done(t, first), done(t, second)) {
			var e *market.Error
			if !errors.As(r.Err, &e) || e != refusal {
				t.Errorf("%+v", r)
			}
		}
		if s := statsOf(c, "price"); len(v.calls()) != 0 || s.Calls != 0 || s.Keys != 0 {
			t.Errorf("refused and asked nevertheless: %+v", s)
		}
		atRest(t, c.prices.routes[0])
		again := fetch(t.Context(), c, "a")
		a.verdict <- nil
		good(t, done(t, again), "a")
	})
}

// What was admitted is one call. Where the venue is asked one by one, each key asks for its own.
func TestNothingTravelsUnpaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		oneByOne := true
		c := open(t, v, admitBy(a), func(cfg *Config) {
			cfg.Cost = func(_ reqctx.Endpoint, keys, _ int) int {
				if oneByOne {
					return keys
				}
				return 1
			}
		})
		first := fetch(t.Context(), c, "a", "b", "a")
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("%d wait for admission", n)
		}
		a.verdict <- nil
		a.verdict <- nil
		good(t, done(t, first), "a", "b", "a")

		// Once the venue knows lists again, what still waits travels together.
		second := fetch(t.Context(), c, ids("t", 0, 50)...)
		if n, _, _ := a.state(); n != 50 {
			t.Fatalf("%d wait for admission", n)
		}
		oneByOne = false
		a.verdict <- nil
		if n, _, _ := a.state(); n != 10 {
			t.Fatalf("%d wait for admission", n)
		}
		pending(t, second)
		a.verdict <- nil
		good(t, done(t, second), ids("t", 0, 50)...)
		var sizes []int
		for _, call := range v.calls() {
			sizes = append(sizes, len(call.keys))
		}
		if !slices.Equal(sizes, []int{1, 1, 40, 10}) {
			t.Errorf("asked for %v", sizes)
		}
		if n, released, _ := a.state(); n != 0 || released != 4 {
			t.Errorf("%d wait, %d released", n, released)
		}
		if s := statsOf(c, "price"); s.Calls != 4 {
			t.Errorf("%+v", s)
		}
		atRest(t, c.prices.routes[0])
	})
}

// Priority and deadline are the greatest of the waiters' and rise when one joins, before and after the call has left.
func TestDeadlineRisesWithTheWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{gate: make(chan struct{})}, newAdmission()
		c := open(t, v, admitBy(a))
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		start := time.Now()
		queued := func(n int, want time.Duration) {
			t.Helper()
			w := a.wants(n)
			if w.Priority != reqctx.PriorityPrices || w.Deadline.IsZero() != (want == 0) || want > 0 && !w.Deadline.Equal(start.Add(want)) {
				t.Errorf("priority %s, deadline %s; want %s", w.Priority, w.Deadline.Sub(start), want)
			}
		}
		expect := func(call reqctx.Call, want time.Duration) {
			t.Helper()
			queued(0, want)
			at, ok := call.Deadline()
			if call.Priority() != reqctx.PriorityPrices || ok != (want > 0) || ok && !at.Equal(start.Add(want)) {
				t.Errorf("priority %d, deadline %s, %v; want %s", call.Priority(), at.Sub(start), ok, want)
			}
		}
		fetch(within(10*time.Second), c, "a")
		queued(0, 10*time.Second)
		fetch(within(5*time.Second), c, "b") // less
		queued(0, 10*time.Second)
		fetch(within(20*time.Second), c, "a") // the same key
		queued(0, 20*time.Second)
		fetch(within(30*time.Second), c, "c") // another key
		queued(0, 30*time.Second)

		a.verdict <- nil
		synctest.Wait()
		left, ok := reqctx.CallFrom(v.calls()[0].ctx)
		if !ok {
			t.Fatal("the call is not in its context")
		}
		expect(left, 30*time.Second)
		fetch(within(40*time.Second), c, "b")
		expect(left, 40*time.Second)
		fetch(within(15*time.Second), c, "b")
		expect(left, 40*time.Second)
		fetch(t.Context(), c, "c")
		expect(left, 0)
		fetch(within(50*time.Second), c, "a")
		expect(left, 0)

		fetch(t.Context(), c, "x")
		queued(1, 0)
		<-v.gate
		a.verdict <- nil
		<-v.gate
		synctest.Wait()
		atRest(t, c.prices.routes[0])
	})
}

func TestAdmissionWaitEndsWhenAllHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		ctx, cancel := context.WithCancel(t.Context())
		other, leave := context.WithCancel(t.Context())
		first, second := fetch(ctx, c, ids("t", 0, 50)...), fetch(other, c, "t000", "t049")
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("%d wait for admission", n)
		}
		cancel()
		allFail(t, done(t, first), market.CodeInternal)
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("%d wait for admission of what is still wanted", n)
		}
		leave()
		allFail(t, done(t, second), market.CodeInternal)
		if n, _, _ := a.state(); n != 0 {
			t.Errorf("%d wait for admission of nothing", n)
		}
		atRest(t, c.prices.routes[0])

		third := fetch(t.Context(), c, "t000") // whoever comes next waits under a context that has not ended
		a.verdict <- nil
		good(t, done(t, third), "t000")
		if len(v.calls()) != 1 {
			t.Errorf("%d calls", len(v.calls()))
		}
	})
}

// A worker whose keys have left with another's batch does not wait for the admission of a call that nobody makes.
func TestAdmissionWaitEndsWhenOthersTookTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		ctx, cancel := context.WithCancel(t.Context())
		first := fetch(ctx, c, ids("t", 0, 40)...)
		second := fetch(t.Context(), c, "b")
		if n, _, _ := a.state(); n != 2 {
			t.Fatalf("%d wait for admission", n)
		}
		cancel()
		done(t, first)
		a.verdict <- nil
		good(t, done(t, second), "b")
		if n, released, _ := a.state(); n != 0 || released != 1 {
			t.Errorf("%d wait for admission of nothing, %d released", n, released)
		}
		atRest(t, c.prices.routes[0])
	})
}

func TestOneCallersCancellationFailsNobodyElse(t *testing.T) {
	for _, stage := range []string{"queued", "in flight"} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, a := &venue{gate: make(chan struct{})}, newAdmission()
				c := open(t, v, admitBy(a))
				ctx, cancel := context.WithCancel(t.Context())
				first, second := fetch(ctx, c, "a", "b"), fetch(t.Context(), c, "b", "c")
				if stage == "in flight" {
					a.verdict <- nil
					synctest.Wait()
				}
				cancel()
				r := done(t, first)
				allFail(t, r, market.CodeInternal)
				if !errors.Is(r[0].Err, context.Canceled) {
					t.Errorf("%v", r[0].Err)
				}
				pending(t, second)
				if stage == "queued" {
					a.verdict <- nil
				}
				synctest.Wait()
				call := v.calls()[0]
				if call.ctx.Err() != nil {
					t.Fatal("the call was cancelled")
				}
				if wanted := []string{"b", "c"}; stage == "queued" && !slices.Equal(call.keys, wanted) {
					t.Errorf("asked for %v; wanted are %v", call.keys, wanted)
				}
				<-v.gate
				good(t, done(t, second), "b", "c")
				atRest(t, c.prices.routes[0])
			})
		})
	}
}

func TestCallIsCancelledWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		other, leave := context.WithCancel(t.Context())
		first, second := fetch(ctx, c, "a", "b"), fetch(other, c, "a")
		call := v.calls()[0]
		cancel()
		done(t, first)
		if call.ctx.Err() != nil {
			t.Fatal("cancelled while somebody waits for one of its keys")
		}
		// b has no waiter now, but travels on: who joins it is served by the same call.
		third := fetch(t.Context(), c, "b")
		leave()
		done(t, second)
		if call.ctx.Err() != nil || len(v.calls()) != 1 {
			t.Fatal("cancelled although somebody has joined")
		}
		<-v.gate
		good(t, done(t, third), "b")
		atRest(t, c.prices.routes[0])

		ctx, cancel = context.WithCancel(t.Context())
		fourth := fetch(ctx, c, "x", "y")
		cancel()
		done(t, fourth)
		if v.calls()[1].ctx.Err() == nil {
			t.Error("a call that nobody waits for goes on")
		}
		atRest(t, c.prices.routes[0])
	})
}

// stubborn is a venue whose price calls end when the test says so, cancelled or not.
type stubborn struct {
	venue
	answer chan string
}

func (v *stubborn) Prices(ctx context.Context, tokens []string) ([]market.Result[*market.Price], error) {
	_ = v.enter(ctx, reqctx.EndpointPrices, tokens...)
	out := make([]market.Result[*market.Price], len(tokens))
	price := market.MustDecimal(<-v.answer)
	for i, id := range tokens {
		out[i].Value = &market.Price{TokenID: id, Price: price}
	}
	return out, nil
}

// Who asks after a call was cancelled gets a call of its own, and the answer to the cancelled one is nobody's.
func TestWhoComesAfterCancellationStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &stubborn{answer: make(chan string)}
		c := New(v, DefaultConfig())
		t.Cleanup(c.Close)
		ctx, cancel := context.WithCancel(t.Context())
		first := fetch(ctx, c, "a")
		cancel()
		done(t, first)
		second := fetch(t.Context(), c, "a")
		if n := len(v.calls()); n != 2 {
			t.Fatalf("%d calls", n)
		}
		// Both wait for the same channel; the first call came first.
		v.answer <- "0.1"
		synctest.Wait()
		pending(t, second)
		v.answer <- "0.2"
		good(t, done(t, second), "a")
		if r := must(t, c.Prices(), "a"); r.Value.Price.String() != "0.2" || len(v.calls()) != 2 {
			t.Errorf("%+v", r.Value)
		}
		atRest(t, c.prices.routes[0])
	})
}

// The answer to a cancelled call that comes after a newer one's does not replace it.
func TestLateAnswerReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan string)
		v := &stubborn{answer: late}
		c := New(v, DefaultConfig())
		t.Cleanup(c.Close)
		ctx, cancel := context.WithCancel(t.Context())
		first := fetch(ctx, c, "a")
		cancel()
		done(t, first)
		v.answer = make(chan string)
		second := fetch(t.Context(), c, "a")
		v.answer <- "0.2"
		good(t, done(t, second), "a")
		late <- "0.1"
		synctest.Wait()
		if r := must(t, c.Prices(), "a"); r.Value.Price.String() != "0.2" || r.Handle.Version() != 0 {
			t.Errorf("%s", r.Value.Price)
		}
	})
}

func TestExpiredContextAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		other := fetch(t.Context(), c, "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			allFail(t, done(t, fetch(ctx, c, "a", "b")), market.CodeInternal)
		}
		if s := statsOf(c, "price"); len(v.calls()) != 1 || s.Coalesced != 0 {
			t.Errorf("%d calls, %+v", len(v.calls()), s)
		}
		<-v.gate
		good(t, done(t, other), "a")
	})
}

func TestDeadlineIsAnUpstreamTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must := fetch(ctx, c, "a")
		time.Sleep(time.Second)
		r := done(t, must)
		allFail(t, r, market.CodeUpstreamTimeout)
		var e *market.Error
		if !errors.As(r[0].Err, &e) || strings.Contains(e.Message, "context") {
			t.Errorf("%v", r[0].Err)
		}
		atRest(t, c.prices.routes[0])
	})
}

// Of a caller's keys some may have arrived when its deadline passes; those it gets.
func TestWhatHasArrivedIsKeptAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		keys := ids("t", 0, 41)
		waiting := fetch(ctx, c, keys...)
		<-v.gate // one of the two calls is answered
		synctest.Wait()
		time.Sleep(time.Second)
		answered := 0
		for i, r := range done(t, waiting) {
			if r.Err == nil {
				answered++
				good(t, prices{r}, keys[i])
			} else if market.CodeOf(r.Err) != market.CodeUpstreamTimeout {
				t.Errorf("%+v", r)
			}
		}
		if answered != 20 && answered != 21 {
			t.Errorf("%d were answered", answered)
		}
	})
}

func TestPanicInTheVenueIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{fail: func(ask) error { panic("boom") }}
		c := open(t, v)
		for range 2 {
			r := readAll(t.Context(), c.Prices(), "a", "b")
			allFail(t, r, market.CodeInternal)
			if !strings.Contains(r[0].Err.Error(), "boom") || !strings.Contains(r[0].Err.Error(), "venue_test.go") {
				t.Errorf("the log would not say where: %v", r[0].Err)
			}
		}
		// So is one in what is done with an answer.
		v.fail = nil
		v.search = func(queries.Search) *queries.SearchPage { return &queries.SearchPage{Markets: []*market.Market{nil}} }
		if _, err := readOne(t.Context(), c.Searches(), queries.Search{}.Key()); market.CodeOf(err) != market.CodeInternal {
			t.Errorf("%v", err)
		}
		v.search = nil
		if _, err := readOne(t.Context(), c.Searches(), queries.Search{}.Key()); err != nil {
			t.Errorf("after a panic: %v", err)
		}
		atRest(t, c.prices.routes[0])
		atRest(t, c.searches.routes[0])
	})
}

func TestAnswerOfTheWrongLengthIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{short: true}
		c := open(t, v)
		allFail(t, readAll(t.Context(), c.Prices(), "a", "b"), market.CodeInternal)
		if s := statsOf(c, "price"); s.Entries != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{gate: make(chan struct{})}, newAdmission()
		c := New(v, func() Config { cfg := DefaultConfig(); cfg.Admission = a; return cfg }())
		go func() {
			for range 2 { // "cached" and "flying"
				a.verdict <- nil
			}
		}()
		cached := fetch(t.Context(), c, "cached")
		<-v.gate
		good(t, done(t, cached), "cached")
		time.Sleep(time.Second)
		flying := fetch(t.Context(), c, "flying")
		queued := fetch(t.Context(), c, "queued")
		readAll(t.Context(), c.Prices(), "cached") // stale: a refresh waits too
		synctest.Wait()
		if len(v.calls()) != 2 {
			t.Fatalf("%d calls", len(v.calls()))
		}

		c.Close()
		allFail(t, done(t, flying), market.CodeUpstreamUnavailable)
		allFail(t, done(t, queued), market.CodeUpstreamUnavailable)
		if v.calls()[1].ctx.Err() == nil {
			t.Error("the venue is still asked")
		}
		atRest(t, c.prices.routes[0])
		allFail(t, done(t, fetch(t.Context(), c, "late")), market.CodeUpstreamUnavailable)
		if r := must(t, c.Prices(), "cached"); r.Value == nil {
			t.Error("what is in memory is lost")
		}
		c.Close()
		if len(v.calls()) != 2 {
			t.Errorf("%d calls", len(v.calls()))
		}
	})
}

func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, leave, closed := newTasks(), make(chan struct{}), false
		if !tasks.start(func() { <-leave }) {
			t.Error("not started")
		}
		go func() { tasks.close(); closed = true }()
		synctest.Wait()
		if closed || tasks.ctx.Err() == nil {
			t.Error("close does not wait, or does not tell")
		}
		close(leave)
		synctest.Wait()
		if !closed {
			t.Error("close waits for ever")
		}
		if tasks.start(func() { t.Error("started after close") }) {
			t.Error("start says that it started")
		}
		synctest.Wait()
	})
}

// 200 clients that each ask five times for 50 of 300 tokens, 20 ms away.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{latency: 20 * time.Millisecond}
		c := open(t, v)
		var wg sync.WaitGroup
		for client := range 200 {
			r := rand.New(rand.NewPCG(7, uint64(client)))
			wg.Go(func() {
				for range 5 {
					keys := make([]string, 50)
					for i, k := range r.Perm(300)[:50] {
						keys[i] = fmt.Sprintf("t%03d", k)
					}
					good(t, readAll(t.Context(), c.Prices(), keys...), keys...)
				}
			})
		}
		wg.Wait()
		if n := len(v.calls(reqctx.EndpointPrices)); n >= 40 {
			t.Errorf("%d calls", n)
		} else {
			t.Logf("%d calls", n)
		}
	})
}

// Callers that come, wait and leave at random, with a venue and an admission that fail at random: everything ends, nobody
// gets what is another's, and nothing is left behind.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			v := &wild{seed: seed}
			cfg := DefaultConfig()
			cfg.Admission, cfg.Batch, cfg.InFlight = v, 5, 2
			cfg.Price.TTL = TTL{30 * time.Millisecond, 20 * time.Millisecond}
			if seed%2 == 0 {
				cfg.Cost = func(_ reqctx.Endpoint, keys, _ int) int { return keys }
			}
			c := New(v, cfg)
			var wg sync.WaitGroup
			for caller := range 40 {
				r := rand.New(rand.NewPCG(seed, uint64(caller)))
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(60))*time.Millisecond)
						keys := make([]string, 1+r.IntN(12))
						for i := range keys {
							keys[i] = fmt.Sprintf("t%03d", r.IntN(25))
						}
						for i, got := range readAll(ctx, c.Prices(), keys...) {
							if got.Err == nil && got.Value.Value.TokenID != keys[i] {
								t.Errorf("%s for %s", got.Value.Value.TokenID, keys[i])
							}
						}
						cancel()
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Minute)
			atRest(t, c.prices.routes[0])
			if n := v.admitted.Load(); n != 0 {
				t.Errorf("%d were admitted and not released", n)
			}
			if v.most.Load() > 2 {
				t.Errorf("%d calls at once", v.most.Load())
			}
			c.Close()
		})
	}
}

// wild is a venue and an admission with moods.
type wild struct {
	venue
	seed     uint64
	n        atomic.Uint64
	admitted atomic.Int64
	inside   atomic.Int64
	most     atomic.Int64
}

func (w *wild) mood() *rand.Rand { return rand.New(rand.NewPCG(w.seed, w.n.Add(1))) }

func (w *wild) Left() float64 { return 1 }

func (w *wild) Reserve(want reqctx.CallRequest) reqctx.Reservation {
	r := w.mood()
	t := &wildTicket{of: w, decided: make(chan struct{}), gone: make(chan struct{})}
	if r.IntN(10) == 0 {
		t.err = market.Errorf(market.CodeRateLimited, "no")
		close(t.decided)
		return t
	}
	fails := r.IntN(10) == 0
	wait := time.After(time.Duration(r.IntN(30)) * time.Millisecond)
	go func() {
		defer close(t.decided)
		select {
		case <-t.gone:
			return
		case <-wait:
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if fails {
			t.err = market.Errorf(market.CodeRateLimited, "no")
		} else if !t.released {
			t.admitted = true
			w.admitted.Add(1)
		}
	}()
	return t
}

// wildTicket is one of a wild admission's.
type wildTicket struct {
	admitAll
	of                 *wild
	decided, gone      chan struct{}
	mu                 sync.Mutex
	err                error
	admitted, released bool
}

func (t *wildTicket) Decided() <-chan struct{} { return t.decided }

func (t *wildTicket) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *wildTicket) Release(bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return
	}
	t.released = true
	close(t.gone)
	if t.admitted {
		t.of.admitted.Add(-1)
	}
}

func (w *wild) Prices(ctx context.Context, tokens []string) ([]market.Result[*market.Price], error) {
	r := w.mood()
	w.most.Store(max(w.most.Load(), w.inside.Add(1)))
	defer w.inside.Add(-1)
	select {
	case <-time.After(time.Duration(r.IntN(50)) * time.Millisecond):
	case <-ctx.Done():
		if r.IntN(2) == 0 {
			return nil, ctx.Err()
		}
	}
	switch r.IntN(10) {
	case 0:
		return nil, errors.New("no")
	case 1:
		panic("oh")
	}
	return w.venue.Prices(ctx, tokens)
}
