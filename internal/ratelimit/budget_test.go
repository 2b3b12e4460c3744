package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a budget that ends with the test. Call it in a synctest bubble.
func open(t *testing.T, cfg Config) *Budget {
	t.Helper()
	b := New(cfg)
	t.Cleanup(b.Close)
	return b
}

func within(d time.Duration) time.Time { return time.Now().Add(d) }

// prices is what a client wants who has so much time.
func prices(caller string, d time.Duration) reqctx.CallRequest {
	return reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: caller, Deadline: within(d)}
}

// call makes a call that takes no time. It reports whether it was admitted at once.
func call(b *Budget, want reqctx.CallRequest) bool {
	t := b.Reserve(want)
	defer t.Release(true)
	return admitted(t) && t.AdmitCall(context.Background()) == nil
}

func admitted(t reqctx.Reservation) bool {
	select {
	case <-t.Decided():
		return t.Err() == nil
	default:
		return false
	}
}

// spend makes n calls of a caller.
func spend(t *testing.T, b *Budget, caller string, n int) {
	t.Helper()
	for i := range n {
		if !call(b, prices(caller, time.Second)) {
			t.Fatalf("call %d of %q was not admitted at once", i+1, caller)
		}
	}
}

// retryAfter returns what a refused ticket was told.
func retryAfter(t *testing.T, k reqctx.Reservation) time.Duration {
	t.Helper()
	var e *market.Error
	if err := k.Err(); !errors.As(err, &e) || e.Code != market.CodeRateLimited || e.RetryAfter <= 0 {
		t.Fatalf("%v; want a refusal with a time", err)
	}
	return e.RetryAfter
}

// waits checks that a ticket is in the queue.
func waits(t *testing.T, k reqctx.Reservation) {
	t.Helper()
	if synctest.Wait(); admitted(k) || k.Err() != nil {
		t.Fatalf("waits no more: %v", k.Err())
	}
}

// The margin is left alone, whatever the limit.
func TestLimits(t *testing.T) {
	for limit, want := range map[int]int{0: 95, 100: 95, 10: 9, 2: 1, 1: 1, 60: 57} {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{Public: limit})
			n := 0
			for call(b, prices("", time.Second)) {
				n++
			}
			if s := b.Status(); n != want || s.Limit != want || s.Left != 0 || s.Admitted != uint64(n) || s.Refused != 1 || b.Left() != 0 {
				t.Errorf("%d of %d calls: %+v", n, limit, s)
			}
		})
	}
}

// In no 60 seconds are there more calls than the limit, from the very start, whoever comes when and however long calls
// take, counted by when they reach the venue. And what may be spent is spent.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{Public: 40})
			var mu sync.Mutex
			var arrivals []time.Time
			arrive := func() {
				mu.Lock()
				defer mu.Unlock()
				arrivals = append(arrivals, time.Now())
			}
			start := time.Now()
			var wg sync.WaitGroup
			for c := range 12 {
				r := rand.New(rand.NewPCG(seed, uint64(c)))
				wg.Go(func() {
					for time.Since(start) < 5*time.Minute {
						time.Sleep(time.Duration(r.ExpFloat64() * float64(3*time.Second)))
						want := reqctx.CallRequest{
							Priority: reqctx.Priority(r.IntN(reqctx.Priorities)), Caller: fmt.Sprint(c), Deadline: within(time.Duration(r.IntN(20)) * time.Second),
						}
						ctx, cancel := context.WithDeadline(t.Context(), want.Deadline)
						k := b.Reserve(want)
						select {
						case <-k.Decided():
						case <-ctx.Done():
						}
						for range 1 + r.IntN(3) {
							if k.Err() != nil || ctx.Err() != nil || k.AdmitCall(ctx) != nil {
								break
							}
							travel := time.Duration(r.IntN(2000)) * time.Millisecond
							time.Sleep(travel)
							arrive()
							time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
						}
						k.Release(false)
						cancel()
					}
				})
			}
			wg.Wait()
			slices.SortFunc(arrivals, time.Time.Compare)
			most := 0
			for i, first := range arrivals {
				n, _ := slices.BinarySearchFunc(arrivals[i:], first.Add(time.Minute), func(a, b time.Time) int {
					return cmp.Or(a.Compare(b), -1) // the end belongs to the window
				})
				most = max(most, n)
			}
			if most > 38 {
				t.Errorf("seed %d: %d calls in 60 seconds", seed, most)
			}
			if len(arrivals) < 4*38 {
				t.Errorf("seed %d: only %d calls in five minutes", seed, len(arrivals))
			}
			time.Sleep(2 * time.Minute)
			if s := b.Status(); s.Left != s.Limit || s.Waiting != [reqctx.Priorities]int{} {
				t.Errorf("at rest: %+v", s)
			}
			w := b.public
			if w.expire(time.Now()); w.flying != 0 || len(w.callers) != 0 || w.reserved != 0 || w.byPriority != [reqctx.Priorities]int{} || w.recent.Len() != 0 {
				t.Errorf("at rest: %d flying, %d callers, %d reserved, %v", w.flying, len(w.callers), w.reserved, w.byPriority)
			}
		})
	}
}

