package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/upstream"
)

func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		spread(t, b, mixedPriority)
		tickets := map[string]upstream.Reservation{}
		for _, p := range []upstream.Priority{upstream.PriorityHistory, upstream.PrioritySearch, upstream.PriorityMarkets, upstream.PriorityBooks, upstream.PriorityPrices, upstream.PriorityUser} {
			for i := range 2 {
				tickets[fmt.Sprintf("%s%d", p, i)] = b.Reserve(upstream.CallRequest{Priority: p, Caller: fmt.Sprintf("%s%d", p, i)})
			}
		}
		got := order(t, tickets)
		want := []string{
			"user0", "user1", "prices0", "prices1", "books0", "books1", "markets0", "markets1", "search0", "search1", "history0", "history1",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got order %v, want %v", got, want)
		}
	})
}

// TestPriorityRises checks the turn of a reservation that gets a higher priority: it comes after the reservations that already have
// this priority.
func TestPriorityRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		spread(t, b, mixedPriority)
		reserve := func(p upstream.Priority, caller string) upstream.Reservation {
			return b.Reserve(upstream.CallRequest{Priority: p, Caller: caller})
		}
		history, books, first := reserve(upstream.PriorityHistory, "h"), reserve(upstream.PriorityBooks, "b"), reserve(upstream.PriorityPrices, "p")
		turnBefore, firstTurn := turnOf(t, history), turnOf(t, first)
		history.Join(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "h"})
		if turn := turnOf(t, history); !turn.Before(turnBefore) || !turn.Before(turnOf(t, books)) || !turnOf(t, first).Equal(firstTurn) {
			t.Errorf("the turn moved from %s to %s, want an earlier turn; the turn of the first moved from %s to %s, want no change", turnBefore, turnOf(t, history), firstTurn, turnOf(t, first))
		}
		history.Join(upstream.CallRequest{Priority: upstream.PrioritySearch, Caller: "h"}) // a lower priority changes nothing
		if got := order(t, map[string]upstream.Reservation{"h": history, "b": books, "p": first}); !slices.Equal(got, []string{"p", "h", "b"}) {
			t.Errorf("got order %v, want p, h, b", got)
		}
	})
}

// TestPushedBackReadsAreRefused checks that a waiting reservation is refused when other reservations delay its turn past its
// deadline.
func TestPushedBackReadsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10})
		spread(t, b, mixedPriority)
		turn := 59 * time.Second
		reserve := func(p upstream.Priority, d time.Duration) upstream.Reservation {
			return b.Reserve(upstream.CallRequest{Priority: p, Caller: p.String(), Deadline: within(d)})
		}
		late, patient := reserve(upstream.PriorityHistory, turn+200*time.Millisecond), reserve(upstream.PriorityHistory, turn+350*time.Millisecond)
		wantWaiting(t, late)
		wantWaiting(t, patient)
		patient.Join(upstream.CallRequest{Priority: upstream.PriorityHistory, Deadline: within(2 * time.Minute)})
		for i := range 3 {
			wantWaiting(t, b.Reserve(upstream.CallRequest{Priority: upstream.PriorityUser, Caller: fmt.Sprint("user", i), Deadline: within(time.Minute)}))
		}
		if wait := retryAfter(t, late); wait < turn+200*time.Millisecond || wait > turn+300*time.Millisecond {
			t.Errorf("got retry after %s, want 59.2 s to 59.3 s", wait)
		}
		wantWaiting(t, patient)
	})
}

// TestTooLateReadsAreRefused checks that a read is refused if its turn is at or after its deadline. A caller that joins a waiting
// read must be late by the same rule, also if the read was a refresh.
func TestTooLateReadsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10})
		spend(t, b, "a", 9)
		turn := time.Until(b.Status().ThrottledUntil)
		if wait := retryAfter(t, b.Reserve(prices("b", turn))); wait != turn {
			t.Errorf("got retry after %s, want %s", wait, turn)
		}
		wantWaiting(t, b.Reserve(prices("b", turn+1)))
		refresh := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityRefresh, Deadline: within(2 * time.Minute)})
		if err := refresh.Late(within(0)); err != nil {
			t.Errorf("a refresh: got the error %v, want none", err)
		}
		refresh.Join(prices("b", turn)) // now it is a read with the second turn, at the same time as the first
		if wait := waitIn(t, refresh.Late(within(turn))); wait != turn {
			t.Errorf("a caller of a former refresh: got retry after %s, want %s", wait, turn)
		}
		for _, deadline := range []time.Time{within(turn + 1), {}} {
			if err := refresh.Late(deadline); err != nil {
				t.Errorf("a caller with the deadline %s: got the error %v, want none", deadline, err)
			}
		}
		wantWaiting(t, refresh)
		refresh.Release(false)
		if err := refresh.Late(within(0)); err != nil {
			t.Errorf("a released read: got the error %v, want none", err)
		}
	})
}

