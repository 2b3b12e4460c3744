package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// sharedLedger is a Ledger in memory. It responds after a millisecond.
type sharedLedger struct {
	running sync.WaitGroup

	mu          sync.Mutex
	down        bool                 // if true, the ledger grants nothing
	closedUntil time.Time            // the ledger grants nothing before this time
	holdUntil   time.Time            // no process may make calls before this time
	granted     map[string]time.Time // the time until which each call counts
	serial      int
	asks        int
	unused      []string
}

const (
	sharedUse  = 5 * time.Second
	sharedKeep = span + sharedUse + 10*time.Second
)

func newSharedLedger(t *testing.T) *sharedLedger {
	l := &sharedLedger{granted: map[string]time.Time{}}
	t.Cleanup(l.running.Wait)
	return l
}

func (l *sharedLedger) Ask(scope string, limit, n int, answered func([]string, int, time.Duration, time.Duration)) {
	l.running.Go(func() {
		time.Sleep(time.Millisecond)
		answered(l.answer(scope, limit, n))
	})
}

func (l *sharedLedger) answer(scope string, limit, n int) (calls []string, left int, again, hold time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.asks++
	switch {
	case l.down:
		return nil, 0, time.Second, 0
	case now.Before(l.holdUntil):
		return nil, 0, l.holdUntil.Sub(now), l.holdUntil.Sub(now)
	case now.Before(l.closedUntil):
		return nil, 0, l.closedUntil.Sub(now), 0
	}
	again = time.Hour
	for call, until := range l.granted {
		if !now.Before(until) {
			delete(l.granted, call)
		} else {
			again = min(again, until.Sub(now))
		}
	}
	left = max(limit-len(l.granted), 0)
	for range min(left, n) {
		l.serial++
		call := fmt.Sprint(scope, l.serial)
		l.granted[call] = now.Add(sharedKeep)
		calls = append(calls, call)
	}
	return calls, left - len(calls), again, 0
}

func (l *sharedLedger) End(_ string, ended, unused []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, call := range ended {
		if _, ok := l.granted[call]; ok {
			l.granted[call] = time.Now().Add(span)
		}
	}
	for _, call := range unused {
		delete(l.granted, call)
	}
	l.unused = append(l.unused, unused...)
}

func (l *sharedLedger) Hold(_ string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holdUntil = market.Later(l.holdUntil, until)
}