// Who would wait too long is told at once, and the truth: at the time that it was told, and not before, there is a call
// for it.
func TestRefusalTellsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // 9
		for range 9 {
			spend(t, b, "", 1)
			time.Sleep(time.Second)
		}
		var waiting []reqctx.Reservation
		for range 3 {
			waiting = append(waiting, b.Reserve(prices("", time.Minute)))
		}
		k := b.Reserve(prices("", 10*time.Second))
		wait := retryAfter(t, k)
		if want := 54*time.Second + time.Millisecond; wait != want {
			t.Errorf("told to come back in %s, the fourth place is free in %s", wait, want)
		}
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 3 {
			t.Errorf("%+v", s)
		}
		time.Sleep(wait - 1)
		if k := b.Reserve(prices("", 1)); k.Err() == nil {
			t.Error("admitted before the time that was told")
		}
		time.Sleep(time.Nanosecond)
		for i, k := range waiting {
			if !admitted(k) {
				t.Errorf("%d waits yet", i)
			}
		}
		if !call(b, prices("", time.Nanosecond)) {
			t.Error("not admitted at the time that was told")
		}
	})
}

// Whatever is in the log and the queue, a caller that is refused and comes back when it was told is admitted, provided
// nobody else has come.
func TestRefusalIsTrueWhateverWaits(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			b := open(t, Config{Public: 20 + r.IntN(60)})
			for range r.IntN(150) {
				call(b, reqctx.CallRequest{Priority: reqctx.Priority(1 + r.IntN(reqctx.Priorities-1)), Caller: fmt.Sprint(r.IntN(6)), Deadline: within(1)})
				time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
			}
			var all []reqctx.Reservation
			for range 40 {
				all = append(all, b.Reserve(reqctx.CallRequest{
					Priority: reqctx.Priority(1 + r.IntN(reqctx.Priorities-1)), Caller: fmt.Sprint(r.IntN(6)), Deadline: within(time.Minute),
				}))
				if r.IntN(4) == 0 {
					all[r.IntN(len(all))].Release(false)
				}
			}
			// Those who wait make their calls, which end at once.
			for _, k := range all {
				go func() {
					<-k.Decided()
					_ = k.AdmitCall(context.Background())
					k.Release(true)
				}()
			}
			synctest.Wait()
			const patience = 5 * time.Second
			want := reqctx.CallRequest{Priority: reqctx.Priority(1 + r.IntN(reqctx.Priorities-1)), Caller: fmt.Sprint(r.IntN(6)), Deadline: within(patience)}
			k := b.Reserve(want)
			if k.Err() == nil {
				turn := k.ReadyAt()
				if <-k.Decided(); k.Err() != nil || !turn.IsZero() && !time.Now().Equal(turn) {
					t.Errorf("seed %d: planned for %s, admitted at %s: %v", seed, turn, time.Now(), k.Err())
				}
				k.Release(false)
				return
			}
			wait := retryAfter(t, k)
			if wait > 2*span {
				t.Errorf("seed %d: told to come back in %s", seed, wait)
			}
			time.Sleep(wait)
			synctest.Wait()
			want.Deadline = within(patience)
			k = b.Reserve(want)
			if <-k.Decided(); k.Err() != nil {
				t.Errorf("seed %d: told to come back in %s and refused again: %v", seed, wait, k.Err())
			}
			k.Release(false)
		})
	}
}

// exhaust spends all of a budget's calls, by callers without a name.
func exhaust(t *testing.T, b *Budget) {
	t.Helper()
	spend(t, b, "", b.Status().Left)
}

