package cache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
)

// TestDeadlineWithKeysInEveryState checks the result of each key when the deadline of a read has come. If the call of a key has
// ended, the caller gets the result or the error of the call. If the call is in flight or was cancelled, the caller gets a timeout.
// If the call waits for its admission, the caller gets RATE_LIMITED.
func TestDeadlineWithKeysInEveryState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		v, a := &testVenue{}, newAdmission()
		v.fail = func(call ask) error {
			switch call.keys[0] {
			case "flying":
				<-call.ctx.Done()
				return context.Cause(call.ctx)
			case "cancelled":
				<-answer
				return context.Canceled
			case "forbidden":
				<-answer
				return market.Errorf(market.CodeForbidden, "no")
			}
			<-answer
			return nil
		}
		c := open(t, v, withAdmission(a))
		read := func(ctx context.Context, tokens ...string) chan []reads.Result[*market.Book] {
			keys := make([]queries.Book, len(tokens))
			for i, token := range tokens {
				keys[i] = queries.Book{TokenID: token, Depth: 1}
			}
			out := make(chan []reads.Result[*market.Book], 1)
			go func() { out <- readAll(ctx, c.Books(), keys...) }()
			synctest.Wait()
			return out
		}
		// Read the keys one by one, so that each key has its own call.
		for _, token := range []string{"flying", "arrived", "cancelled", "forbidden"} {
			read(callerContext(t, "b", time.Minute), token)
			a.verdict <- nil
			synctest.Wait()
		}
		mine := read(callerContext(t, "a", time.Second), "flying", "arrived", "cancelled", "forbidden", "queued")
		if n := len(v.calls()); n != 4 {
			t.Fatalf("got %d calls, want 4", n)
		}
		a.mu.Lock()
		a.entered[4].turn = time.Now().Add(20 * time.Second)
		a.mu.Unlock()
		close(answer)
		time.Sleep(time.Second)
		got := <-mine
		for i, token := range []string{"flying", "cancelled"} {
			var e *market.Error
			if err := got[2*i].Err; !errors.As(err, &e) || e.Code != market.CodeUpstreamTimeout || strings.Contains(e.Message, "context") {
				t.Errorf("%s: got %v, want UPSTREAM_TIMEOUT with a message that does not name the context", token, err)
			}
		}
		if r := got[1]; r.Err != nil || r.Value.Value == nil || r.Value.Value.TokenID != "arrived" {
			t.Errorf("arrived: got %+v, want the book", r)
		}
		if err := got[3].Err; market.CodeOf(err) != market.CodeForbidden {
			t.Errorf("forbidden: got %v, want FORBIDDEN", err)
		}
		if wait := retryAfter(t, got[4].Err); wait != 19*time.Second {
			t.Errorf("queued: got retry after %s, want 19s", wait)
		}
	})
}

// TestDeadlineWithoutATurn checks that a caller gets a timeout, not RATE_LIMITED, if its call is still not admitted at the deadline
// and Late of the reservation returns nil.
func TestDeadlineWithoutATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission()
		c := open(t, &testVenue{}, withAdmission(a))
		waiting := fetch(callerContext(t, "a", time.Second), c, "k")
		time.Sleep(time.Second)
		wantErrors(t, receive(t, waiting), market.CodeUpstreamTimeout)
		if n, _, _ := a.state(); n != 0 {
			t.Errorf("got %d waiting reservations after the caller left, want 0", n)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestCancelledCallerIsNotRefused checks that a caller that is cancelled before or after the admission of its call gets Canceled,
// not RATE_LIMITED.
func TestCancelledCallerIsNotRefused(t *testing.T) {
	for _, admitted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v, a := &testVenue{latency: time.Second}, newAdmission()
			c := open(t, v, withAdmission(a))
			ctx, cancel := context.WithCancel(callerContext(t, "a", time.Minute))
			waiting := fetch(ctx, c, "k")
			a.mu.Lock()
			a.entered[0].turn = time.Now().Add(20 * time.Second)
			a.mu.Unlock()
			time.Sleep(20 * time.Second)
			if admitted {
				a.mu.Lock()
				a.entered[0].turn = time.Time{} // the reservation no longer waits
				a.mu.Unlock()
				a.verdict <- nil
				synctest.Wait()
			}
			cancel()
			if err := receive(t, waiting)[0].Err; !errors.Is(err, context.Canceled) {
				t.Errorf("admitted %v: got %v, want Canceled", admitted, err)
			}
			wantIdle(t, c.prices.routes[0])
		})
	}
}

