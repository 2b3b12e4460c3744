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
	"oddsgraph/internal/market/shared"
	"oddsgraph/internal/upstream"
)

// sharedLedger is a Ledger in memory. It responds after a millisecond.
type sharedLedger struct {
	running sync.WaitGroup

	mu        sync.Mutex
	down      bool                 // if true, the ledger does not answer
	holdUntil time.Time            // no process may make calls before this time
	granted   map[string]time.Time // the time until which each call counts
	assumed   int
	serial    int
	asks      int
}

const sharedKeep = span + 15*time.Second

func newSharedLedger(t *testing.T) *sharedLedger {
	l := &sharedLedger{granted: map[string]time.Time{}}
	t.Cleanup(l.running.Wait)
	return l
}

func (l *sharedLedger) Ask(scope string, limit, n int, reply func(shared.Grant)) {
	l.running.Go(func() {
		time.Sleep(time.Millisecond)
		reply(l.answer(scope, limit, n))
	})
}

func (l *sharedLedger) answer(scope string, limit, n int) (g shared.Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.asks++
	switch {
	case l.down:
		return shared.Grant{Away: true, Again: time.Second}
	case now.Before(l.holdUntil):
		return shared.Grant{Again: l.holdUntil.Sub(now), Hold: l.holdUntil.Sub(now)}
	}
	g.Again, g.Assumed = time.Hour, l.assumed
	for call, until := range l.granted {
		if !now.Before(until) {
			delete(l.granted, call)
		} else {
			g.Again = min(g.Again, until.Sub(now))
		}
	}
	g.Left = max(limit-len(l.granted), 0)
	for range min(g.Left, n) {
		l.serial++
		call := fmt.Sprint(scope, l.serial)
		l.granted[call] = now.Add(sharedKeep)
		g.Calls = append(g.Calls, call)
	}
	g.Left -= len(g.Calls)
	return g
}

// forget simulates a ledger that was emptied: it counts half of the limit as made.
func (l *sharedLedger) forget() {
	clear(l.granted)
	for i := range 47 {
		l.granted[fmt.Sprint("assumed", i)] = time.Now().Add(span * time.Duration(i+1) / 47)
	}
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

// sharedBy returns the configuration of one of 3 processes that share a limit of 100 calls a minute.
func sharedBy(l *sharedLedger) Config { return Config{Sharing: Sharing{Ledger: l, Replicas: 3}} }

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

// TestSharedLimit checks that processes together never exceed the limit while the ledger answers, even if processes are replaced, and
// never twice the limit while it is away or after it was emptied. They must make at least four fifths of the calls at any time.
func TestSharedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		var mu sync.Mutex
		var made []time.Time
		var running sync.WaitGroup
		start := time.Now()
		// process starts a process that tries to make two calls a second. The process starts at the time from and ends at the time to,
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
						serve(ticket)
					})
					time.Sleep(time.Second/2 + time.Millisecond)
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
		at(10*minute, (*sharedLedger).forget)
		running.Wait()

		between := func(from, to time.Duration) (n int, times []time.Time) {
			for _, at := range made {
				if d := at.Sub(start); d >= from && d < to {
					times = append(times, at)
				}
			}
			return len(times), times
		}
		_, before := between(0, 6*minute)
		if most := mostWithin(before, minute); most > 95 {
			t.Errorf("got %d calls in a minute with a ledger, want at most 95", most)
		}
		if most := mostWithin(made, minute); most > 2*95 {
			t.Errorf("got %d calls in a minute around a failure of the ledger, want at most 190", most)
		}
		for i := range 12 {
			if n, _ := between(time.Duration(i)*minute, time.Duration(i+1)*minute); n < 80 {
				t.Errorf("got %d calls in minute %d, want at least 80", n, i+1)
			}
		}
	})
}

// TestLedgerIsAway checks that a process uses its part of the limit at once while the ledger does not answer: half of the part at
// the start, and the rest within a minute.
func TestLedgerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		l.down = true
		b := openCold(t, sharedBy(l))
		n := 0
		burst := func() {
			for range 40 {
				k := b.Reserve(prices("a", time.Second))
				time.Sleep(2 * time.Millisecond)
				if admitted(k) && k.AdmitCall(t.Context()) == nil {
					n++
					serve(k)
				}
				k.Release(true)
			}
		}
		burst()
		if n != 16 { // 31 calls for each of three processes, of which 15 may have been made
			t.Errorf("%d calls were admitted at once while the ledger was away, want 16", n)
		}
		if b.Scarce("", upstream.EndpointPrices) {
			t.Error("assumed calls make calls scarce")
		}
		for time.Since(b.opened) < 58*time.Second {
			time.Sleep(time.Second)
			burst()
		}
		if s := *b.Status().Shared; n < 30 || n > 32 || !b.public.pool.away || s.Part != 31 || s.Granted != 0 {
			t.Errorf("got %d calls in the first minute and the status %+v, want the part of 31 calls", n, s)
		}
		l.set(func(l *sharedLedger) { l.down = false })
		time.Sleep(2 * time.Second)
		n = 0
		burst()
		if s := *b.Status().Shared; n < 39 || b.public.pool.away || s.Granted < 39 {
			t.Errorf("got %d calls and the status %+v after the ledger came back, want at least 39 granted calls", n, s)
		}
	})
}