// order lets those who wait go, one by one, and returns the order in which they went.
func order(t *testing.T, tickets map[string]reqctx.Reservation) (names []string) {
	t.Helper()
	for range 100 * 61 {
		synctest.Wait()
		for name, k := range tickets {
			if admitted(k) {
				names = append(names, name)
				_ = k.AdmitCall(t.Context())
				k.Release(true)
				delete(tickets, name)
			}
		}
		if len(tickets) == 0 {
			return names
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d wait for ever", len(tickets))
	return nil
}

// spread spends all of a budget, a call every 100 ms, so that places come back one by one.
func spread(t *testing.T, b *Budget, priority func(i int) reqctx.Priority) {
	t.Helper()
	for i := range b.Status().Left {
		if !call(b, reqctx.CallRequest{Priority: priority(i), Caller: fmt.Sprint(i), Deadline: within(1)}) {
			t.Fatal("not admitted")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// mixed has every priority beyond what it is assured of.
func mixed(i int) reqctx.Priority { return reqctx.Priority(1 + i%(reqctx.Priorities-1)) }

func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		spread(t, b, mixed)
		tickets := map[string]reqctx.Reservation{}
		for _, p := range []reqctx.Priority{reqctx.PriorityHistory, reqctx.PrioritySearch, reqctx.PriorityMarkets, reqctx.PriorityBooks, reqctx.PriorityPrices, reqctx.PriorityUser} {
			for i := range 2 {
				tickets[fmt.Sprintf("%s%d", p, i)] = b.Reserve(reqctx.CallRequest{Priority: p, Caller: fmt.Sprintf("%s%d", p, i)})
			}
		}
		got := order(t, tickets)
		want := []string{
			"user0", "user1", "prices0", "prices1", "books0", "books1", "markets0", "markets1", "search0", "search1", "history0", "history1",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	})
}

// A priority that rises takes a place behind those who have it, and keeps what others were told true.
func TestPriorityRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		spread(t, b, mixed)
		enter := func(p reqctx.Priority, caller string) reqctx.Reservation {
			return b.Reserve(reqctx.CallRequest{Priority: p, Caller: caller})
		}
		history, books, first := enter(reqctx.PriorityHistory, "h"), enter(reqctx.PriorityBooks, "b"), enter(reqctx.PriorityPrices, "p")
		before, told := history.ReadyAt(), first.ReadyAt()
		history.Join(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "h"})
		if turn := history.ReadyAt(); !turn.Before(before) || !turn.Before(books.ReadyAt()) || !first.ReadyAt().Equal(told) {
			t.Errorf("its turn was at %s and is at %s; the first's was at %s and is at %s", before, turn, told, first.ReadyAt())
		}
		history.Join(reqctx.CallRequest{Priority: reqctx.PrioritySearch, Caller: "h"}) // never falls
		if got := order(t, map[string]reqctx.Reservation{"h": history, "b": books, "p": first}); !slices.Equal(got, []string{"p", "h", "b"}) {
			t.Errorf("%v", got)
		}
	})
}

// Those who are pushed back past their deadline are told as soon as that is so; one whose deadline has risen waits on.
func TestWhoIsPushedBackIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10})
		spread(t, b, mixed)
		turn := 59 * time.Second
		enter := func(p reqctx.Priority, d time.Duration) reqctx.Reservation {
			return b.Reserve(reqctx.CallRequest{Priority: p, Caller: p.String(), Deadline: within(d)})
		}
		late, patient := enter(reqctx.PriorityHistory, turn+200*time.Millisecond), enter(reqctx.PriorityHistory, turn+350*time.Millisecond)
		waits(t, late)
		waits(t, patient)
		patient.Join(reqctx.CallRequest{Priority: reqctx.PriorityHistory, Deadline: within(2 * time.Minute)})
		for i := range 3 {
			waits(t, b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityUser, Caller: fmt.Sprint("user", i), Deadline: within(time.Minute)}))
		}
		if wait := retryAfter(t, late); wait < turn+200*time.Millisecond || wait > turn+300*time.Millisecond {
			t.Errorf("told to come back in %s", wait)
		}
		waits(t, patient)
	})
}

// A read that takes time has to be admitted that much earlier.
func TestWhoseAnswerWouldBeTooLateIsToldNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10})
		spend(t, b, "a", 9)
		turn := time.Until(b.Status().ThrottledUntil)
		enter := func(d time.Duration) reqctx.Reservation {
			want := prices("b", d)
			want.Takes = 300 * time.Millisecond
			return b.Reserve(want)
		}
		if wait := retryAfter(t, enter(turn+300*time.Millisecond)); wait != turn {
			t.Errorf("told to come back in %s; the turn is in %s", wait, turn)
		}
		waits(t, enter(turn+301*time.Millisecond))
	})
}

// Every priority gets a twentieth of the window, however many of greater priority want it.
func TestNoPriorityStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		start := time.Now()
		var got [reqctx.Priorities]int
		var wg sync.WaitGroup
		for p := reqctx.PriorityHistory; p <= reqctx.PriorityPrices; p++ {
			clients := 40
			if p == reqctx.PriorityPrices {
				clients = 200
			}
			for i := range clients {
				wg.Go(func() {
					for time.Since(start) < 3*time.Minute {
						k := b.Reserve(reqctx.CallRequest{Priority: p, Caller: fmt.Sprintf("%s%d", p, i), Deadline: within(10 * time.Second)})
						select {
						case <-k.Decided():
						case <-time.After(10 * time.Second):
						}
						if k.AdmitCall(context.Background()) == nil {
							b.mu.Lock()
							got[p]++
							b.mu.Unlock()
						}
						k.Release(true)
						time.Sleep(time.Second)
					}
				})
			}
		}
		wg.Wait()
		t.Log(got)
		for p := reqctx.PriorityHistory; p < reqctx.PriorityPrices; p++ {
			if got[p] < 3*4 || got[p] > got[reqctx.PriorityPrices] {
				t.Errorf("%s: %d calls of %v", p, got[p], got)
			}
		}
		if got[reqctx.PriorityPrices] < 3*60 {
			t.Errorf("%v", got)
		}
	})
}

