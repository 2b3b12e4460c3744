package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
)

// explained is the extension "explain" of a response.
type explained struct {
	Type, Name, Document, ResponseCache string
	Cost                                struct{ Points, UpstreamCalls int64 }
	ElapsedMs                           float64
	Cache                               map[string]explainedReads
	UpstreamCalls, StaleServed          int
	Batches                             []struct {
		Venue, Kind, Priority, Outcome string
		Keys, Own                      int
		BudgetWaitMs                   float64
		QueueWaitMs                    float64
		UpstreamMs                     float64
		Calls                          []struct {
			Endpoint, Outcome string
			Keys, Status      int
			WaitMs, ElapsedMs float64
		}
	}
}

// explainedReads counts the reads of one kind of data.
type explainedReads struct {
	Hits, Stale, Absent, Misses, Joined, Excused int
	From                                         struct{ Memory, Shared, Venue int }
}

// calls returns the numbers of calls and keys of all batches, by endpoint.
func (e *explained) calls() calls {
	out := calls{}
	for _, b := range e.Batches {
		for _, c := range b.Calls {
			n := out[c.Endpoint]
			out[c.Endpoint] = [2]int64{n[0] + 1, n[1] + int64(c.Keys)}
		}
	}
	return out
}

// explain sends a query and requests an explanation. It returns the response, the data of the response, and the explanation or nil.
func (s *service) explain(t testing.TB, query string, variables vars, credentials string) (response, string, *explained) {
	t.Helper()
	r := s.request(t, asJSON(vars{"query": query, "variables": variables}), credentials)
	r.Header.Set(httpapi.ExplainHeader, "1")
	resp := s.do(t, r)
	var out struct {
		Data       json.RawMessage
		Extensions struct{ Explain *explained }
	}
	decode(t, resp.body, &out)
	return resp, string(out.Data), out.Extensions.Explain
}

// TestExplainMatchesTheVenue checks that an explanation shows the same calls as the venue counted, with a cold and with a warm
// cache.
func TestExplainMatchesTheVenue(t *testing.T) {
	s := start(t)
	variables := vars{"address": addressOf50}
	var cold, warm *explained
	var coldData, warmData string
	asked := s.callsDuring(func() { _, coldData, cold = s.explain(t, portfolioQuery, variables, keyOf50) })
	if cold == nil {
		t.Fatal("the response has no explanation")
	}
	// The test compares the numbers of keys only for prices and markets, because calls for accounts have no ids that the demo venue
	// could count.
	for name, n := range cold.calls() {
		if n[0] != asked[name][0] || (name == "prices" || name == "market-details") && n[1] != asked[name][1] {
			t.Errorf("%s: the explanation has the calls %v, the venue got the calls %v", name, cold.calls(), asked)
		}
	}
	total := int64(0)
	for _, n := range asked {
		total += n[0]
	}
	if int64(cold.UpstreamCalls) != total || len(cold.calls()) != len(asked) || total == 0 {
		t.Errorf("with a cold cache, the explanation has %d calls, the venue got the calls %v", cold.UpstreamCalls, asked)
	}
	if c := cold.Cache["price"]; c.Misses != 50 || c.Hits != 0 || c.From.Venue != 50 || c.From.Memory+c.From.Shared != 0 || cold.ResponseCache != "MISS" || cold.StaleServed != 0 {
		t.Errorf("with a cold cache, the explanation has wrong reads: %+v", cold)
	}
	if cold.Type != "query" || len(cold.Document) != 64 || cold.Cost.Points == 0 || cold.Cost.UpstreamCalls == 0 || cold.ElapsedMs <= 0 {
		t.Errorf("with a cold cache, the explanation has a wrong type, document, cost or duration: %+v", cold)
	}
	for _, b := range cold.Batches {
		if b.Outcome != "ok" || b.UpstreamMs <= 0 || len(b.Calls) == 0 || b.Own != b.Keys || b.Calls[0].Status != http.StatusOK || b.Calls[0].ElapsedMs <= 0 {
			t.Errorf("with a cold cache, a batch of the explanation is wrong: %+v", b)
		}
	}

	asked = s.callsDuring(func() { _, warmData, warm = s.explain(t, portfolioQuery, variables, keyOf50) })
	if len(asked) != 0 || warm.UpstreamCalls != 0 || len(warm.Batches) != 0 {
		t.Errorf("with a warm cache, the explanation is %+v and the venue got the calls %v, want no calls", warm, asked)
	}
	for kind, want := range map[string]int{"price": 50, "positions": 1, "balance": 1, "market": cold.Cache["market"].Misses} {
		if c := warm.Cache[kind]; c.Hits != want || c.Misses+c.Stale+c.Absent != 0 || c.From.Memory != want || c.From.Shared+c.From.Venue != 0 {
			t.Errorf("with a warm cache, the reads of %s are %+v, want %d hits from memory", kind, c, want)
		}
	}
	if warmData != coldData {
		t.Errorf("the data from the cache are\n%s\nwant\n%s", warmData, coldData)
	}
}

