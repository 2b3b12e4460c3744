package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
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

// wantReadyz checks the response at /readyz on both addresses. The response must arrive within a second.
func (s *service) wantReadyz(t *testing.T, status int, begin string) {
	t.Helper()
	for _, get := range []func() response{
		func() response { return s.get(t, "/readyz") }, func() response { return s.askAdmin(t, http.MethodGet, "/readyz") },
	} {
		began := time.Now()
		got := get()
		if took := time.Since(began); got.status != status || !strings.HasPrefix(got.body, begin) || took > time.Second {
			t.Errorf("/readyz got %+v after %s, want status %d and a body that begins with %q within a second", got, took, status, begin)
		}
	}
}

// TestReadyWithoutTheVenue checks that a new process waits five seconds for a venue that hangs, and that no later failure of the
// venue makes the process unready.
func TestReadyWithoutTheVenue(t *testing.T) {
	venue := newSlowVenue(t)
	defer venue.hold("/api/exchange/market-search")()
	s := startRigged(t, startTime, withoutRetries, "--venue-url="+venue.URL)
	s.wantReadyz(t, http.StatusServiceUnavailable, "starting")
	if path := <-venue.waiting; path != "/api/exchange/market-search" {
		t.Errorf("the first call to the venue is for %s, want a search", path)
	}
	s.clock.Advance(4 * time.Second)
	s.wantReadyz(t, http.StatusServiceUnavailable, "starting")
	s.clock.Advance(time.Second)
	s.wantReadyz(t, http.StatusOK, "ready\n")

	if err := venue.faults.Set([]faults.Fault{{Kind: faults.Status}}); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"1", "2", "3"} {
		s.query(t, `query($t: String!) { token(tokenId: $t) { orderbook { spread } } }`, vars{"t": token}, anonymous)
	}
	s.wantReadyz(t, http.StatusOK, "ready\nthe venue has not answered since 2026-03-14T15:09:31Z\n")
	if got := s.ask(t, `{ serviceStatus { upstreamReachable } }`, nil, anonymous); at(got, "serviceStatus.upstreamReachable") != false {
		t.Errorf("serviceStatus is %v, want an unreachable venue", got)
	}
}

// TestReadyAfterTheFirstAnswer checks that a new process is ready as soon as the venue has answered, also with an error, and that
// the process makes one call to find out.
func TestReadyAfterTheFirstAnswer(t *testing.T) {
	venue := newStub(t, nil)
	s := start(t, "--venue-url="+venue.URL)
	eventually(t, "the process is ready", func() bool { return s.get(t, "/readyz").status == http.StatusOK })
	s.wantReadyz(t, http.StatusOK, "ready\n")
	venue.mu.Lock()
	defer venue.mu.Unlock()
	if len(venue.counts) != 1 || venue.counts["market-search"][0] != 1 {
		t.Errorf("the venue got the calls %v, want one search", venue.counts)
	}
}

// TestLogOfAnOutage checks the lines from a start over an outage of the venue to the stop. Health checks and failed calls have no
// further lines at the level info.
func TestLogOfAnOutage(t *testing.T) {
	venue := newSlowVenue(t)
	s, stop := startLiveRigged(t, withoutRetries, "--venue-url="+venue.URL, "--hosts=odds.example", "--log-level=info")
	read := func(token string) {
		s.query(t, `query($t: String!) { token(tokenId: $t) { orderbook { spread } } }`, vars{"t": token}, anonymous)
	}
	if err := venue.faults.Set([]faults.Fault{{Kind: faults.Status, Status: 503}}); err != nil {
		t.Fatal(err)
	}
	read("1")
	read("2")
	s.get(t, "/healthz")
	s.get(t, "/readyz")
	if err := venue.faults.Set(nil); err != nil {
		t.Fatal(err)
	}
	read("3")
	r := s.newRequest(t, "GET", "/healthz", "")
	r.Host = "evil.example"
	s.do(t, r)
	if err := stop(); err != nil {
		t.Error(err)
	}
	wants := []string{
		`level=INFO msg="calls to the venue are limited" per_minute=95`,
		`level=INFO msg="oddsgraph is ready"`,
		`level=WARN msg="a call to the venue has failed" endpoint=orderbook reason="status 503: `,
		`level=INFO msg="the venue answers again" endpoint=orderbook since=`,
		`level=INFO msg=request method=GET route="" status=403`,
		`level=INFO msg="draining: /readyz answers 503" drain_delay=0s`,
		`level=INFO msg="stopping: no new connections are accepted" operations=0 websockets=0 event_streams=0`,
		`level=INFO msg=stopped`,
	}
	for line := range strings.Lines(s.log.String()) {
		_, line, _ = strings.Cut(line, " ")
		if strings.HasPrefix(line, "level=WARN msg=operation ") || strings.HasPrefix(line, "level=INFO msg=operation ") {
			continue
		}
		if len(wants) == 0 || !strings.HasPrefix(line, wants[0]) {
			t.Fatalf("the log has the line %q, want next %q", line, wants)
		}
		if strings.Contains(wants[0], "403") && !strings.Contains(line, `host=evil.example reason="this name is not served here;`) {
			t.Errorf("the line of a refused request lacks host or reason: %s", line)
		}
		wants = wants[1:]
	}
	if len(wants) > 0 {
		t.Errorf("the log lacks the lines %q:\n%s", wants, s.log)
	}
}

