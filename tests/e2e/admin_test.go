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
			t.Errorf("private %s: %d %.200q", path, got.status, got.body)
		}
		got, public := s.get(t, path), path == "/healthz" || path == "/readyz"
		if (got.status == http.StatusOK) != public || !public && got.status != http.StatusNotFound {
			t.Errorf("public %s: %d %.200q", path, got.status, got.body)
		}
	}
	r := s.request(t, "{}", anonymous)
	r.URL.Path = "/cache/flush"
	if got := s.do(t, r); got.status != http.StatusNotFound {
		t.Errorf("clients flush the cache: %d", got.status)
	}
	if s := start(t, "--admin-listen=off"); s.Admin != nil || strings.Contains(s.log.String(), "admin=") {
		t.Error("a service without a private address has one")
	}
}

// TestFlush checks that an operator can flush the cache by kind and by key.
func TestFlush(t *testing.T) {
	s := start(t)
	ids := s.openTokens(2)
	markets := s.openMarkets(2)
	const query = `query($t: [String!]!, $m: [String!]!, $a: Address!) {
		tokenPrices(tokenIds: $t) { price } spreads(tokenIds: $t) { bestBid } markets(marketIds: $m) { marketId } user(address: $a) { balance { cashBalance } } searchMarkets(first: 1) { totalCount } }`
	again := func(want calls) {
		t.Helper()
		wantCalls(t, s.callsDuring(func() { s.ask(t, query, vars{"t": ids, "m": markets, "a": addressOf3}, keyOf3) }), want)
	}
	flush := func(query, want string) {
		t.Helper()
		var got any
		decode(t, s.askAdmin(t, http.MethodPost, "/cache/flush?"+query).body, &got)
		wantJSON(t, query, got, want)
	}
	again(calls{"prices": {1, 2}, "spreads": {1, 2}, "market-details": {1, 2}, "balance": {1, 1}, "market-search": {1, 1}})
	again(calls{})
	flush("kind=response", `{"kind":"response","entries":1}`)
	flush("kind=response", `{"kind":"response","entries":0}`)
	again(calls{})
	flush("kind=price", `{"kind":"price","entries":2}`)
	again(calls{"prices": {1, 2}}) // the flush also removed the cached response, because the service built this response from the prices
	flush("kind=price&key="+ids[1], `{"kind":"price","key":"`+ids[1]+`","entries":1}`)
	flush("kind=spread&key="+ids[0], `{"kind":"spread","key":"`+ids[0]+`","entries":1}`)
	s.ask(t, `{ spreads(tokenIds: ["none"]) { bestBid } }`, nil, anonymous)
	flush("kind=spread&key=none", `{"kind":"spread","key":"none","entries":1}`) // the cache also remembers that a token has no spread
	flush("kind=spread&key=none", `{"kind":"spread","key":"none","entries":0}`)
	again(calls{"prices": {1, 1}, "spreads": {1, 1}})
	flush("kind=market&key="+ids[0], `{"kind":"market","key":"`+ids[0]+`","entries":1}`) // a token's id selects its market
	flush("kind=balance&key="+strings.ToUpper(addressOf3), `{"kind":"balance","key":"`+strings.ToUpper(addressOf3)+`","entries":1}`)
	again(calls{"market-details": {1, 1}, "balance": {1, 1}})
	flush("kind=market", `{"kind":"market","entries":2}`)
	flush("kind=search", `{"kind":"search","entries":1}`)
	again(calls{"market-details": {1, 2}, "market-search": {1, 1}})

	for query, want := range map[string]string{
		"": "kind is one of response, price,", "kind=prices": "kind is one of", "kind=search&key=a": "flush all of them", "kind=response&key=a": "flush all of them",
	} {
		if got := s.askAdmin(t, http.MethodPost, "/cache/flush?"+query); got.status != http.StatusBadRequest || !strings.Contains(got.body, want) {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if log := s.log.String(); strings.Count(log, "an operator has flushed the cache") != 11 {
		t.Errorf("the log:\n%s", log)
	}
}