// TestExplainChangesNothing checks that a request for an explanation gets the same data as a request without it. No cache may keep
// an explanation.
func TestExplainChangesNothing(t *testing.T) {
	s := start(t)
	variables := vars{"address": addressOf50}
	plain := func() response {
		return s.do(t, s.request(t, asJSON(vars{"query": portfolioQuery, "variables": variables}), keyOf50))
	}
	first := plain()
	_, data, e := s.explain(t, portfolioQuery, variables, keyOf50)
	if e.ResponseCache != "HIT" {
		t.Errorf("the explanation of a cached response says %s, want HIT", e.ResponseCache)
	}
	if want := `{"data":` + data + `}`; first.body != want {
		t.Errorf("with an explanation, the response is\n%s\nwant the response without an explanation:\n%s", want, first.body)
	}
	hits := s.API.Stats().Responses.Hits
	if again := plain(); again.body != first.body || s.API.Stats().Responses.Hits != hits+1 {
		t.Errorf("after an explanation, the response does not come from the cache, or differs: %s", again.body)
	}

	board := "/graphql?query={tokenPrices(tokenIds:[%22" + s.openTokens(1)[0] + "%22]){price}}"
	get := func(header ...string) response { return s.do(t, s.newRequest(t, http.MethodGet, board, "", header...)) }
	kept := get()
	if kept.header.Get("Etag") == "" || !strings.Contains(kept.header.Get("Cache-Control"), "max-age") {
		t.Fatalf("the response has the headers %v, want ETag and max-age", kept.header)
	}
	for _, header := range [][]string{{httpapi.ExplainHeader, "1"}, {httpapi.ExplainHeader, "1", "If-None-Match", kept.header.Get("Etag")}} {
		got := get(header...)
		if got.status != http.StatusOK || got.header.Get("Etag") != "" || got.header.Get("Cache-Control") != "no-store" || !strings.Contains(got.body, `"explain"`) {
			t.Errorf("got status %d, headers %v and body %s, want an explanation and Cache-Control no-store", got.status, got.header, got.body)
		}
	}
	if again := get(); again.body != kept.body || strings.Contains(again.body, "explain") {
		t.Errorf("after the explanations, the response is %s, want %s", again.body, kept.body)
	}
}

// TestExplainPermissions checks which services send explanations. By default, only a service with the demo venue sends them.
func TestExplainPermissions(t *testing.T) {
	venue := newEcho(t)
	for args, want := range map[string]bool{
		"": true, "--explain=off": false, "--explain=on": true,
		"--venue-url=" + venue.URL: false, "--explain=on --venue-url=" + venue.URL: true,
	} {
		s := start(t, strings.Fields(args)...)
		if resp, _, e := s.explain(t, `{ tokenPrices(tokenIds: ["1"]) { price } }`, nil, anonymous); (e != nil) != want {
			t.Errorf("flags %q: got %s, want an explanation: %t", args, resp.body, want)
		}
	}
}