// TestGrants checks that each call takes a grant, that the ledger learns which grants were not used, and that an idle process does
// not ask.
func TestGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		kept := b.Reserve(prices("a", time.Second))
		gone := b.Reserve(prices("a", time.Second))
		gone.Release(false)
		unsent := b.Reserve(prices("b", time.Second))
		time.Sleep(3 * time.Millisecond)
		if !admitted(kept) || kept.AdmitCall(t.Context()) != nil || !admitted(unsent) {
			t.Fatal("a call was not granted")
		}
		kept.Release(true)
		unsent.Release(false)
		if n := l.count(func(l *sharedLedger) int { return len(l.granted) }); n != 1 {
			t.Errorf("the ledger counts %d calls, want the one that was made", n)
		}
		if s := *b.Status().Shared; s.Granted != 1 || s.Left < 92 || s.PartUsed != 0 {
			t.Errorf("the status is %+v, want one granted call", s)
		}
		asks := l.count(func(l *sharedLedger) int { return l.asks })
		time.Sleep(time.Minute)
		if more := l.count(func(l *sharedLedger) int { return l.asks }) - asks; more != 0 {
			t.Errorf("an idle process asked the ledger %d times, want 0", more)
		}
	})
}

// TestSharedHold checks that a 429 response to one process also stops the calls of the other process until the time in the
// response, and that the refused call does not count.
func TestSharedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		a, b := open(t, sharedBy(l)), open(t, sharedBy(l))
		refused := a.Reserve(prices("a", time.Second))
		<-refused.Decided()
		if err := refused.AdmitCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		refuse(refused, 20*time.Second)
		refused.Release(true)
		if n := l.count(func(l *sharedLedger) int { return len(l.granted) }); n != 0 || a.public.used() != 0 {
			t.Errorf("after a refused call the ledger counts %d calls and the process %d, want 0", n, a.public.used())
		}
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

// TestSharedScarcity checks that calls are scarce if other processes have used all calls, but not because of assumed calls, and that
// Scarce asks the ledger at most once a second.
func TestSharedScarcity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		for i := range 95 {
			l.granted[fmt.Sprint("another", i)] = time.Now().Add(30 * time.Second)
		}
		scarce := func() bool { return b.Scarce("", upstream.EndpointPrices) }
		for range 100 {
			scarce()
			time.Sleep(10 * time.Millisecond)
		}
		if !scarce() {
			t.Error("got not scarce while other processes use all calls")
		}
		if asks := l.count(func(l *sharedLedger) int { return l.asks }); asks > 2 {
			t.Errorf("in one second, Scarce asked the ledger %d times, want at most 2", asks)
		}
		l.set(func(l *sharedLedger) { l.assumed = 1 })
		time.Sleep(time.Second)
		scarce()
		time.Sleep(2 * time.Millisecond)
		if scarce() {
			t.Error("got scarce because of an assumed call")
		}
	})
}

// TestSharedTurn checks that a call is refused at once if its deadline is before the time of the ledger's next grant, and that
// refused calls notice that a ledger was emptied.
func TestSharedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLedger(t)
		b := open(t, sharedBy(l))
		for i := range 95 {
			l.granted[fmt.Sprint("another", i)] = time.Now().Add(40 * time.Second)
		}
		long := b.Reserve(prices("a", 50*time.Second))
		defer long.Release(true)
		short := b.Reserve(prices("a", 30*time.Second))
		defer short.Release(true)
		time.Sleep(2 * time.Millisecond)
		if wait := retryAfter(t, short); wait < 39*time.Second || wait > 40*time.Second {
			t.Errorf("got retry after %v, want about 40s", wait)
		}
		wantWaiting(t, long)
		time.Sleep(41 * time.Second)
		if !admitted(long) {
			t.Error("the call with enough time was not admitted")
		}
		for i := range 95 {
			l.granted[fmt.Sprint("another", i)] = time.Now().Add(40 * time.Second)
		}
		again := func() bool {
			k := b.Reserve(prices("a", 5*time.Second))
			defer k.Release(true)
			time.Sleep(2 * time.Millisecond)
			return admitted(k)
		}
		for again() { // until the process knows of the 95 calls
			time.Sleep(time.Second)
		}
		l.set(func(l *sharedLedger) { l.forget() })
		time.Sleep(2 * time.Second)
		again() // is refused, and asks
		if !again() {
			t.Error("the process does not notice that the ledger was emptied")
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
			for _, b := range all {
				want := upstream.CallRequest{Scope: "key", Priority: upstream.PriorityUser, Caller: "a", Deadline: within(time.Minute)}
				for range 200 { // after the first call, the credentials have their own window
					k := b.Reserve(want)
					time.Sleep(2 * time.Millisecond)
					if admitted(k) && k.AdmitCall(t.Context()) == nil {
						total++
						serve(k)
					}
					k.Release(true)
				}
			}
			switch {
			case keys && (total < 85 || total > 95):
				t.Errorf("the processes made %d calls with credentials that share one limit, want 85 to 95", total)
			case !keys && (total < 3*28 || total > 3*33):
				t.Errorf("the processes made %d calls with credentials whose limit is divided, want 84 to 99", total)
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
		report(ticket, 100, 80, time.Time{}) // the venue counts 20 calls, which other processes made
		if b.Scarce("", upstream.EndpointPrices) {
			t.Fatal("got scarce, although processes with the same ledger made the calls")
		}
		report(ticket, 100, 4, time.Time{}) // 4 remaining calls are less than the margin of 5 calls
		if !b.Scarce("", upstream.EndpointPrices) {
			t.Error("got not scarce after the venue reported 4 remaining calls")
		}
		ticket.Release(true)
	})
}
