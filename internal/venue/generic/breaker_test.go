package generic

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
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// readBooks reads n different books at the same time. It returns the numbers of reads by error code, as text.
func readBooks(t *testing.T, c *Client, n int) string {
	t.Helper()
	codes := map[market.Code]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			mu.Lock()
			lastBookID++
			id := strconv.Itoa(lastBookID)
			mu.Unlock()
			_, err := c.Book(t.Context(), upstream.Call{}, id, 20)
			mu.Lock()
			codes[market.CodeOf(err)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return fmt.Sprint(codes)
}

// lastBookID is the id of the last book. Every book has a new id, so that the backoff of one id delays no other read.
var lastBookID int

// circuitText returns the state of the circuit of an endpoint, and for how long an open circuit stays open.
func circuitText(c *Client, endpoint string) string {
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

func TestCircuitOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(500, "")}
		c := v.client(t, 1)
		expect := func(want string, calls int) {
			t.Helper()
			if got := circuitText(c, "orderbook"); got != want || v.calls() != calls {
				t.Fatalf("the circuit is %s after %d calls, want %s after %d", got, v.calls(), want, calls)
			}
		}
		expect("closed", 0)
		for range 4 {
			readBooks(t, c, 1)
		}
		expect("closed", 4)
		readBooks(t, c, 1)
		expect("open for 1s", 5)

		time.Sleep(300 * time.Millisecond)
		_, err := c.Book(t.Context(), upstream.Call{}, "another", 20)
		assertEqual(t, retryAfterOf(err), "UPSTREAM_UNAVAILABLE 700ms")
		if !strings.Contains(err.Error(), "the circuit is open") {
			t.Error(err)
		}
		expect("open for 700ms", 5)
		if _, err := c.Book(t.Context(), upstream.Call{}, "another", 20); err == nil || c.Refusal(upstream.EndpointBook, "another") != nil {
			t.Error("a call that the open circuit refused started a backoff")
		}

		v.answer = validResponse
		for _, r := range reads { // the circuits of the other endpoints stay closed
			if r.name != "orderbook" {
				if _, err := r.call(t.Context(), asUser(t), c); err != nil {
					t.Errorf("the read of %s failed: %v", r.name, err)
				}
			}
		}
		calls := v.calls()
		v.answer = respond(500, "")
		for _, open := range []time.Duration{1, 2, 4, 8, 10} {
			time.Sleep(time.Until(c.Circuits()[2].Until) - time.Nanosecond)
			readBooks(t, c, 3)
			expect("open for 1ns", calls)
			time.Sleep(time.Nanosecond)
			expect("half-open", calls)
			readBooks(t, c, 1)
			calls++
			if want := min(2*open, 10) * time.Second; time.Until(c.Circuits()[2].Until) != want {
				t.Fatalf("after a failed probe, the circuit is %s, want open for %v", circuitText(c, "orderbook"), want)
			}
		}
		time.Sleep(rest.MaxBackoff)
		v.answer = validResponse
		assertEqual(t, readBooks(t, c, 1), "map[:1]")
		expect("closed", calls+1)
		assertEqual(t, readBooks(t, c, 50), "map[:50]")
		v.answer = respond(500, "") // closing the circuit has reset its count of failures and its open time
		readBooks(t, c, 5)
		expect("open for 1s", calls+56)
		if s := c.Circuits()[2]; s.Opened != 7 || s.Refused != 2+5*3 {
			t.Errorf("the circuit is %+v, want 7 openings and 17 refused calls", s)
		}
	})
}

func TestHalfOpenCircuitAdmitsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: failWith(syscall.ECONNREFUSED)}
		c := v.client(t, 1)
		readBooks(t, c, 5)
		time.Sleep(time.Second)
		v.answer = func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return validResponse(r)
		}
		assertEqual(t, readBooks(t, c, 20), "map[:1 UPSTREAM_UNAVAILABLE:19]")
		if v.calls() != 6 {
			t.Errorf("the venue received %d calls, want 6", v.calls())
		}
		assertEqual(t, circuitText(c, "orderbook"), "closed")
	})
}