// TestExplainFailures checks that an explanation shows a failed call and the stale values in the response.
func TestExplainFailures(t *testing.T) {
	s := startRigged(t, startTime, withoutRetries)
	ids := s.openTokens(3)
	const query = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } }`
	_, _, _ = s.explain(t, query, vars{"ids": ids[:2]}, anonymous)
	s.setFaults(t, faults.Fault{Kind: faults.Status, Status: 500})
	s.clock.Advance(10 * time.Second) // the two cached prices have expired
	_, _, e := s.explain(t, query, vars{"ids": ids}, anonymous)
	if len(e.Batches) != 1 || e.Batches[0].Outcome != "UPSTREAM_UNAVAILABLE" || e.Batches[0].Own != 1 || e.UpstreamCalls != 1 || e.Batches[0].Calls[0].Status != 500 {
		t.Errorf("the explanation of a failed call is wrong: %+v", e)
	}
	if c := e.Cache["price"]; c.Misses != 1 || c.Stale != 2 || e.StaleServed != 2 {
		t.Errorf("got the reads %+v, want 1 miss and 2 stale prices", e.Cache)
	}
}

// TestExplainOpenCircuit checks that an explanation shows which venue's circuit has refused a batch, and which venue has answered.
func TestExplainOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := simulate(t, "generic", demo.Config{Markets: 40}, nil), simulate(t, "generic", demo.Config{Markets: 40, Other: 1}, nil)
		s := readSeveral(t, a, b, withoutRetries, "--explain=on")
		s.venue = a.engine
		ids := s.openTokens(8)
		b.set(t, faults.Fault{Kind: faults.Status, Status: 500})
		var last *explained
		for _, id := range ids {
			_, _, last = s.explain(t, `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } }`, vars{"ids": []string{id, "b:" + id}}, anonymous)
		}
		got := map[string]string{}
		for _, batch := range last.Batches {
			got[batch.Venue] = fmt.Sprint(batch.Outcome, " ", len(batch.Calls))
		}
		if want := map[string]string{"generic": "ok 1", "b": "UPSTREAM_UNAVAILABLE 0"}; !maps.Equal(got, want) {
			t.Errorf("the outcomes and calls of both venues are %v, want %v", got, want)
		}
	})
}

// TestExplainOverWebSocket checks that a client can request explanations for a whole connection or for a single operation.
func TestExplainOverWebSocket(t *testing.T) {
	s := startLive(t)
	token := s.openTokens(1)[0]
	query := fmt.Sprintf(`{ tokenPrices(tokenIds: [%q]) { price } }`, token)
	payload := func(extensions string) string {
		return asJSON(vars{"query": query, "extensions": json.RawMessage(extensions)})
	}
	for _, test := range []struct {
		initPayload vars // the payload of connection_init
		payload     string
		explained   bool
	}{
		{vars{}, payload(`{"explain":true}`), true},
		{vars{}, payload(`{"explain":false}`), false},
		{vars{}, payload(`{"explain":3}`), false},
		{vars{}, payload(`{}`), false},
		{vars{"x-oddsgraph-explain": "1"}, payload(`{}`), true},
	} {
		k := s.dialWithPayload(t, test.initPayload)
		k.send(t, frame{ID: "1", Type: "subscribe", Payload: json.RawMessage(test.payload)})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		f, err := k.read(ctx)
		cancel()
		answer := string(f.Payload)
		if err != nil || strings.Contains(answer, `"explain":{"type":"query"`) != test.explained || !strings.Contains(answer, `"price"`) {
			t.Errorf("connection_init %v, payload %s: got %s and the error %v, want an explanation: %t", test.initPayload, test.payload, answer, err, test.explained)
		}
	}
}
