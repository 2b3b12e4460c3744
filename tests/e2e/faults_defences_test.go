package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
)

// circuitRow reads the books of many tokens while all calls for books fail. After five failures, the service must stop these calls,
// except for single probes. After a successful probe, the service must make the calls again.
var circuitRow = row{name: "orderbook, one token after the other", run: func(l *lane) error {
	var r report
	const book = `query ($id: String!, $ids: [String!]!) { token(tokenId: $id) { orderbook(depth: 5) { bids { price } } } tokenPrices(tokenIds: $ids) { price } }`
	ids := l.openTokens(12)
	ask := func(when, id string, calls int64, fails bool) {
		got, err := l.try(book, vars{"id": id, "ids": l.variables["ids"]}, anonymous)
		if err != nil {
			r.add("%s: %w", when, err)
			return
		}
		r.timely(when, got, answerLimit)
		if n := got.calls["orderbook"][0]; n != calls {
			r.add("%s: the venue was asked %d times, want %d", when, n, calls)
		}
		if failed := len(got.errors) == 1 && got.errors[0].String() == "token.orderbook UPSTREAM_UNAVAILABLE"; failed != fails || len(got.errors) > 1 {
			r.add("%s: errors %v", when, got.errors)
		}
		if strings.Contains(asJSON(at(got.data, "tokenPrices")), "null") {
			r.add("%s: prices beside it are %s", when, asJSON(at(got.data, "tokenPrices")))
		}
	}
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultStatus}}); err != nil {
		return err
	}
	for _, id := range ids[:5] {
		ask("failing", id, 1, true)
	}
	for _, id := range ids[5:10] {
		ask("open", id, 0, true)
	}
	l.clock.Advance(time.Second)
	ask("the probe", ids[10], 1, true)
	ask("after the probe", ids[11], 0, true)
	if err := l.venue.SetFaults(nil); err != nil {
		return err
	}
	l.clock.Advance(2 * time.Second)
	ask("the probe when it is back", ids[9], 1, false)
	for _, id := range ids[7:9] {
		ask("closed again", id, 1, false)
	}
	return r.err()
}}

// callersRow checks that only the owner of an account gets the account's balance, although the balance is cached.
var callersRow = row{name: "balance, two callers", run: func(l *lane) error {
	var r report
	l.prepare(&r)
	l.wantAll(&r, "its owner")
	const balance = `query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`
	for stranger, code := range map[string]string{credentials("junk"): "UNAUTHENTICATED", keyOf50: "FORBIDDEN"} {
		got, err := l.try(balance, vars{"a": addressOf3}, stranger)
		if err != nil {
			return err
		}
		r.timely("a stranger", got, answerLimit)
		if len(got.errors) != 1 || got.errors[0].String() != "user.balance "+code || at(got.data, "user.balance") != nil {
			r.add("a stranger gets %s, %v", asJSON(got.data), got.errors)
		}
	}
	return r.err()
}}

// openCountingLane starts a lane that counts the calls for books in flight.
func openCountingLane(t testing.TB, rig func(*app.Wiring)) *lane {
	t.Helper()
	var calls *atomic.Int64
	l := newLane(t, func(w *app.Wiring) {
		if rig != nil {
			rig(w)
		}
		base := w.Client.Transport
		if base == nil {
			base = plainTransport(t)
		}
		calls = &atomic.Int64{}
		w.Client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/orderbook") {
				calls.Add(1)
				defer calls.Add(-1)
			}
			return base.RoundTrip(r)
		})
	}, longCallTimeout)
	l.inFlight = calls
	return l
}

// waitInFlight waits up to ten seconds until n calls for books are in flight.
func (l *lane) waitInFlight(n int64) error {
	if !until(10*time.Second, func() bool { return l.inFlight.Load() == n }) {
		return fmt.Errorf("%d calls are under way, want %d", l.inFlight.Load(), n)
	}
	return nil
}