// TestStartErrorsAreLogged checks that a program that cannot start writes the reason as a line of the configured format.
func TestStartErrorsAreLogged(t *testing.T) {
	s := start(t)
	taken := strings.TrimPrefix(s.URL(), "http://")
	for _, test := range []struct{ arg, want string }{{"--listen=" + taken, "address already in use"}, {"--max-operations=-1", "--max-operations"}} {
		var log bytes.Buffer
		if err := run(t.Context(), []string{"--log-format=json", "--admin-listen=off", "--demo-listen=127.0.0.1:0", "--demo-markets=20", test.arg}, nil, nil, &log); err == nil {
			t.Errorf("%s: the program has started", test.arg)
		}
		text := strings.TrimSpace(log.String())
		var line struct{ Level, Error string }
		last := text[strings.LastIndexByte(text, '\n')+1:]
		if err := json.Unmarshal([]byte(last), &line); err != nil || line.Level != "ERROR" || !strings.Contains(line.Error, test.want) {
			t.Errorf("%s: the log ends with %q, want an error with %s", test.arg, last, test.want)
		}
	}
}

// TestVenueClock checks that the log and the metrics show the difference between the clock of the venue and that of this host. The
// date of a cached response does not count.
func TestVenueClock(t *testing.T) {
	venue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		if strings.Contains(r.URL.String(), "cached") {
			w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			w.Header().Set("Age", "3600")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"bids":[],"asks":[],"spread":null}`))
	}))
	defer venue.Close()
	s := start(t, "--venue-url="+venue.URL)
	for _, token := range []string{"1", "2", "3", "4", "cached"} {
		s.query(t, `query($t: String!) { token(tokenId: $t) { orderbook { spread } } }`, vars{"t": token}, anonymous)
	}
	if n := strings.Count(s.log.String(), "other=venue other_ahead=59m5"); n != 1 {
		t.Errorf("the log has %d warnings about the clock, want 1:\n%s", n, s.log)
	}
	s.scrape(t).wantBetween(`oddsgraph_clock_offset_seconds{clock="venue"}`, 3590, 3600)
}

// TestCancelledRequestIsLogged checks that the log reports a cancelled request as cancelled, and not as an internal error.
func TestCancelledRequestIsLogged(t *testing.T) {
	s, prices := startBlocked(t)
	ctx, leave := context.WithCancel(t.Context())
	r := s.request(t, asJSON(vars{"query": `query Left { tokenPrices(tokenIds: ["` + s.openTokens(1)[0] + `"]) { price } }`}), anonymous).WithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := s.client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	eventually(t, "the venue is called", func() bool { return len(prices.traceHeaders()) == 1 })
	leave()
	<-ended
	eventually(t, "the log has the operation with the outcome cancelled", func() bool {
		return strings.Contains(s.log.String(), "name=Left") && strings.Contains(s.log.String(), "outcome="+request.OutcomeCancelled)
	})
	if strings.Contains(s.log.String(), string(market.CodeInternal)) {
		t.Errorf("the log has an internal error: %s", s.log)
	}
}
