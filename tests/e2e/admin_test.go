package e2e

import (
	"net/http"
	"strings"
	"testing"

	"oddsgraph/app"
)

// askAdmin sends a request to the admin address. The headers are alternating names and values.
func (s *service) askAdmin(t testing.TB, method, path string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.Admin.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.do(t, r)
}

// TestTwoListeners checks which paths the admin address serves. Of these paths, the public address must serve only the health
// checks.
func TestTwoListeners(t *testing.T) {
	s := start(t)
	for path, want := range map[string]string{
		"/metrics": "oddsgraph_", "/healthz": "ok\n", "/readyz": "ready\n", "/buildinfo": `"version":"` + app.BuildVersion() + `"`,
		"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/symbol": "num_symbols", "/debug/pprof/profile?seconds=1": "", "/debug/pprof/trace?seconds=0.1": "",
	} {
		if got := s.askAdmin(t, http.MethodGet, path); got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("the admin address answers %s with status %d and the body %.200q", path, got.status, got.body)
		}
		got, public := s.get(t, path), path == "/healthz" || path == "/readyz"
		if (got.status == http.StatusOK) != public || !public && got.status != http.StatusNotFound {
			t.Errorf("the public address answers %s with status %d and the body %.200q", path, got.status, got.body)
		}
	}
	r := s.request(t, "{}", anonymous)
	r.URL.Path = "/cache/flush"
	if got := s.do(t, r); got.status != http.StatusNotFound {
		t.Errorf("the public address answers /cache/flush with status %d, want 404", got.status)
	}
	if s := start(t, "--admin-listen=off"); s.Admin != nil || strings.Contains(s.log.String(), "admin=") {
		t.Error("a service with --admin-listen=off has an admin address")
	}
}

// TestFlush checks that an operator can flush the cache by kind and by key.
func TestFlush(t *testing.T) {
	s := start(t)
	ids := s.openTokens(2)
	markets := s.openMarkets(2)
	const query = `query($t: [String!]!, $m: [String!]!, $a: Address!) {
		tokenPrices(tokenIds: $t) { price } spreads(tokenIds: $t) { bestBid } markets(marketIds: $m) { marketId } user(address: $a) { balance { cashBalance } } searchMarkets(first: 1) { totalCount } }`
	wantQueryCalls := func(want calls) {
		t.Helper()
		wantCalls(t, s.callsDuring(func() { s.ask(t, query, vars{"t": ids, "m": markets, "a": addressOf3}, keyOf3) }), want)
	}
	flush := func(query, want string) {
		t.Helper()
		var got any
		decode(t, s.askAdmin(t, http.MethodPost, "/cache/flush?"+query).body, &got)
		wantJSON(t, query, got, want)
	}
	wantQueryCalls(calls{"prices": {1, 2}, "spreads": {1, 2}, "market-details": {1, 2}, "balance": {1, 1}, "market-search": {1, 1}})
	wantQueryCalls(calls{})
	flush("kind=response", `{"kind":"response","entries":1}`)
	flush("kind=response", `{"kind":"response","entries":0}`)
	wantQueryCalls(calls{})
	flush("kind=price", `{"kind":"price","entries":2}`)
	wantQueryCalls(calls{"prices": {1, 2}}) // the flush also removed the cached response, because the service built this response from the prices
	flush("kind=price&key="+ids[1], `{"kind":"price","key":"`+ids[1]+`","entries":1}`)
	flush("kind=spread&key="+ids[0], `{"kind":"spread","key":"`+ids[0]+`","entries":1}`)
	s.ask(t, `{ spreads(tokenIds: ["none"]) { bestBid } }`, nil, anonymous)
	flush("kind=spread&key=none", `{"kind":"spread","key":"none","entries":1}`) // the cache also remembers that a token has no spread
	flush("kind=spread&key=none", `{"kind":"spread","key":"none","entries":0}`)
	wantQueryCalls(calls{"prices": {1, 1}, "spreads": {1, 1}})
	flush("kind=market&key="+ids[0], `{"kind":"market","key":"`+ids[0]+`","entries":1}`) // the id of a token selects the market of the token
	flush("kind=balance&key="+strings.ToUpper(addressOf3), `{"kind":"balance","key":"`+strings.ToUpper(addressOf3)+`","entries":1}`)
	wantQueryCalls(calls{"market-details": {1, 1}, "balance": {1, 1}})
	flush("kind=market", `{"kind":"market","entries":2}`)
	flush("kind=search", `{"kind":"search","entries":1}`)
	wantQueryCalls(calls{"market-details": {1, 2}, "market-search": {1, 1}})

	for query, want := range map[string]string{
		"": "kind is one of response, price,", "kind=prices": "kind is one of", "kind=search&key=a": "flush all of them", "kind=response&key=a": "flush all of them",
	} {
		if got := s.askAdmin(t, http.MethodPost, "/cache/flush?"+query); got.status != http.StatusBadRequest || !strings.Contains(got.body, want) {
			t.Errorf("/cache/flush?%s: got %+v, want status 400 and the text %q", query, got, want)
		}
	}
	if log := s.log.String(); strings.Count(log, "an operator has flushed the cache") != 11 {
		t.Errorf("the log does not report exactly 11 flushes:\n%s", log)
	}
}