// abandonedRow checks that a call for a book ends when the only client that waits for the book disconnects.
var abandonedRow = row{name: "orderbook, nobody waits", open: openCountingLane, run: func(l *lane) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultHang}}); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = l.queryFrom(ctx, client(1), booksQuery, l.openTokens(1)...)
	}()
	err := l.waitInFlight(1)
	leave()
	<-left
	return errors.Join(r.err(), err, l.waitInFlight(0))
}}

// sharedRow checks that a client still gets a book if another client that shared the call disconnects.
var sharedRow = row{name: "orderbook, one of two waits", open: openCountingLane, run: func(l *lane) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultDelay, DelayMs: 2000}}); err != nil {
		return err
	}
	coalesced := func() uint64 {
		for _, s := range l.App.Cache.Stats() {
			if s.Kind == "book" {
				return s.Coalesced
			}
		}
		return 0
	}
	for _, id := range l.openTokens(5) {
		before, asked := coalesced(), l.venue.Stats().Requests["/api/exchange/orderbook"]
		ctx, leave := context.WithCancel(context.Background())
		left, came := make(chan struct{}), make(chan error, 1)
		go func() {
			defer close(left)
			_, _ = l.queryFrom(ctx, client(1), booksQuery, id)
		}()
		if err := l.waitInFlight(1); err != nil {
			r.add("%w", err)
		}
		go func() { // this query has another text, so that it does not share the execution of the first query
			got, err := l.queryFrom(context.Background(), client(2), strings.Replace(booksQuery, "depth: 5", "depth: 6", 1), id)
			if err == nil && (len(got.errors) > 0 || at(got.data, "tokens.0.orderbook") == nil) {
				err = fmt.Errorf("the other caller got %s, %v", asJSON(got.data), got.errors)
			}
			if err == nil && got.took > answerLimit {
				err = fmt.Errorf("the other caller waited %v", got.took)
			}
			came <- err
		}()
		until(patience, func() bool { return coalesced() > before || l.inFlight.Load() == 0 })
		joined := coalesced() > before
		leave()
		<-left
		if err := <-came; err != nil {
			r.add("%w", err)
		}
		if n := l.venue.Stats().Requests["/api/exchange/orderbook"] - asked; joined && n != 1 {
			r.add("the venue was asked %d times", n)
		}
		if joined {
			return r.err()
		}
	}
	r.add("on this machine nobody joins a call of two seconds")
	return r.err()
}}

// severalQueryRows returns the test cases that send more than one query.
func severalQueryRows() []row {
	return append([]row{circuitRow, callersRow, abandonedRow, sharedRow}, budgetRows...)
}

// opened starts a lane for one test case. If the test case has no function open, the lane uses longCallTimeout.
func (r *row) opened(t testing.TB, rig func(*app.Wiring), args ...string) *lane {
	t.Helper()
	if r.open != nil {
		return r.open(t, rig)
	}
	return newLane(t, rig, append([]string{longCallTimeout}, args...)...)
}

func TestFaultsOverSeveralQueries(t *testing.T) {
	for _, r := range severalQueryRows() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if err := r.run(r.opened(t, nil)); err != nil {
				t.Error(err)
			}
		})
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (e roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return e(r) }

// withTransport returns a function for the parameter rig of newLane. This function replaces the transport for the service's calls
// to the venue by the result of change.
func withTransport(t *testing.T, change func(base *http.Transport) roundTripper) func(*app.Wiring) {
	base := plainTransport(t)
	return func(w *app.Wiring) { w.Client.Transport = change(base) }
}

// plainTransport returns a transport that does not have the limits of the service's own transport.
func plainTransport(t testing.TB) *http.Transport {
	base := &http.Transport{DisableCompression: true}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// changingBodies returns a function for withTransport. This function returns a transport that changes each response body before the
// service reads it.
func changingBodies(change func(resp *http.Response, body []byte) []byte) func(*http.Transport) roundTripper {
	return func(base *http.Transport) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil && len(body) == 0 {
				return nil, err
			}
			body = change(resp, body)
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return resp, nil
		}
	}
}

