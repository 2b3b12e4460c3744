package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/venue"
)

// The rows below are about what takes more than one question. Each has a lane of its own.

// circuit reads books of many tokens while all fail: after five the venue is left alone, and asked by one probe at a time.
var circuit = row{name: "orderbook, one token after the other", run: func(l *lane) error {
	var r report
	const book = `query ($id: String!, $ids: [String!]!) { token(tokenId: $id) { orderbook(depth: 5) { bids { price } } } tokenPrices(tokenIds: $ids) { price } }`
	ids := l.openTokens(12)
	ask := func(when, id string, calls int64, fails bool) {
		got, err := l.try(book, vars{"id": id, "ids": l.variables["ids"]}, anonymous)
		if err != nil {
			r.f("%s: %w", when, err)
			return
		}
		if n := got.calls["orderbook"][0]; n != calls {
			r.f("%s: the venue was asked %d times, want %d", when, n, calls)
		}
		if failed := len(got.errors) == 1 && got.errors[0].String() == "token.orderbook UPSTREAM_UNAVAILABLE"; failed != fails || len(got.errors) > 1 {
			r.f("%s: errors %v", when, got.errors)
		}
		if strings.Contains(asJSON(at(got.data, "tokenPrices")), "null") {
			r.f("%s: prices beside it are %s", when, asJSON(at(got.data, "tokenPrices")))
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
	l.clock.advance(time.Second)
	ask("the probe", ids[10], 1, true)
	ask("after the probe", ids[11], 0, true)
	if err := l.venue.SetFaults(nil); err != nil {
		return err
	}
	l.clock.advance(2 * time.Second)
	ask("the probe when it is back", ids[9], 1, false)
	for _, id := range ids[7:9] {
		ask("closed again", id, 1, false)
	}
	return r.err()
}}

// callers reads one account by its owner and by somebody else.
var callers = row{name: "balance, two callers", run: func(l *lane) error {
	var r report
	l.prepare(&r)
	l.intact(&r, "its owner")
	const balance = `query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`
	for stranger, code := range map[string]string{credentials("junk"): "UNAUTHENTICATED", keyOf50: "FORBIDDEN"} {
		got, err := l.try(balance, vars{"a": addressOf3}, stranger)
		if err != nil {
			return err
		}
		if len(got.errors) != 1 || got.errors[0].String() != "user.balance "+code || at(got.data, "user.balance") != nil {
			r.f("a stranger gets %s, %v", asJSON(got.data), got.errors)
		}
	}
	return r.err()
}}

// budgetPerMinute is what the venue of the row below allows.
const budgetPerMinute = 40

// overBudget asks for more books than the venue allows calls.
var overBudget = row{name: "orderbook, more than the budget", run: func(l *lane) error {
	var r report
	const books = `query ($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook(depth: 5) { bids { price size } asks { price size } } } }`
	for range 2 {
		ids := l.openTokens(50)
		got, err := l.try(books, vars{"ids": ids}, anonymous)
		if err != nil {
			return err
		}
		if len(got.errors) < len(ids)-budgetPerMinute {
			r.f("only %d of %d were refused", len(got.errors), len(ids))
		}
		for _, e := range got.errors {
			if ms := e.Extensions.RetryAfterMs; e.Extensions.Code != "RATE_LIMITED" || ms <= 0 || ms > 5*60_000 {
				r.f("%s, to be tried again in %d ms", e, ms)
			}
		}
		for i, id := range ids {
			v := at(list(got.data, "tokens")[i], "orderbook")
			b, _ := l.venue.Book(id)
			if v != nil && !same(ladderOf(v, ""), ladder{levelsOf(b.Bids, 5), levelsOf(b.Asks, 5)}) {
				r.f("the book of %s is %s", id, asJSON(v))
			}
		}
	}
	if n := l.venue.Stats().Statuses["429"]; n != 0 {
		r.f("the venue refused %d calls", n)
	}
	return r.err()
}}

// newBudgetLane starts a service whose venue has a limit. Its clock stands at the present, which deadlines are told by.
func newBudgetLane(t testing.TB, rig func(*venue.Config, *cache.Config)) *lane {
	t.Helper()
	return newLaneAt(t, time.Now(), rig, "--demo-markets=300", "--demo-public-per-minute=40")
}

func TestFaultsOfManyQuestions(t *testing.T) {
	for _, r := range []row{circuit, callers} {
		if err := r.run(newLane(t, nil)); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
	if err := overBudget.run(newBudgetLane(t, nil)); err != nil {
		t.Errorf("%s: %v", overBudget.name, err)
	}
}

// exchange is what the venue's client sends its requests through.
type exchange func(*http.Request) (*http.Response, error)

// RoundTrip makes the exchange.
func (e exchange) RoundTrip(r *http.Request) (*http.Response, error) { return e(r) }

// throughTransport replaces the client's way to the venue by one without a defence.
func throughTransport(t *testing.T, change func(base *http.Transport) exchange) func(*venue.Config, *cache.Config) {
	base := &http.Transport{DisableCompression: true}
	t.Cleanup(base.CloseIdleConnections)
	return func(c *venue.Config, _ *cache.Config) { c.Transport = change(base) }
}

// reading is a transport whose bodies are changed before the client sees them.
func reading(change func(resp *http.Response, body []byte) []byte) func(*http.Transport) exchange {
	return func(base *http.Transport) exchange {
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

// TestEveryDefenceIsMissed takes one defence away after the other: without any of them a row of the matrix is red.
func TestEveryDefenceIsMissed(t *testing.T) {
	without := func(d venue.Defences) func(*venue.Config, *cache.Config) {
		return func(c *venue.Config, _ *cache.Config) { c.Without = d }
	}
	inflated := reading(func(resp *http.Response, body []byte) []byte {
		if resp.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err == nil {
				body, _ = io.ReadAll(z)
			}
			resp.Header.Del("Content-Encoding")
		}
		return body
	})
	following := func(base *http.Transport) exchange {
		client := &http.Client{Transport: base}
		return func(r *http.Request) (*http.Response, error) {
			r.Body = nil
			return client.Do(r)
		}
	}
	unlimited := func(base *http.Transport) exchange {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			if err == nil {
				resp.Header.Del("Retry-After")
			}
			return resp, err
		}
	}
	for _, x := range []struct {
		name string
		rig  func(*venue.Config, *cache.Config)
		args []string
		// rows are named by how they begin.
		rows []string
		// within is how long an operation may take, the usual time when it is 0.
		within time.Duration
	}{
		{name: "size cap", args: []string{"--venue-max-body=256MiB"}, rows: []string{"balance, 64 MiB body, cold"}},
		{name: "decompression cap", rig: throughTransport(t, inflated), args: []string{"--venue-max-body=256MiB"}, rows: []string{"balance, gzip bomb, cold"}},
		{name: "header cap", rig: throughTransport(t, func(base *http.Transport) exchange {
			base.MaxResponseHeaderBytes = 8 << 20
			return base.RoundTrip
		}), rows: []string{"balance, large header, cold"}},
		{name: "redirect rule", rig: throughTransport(t, following), rows: []string{"orders, redirect to another host, cold"}},
		{name: "retry", args: []string{"--venue-retries=0"}, rows: []string{"prices, 503, cold"}},
		{name: "admission of retries", rig: throughTransport(t, func(base *http.Transport) exchange {
			return func(r *http.Request) (*http.Response, error) {
				r.Body = nil
				return base.RoundTrip(r)
			}
		}), rows: []string{"prices, refused, cold"}},
		{name: "backoff memory", rig: without(venue.Defences{Backoff: true}), rows: []string{"prices, 500, cold"}},
		{name: "breaker", rig: without(venue.Defences{Breaker: true}), rows: []string{circuit.name}},
		{name: "Retry-After", rig: throughTransport(t, unlimited), rows: []string{"trades, 429 with seconds, cold", "trades, 429 with a date, cold"}},
		{name: "truncated-body check", rig: throughTransport(t, reading(func(_ *http.Response, body []byte) []byte { return closed(body) })), rows: []string{"positions, truncated JSON, cold", "positions, reset in the body, cold"}},
		{name: "200-with-error check", rig: throughTransport(t, reading(func(resp *http.Response, body []byte) []byte { return withoutError(resp, body) })), rows: []string{"prices, 200 with success:false, cold", "prices, 200 with error, cold"}},
		{name: "deadline", args: []string{"--venue-timeout=5m", "--request-timeout=10m"}, rows: []string{"orders, hang, cold"}, within: 3 * time.Second},
		{name: "credential part of the key", rig: func(_ *venue.Config, c *cache.Config) { c.Without.Callers = true }, rows: []string{callers.name}},
		{name: "stale on error", args: []string{"--cache-price-stale=0s", "--cache-book-stale=0s"}, rows: []string{"prices, 500, warm", "orderbook, hang, warm"}},
		{name: "admission", rig: func(_ *venue.Config, c *cache.Config) { c.Admission = nil }, rows: []string{overBudget.name}},
		{name: "tolerance of drift", rig: without(venue.Defences{Drift: true}), rows: []string{"prices, a bad element", "spreads, a bad element"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			var l *lane
			rows := []row{circuit, callers, overBudget}
			if x.rows[0] == overBudget.name {
				l = newBudgetLane(t, x.rig)
			} else {
				l = newLane(t, x.rig, x.args...)
				for i := range wholeBranches {
					rows = append(rows, matrix(&wholeBranches[i])...)
				}
			}
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
						t.Errorf("%q is green without it", r.name)
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

// closed makes JSON that was cut off whole again, by leaving out its last element and closing what is open, as a lenient
// parser would.
func closed(body []byte) []byte {
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

// withoutError takes out of an answer what says that it is an error.
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