// set runs the function change while the ledger is locked.
func (l *sharedLedger) set(change func(*sharedLedger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// count returns the result of the function of, which it calls while the ledger is locked.
func (l *sharedLedger) count(of func(*sharedLedger) int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return of(l)
}

// sharedBy returns the configuration of one of 5 processes that share a limit of 100 calls a minute. The margin is 5 calls, and the
// reserve of each process is 5 calls, so the ledger grants 70 calls.
func sharedBy(l *sharedLedger) Config {
	return Config{Sharing: Sharing{Ledger: l, Replicas: 5, Reserve: 5, Use: sharedUse}}
}

// mostWithin returns the greatest number of times that lie in one period of length d.
func mostWithin(times []time.Time, d time.Duration) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	for i, first := 0, 0; i < len(times); i++ {
		for times[i].Sub(times[first]) >= d {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestSharedLimit checks that processes together never exceed the limit, even if the ledger fails or processes are replaced. It
// also checks how many calls the processes make with a working ledger, while the ledger is down, and after the ledger lost its
// grants.
func TestSharedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		var mu sync.Mutex
		var made []time.Time
		var running sync.WaitGroup
		start := time.Now()
		// process starts a process that tries to make three calls a second. The process starts at the time from and ends at the time to,
		// both counted from the start of the test.
		process := func(name string, from, to time.Duration) {
			running.Go(func() {
				time.Sleep(from)
				b := New(sharedBy(l))
				defer b.Close()
				var calls sync.WaitGroup
				defer calls.Wait()
				for time.Since(start) < to {
					calls.Go(func() {
						ticket := b.Reserve(prices(name, 5*time.Second))
						defer ticket.Release(true)
						<-ticket.Decided()
						if ticket.Err() != nil || ticket.AdmitCall(context.Background()) != nil {
							return
						}
						mu.Lock()
						made = append(made, time.Now())
						mu.Unlock()
						time.Sleep(50 * time.Millisecond)
					})
					time.Sleep(time.Second/3 + time.Millisecond)
				}
			})
		}
		at := func(d time.Duration, change func(*sharedLedger)) {
			running.Go(func() {
				time.Sleep(d)
				l.set(change)
			})
		}
		const minute = time.Minute
		process("a", 0, 12*minute)
		process("b", 0, 4*minute)
		process("c", 0, 4*minute+10*time.Second)
		process("b2", 4*minute-time.Second, 12*minute) // b2 and c2 replace b and c
		process("c2", 4*minute, 12*minute)
		at(6*minute, func(l *sharedLedger) { l.down = true })
		at(8*minute, func(l *sharedLedger) { l.down = false })
		at(10*minute, func(l *sharedLedger) { clear(l.granted); l.closedUntil = time.Now().Add(sharedKeep) })
		running.Wait()

		if most := mostWithin(made, minute); most > 95 {
			t.Errorf("got %d calls in a minute, want at most 95", most)
		}
		between := func(from, to time.Duration) (n int) {
			for _, at := range made {
				if d := at.Sub(start); d >= from && d < to {
					n++
				}
			}
			return n
		}
		if n := between(2*minute, 4*minute); n < 2*85*95/100 {
			t.Errorf("three processes made %d calls in 2 minutes, want at least %d", n, 2*85*95/100)
		}
		if n := between(6*minute+time.Second, 8*minute); n < 2*3*5-5 || n > 2*3*5+70 {
			t.Errorf("got %d calls in 2 minutes while the ledger was down, want 25 to 100: the reserves are 30 calls", n)
		}
		if n := between(10*minute+time.Second, 11*minute); n > 95 || n < 10 {
			t.Errorf("got %d calls in the minute after the ledger lost its grants, want 10 to 95", n)
		}
	})
}

// TestReserve checks that a process uses its reserve only after the calls of the previous process have left the window. The ledger
// is down during the test.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		l.down = true
		b := open(t, sharedBy(l))
		first := b.Reserve(prices("a", 2*time.Minute))
		defer first.Release(true)
		time.Sleep(time.Minute)
		wantWaiting(t, first)
		if s := *b.Status().Shared; time.Until(s.ReserveOpens) < time.Second || s.Reserve != 5 || s.ReserveUsed+s.Granted > 0 {
			t.Errorf("the status is %+v, want a reserve of 5 calls that opens later and is not used", s)
		}
		time.Sleep(2 * time.Second)
		if !admitted(first) {
			t.Fatal("the call still waits after a minute, want a call from the reserve")
		}
		n := 0
		for range 20 {
			further := b.Reserve(prices("a", time.Second))
			time.Sleep(2 * time.Millisecond)
			if admitted(further) && further.AdmitCall(t.Context()) == nil {
				n++
			}
			further.Release(true)
		}
		if n != 4 {
			t.Errorf("%d more calls were admitted while the ledger was down, want 4, the rest of the reserve", n)
		}
		if s := *b.Status().Shared; s != (SharedStatus{Reserve: 5, ReserveUsed: 5}) {
			t.Errorf("the status is %+v, want a reserve that is used up", s)
		}
	})
}

// TestCreditsAhead checks that only the first of several calls in quick succession waits for the ledger, and that unused grants are
// returned to the ledger.
func TestCreditsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		first := b.Reserve(prices("a", time.Second))
		if admitted(first) {
			t.Fatal("the first call did not wait for the ledger")
		}
		time.Sleep(2 * time.Millisecond)
		if !admitted(first) || first.AdmitCall(t.Context()) != nil {
			t.Fatal("the first call was not admitted")
		}
		first.Release(true)
		for range 20 {
			if !call(b, prices("a", time.Second)) {
				t.Fatal("a further call waits for the ledger")
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(keepAhead + time.Second)
		if s := b.Status().Shared; s.Granted != 21 || s.Left != 70-21 || s.ReserveUsed != 0 || s.ReserveOpens.IsZero() {
			t.Errorf("the status is %+v, want 21 granted calls and 49 left", s)
		}
		if n := l.count(func(l *sharedLedger) int { return len(l.granted) }); n != 21 {
			t.Errorf("the ledger counts %d calls, want the 21 that were made", n)
		}
		asks := l.count(func(l *sharedLedger) int { return l.asks })
		time.Sleep(time.Minute)
		if more := l.count(func(l *sharedLedger) int { return l.asks }) - asks; more != 0 {
			t.Errorf("an idle process asked the ledger %d times, want 0", more)
		}
	})
}

// TestGrantedCallIsOverdue checks that a granted call needs a new grant if it was not sent within the time Sharing.Use.
func TestGrantedCallIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		ticket := b.Reserve(prices("a", time.Minute))
		<-ticket.Decided()
		time.Sleep(sharedUse)
		l.set(func(l *sharedLedger) { l.closedUntil = time.Now().Add(3 * time.Second) })
		asked := time.Now()
		if err := ticket.AdmitCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took < 3*time.Second {
			t.Errorf("an overdue call was sent after %v, want at least 3 s, the wait for a new grant", took)
		}
		ticket.Release(true)
		time.Sleep(keepAhead + time.Second)
		if n := l.count(func(l *sharedLedger) int { return len(l.granted) }); n != 1 {
			t.Errorf("the ledger counts %d calls, want 1", n)
		}
	})
}