// A lone caller may have everything. Beside another, who asks now and then, it gets its share and what remains when the
// other's is set aside; beside many its share alone, and what they ask for is there at once.
func TestFairShare(t *testing.T) {
	for others, most := range map[int]int{0: 95, 1: 72, 2: 49, 3: 26, 4: 23, 50: 23} {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{})
			for i := range others {
				spend(t, b, fmt.Sprint("honest", i), 1)
			}
			start, n := time.Now(), 0
			for time.Since(start) < 30*time.Second {
				for call(b, prices("greedy", time.Second)) {
					n++
				}
				time.Sleep(time.Second)
			}
			if n != most {
				t.Errorf("%d calls beside %d others, want %d", n, others, most)
			}
			for i := range min(others, b.Status().Left/22) {
				spend(t, b, fmt.Sprint("honest", i), 22)
			}
			if others > 0 {
				k := b.Reserve(prices("greedy", time.Second))
				if wait := retryAfter(t, k); wait > 31*time.Second {
					t.Errorf("its first calls leave the window in 30 s, it was told %s", wait)
				}
			}
		})
	}
}

// Who had its share goes behind those who had not, also where they came later and want less.
func TestFairShareOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 42}) // 40, of which a share is 10
		for i := range 40 {
			caller := "greedy"
			if i%2 == 1 {
				caller = ""
			}
			spend(t, b, caller, 1)
			time.Sleep(100 * time.Millisecond)
		}
		tickets := map[string]reqctx.Reservation{}
		for i := range 2 {
			tickets[fmt.Sprint("greedy", i)] = b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "greedy"})
		}
		shared := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "greedy"})
		tickets["shared"] = shared
		tickets["honest"] = b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "honest"})
		shared.Join(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "other"}) // keeps its time of arrival
		got := order(t, tickets)
		if !slices.Equal(got, []string{"shared", "honest", "greedy0", "greedy1"}) {
			t.Errorf("%v", got)
		}
	})
}

// One caller cannot fill the queue, and the queue has an end.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10, Queue: 20})
		exhaust(t, b)
		enter := func(caller string) bool {
			return b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: caller}).Err() == nil
		}
		n := 0
		for enter("greedy") {
			n++
		}
		if n != 10 {
			t.Errorf("one caller has %d of 20 places", n)
		}
		for i := range 10 {
			if !enter(fmt.Sprint(i)) {
				t.Errorf("%d finds no place", i)
			}
		}
		if k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityUser, Caller: "last"}); retryAfter(t, k) > span {
			t.Error(k.Err())
		}
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 20 {
			t.Errorf("%+v", s)
		}
	})
}

// A read that was never made gives its call back, one that was not yet admitted its place in the queue, to whoever is next.
func TestWhatIsNotUsedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10})
		spend(t, b, "", 8)
		unused := b.Reserve(prices("a", time.Second))
		if !admitted(unused) {
			t.Fatal("not admitted")
		}
		first, second := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "b"}), b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "c"})
		waits(t, first)
		waits(t, second)
		before := second.ReadyAt()
		if s := b.Status(); s.Admitted != 8 { // or it would go down when one is given back
			t.Errorf("%+v", s)
		}
		first.Release(false)
		first.Release(false)
		if turn := second.ReadyAt(); turn.After(before) {
			t.Errorf("its turn was at %s and is at %s", before, turn)
		}
		unused.Release(false)
		if !admitted(second) {
			t.Error("what was given back is lost")
		}
		if first.AdmitCall(t.Context()) == nil || unused.AdmitCall(t.Context()) == nil {
			t.Error("a read that has ended makes calls")
		}
		if err := second.AdmitCall(t.Context()); err != nil || b.Status().Admitted != 9 {
			t.Errorf("%v, %+v", err, b.Status())
		}
	})
}