// TestNoPriorityStarves checks that each priority from history to books gets at least four calls a minute, even if many calls of a
// higher priority wait. In the first of the three minutes, the window is free.
func TestNoPriorityStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		start := time.Now()
		var got [upstream.Priorities]int
		var wg sync.WaitGroup
		for p := upstream.PriorityHistory; p <= upstream.PriorityPrices; p++ {
			clients := 40
			if p == upstream.PriorityPrices {
				clients = 200
			}
			for i := range clients {
				wg.Go(func() {
					for time.Since(start) < 3*time.Minute {
						k := b.Reserve(upstream.CallRequest{Priority: p, Caller: fmt.Sprintf("%s%d", p, i), Deadline: within(10 * time.Second)})
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
		for p := upstream.PriorityHistory; p < upstream.PriorityPrices; p++ {
			if got[p] < 2*4 || got[p] > got[upstream.PriorityPrices] {
				t.Errorf("%s: got %d calls, want at least 8 and no more than for prices; all priorities: %v", p, got[p], got)
			}
		}
		if got[upstream.PriorityPrices] < 3*60 {
			t.Errorf("got the calls %v, want at least 180 for prices", got)
		}
	})
}

// TestRefusedCallsAreNoTurn checks that calls that the venue has refused do not use up the calls by which a priority goes first.
func TestRefusedCallsAreNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		for i := range b.Status().Left - 4 {
			call(b, upstream.CallRequest{Priority: upstream.PriorityBooks, Caller: fmt.Sprint(i), Deadline: within(1)})
			time.Sleep(100 * time.Millisecond)
		}
		var refused []upstream.Reservation
		for range 4 { // as many as go first
			refused = append(refused, begin(t, b, upstream.CallRequest{Priority: upstream.PriorityMarkets, Endpoint: upstream.EndpointMarketsByID}))
		}
		for _, k := range refused {
			refuse(k, time.Second)
			k.Release(true)
		}
		got := order(t, map[string]upstream.Reservation{
			"books":  b.Reserve(upstream.CallRequest{Priority: upstream.PriorityBooks, Caller: "b"}),
			"market": b.Reserve(upstream.CallRequest{Priority: upstream.PriorityMarkets, Caller: "m"}),
		})
		if want := []string{"market", "books"}; !slices.Equal(got, want) {
			t.Errorf("got order %v, want %v", got, want)
		}
	})
}

// TestFairShare checks how many calls a caller gets, depending on the number of other callers.
func TestFairShare(t *testing.T) {
	for others, most := range map[int]int{0: 95, 1: 72, 2: 49, 3: 26, 4: 23, 50: 23} {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{})
			b.Reserve(prices("", time.Second)).Release(false) // nothing is kept for the service itself
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
				t.Errorf("with %d other callers: the greedy caller made %d calls, want %d", others, n, most)
			}
			for i := range min(others, b.Status().Left/22) {
				spend(t, b, fmt.Sprint("honest", i), 22)
			}
			if others > 0 {
				k := b.Reserve(prices("greedy", time.Second))
				if wait := retryAfter(t, k); wait > 31*time.Second {
					t.Errorf("got retry after %s, want at most 31s", wait)
				}
			}
		})
	}
}