// TestSharedHold checks that a 429 response to one process also stops the calls of the other process until the time in the
// response. Calls from the reserve must also stop.
func TestSharedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		a, b := open(t, sharedBy(l)), open(t, sharedBy(l))
		time.Sleep(2 * time.Minute) // after this time, the processes may use their reserves
		refused := a.Reserve(prices("a", time.Second))
		<-refused.Decided()
		refused.Throttled(time.Now().Add(20 * time.Second))
		refused.Release(true)
		ticket := b.Reserve(prices("b", time.Minute))
		defer ticket.Release(true)
		time.Sleep(19 * time.Second)
		wantWaiting(t, ticket)
		time.Sleep(2 * time.Second)
		if !admitted(ticket) {
			t.Error("the call of the other process still waits after the time in the 429 response")
		}
	})
}

// TestSharedLeft checks that Left is 0 if other processes have used all calls, and that Left asks the ledger at most once a second.
func TestSharedLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		for i := range 70 {
			l.granted[fmt.Sprint("another", i)] = time.Now().Add(30 * time.Second)
		}
		for range 100 {
			b.Left()
			time.Sleep(10 * time.Millisecond)
		}
		if left := b.Left(); left != 0 {
			t.Errorf("got Left() = %v while other processes use all calls, want 0", left)
		}
		if asks := l.count(func(l *sharedLedger) int { return l.asks }); asks > 2 {
			t.Errorf("in one second, Left() asked the ledger %d times, want at most 2", asks)
		}
		time.Sleep(time.Minute)
		b.Left()
		time.Sleep(2 * time.Millisecond)
		if left := b.Left(); left < 0.7 {
			t.Errorf("got Left() = %v after a minute without calls, want at least 0.7", left)
		}
	})
}

// TestSharedTurn checks that a call is refused at once if its deadline is before the time of the ledger's next grant.
func TestSharedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		l.closedUntil = time.Now().Add(40 * time.Second)
		long := b.Reserve(prices("a", 50*time.Second))
		defer long.Release(true)
		short := b.Reserve(prices("a", 30*time.Second))
		defer short.Release(true)
		time.Sleep(2 * time.Millisecond)
		if wait := retryAfter(t, short); wait < 39*time.Second || wait > time.Minute {
			t.Errorf("got retry after %v, want about 40s", wait)
		}
		wantWaiting(t, long)
		time.Sleep(41 * time.Second)
		if !admitted(long) {
			t.Error("the call with enough time was not admitted")
		}
	})
}

// TestSharedKeys checks that processes share the limit of credentials through the ledger if Sharing.SameScopes is true, and otherwise
// divide the limit.
func TestSharedKeys(t *testing.T) {
	for _, keys := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := newSharedLedger(t)
			cfg := sharedBy(l)
			cfg.Key, cfg.Sharing.SameScopes = 100, keys
			total, all := 0, []*Budget{open(t, cfg), open(t, cfg), open(t, cfg)}
			time.Sleep(2 * time.Minute)
			for _, b := range all {
				want := reqctx.CallRequest{Scope: "key", Priority: reqctx.PriorityUser, Caller: "a", Deadline: within(time.Minute)}
				call(b, want)
				time.Sleep(10 * time.Millisecond)
				call(b, want) // after the first call, the credentials have their own window
				for range 200 {
					if call(b, want) {
						total++
					}
					synctest.Wait()
					time.Sleep(time.Millisecond)
				}
			}
			switch {
			case keys && (total < 70 || total > 95):
				t.Errorf("the processes made %d calls with credentials that share one limit, want 70 to 95", total)
			case !keys && (total < 3*15 || total > 3*19):
				t.Errorf("the processes made %d calls with credentials whose limit is divided, want 45 to 57", total)
			}
		})
	}
}

// TestSharedAddress checks that a process stops sending calls if the venue reports fewer remaining calls than the margin.
func TestSharedAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, sharedBy(newSharedLedger(t)))
		ticket := b.Reserve(prices("a", time.Minute))
		<-ticket.Decided()
		ticket.Observe(100, 80, time.Time{}) // the venue counts 20 calls, which other processes made
		if left := b.Left(); left == 0 {
			t.Fatal("got Left() = 0, want more, because processes with the same ledger made the calls")
		}
		ticket.Observe(100, 4, time.Time{}) // 4 remaining calls are less than the margin of 5 calls
		if left := b.Left(); left != 0 {
			t.Errorf("got Left() = %v after the venue reported 4 remaining calls, want 0", left)
		}
		ticket.Release(true)
	})
}