// Each further call of a read waits for its own turn, before others of its kind, and is refused where the read's deadline
// would pass.
func TestFurtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 4}) // 3
		k := b.Reserve(prices("a", 90*time.Second))
		for range 3 {
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		other := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "a"})
		further := make(chan error, 1)
		go func() { further <- k.AdmitCall(t.Context()) }()
		time.Sleep(57 * time.Second)
		if synctest.Wait(); len(further) != 0 {
			t.Fatal("a fourth call in 60 seconds")
		}
		time.Sleep(time.Second + time.Millisecond)
		if err := <-further; err != nil {
			t.Fatal(err)
		}
		waits(t, other)

		// The deadline is in 29 seconds, a place is free in less: as soon as the other has it, there is none in time.
		time.Sleep(time.Second)
		if synctest.Wait(); !admitted(other) || other.AdmitCall(t.Context()) != nil {
			t.Fatal(other.Err())
		}
		if err := k.AdmitCall(t.Context()); err != nil { // the last of the first three has left
			t.Fatal(err)
		}
		if err := k.AdmitCall(t.Context()); market.CodeOf(err) != market.CodeRateLimited {
			t.Errorf("%v", err)
		}
		// Until somebody joins who has more time.
		k.Join(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "b"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.AdmitCall(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if s := b.Status(); s.Waiting != [reqctx.Priorities]int{} {
			t.Errorf("who has left waits: %+v", s)
		}
		go func() { further <- k.AdmitCall(t.Context()) }()
		time.Sleep(time.Minute)
		if err := <-further; err != nil {
			t.Error(err)
		}
		k.Release(true)
		other.Release(true)
		time.Sleep(2 * span)
		if s := b.Status(); s.Left != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// The venue's word counts: nothing leaves before the time that it named, and then a little less than before.
func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := b.Reserve(prices("", time.Second))
		_ = k.AdmitCall(t.Context())
		k.Throttled(within(20 * time.Second))
		k.Release(false)
		until := within(20 * time.Second)
		if s := b.Status(); !s.ThrottledUntil.Equal(until) || s.Left != 0 || s.Limit != 86 || b.Left() != 0 {
			t.Errorf("%+v", s)
		}
		if wait := retryAfter(t, b.Reserve(prices("", 10*time.Second))); wait != 20*time.Second {
			t.Errorf("told to come back in %s", wait)
		}
		patient := b.Reserve(prices("", 30*time.Second))
		waits(t, patient)
		impatient := b.Reserve(prices("", 25*time.Second))
		waits(t, impatient)
		k.Throttled(within(10 * time.Second)) // not earlier
		if s := b.Status(); !s.ThrottledUntil.Equal(until) || s.Limit != 86 {
			t.Errorf("one refusal counts once: %+v", s)
		}
		k.Throttled(within(26 * time.Second))
		if wait := retryAfter(t, impatient); wait != 26*time.Second {
			t.Errorf("told to come back in %s", wait)
		}
		time.Sleep(26*time.Second - 1)
		waits(t, patient)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(patient) {
			t.Error("throttled for longer than the venue said")
		}
		patient.Release(true)
		time.Sleep(10 * time.Minute)
		if s := b.Status(); s.Limit != 95 || !s.ThrottledUntil.IsZero() {
			t.Errorf("not mended: %+v", s)
		}
		k.Throttled(within(100 * time.Hour))
		if s := b.Status(); s.ThrottledUntil.After(within(patience)) {
			t.Errorf("throttled until %s", s.ThrottledUntil)
		}
		wantThrottled := func(want time.Duration) {
			t.Helper()
			if s := b.Status(); s.Throttled != want {
				t.Errorf("throttled for %s, want %s", s.Throttled, want)
			}
		}
		wantThrottled(26 * time.Second)
		time.Sleep(time.Minute)
		wantThrottled(86 * time.Second)
		time.Sleep(time.Hour)
		wantThrottled(26*time.Second + patience)
	})
}

// The venue's headers lower the limit, raise it again up to what was configured, and tell what others of this address
// have spent.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := b.Reserve(prices("", time.Minute))
		defer k.Release(true)
		_ = k.AdmitCall(t.Context())
		left := func(limit, want int) {
			t.Helper()
			if s := b.Status(); s.Limit != limit || s.Left != want {
				t.Errorf("%+v; want %d of %d", s, want, limit)
			}
		}
		k.Observe(-1, -1, time.Time{})
		left(95, 94)
		k.Observe(40, -1, time.Time{})
		left(38, 37)
		k.Observe(1000, -1, time.Time{})
		left(95, 94)
		k.Observe(100, 99, within(time.Minute))
		left(95, 94)
		k.Observe(100, 10, within(20*time.Second)) // 89 by others
		left(95, 5)
		time.Sleep(20 * time.Second)
		left(95, 94)
		k.Observe(100, 0, time.Time{})
		waiting := b.Reserve(prices("", 2*time.Minute))
		waits(t, waiting)
		time.Sleep(span)
		if synctest.Wait(); !admitted(waiting) {
			t.Error("what others have spent is never back")
		}
		waiting.Release(true)

		// A lower limit counts at once: those who wait too long for it are told.
		late := b.Reserve(prices("", 5*time.Second))
		late.Release(true)
		exhaust(t, b)
		late = b.Reserve(prices("", span+time.Second))
		waits(t, late)
		k.Observe(2, -1, time.Time{})
		waits(t, late) // one a minute is in time yet
		k.Throttled(within(2 * time.Minute))
		retryAfter(t, late)
	})
}