// TestMissingDefencesAreFound removes defences of the service by flags or by other wiring. Without a defence, its test cases must
// fail. tests/mutations removes the other defences.
func TestMissingDefencesAreFound(t *testing.T) {
	inflated := changingBodies(func(resp *http.Response, body []byte) []byte {
		if resp.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err == nil {
				body, _ = io.ReadAll(z)
			}
			resp.Header.Del("Content-Encoding")
		}
		return body
	})
	following := func(base *http.Transport) roundTripper {
		client := &http.Client{Transport: base}
		return func(r *http.Request) (*http.Response, error) {
			r.Body = nil
			return client.Do(r)
		}
	}
	unlimited := func(base *http.Transport) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			if err == nil {
				resp.Header.Del("Retry-After")
			}
			return resp, err
		}
	}
	rows := severalQueryRows()
	for i := range wholeBranches {
		rows = append(append(rows, drifts(&wholeBranches[i])...), late(&wholeBranches[i]))
		for _, f := range faults {
			if f.large {
				f.Bytes = 8 << 20 // this body is still too large for the service, but arrives sooner than 64 MiB
			}
			rows = append(rows, f.rows(&wholeBranches[i])...)
		}
	}
	hedging := func(base *http.Transport) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			second := time.AfterFunc(5*time.Second, func() { // even a busy machine answers sooner
				if resp, err := base.RoundTrip(r.Clone(r.Context())); err == nil {
					resp.Body.Close()
				}
			})
			defer second.Stop()
			return base.RoundTrip(r)
		}
	}
	deaf := func(base *http.Transport) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 20*time.Second)
			resp, err := base.RoundTrip(r.WithContext(ctx))
			if err != nil {
				cancel()
				return nil, err
			}
			context.AfterFunc(r.Context(), cancel) // cancel once the body has been read
			return resp, nil
		}
	}
	for _, x := range []struct {
		name string
		rig  func(*app.Wiring)
		args []string
		// rows are the names of the test cases to run.
		rows []string
		// within is the time limit for an operation. If it is 0, the limit of newLane applies.
		within time.Duration
	}{
		{name: "size cap", args: []string{"--venue-max-body=256MiB"}, rows: []string{"balance, 64 MiB body, cold"}},
		{name: "decompression cap", rig: withTransport(t, inflated), args: []string{"--venue-max-body=256MiB"}, rows: []string{"balance, gzip bomb, cold"}},
		{name: "header cap", rig: withTransport(t, func(base *http.Transport) roundTripper {
			base.MaxResponseHeaderBytes = 8 << 20
			return base.RoundTrip
		}), rows: []string{"balance, large header, cold"}},
		{name: "redirect rule", rig: withTransport(t, following), rows: []string{"orders, redirect to another host, cold"}},
		{name: "retry", args: []string{"--venue-retries=0"}, rows: []string{"prices, 503, cold"}},
		{name: "admission of retries", rig: withTransport(t, func(base *http.Transport) roundTripper {
			return func(r *http.Request) (*http.Response, error) {
				r.Body = nil
				return base.RoundTrip(r)
			}
		}), rows: []string{"prices, refused, cold"}},
		{name: "Retry-After", rig: withTransport(t, unlimited), rows: []string{"trades, 429 with seconds, cold", "trades, 429 with a date, cold"}},
		{name: "truncated-body check", rig: withTransport(t, changingBodies(func(_ *http.Response, body []byte) []byte { return completeJSON(body) })), rows: []string{"positions, truncated JSON, cold", "positions, reset in the body, cold"}},
		{name: "200-with-error check", rig: withTransport(t, changingBodies(func(resp *http.Response, body []byte) []byte { return withoutError(resp, body) })), rows: []string{"prices, 200 with success:false, cold", "prices, 200 with error, cold"}},
		{name: "deadline of a call", args: []string{"--venue-timeout=5m", "--request-timeout=10m"}, rows: []string{"orders, hang, cold"}, within: 2 * callTimeout},
		{name: "deadline of an operation", args: []string{"--request-timeout=10m"}, rows: []string{"orders, hang past the operation's time"}, within: shortTimeout + callTimeout},
		{name: "stale on error", args: []string{"--cache-price-stale=0s", "--cache-book-stale=0s"}, rows: []string{"prices, 500, warm", "orderbook, 500, warm"}},
		{name: "admission", rig: func(w *app.Wiring) { w.Reads.Admission = nil }, rows: []string{overBudgetRow.name}},
		{name: "fair share", rig: withAdmission(func(w *reqctx.CallRequest) { w.Caller = "" }), rows: []string{greedyClientRow.name}},
		{name: "priorities", rig: withAdmission(func(w *reqctx.CallRequest) { w.Priority = reqctx.PriorityPrices }), rows: []string{priorityRow.name}},
		{name: "budget of a key", rig: withAdmission(func(w *reqctx.CallRequest) { w.Scope = "" }), rows: []string{keyBudgetRow.name}},
		{name: "bound of the queue", rig: func(w *app.Wiring) {
			b := ratelimit.New(ratelimit.Config{Public: budgetPerMinute, Clock: w.Reads.Clock})
			t.Cleanup(b.Close)
			w.Reads.Admission = b
		}, rows: []string{fullQueueRow.name}},
		{name: "stretched stale time", rig: func(w *app.Wiring) { w.Reads.Stretch = 0 }, rows: []string{throttledRow.name}},
		{name: "end of calls that nobody waits for", rig: withTransport(t, deaf), rows: []string{abandonedRow.name}},
		{name: "no hedging", rig: withTransport(t, hedging), args: []string{"--venue-timeout=15s"}, rows: []string{"prices, hang, cold"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			first := slices.IndexFunc(rows, func(r row) bool { return r.name == x.rows[0] })
			if first < 0 {
				t.Fatalf("there is no row %q", x.rows[0])
			}
			l := rows[first].opened(t, x.rig, x.args...)
			if x.within > 0 {
				l.within = x.within
			}
			red := 0
			for _, r := range rows {
				for _, name := range x.rows {
					if r.name != name {
						continue
					}
					red++
					if err := r.run(l); err == nil {
						t.Errorf("%q passes without the defence", r.name)
					} else {
						t.Logf("%q: %v", r.name, err)
					}
				}
			}
			if red != len(x.rows) {
				t.Errorf("only %d of the rows %q are in the matrix", red, x.rows)
			}
		})
	}
}

