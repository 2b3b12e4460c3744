package venue

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// asks makes n reads of different books at the same time and returns their codes.
func asks(t *testing.T, c *Client, n int) string {
	t.Helper()
	codes := map[market.Code]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			mu.Lock()
			serial++
			id := strconv.Itoa(serial)
			mu.Unlock()
			_, err := c.Book(t.Context(), id, 20)
			mu.Lock()
			codes[market.CodeOf(err)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return fmt.Sprint(codes)
}

// serial makes every id another one, so that no backoff of a key is in the way.
var serial int

// circuit returns how the breaker of an endpoint stands.
func circuit(c *Client, endpoint string) string {
	for _, s := range c.Circuits() {
		if s.Endpoint == endpoint {
			if !s.Until.IsZero() {
				return fmt.Sprint(s.State, " for ", time.Until(s.Until))
			}
			return string(s.State)
		}
	}
	return "none"
}

func TestTheCircuitOpensAndClosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: says(500, "")}
		c := v.client(t, 1)
		expect := func(want string, calls int) {
			t.Helper()
			if got := circuit(c, "orderbook"); got != want || v.calls() != calls {
				t.Fatalf("the circuit is %s after %d calls, want %s after %d", got, v.calls(), want, calls)
			}
		}
		expect("closed", 0)
		for range 4 {
			asks(t, c, 1)
		}
		expect("closed", 4)
		asks(t, c, 1)
		expect("open for 1s", 5)

		time.Sleep(300 * time.Millisecond)
		_, err := c.Book(t.Context(), "another", 20)
		same(t, retryAfterOf(err), "UPSTREAM_UNAVAILABLE 700ms")
		if !strings.Contains(err.Error(), "the circuit is open") {
			t.Error(err)
		}
		expect("open for 700ms", 5)
		if _, err := c.Book(t.Context(), "another", 20); err == nil || c.backoffs.keys.Len() != 5 {
			t.Error("what the open circuit refused is remembered as if it had been asked")
		}

		v.answer = truth
		for _, r := range reads { // the other endpoints are untouched
			if r.name != "orderbook" {
				if _, err := r.call(asUser(t), c); err != nil {
					t.Errorf("%s: %v", r.name, err)
				}
			}
		}
		calls := v.calls()
		v.answer = says(500, "")
		for _, open := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			time.Sleep(time.Until(c.Circuits()[2].Until) - time.Nanosecond)
			asks(t, c, 3)
			expect("open for 1ns", calls)
			time.Sleep(time.Nanosecond)
			expect("half-open", calls)
			asks(t, c, 1)
			calls++
			if want := min(2*open, 30) * time.Second; time.Until(c.Circuits()[2].Until) != want {
				t.Fatalf("after a failed probe the circuit is %s", circuit(c, "orderbook"))
			}
		}
		time.Sleep(maxOpen)
		v.answer = truth
		same(t, asks(t, c, 1), "map[:1]")
		expect("closed", calls+1)
		same(t, asks(t, c, 50), "map[:50]")
		v.answer = says(500, "") // and from the beginning
		asks(t, c, 5)
		expect("open for 1s", calls+56)
		if s := c.Circuits()[2]; s.Opened != 9 || s.Refused != 2+7*3 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAHalfOpenCircuitLetsOneCallThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: fails(syscall.ECONNREFUSED)}
		c := v.client(t, 1)
		asks(t, c, 5)
		time.Sleep(time.Second)
		v.answer = func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return truth(r)
		}
		same(t, asks(t, c, 20), "map[:1 UPSTREAM_UNAVAILABLE:19]")
		if v.calls() != 6 {
			t.Errorf("%d calls", v.calls())
		}
		same(t, circuit(c, "orderbook"), "closed")
	})
}

// TestAProbeWithoutVerdictIsGivenBack: a caller who leaves, or the venue's rate limit, keeps nobody else from probing.
func TestAProbeWithoutVerdictIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: says(500, "")}
		c := v.client(t, 1)
		asks(t, c, 5)
		time.Sleep(time.Second)
		v.answer = hangs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Book(ctx, "patient", 20)
		same(t, string(market.CodeOf(err)), "UPSTREAM_TIMEOUT")
		same(t, circuit(c, "orderbook"), "half-open")
		v.answer = says(429, "")
		same(t, asks(t, c, 1), "map[RATE_LIMITED:1]")
		same(t, circuit(c, "orderbook"), "half-open")
		v.answer = says(404, "")
		same(t, asks(t, c, 1), "map[:1]")
		same(t, circuit(c, "orderbook"), "closed")
	})
}