// Credentials that the venue has accepted have a window of their own; others count as public calls.
func TestScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 20, Key: 40, Scopes: 2}) // 19 and 38
		user := func(scope string) reqctx.CallRequest {
			return reqctx.CallRequest{Scope: scope, Priority: reqctx.PriorityUser, Caller: "u", Deadline: within(time.Second)}
		}
		junk := 0
		for i := range 100 {
			k := b.Reserve(user(fmt.Sprint("junk", i)))
			if k.Err() == nil && k.AdmitCall(t.Context()) == nil {
				junk++
			}
			k.Release(false) // refused by the venue
		}
		if s := b.Status(); junk != 19 || s.Scopes != 0 || s.Left != 0 {
			t.Errorf("%d calls with junk, %+v", junk, s)
		}
		time.Sleep(span)
		spent := func(scope string, want int) {
			t.Helper()
			n := 0
			for call(b, user(scope)) {
				n++
			}
			if n != want {
				t.Errorf("%s: %d calls, want %d", scope, n, want)
			}
		}
		spent("alice", 38)
		if s := b.Status(); s.Left != 18 || s.Scopes != 1 {
			t.Errorf("%+v", s)
		}
		spent("bob", 38)
		spent("carol", 17) // there is no room for her while the others' calls count
		time.Sleep(span)
		spent("carol", 38)
		if s := b.Status(); s.Scopes != 2 || b.keys["alice"] != nil || s.Admitted != 19+38+38+17+38 || s.Refused != 81+4 { // alice's are counted yet
			t.Errorf("%+v", s)
		}
	})
}

// Refreshes leave a quarter to the others, are spaced out below half, and make room in the queue.
func TestRefreshesAreLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Queue: 40})
		refresh := func() reqctx.Reservation {
			return b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityRefresh, Deadline: within(time.Minute)})
		}
		n := 0
		for call(b, reqctx.CallRequest{Priority: reqctx.PriorityRefresh}) {
			n++
		}
		if n != 48 { // 47 are left, which is less than half
			t.Errorf("%d refreshes at once", n)
		}
		start := time.Now()
		for range 30 {
			k := refresh()
			for !admitted(k) && k.Err() == nil && time.Since(start) < 59*time.Second {
				time.Sleep(100 * time.Millisecond)
			}
			if admitted(k) {
				n++
			}
			_ = k.AdmitCall(t.Context())
			k.Release(true)
		}
		if left := b.Status().Left; left < 23 || left > 25 {
			t.Errorf("%d refreshes in a minute left %d calls", n, left)
		}
		spend(t, b, "client", b.Status().Left)
		for range 20 {
			waits(t, refresh())
		}
		retryAfter(t, refresh())
		// 20 places are left in the queue, and those of refreshes.
		for i := range 40 {
			if k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityHistory, Caller: fmt.Sprint(i)}); k.Err() != nil {
				t.Fatalf("%d: %v", i, k.Err())
			}
		}
		if s := b.Status(); s.Waiting[reqctx.PriorityRefresh] != 0 || s.Waiting[reqctx.PriorityHistory] != 40 {
			t.Errorf("%+v", s)
		}
	})
}

// A refresh that somebody waits for is one no more.
func TestRefreshBecomesARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 20})
		spend(t, b, "", 15)
		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityRefresh, Deadline: within(time.Minute)})
		waits(t, k)
		k.Join(prices("a", time.Second))
		if !admitted(k) {
			t.Error("waits although there is enough for reads")
		}
		k.Release(true)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{Public: 2})
		k := b.Reserve(prices("", time.Second))
		waiting := b.Reserve(prices("", 2*time.Minute))
		_ = k.AdmitCall(t.Context())
		k.Release(true)
		waits(t, waiting)
		b.Close()
		b.Close()
		for _, k := range []reqctx.Reservation{waiting, b.Reserve(prices("", time.Second))} {
			<-k.Decided()
			if market.CodeOf(k.Err()) != market.CodeUpstreamUnavailable || k.AdmitCall(t.Context()) == nil {
				t.Errorf("%v", k.Err())
			}
			k.Join(prices("", time.Second))
			k.Release(false)
		}
	})
}

// The usual call, which finds a place free, costs at most two allocations.
func TestAllocations(t *testing.T) {
	b := New(Config{Public: 1 << 20})
	defer b.Close()
	want := reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "c", Deadline: time.Now().Add(time.Hour)}
	ctx := context.Background()
	for range 4000 {
		call(b, want) // the log has grown
	}
	n := testing.AllocsPerRun(1000, func() {
		k := b.Reserve(want)
		<-k.Decided()
		_ = k.AdmitCall(ctx)
		k.Release(true)
	})
	if n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCall is a call that leaves at once.
func BenchmarkCall(b *testing.B) {
	budget := New(Config{Public: 1 << 40})
	defer budget.Close()
	want := reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "c", Deadline: time.Now().Add(time.Hour)}
	b.ReportAllocs()
	for b.Loop() {
		k := budget.Reserve(want)
		<-k.Decided()
		_ = k.AdmitCall(b.Context())
		k.Release(false)
	}
}