// completeJSON completes truncated JSON as a lenient parser would. It drops everything after the last complete array or object, and
// closes the open arrays and objects. It returns the body unchanged if the body is valid, or if nothing in it is complete.
func completeJSON(body []byte) []byte {
	if json.Valid(body) {
		return body
	}
	for end := len(body); end > 0; end-- {
		if c := body[end-1]; c != '}' && c != ']' {
			continue
		}
		var open []byte
		quoted := false
		for i := 0; i < end; i++ {
			switch c := body[i]; {
			case c == '\\' && quoted:
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '{':
				open = append(open, '}')
			case c == '[':
				open = append(open, ']')
			case (c == '}' || c == ']') && len(open) > 0:
				open = open[:len(open)-1]
			}
		}
		whole := bytes.Clone(body[:end])
		for i := len(open) - 1; i >= 0; i-- {
			whole = append(whole, open[i])
		}
		if json.Valid(whole) {
			return whole
		}
	}
	return body
}

// withoutError removes the signs of an error from the body of a response with status 200.
func withoutError(resp *http.Response, body []byte) []byte {
	var object map[string]json.RawMessage
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &object) != nil {
		return body
	}
	delete(object, "success")
	delete(object, "error")
	out, err := json.Marshal(object)
	if err != nil {
		return body
	}
	return out
}