// TestProbeWithoutVerdictIsReleased checks that the circuit admits another probe if the previous probe ended with its deadline,
// with a 429 response or with a panic.
func TestProbeWithoutVerdictIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(500, "")}
		c := v.client(t, 1)
		readBooks(t, c, 5)
		time.Sleep(time.Second)
		v.answer = hangUntilDone
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Book(ctx, upstream.Call{}, "patient", 20)
		assertEqual(t, string(market.CodeOf(err)), "UPSTREAM_TIMEOUT")
		assertEqual(t, circuitText(c, "orderbook"), "half-open")
		v.answer = respond(429, "")
		assertEqual(t, readBooks(t, c, 1), "map[RATE_LIMITED:1]")
		assertEqual(t, circuitText(c, "orderbook"), "half-open")
		v.answer = func(*http.Request) (*http.Response, error) { panic("a bug") }
		func() {
			defer func() { assertEqual(t, fmt.Sprint(recover()), "a bug") }()
			_, _ = c.Book(t.Context(), upstream.Call{}, "panics", 20)
		}()
		assertEqual(t, circuitText(c, "orderbook"), "half-open")
		v.answer = respond(404, "")
		assertEqual(t, readBooks(t, c, 1), "map[:1]")
		assertEqual(t, circuitText(c, "orderbook"), "closed")
	})
}

func TestResponsesThatOpenNoCircuit(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"400": respond(400, ""), "401": respond(401, ""), "403": respond(403, ""), "404": respond(404, ""), "429": respond(429, "", "Retry-After", "1"),
		"HTML": respond(200, "<html>", "Content-Type", "text/html"), "wrong form": respond(200, `{"x":[7]}`), "redirect": respond(302, "", "Location", "/x"),
		"error without a code": respond(200, `{"success":false,"error":"who knows"}`),
	} {
		for _, r := range reads {
			if !r.user && (name == "401" || name == "403") {
				continue // public endpoints do not check credentials
			}
			t.Run(name+"/"+r.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := (&scripted{answer: answer}).client(t, 1)
					for i := range 20 {
						_, _ = r.call(t.Context(), withCredentials(t, fmt.Sprintf(`{"apiKey":"%d"}`, i)), c)
						time.Sleep(2 * time.Second)
					}
					assertEqual(t, circuitText(c, r.name), "closed")
				})
			})
		}
	}
}

// TestOneFailingAccountOpensNoCircuit checks that failed reads of an account open the circuit only if the reads have at least three
// different credentials.
func TestOneFailingAccountOpensNoCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&scripted{answer: respond(500, "")}).client(t, 0)
		ask := func(who string) {
			_, _ = c.Positions(t.Context(), withCredentials(t, `{"apiKey":"`+who+`"}`), wallet)
			time.Sleep(time.Second)
		}
		for range 10 {
			ask("one")
		}
		ask("two")
		assertEqual(t, circuitText(c, "positions"), "closed")
		ask("three")
		if got := circuitText(c, "positions"); got == "closed" {
			t.Errorf("after failed reads with three credentials, the circuit is %s, want open", got)
		}
		assertEqual(t, circuitText(c, "orders"), "closed")
	})
}

func TestOldFailuresDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(500, "")}
		c := v.client(t, 1)
		for range 20 {
			readBooks(t, c, 4)
			time.Sleep(rest.FailureWindow + time.Nanosecond)
		}
		assertEqual(t, circuitText(c, "orderbook"), "closed")
		for range 20 { // a success resets the count of failures
			readBooks(t, c, 4)
			v.answer = validResponse
			readBooks(t, c, 1)
			v.answer = respond(500, "")
		}
		assertEqual(t, circuitText(c, "orderbook"), "closed")
	})
}

// TestLateResultsAreIgnored checks that a circuit ignores the result of a call if the circuit has opened since the call began.
func TestLateResultsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{}
		answerAfter := func(wait time.Duration, then func(*http.Request) (*http.Response, error)) {
			v.answer = func(r *http.Request) (*http.Response, error) {
				time.Sleep(wait)
				return then(r)
			}
		}
		c := v.client(t, 1)
		var wg sync.WaitGroup
		defer wg.Wait()
		startRead := func() {
			wg.Go(func() { readBooks(t, c, 1) })
			synctest.Wait()
		}
		answerAfter(1500*time.Millisecond, validResponse)
		startRead()
		answerAfter(100*time.Millisecond, respond(500, ""))
		readBooks(t, c, 63) // all calls fail at the same time
		assertEqual(t, circuitText(c, "orderbook"), "open for 1s")
		time.Sleep(1100 * time.Millisecond)
		answerAfter(time.Second, respond(500, ""))
		startRead() // this call is the probe; the first call succeeds while the probe runs
		time.Sleep(500 * time.Millisecond)
		assertEqual(t, circuitText(c, "orderbook"), "half-open")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		assertEqual(t, circuitText(c, "orderbook"), "open for 2s")
	})
}

func TestEndpointsOfOnePathShareACircuit(t *testing.T) {
	var names []string
	for _, s := range (&scripted{}).client(t, 0).Circuits() {
		names = append(names, s.Endpoint)
	}
	assertEqual(t, strings.Join(names, " "), "prices spreads orderbook price-history market-search market-details balance positions orders trades history")
}