// BenchmarkRefusal is a read that comes too late for a full window while many wait.
func BenchmarkRefusal(b *testing.B) {
	for _, waiting := range []int{0, 32, 90} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			budget := New(Config{})
			defer budget.Close()
			for call(budget, reqctx.CallRequest{Priority: reqctx.PriorityPrices, Deadline: within(1)}) {
			}
			for i := range waiting {
				budget.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: fmt.Sprint(i)})
			}
			b.ReportAllocs()
			for b.Loop() {
				k := budget.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "late", Deadline: within(time.Second)})
				if k.Err() == nil {
					b.Fatal("admitted")
				}
			}
		})
	}
}

// TestCallsBeforeAcceptance: what credentials have spent while the venue had not accepted them yet counts in their own
// window too, as it does at the venue.
func TestCallsBeforeAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 100, Key: 20})
		want := reqctx.CallRequest{Scope: "key", Priority: reqctx.PriorityUser, Deadline: time.Now().Add(time.Second)}
		made := 0
		call := func(k reqctx.Reservation) {
			if k.AdmitCall(t.Context()) == nil {
				made++
			}
		}
		first := []reqctx.Reservation{b.Reserve(want), b.Reserve(want), b.Reserve(want)}
		for _, k := range first {
			call(k)
		}
		call(first[0]) // another page
		for _, k := range first {
			k.Release(true)
		}
		for range 30 {
			k := b.Reserve(want)
			call(k)
			k.Release(true)
		}
		if made != 19 { // a twentieth is left alone
			t.Errorf("%d calls were let through, want 19", made)
		}
	})
}

// TestWhatIsSaidOfAKeyIsNotHeldAgainstTheAddress: what the venue says about credentials that have no window yet, which their
// owner may have used up elsewhere, costs nobody else a call.
func TestWhatIsSaidOfAKeyIsNotHeldAgainstTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		key := func(scope string) reqctx.CallRequest {
			return reqctx.CallRequest{Scope: scope, Priority: reqctx.PriorityUser, Caller: "owner", Deadline: within(time.Second)}
		}
		before := b.Status()

		// Used 250 times elsewhere.
		k := b.Reserve(key("busy"))
		_ = k.AdmitCall(t.Context())
		k.Observe(300, 49, within(time.Minute))
		k.Observe(10, -1, time.Time{})
		k.Release(true)
		if s := b.Status(); s.Limit != before.Limit || s.Left != before.Left-1 || s.Scopes != 1 {
			t.Errorf("after the first call with a busy key: %+v", s)
		}
		// From now on it is known whose word it is, also of a call that was under way.
		k = b.Reserve(key("busy"))
		_ = k.AdmitCall(t.Context())
		k.Observe(300, 3, within(time.Minute))
		if w := b.keys["busy"]; w.foreign != 300-3-w.used() {
			t.Errorf("%d foreign calls in the key's own window", w.foreign)
		}
		k.Release(true)

		// Used up elsewhere, again and again, with one key and with many.
		for i := range 20 {
			for _, scope := range []string{"empty", fmt.Sprint("empty", i)} {
				k := b.Reserve(key(scope))
				if err := k.Err(); i > 0 && scope == "empty" {
					if wait := retryAfter(t, k); wait != 40*time.Second {
						t.Errorf("told to come back in %s", wait)
					}
				} else if err != nil || k.AdmitCall(t.Context()) != nil {
					t.Errorf("%s: %v", scope, err)
				}
				k.Throttled(within(40 * time.Second))
				if err := k.AdmitCall(t.Context()); market.CodeOf(err) != market.CodeRateLimited {
					t.Errorf("a further call: %v", err)
				}
				k.Release(false)
			}
		}
		if s := b.Status(); !s.ThrottledUntil.IsZero() || s.Limit != before.Limit || s.Left != before.Left-1-1-20 {
			t.Errorf("after refusals of keys: %+v", s)
		}
		if !call(b, prices("another", time.Second)) {
			t.Error("a public call of somebody else had to wait")
		}
		time.Sleep(40 * time.Second)
		if !call(b, key("empty")) {
			t.Error("held for longer than the venue said")
		}
		if b.Status().Scopes != 2 {
			t.Error("not accepted after the time that the venue named")
		}

		// What was said before the venue accepted the key holds in its window.
		first, second := b.Reserve(key("new")), b.Reserve(key("new"))
		_, _ = first.AdmitCall(t.Context()), second.AdmitCall(t.Context())
		first.Throttled(within(30 * time.Second))
		first.Release(false)
		second.Release(true)
		if wait := retryAfter(t, b.Reserve(key("new"))); wait != 30*time.Second {
			t.Errorf("told to come back in %s", wait)
		}
	})
}