func TestWhatOpensNoCircuit(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"400": says(400, ""), "401": says(401, ""), "403": says(403, ""), "404": says(404, ""), "429": says(429, "", "Retry-After", "1"),
		"HTML": says(200, "<html>", "Content-Type", "text/html"), "wrong form": says(200, `{"x":[7]}`), "redirect": says(302, "", "Location", "/x"),
		"unclear": says(200, `{"success":false,"error":"who knows"}`),
	} {
		for _, r := range reads {
			if !r.user && (name == "401" || name == "403") {
				continue // no caller's fault there
			}
			t.Run(name+"/"+r.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := (&scripted{answer: answer}).client(t, 1)
					for i := range 20 {
						own, err := market.ParseCredentials([]byte(`{"apiKey":"` + strconv.Itoa(i) + `"}`))
						must(t, err)
						_, _ = r.call(reqctx.WithCredentials(t.Context(), own), c)
						time.Sleep(2 * time.Second)
					}
					same(t, circuit(c, r.name), "closed")
				})
			})
		}
	}
}

// TestOneAccountThatFailsCutsNobodyOff: a circuit opens when several accounts fail, or several tokens.
func TestOneAccountThatFailsCutsNobodyOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&scripted{answer: says(500, "")}).client(t, 0)
		ask := func(who string) {
			own, err := market.ParseCredentials([]byte(`{"apiKey":"` + who + `"}`))
			must(t, err)
			_, _ = c.Positions(reqctx.WithCredentials(t.Context(), own), wallet)
			time.Sleep(time.Second)
		}
		for range 10 {
			ask("one")
		}
		ask("two")
		same(t, circuit(c, "positions"), "closed")
		ask("three")
		if got := circuit(c, "positions"); got == "closed" {
			t.Errorf("the circuit is %s", got)
		}
		same(t, circuit(c, "orders"), "closed")
	})
}

func TestFailuresOfLongAgoDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: says(500, "")}
		c := v.client(t, 1)
		for range 20 {
			asks(t, c, 4)
			time.Sleep(failureWindow + time.Nanosecond)
		}
		same(t, circuit(c, "orderbook"), "closed")
		for range 20 { // nor do they across a success
			asks(t, c, 4)
			v.answer = truth
			asks(t, c, 1)
			v.answer = says(500, "")
		}
		same(t, circuit(c, "orderbook"), "closed")
	})
}

// TestCallsFromBeforeHaveNoSay: calls that began before the circuit opened neither keep it open for longer nor close it.
func TestCallsFromBeforeHaveNoSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{}
		after := func(wait time.Duration, then func(*http.Request) (*http.Response, error)) {
			v.answer = func(r *http.Request) (*http.Response, error) {
				time.Sleep(wait)
				return then(r)
			}
		}
		c := v.client(t, 1)
		var wg sync.WaitGroup
		defer wg.Wait()
		late := func() {
			wg.Go(func() { asks(t, c, 1) })
			synctest.Wait()
		}
		after(1500*time.Millisecond, truth)
		late()
		after(100*time.Millisecond, says(500, ""))
		asks(t, c, maxInFlight-1) // all at once
		same(t, circuit(c, "orderbook"), "open for 1s")
		time.Sleep(1100 * time.Millisecond)
		after(time.Second, says(500, ""))
		late() // the probe, which ends after the success from before
		time.Sleep(500 * time.Millisecond)
		same(t, circuit(c, "orderbook"), "half-open")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		same(t, circuit(c, "orderbook"), "open for 2s")
	})
}

// TestEveryPathHasOneCircuit: the ways of asking for markets share theirs.
func TestEveryPathHasOneCircuit(t *testing.T) {
	var names []string
	for _, s := range (&scripted{}).client(t, 0).Circuits() {
		names = append(names, s.Endpoint)
	}
	same(t, strings.Join(names, " "), "prices spreads orderbook price-history market-search market-details balance positions orders trades history")
}