// TestFairShareOfTheQueue checks that a caller that has used its share waits behind all other callers.
func TestFairShareOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 42}) // the margin is 2 calls, so 40 calls are usable, and a share is 10 calls
		for i := range 40 {
			caller := "greedy"
			if i%2 == 1 {
				caller = ""
			}
			spend(t, b, caller, 1)
			time.Sleep(100 * time.Millisecond)
		}
		tickets := map[string]upstream.Reservation{}
		for i := range 2 {
			tickets[fmt.Sprint("greedy", i)] = b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "greedy"})
		}
		shared := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "greedy"})
		tickets["shared"] = shared
		tickets["honest"] = b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "honest"})
		// After Join, shared keeps its time of arrival, which is before the arrival of honest.
		shared.Join(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "other"})
		got := order(t, tickets)
		if !slices.Equal(got, []string{"shared", "honest", "greedy0", "greedy1"}) {
			t.Errorf("got order %v, want shared, honest, greedy0, greedy1", got)
		}
	})
}

// TestQueueIsBounded checks that the length of the queue is bounded, and that one caller cannot fill the queue.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10, Queue: 20})
		exhaust(t, b)
		reserve := func(caller string) bool {
			return b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: caller}).Err() == nil
		}
		n := 0
		for reserve("greedy") {
			n++
		}
		if n != 10 {
			t.Errorf("one caller got %d of 20 places in the queue, want 10", n)
		}
		for i := range 10 {
			if !reserve(fmt.Sprint(i)) {
				t.Errorf("caller %d got no place in the queue", i)
			}
		}
		if k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityUser, Caller: "last"}); retryAfter(t, k) > span {
			t.Errorf("the reservation beyond the queue was refused with %v, want a wait of at most %s", k.Err(), span)
		}
		if s := b.Status(); s.Waiting[upstream.PriorityPrices] != 20 {
			t.Errorf("the status is %+v, want 20 waiting calls", s)
		}
	})
}

// TestRefreshesAreLast checks that refreshes leave a quarter of the window and half of the queue for other reads.
func TestRefreshesAreLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Queue: 40})
		n := 0
		for call(b, upstream.CallRequest{Priority: upstream.PriorityRefresh}) {
			n++
		}
		if n != 72 {
			t.Errorf("%d refreshes were admitted at once, want 72, three quarters of 95 calls", n)
		}
		spend(t, b, "client", 23)
		refresh := func() upstream.Reservation {
			return b.Reserve(upstream.CallRequest{Priority: upstream.PriorityRefresh, Deadline: within(time.Minute)})
		}
		for range 20 {
			wantWaiting(t, refresh())
		}
		retryAfter(t, refresh())
		read := func(i int) upstream.Reservation {
			return b.Reserve(upstream.CallRequest{Priority: upstream.PriorityHistory, Caller: fmt.Sprint(i)})
		}
		for i := range 20 {
			wantWaiting(t, read(i))
		}
		retryAfter(t, read(20))
	})
}

// TestRefreshBecomesARead checks that a refresh gets the priority of a request that joins the refresh.
func TestRefreshBecomesARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 20})
		spend(t, b, "", 15)
		k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityRefresh, Deadline: within(time.Minute)})
		wantWaiting(t, k)
		k.Join(prices("a", time.Second))
		if !admitted(k) {
			t.Error("the refresh still waits, although its new priority allows the call")
		}
		k.Release(true)
	})
}

// TestCallersAreBounded checks that all callers beyond maxCallers together get the share of one caller.
func TestCallersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 4 * maxCallers, Queue: 8})
		for i := range 3 * maxCallers {
			b.Reserve(prices(fmt.Sprint(i), time.Second)).Release(false)
		}
		w := b.public
		if w.callers.Len() != maxCallers {
			t.Errorf("the window has %d callers, want %d", w.callers.Len(), maxCallers)
		}
		n := 0
		for i := range 3 * maxCallers {
			if !call(b, prices(fmt.Sprint("late", i), time.Second)) {
				break
			}
			n++
		}
		if n != w.share() {
			t.Errorf("the callers beyond the bound made %d calls, want %d", n, w.share())
		}
		if !call(b, prices("7", time.Second)) {
			t.Error("a known caller had to wait")
		}
		time.Sleep(2 * span)
		if !call(b, prices("late", time.Second)) || w.callers.Len() != 1 || !w.callers.Contains("late") {
			t.Errorf("after two spans without calls the window has %d callers, want 1", w.callers.Len())
		}
	})
}
