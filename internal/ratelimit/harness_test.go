package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a budget over a venue that nobody has called before. The budget is closed at the end of the test. Call open inside
// synctest.Test.
func open(t *testing.T, cfg Config) *Budget {
	t.Helper()
	cfg.Fresh = true
	return openCold(t, cfg)
}

// openCold returns a budget over a venue that other processes may have called. Its random numbers are 0.
func openCold(t *testing.T, cfg Config) *Budget {
	t.Helper()
	cfg.Rand = func() float64 { return 0 }
	b := New(cfg)
	t.Cleanup(b.Close)
	return b
}

// refuse reports a 429 for the last call of a read. wait is the time in Retry-After, or 0.
func refuse(k upstream.Reservation, wait time.Duration) {
	k.Answered(upstream.Answer{Endpoint: k.(*reservation).endpoint, Refused: true, RetryAfter: wait, Limit: -1, Remaining: -1})
}

// serve reports an answer to the last call of a read, without rate-limit headers.
func serve(k upstream.Reservation) { report(k, -1, -1, time.Time{}) }

// report reports an answer to the last call of a read with rate-limit headers.
func report(k upstream.Reservation, limit, remaining int, reset time.Time) {
	k.Answered(upstream.Answer{Endpoint: k.(*reservation).endpoint, Served: true, Limit: limit, Remaining: remaining, Reset: reset})
}

func within(d time.Duration) time.Time { return time.Now().Add(d) }

// prices returns a request for prices. The deadline is the present time plus d.
func prices(caller string, d time.Duration) upstream.CallRequest {
	return upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: caller, Deadline: within(d)}
}

// call makes a call that takes no time. It reports whether the call was admitted at once.
func call(b *Budget, want upstream.CallRequest) bool {
	t := b.Reserve(want)
	defer t.Release(true)
	if !admitted(t) || t.AdmitCall(context.Background()) != nil {
		return false
	}
	serve(t)
	return true
}

// begin makes a reservation and its first call, which must be admitted. It does not release the reservation.
func begin(t *testing.T, b *Budget, want upstream.CallRequest) upstream.Reservation {
	t.Helper()
	k := b.Reserve(want)
	if err := k.AdmitCall(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

func admitted(t upstream.Reservation) bool {
	select {
	case <-t.Decided():
		return t.Err() == nil
	default:
		return false
	}
}

// spend makes n calls of a caller. It fails the test if a call is not admitted at once.
func spend(t *testing.T, b *Budget, caller string, n int) {
	t.Helper()
	for i := range n {
		if !call(b, prices(caller, time.Second)) {
			t.Fatalf("call %d of %q was not admitted at once", i+1, caller)
		}
	}
}

// retryAfter returns the wait in the error of a refused reservation.
func retryAfter(t *testing.T, k upstream.Reservation) time.Duration {
	t.Helper()
	return waitIn(t, k.Err())
}

// waitIn returns the wait in a RATE_LIMITED error.
func waitIn(t *testing.T, err error) time.Duration {
	t.Helper()
	var e *market.Error
	if !errors.As(err, &e) || e.Code != market.CodeRateLimited || e.RetryAfter <= 0 {
		t.Fatalf("got the error %v, want RATE_LIMITED with a wait", err)
	}
	return e.RetryAfter
}

// turnOf returns the turn of a reservation that waits in the queue.
func turnOf(t *testing.T, k upstream.Reservation) time.Time {
	t.Helper()
	return within(waitIn(t, k.Late(time.Now())))
}

// wantWaiting fails the test if a reservation does not wait in the queue.
func wantWaiting(t *testing.T, k upstream.Reservation) {
	t.Helper()
	if synctest.Wait(); admitted(k) || k.Err() != nil {
		t.Fatalf("the reservation does not wait in the queue; its error is %v", k.Err())
	}
}

// exhaust makes all public calls that are left, for the caller with the empty name.
func exhaust(t *testing.T, b *Budget) {
	t.Helper()
	spend(t, b, "", b.Status().Left)
}

// order returns the names of waiting reservations in the order in which they are admitted.
func order(t *testing.T, tickets map[string]upstream.Reservation) (names []string) {
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
	t.Fatalf("%d reservations were not admitted within a minute", len(tickets))
	return nil
}

// spread makes all public calls that are left, one every 100 ms, so that they leave the window one by one.
func spread(t *testing.T, b *Budget, priority func(i int) upstream.Priority) {
	t.Helper()
	for i := range b.Status().Left {
		if !call(b, upstream.CallRequest{Priority: priority(i), Caller: fmt.Sprint(i), Deadline: within(1)}) {
			t.Fatalf("call %d was not admitted at once", i+1)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// mixedPriority returns the priority of the i-th call. It cycles through all priorities except refresh, so that none of these
// priorities has precedence; see window.floor.
func mixedPriority(i int) upstream.Priority { return upstream.Priority(1 + i%(upstream.Priorities-1)) }