func TestOneCallersCancellationFailsNobodyElse(t *testing.T) {
	for _, stage := range []string{"queued", "in flight"} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, a := &testVenue{blocked: make(chan struct{})}, newAdmission()
				c := open(t, v, withAdmission(a))
				ctx, cancel := context.WithCancel(t.Context())
				first, second := fetch(ctx, c, "a", "b"), fetch(t.Context(), c, "b", "c")
				if stage == "in flight" {
					a.verdict <- nil
					synctest.Wait()
				}
				cancel()
				r := receive(t, first)
				wantErrors(t, r, market.CodeInternal)
				if !errors.Is(r[0].Err, context.Canceled) {
					t.Errorf("got %v, want Canceled", r[0].Err)
				}
				wantPending(t, second)
				if stage == "queued" {
					a.verdict <- nil
				}
				synctest.Wait()
				call := v.calls()[0]
				if call.ctx.Err() != nil {
					t.Fatal("the call of the other caller was cancelled")
				}
				if want := []string{"b", "c"}; stage == "queued" && !slices.Equal(call.keys, want) {
					t.Errorf("got call for %v, want %v", call.keys, want)
				}
				<-v.blocked
				wantPrices(t, receive(t, second), "b", "c")
				wantIdle(t, c.prices.routes[0])
			})
		})
	}
}

func TestCallIsCancelledWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{blocked: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		other, leave := context.WithCancel(t.Context())
		first, second := fetch(ctx, c, "a", "b"), fetch(other, c, "a")
		call := v.calls()[0]
		cancel()
		receive(t, first)
		if call.ctx.Err() != nil {
			t.Fatal("the call was cancelled, although a caller waits for one of its keys")
		}
		// Nobody waits for b now, but the call still reads b. A caller that requests b now gets the price from this call.
		third := fetch(t.Context(), c, "b")
		leave()
		receive(t, second)
		if call.ctx.Err() != nil || len(v.calls()) != 1 {
			t.Fatal("the call was cancelled or a second call was made, although a caller has joined the first call")
		}
		<-v.blocked
		wantPrices(t, receive(t, third), "b")
		wantIdle(t, c.prices.routes[0])

		ctx, cancel = context.WithCancel(t.Context())
		fourth := fetch(ctx, c, "x", "y")
		cancel()
		receive(t, fourth)
		if v.calls()[1].ctx.Err() == nil {
			t.Error("a call without waiters was not cancelled")
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// uncancellable is a venue whose price calls ignore cancellation. Each call ends when the test sends a price to the channel answer.
type uncancellable struct {
	testVenue
	answer chan string
}

func (v *uncancellable) Prices(ctx context.Context, call upstream.Call, tokens []string) ([]upstream.Result[*market.Price], error) {
	_ = v.call(ctx, call, upstream.EndpointPrices, tokens...)
	out := make([]upstream.Result[*market.Price], len(tokens))
	price := market.MustDecimal(<-v.answer)
	for i, id := range tokens {
		out[i].Value = &market.Price{TokenID: id, Price: price}
	}
	return out, nil
}

// TestReadAfterCancelledCall checks that a read makes a new call instead of waiting for a cancelled call that is still running. The
// result of the cancelled call is not cached, even if it arrives after the result of the new call.
func TestReadAfterCancelledCall(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cancelled := make(chan string)
			v := &uncancellable{answer: cancelled}
			c := open(t, v)
			ctx, cancel := context.WithCancel(t.Context())
			first := fetch(ctx, c, "a")
			cancel()
			receive(t, first)
			v.answer = make(chan string)
			second := fetch(t.Context(), c, "a")
			if !late {
				cancelled <- "0.1"
				wantPending(t, second)
			}
			v.answer <- "0.2"
			wantPrices(t, receive(t, second), "a")
			if late {
				cancelled <- "0.1"
				synctest.Wait()
			}
			if r := mustRead(t, c.Prices(), "a"); r.Value.Price.String() != "0.2" || !r.Handle.Valid() || len(v.calls()) != 2 {
				t.Errorf("late %v: got %+v after %d calls, want the price of the second call", late, r.Value, len(v.calls()))
			}
			wantIdle(t, c.prices.routes[0])
		})
	}
}

func TestCancelledContextMakesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{blocked: make(chan struct{})}
		c := open(t, v)
		other := fetch(t.Context(), c, "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			wantErrors(t, receive(t, fetch(ctx, c, "a", "b")), market.CodeInternal)
		}
		if s := statsOf(c, "price"); len(v.calls()) != 1 || s.Coalesced != 0 {
			t.Errorf("got %d calls and %+v, want 1 call and nothing coalesced", len(v.calls()), s)
		}
		<-v.blocked
		wantPrices(t, receive(t, other), "a")
	})
}