// TestHeldKeysAreBounded: and those whose time is over make room.
func TestHeldKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := b.Reserve(reqctx.CallRequest{Scope: "key"}).(*reservation)
		defer k.Release(false)
		for i := range 2 * maxHeld {
			k.scope = fmt.Sprint(i)
			k.Throttled(within(time.Minute))
		}
		if len(b.heldUntil) != maxHeld {
			t.Errorf("%d keys are remembered", len(b.heldUntil))
		}
		time.Sleep(time.Minute)
		k.Throttled(within(100 * time.Hour))
		if len(b.heldUntil) != 1 || b.heldUntil[k.scope].After(within(patience)) {
			t.Errorf("%d keys are remembered, the last until %s", len(b.heldUntil), b.heldUntil[k.scope])
		}
	})
}

// TestStatusTellsWhenTheNextCallIsFree: whatever uses the window up, and not while anything is left.
func TestStatusTellsWhenTheNextCallIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 11}) // 10
		until := func(what string, want time.Duration) {
			t.Helper()
			got := b.Status().ThrottledUntil
			if want == 0 && !got.IsZero() || want > 0 && !got.Equal(within(want)) {
				t.Errorf("%s: until %s, want in %s", what, got, want)
			}
		}
		// holds checks that it is true: no call leaves before, and one does then.
		holds := func(what string) {
			t.Helper()
			at := b.Status().ThrottledUntil
			time.Sleep(time.Until(at) - 1)
			if call(b, prices("x", time.Nanosecond)) {
				t.Errorf("%s: a call left before", what)
			}
			time.Sleep(time.Nanosecond)
			if until(what, 0); !call(b, prices("x", time.Nanosecond)) {
				t.Errorf("%s: no call left then", what)
			}
		}
		spend(t, b, "x", 3)
		time.Sleep(10 * time.Second)
		spend(t, b, "x", 6)
		until("one is left", 0)
		flying := b.Reserve(prices("x", time.Second))
		until("used up", span-10*time.Second)
		flying.Release(false)
		until("given back", 0)
		spend(t, b, "x", 1)
		holds("used up")

		time.Sleep(2 * span)
		k := b.Reserve(prices("x", time.Second))
		_ = k.AdmitCall(t.Context())
		k.Observe(11, 0, within(20*time.Second))
		until("used up by others", 20*time.Second)
		k.Release(true)
		holds("used up by others")

		time.Sleep(2 * span)
		spend(t, b, "x", 5)
		time.Sleep(5 * time.Second)
		k = b.Reserve(prices("x", time.Second))
		k.Release(false)
		k.Observe(4, -1, time.Time{})
		until("of the five three have to leave", span-5*time.Second)
		k.Observe(11, -1, time.Time{})
		k.Throttled(within(20 * time.Second))
		until("the venue wants none", 20*time.Second)
		spent := b.Status()
		if spent.Left != 0 || b.Left() != 0 {
			t.Errorf("%+v", spent)
		}

		time.Sleep(2*span - 5*time.Second)
		spend(t, b, "x", 9)
		until("a lowered limit is used up", 5*time.Second)
		holds("a lowered limit is used up")

		time.Sleep(10 * time.Minute)
		spend(t, b, "x", 3)
		time.Sleep(20 * time.Second)
		spend(t, b, "x", 2)
		k = b.Reserve(prices("x", time.Second))
		k.Release(false)
		k.Observe(4, -1, time.Time{})
		until("the first of the later two has to leave", span-20*time.Second)
		k.Observe(3, -1, time.Time{})
		until("the second of them too", span)
		k.Observe(11, -1, time.Time{})

		time.Sleep(10 * time.Minute)
		var all []reqctx.Reservation
		for range 10 {
			all = append(all, b.Reserve(prices("x", time.Second)))
			_ = all[len(all)-1].AdmitCall(t.Context())
		}
		until("all are under way", span)
		for _, k := range all {
			k.Release(true)
		}
	})
}

// TestCallersAreBounded: those past the bound share one entry, and have what one caller has.
func TestCallersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 4 * maxCallers, Queue: 8})
		for i := range 3 * maxCallers {
			b.Reserve(prices(fmt.Sprint(i), time.Second)).Release(false)
		}
		w := b.public
		if len(w.callers) != maxCallers || w.recent.Len() != maxCallers {
			t.Errorf("%d callers, %d in order", len(w.callers), w.recent.Len())
		}
		n := 0
		for i := range 3 * maxCallers {
			if !call(b, prices(fmt.Sprint("late", i), time.Second)) {
				break
			}
			n++
		}
		if n != w.share() {
			t.Errorf("those past the bound had %d calls, want the %d of one", n, w.share())
		}
		if !call(b, prices("7", time.Second)) {
			t.Error("one of those who are known had to wait")
		}
		time.Sleep(2 * span)
		if !call(b, prices("late", time.Second)) || len(w.callers) != 1 || w.callers["late"] == nil {
			t.Errorf("%d callers after a quiet time", len(w.callers))
		}
	})
}
