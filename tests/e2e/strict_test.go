package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// credentialCounter is a transport that counts the calls with credentials in the query and with credentials in a header.
type credentialCounter struct {
	http.RoundTripper
	mu                sync.Mutex
	inQuery, inHeader int
}

// RoundTrip implements http.RoundTripper.
func (w *credentialCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if r.URL.Query().Has("credentials") {
		w.inQuery++
	}
	if r.Header.Get("X-Api-Credentials") != "" {
		w.inHeader++
	}
	w.mu.Unlock()
	return w.RoundTripper.RoundTrip(r)
}

// TestCredentialsReachTheDemoVenue checks whether the service sends credentials in the query or in a header.
func TestCredentialsReachTheDemoVenue(t *testing.T) {
	for args, want := range map[string][2]int{ // the number of calls with credentials in the query, and in a header
		"":                          {0, 1},
		"--venue-credentials=query": {1, 0},
		"--demo-strict":             {1, 0},
		"--demo-strict --venue-credentials=query": {1, 0},
	} {
		t.Run(args, func(t *testing.T) {
			seen := &credentialCounter{RoundTripper: http.DefaultTransport.(*http.Transport).Clone()}
			t.Cleanup(func() { seen.RoundTripper.(*http.Transport).CloseIdleConnections() })
			s := startRigged(t, startTime, func(w *app.Wiring) { w.Client.Transport = seen }, strings.Fields(args)...)
			s.query(t, `query ($a: Address!) { user(address: $a) { balance { totalValue } } }`, vars{"a": addressOf3}, keyOf3)
			if got := [2]int{seen.inQuery, seen.inHeader}; got != want {
				t.Errorf("%d calls had credentials in the query and %d in a header, want %d and %d", got[0], got[1], want[0], want[1])
			}
		})
	}
}

// minimalEndpoints returns the endpoints of a minimal venue, which accepts only the parameters that the service cannot do without.
func minimalEndpoints() map[string]strictEndpoint {
	const (
		trade  = `{"tradeId":"T1","marketId":"M1","outcome":"YES","side":"BUY","price":0.5,"size":3,"timestamp":"2026-03-14T12:00:00Z"}`
		record = `{"id":"H1","type":"DEPOSIT","amount":25,"timestamp":"2026-03-14T12:00:00Z"}`
		order  = `{"orderId":"O1","marketId":"M1","side":"BUY","outcome":"YES","price":0.5,"size":3,"filledSize":1,"status":"OPEN","createdAt":"2026-03-14T12:00:00Z"}`
		market = `{"marketId":"M1","question":"Will it?","outcomes":[{"tokenId":"7","outcome":"YES"},{"tokenId":"8","outcome":"NO"}]}`
		other  = `{"marketId":"M2","question":"Or else?","outcomes":[{"tokenId":"9","outcome":"YES"},{"tokenId":"10","outcome":"NO"}]}`
	)
	search := func(_ *http.Request, q url.Values) (int, string) {
		if q.Has("q") {
			return http.StatusOK, `[` + market + `]`
		}
		return http.StatusOK, `[` + market + `,` + other + `]`
	}
	return map[string]strictEndpoint{
		"prices":         {"tokenId tokenIds", always(`{"tokenId":"7","price":0.41,"timestamp":"2026-03-14T15:00:00Z"}`)},
		"orderbook":      {"tokenId depth", always(`{"bids":[{"price":0.4,"size":1}],"asks":[{"price":0.43,"size":2}],"spread":0.03}`)},
		"price-history":  {"tokenId startDate endDate", always(`{"history":[{"timestamp":"2026-03-14T12:00:00Z","price":0.4,"volume":1}]}`)},
		"spreads":        {"", always(`{}`)},
		"market-search":  {"q", search},
		"market-details": {"marketId", always(market)},
		"balance":        {"address credentials", always(`{"portfolioValue":1,"cashBalance":2,"totalValue":3}`)},
		"positions":      {"address credentials", always(`{"positions":[{"marketId":"M1","outcome":"YES","size":2,"avgPrice":0.3,"currentPrice":0.41,"unrealizedPnl":0.22}]}`)},
		"orders":         {"address credentials", always(`{"orders":[` + order + `]}`)},
		"trades":         {"address credentials", always(`{"trades":[` + trade + `]}`)},
		"history":        {"address credentials", always(`{"history":[` + record + `]}`)},
	}
}

// TestMinimalVenue checks that the service, which is told nothing, can read each endpoint of a minimal venue once it has probed the
// venue. It makes no call that the venue refuses.
func TestMinimalVenue(t *testing.T) {
	user := func(selection string) string { return `{ user(address: "` + addressOf3 + `") { ` + selection + ` } }` }
	for name, test := range map[string]struct {
		query, want string
		// calls are the calls of the read. Each text has the endpoint, the parameters and the status of a call.
		calls []string
	}{
		"prices": {`{ tokenPrices(tokenIds: ["7"]) { price basis } }`, `{"tokenPrices":[{"basis":"VENUE","price":"0.41"}]}`,
			[]string{"prices tokenId 200"}},
		"orderbook": {`{ token(tokenId: "7") { orderbook { spread } } }`, `{"token":{"orderbook":{"spread":"0.03"}}}`,
			[]string{"orderbook depth tokenId 200"}},
		"price-history": {`{ token(tokenId: "7") { history { points { price } } } }`, `{"token":{"history":{"points":[{"price":"0.4"}]}}}`,
			[]string{"price-history endDate startDate tokenId 200"}},
		"spreads": {`{ token(tokenId: "7") { spread { bestBid basis } } }`, `{"token":{"spread":{"basis":"ORDER_BOOK","bestBid":"0.4"}}}`,
			[]string{"orderbook depth tokenId 200"}},
		"market-search": {`{ searchMarkets(query: "will") { nodes { question } } }`, `{"searchMarkets":{"nodes":[{"question":"Will it?"}]}}`,
			[]string{"market-search q 200"}},
		"market-details": {`{ market(marketId: "M1") { question } }`, `{"market":{"question":"Will it?"}}`,
			[]string{"market-details marketId 200"}},
		"balance": {user(`balance { totalValue }`), `{"user":{"balance":{"totalValue":"3"}}}`,
			[]string{"balance address credentials 200"}},
		"positions": {user(`positions { totalCount nodes { size token { tokenId } } }`), `{"user":{"positions":{"nodes":[{"size":"2","token":{"tokenId":"7"}}],"totalCount":1}}}`,
			[]string{"positions address credentials 200", "market-details marketId 200"}},
		"orders": {user(`orders { nodes { status remainingSize } }`), `{"user":{"orders":{"nodes":[{"remainingSize":"2","status":"PARTIALLY_FILLED"}]}}}`,
			[]string{"orders address credentials 200"}},
		"trades": {user(`trades(first: 5, marketId: "M1") { nodes { size } pageInfo { hasNextPage } }`), `{"user":{"trades":{"nodes":[{"size":"3"}],"pageInfo":{"hasNextPage":false}}}}`,
			[]string{"trades address credentials 200"}},
		"history": {user(`history(first: 5, kinds: [DEPOSIT]) { nodes { amount } pageInfo { hasNextPage } }`), `{"user":{"history":{"nodes":[{"amount":"25"}],"pageInfo":{"hasNextPage":false}}}}`,
			[]string{"history address credentials 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			venue := newStrictStub(t, minimalEndpoints())
			s := startRigged(t, startTime, func(w *app.Wiring) { withoutStale(w); w.Client.Table = nil }, "--venue-url="+venue.URL, "--venue-credentials=query")
			s.awaitProbe(t)
			venue.mu.Lock()
			venue.asked = nil
			venue.mu.Unlock()
			wantJSON(t, "data", s.ask(t, test.query, nil, keyOf3), test.want)
			venue.mu.Lock()
			defer venue.mu.Unlock()
			if !slices.Equal(venue.asked, test.calls) {
				t.Errorf("the venue received the calls %q, want %q", venue.asked, test.calls)
			}
		})
	}
}

// TestOneEndpointIsMissing checks venues that lack one endpoint each. Only the data of this endpoint may be missing. If the
// endpoint for spreads is missing, the spreads must come from order books.
func TestOneEndpointIsMissing(t *testing.T) {
	read := func(t *testing.T, flags ...string) (data any, errors []graphError) {
		s := start(t, append(flags, "--demo-markets=60")...)
		ids := s.openTokens(3)
		return s.query(t, wholeQuery, vars{"ids": ids, "id": ids[0], "market": s.openMarkets(1)[0], "a": addressOf3, "day": "2026-03-01"}, keyOf3)
	}
	whole, errors := read(t)
	if len(errors) > 0 {
		t.Fatal(errors)
	}
	for _, b := range wholeBranches {
		t.Run(b.endpoint, func(t *testing.T) {
			data, errors := read(t, "--demo-without="+b.endpoint)
			for _, e := range errors {
				if path, _, _ := strings.Cut(e.String(), " "); !slices.Contains(b.errors, path) {
					t.Errorf("unexpected error %s: %s", e, e.Message)
				}
			}
			for _, other := range wholeBranches {
				got, want := valuesAt(data, other.at), valuesAt(whole, other.at)
				if other.endpoint == b.endpoint {
					if got == want || b.endpoint == "spreads" && got != asFromBooks(want) {
						t.Errorf("without the endpoint %s, the value of %s is %s; with the endpoint it was %s", b.endpoint, other.at, got, want)
					}
				} else if got != want {
					t.Errorf("without the endpoint %s, the value of %s is %s, want %s", b.endpoint, other.at, got, want)
				}
			}
		})
	}
}

// TestVenueIsProbed checks that the service, which is told nothing, finds out how a venue of exactly the description is asked, and logs
// it as settings.
func TestVenueIsProbed(t *testing.T) {
	v := demo.New(demo.Config{Markets: 150, Strict: true, Clock: tool.NewClock(startTime)})
	defer v.Close()
	server := httptest.NewServer(v)
	defer server.Close()
	s := startRigged(t, startTime, func(w *app.Wiring) { w.Client.Table = nil }, "--venue-url="+server.URL)
	eventually(t, "the process is ready", func() bool { return s.get(t, "/readyz").status == http.StatusOK })
	const want = "market-id:marketId,market-ids:none,market-tokens:none,spreads:tokenIds,search-options:yes,search-paging:cursor,max-url:2048"
	eventually(t, "the log has the settings "+want, func() bool { return strings.Contains(s.log.String(), "venue_table="+want) })
	tokens := v.Tokens()
	s.ask(t, `query ($ids: [String!]!) { markets(marketIds: $ids) { question outcomes: tokens { spread { bestBid } price { price } } } }`,
		vars{"ids": []string{tokens[0].MarketID, tokens[2].MarketID}}, anonymous)
}

// strictStub is a venue whose endpoints the test defines. It responds with 404 for other paths, and refuses unknown parameters.
type strictStub struct {
	*httptest.Server
	endpoints map[string]strictEndpoint

	mu    sync.Mutex
	asked []string // the received calls, each with its endpoint, its sorted parameters and its status
}

// strictEndpoint is an endpoint of a strictStub.
type strictEndpoint struct {
	// parameters lists the accepted parameters, separated by spaces.
	parameters string
	answer     func(r *http.Request, q url.Values) (status int, body string)
}

// newStrictStub starts a strictStub. The keys of endpoints are the last segments of the paths.
func newStrictStub(t testing.TB, endpoints map[string]strictEndpoint) *strictStub {
	s := &strictStub{endpoints: endpoints}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *strictStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, q := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], r.URL.Query()
	e, known := s.endpoints[name]
	status, body := http.StatusNotFound, `{"success":false,"message":"no such endpoint"}`
	names := ""
	for _, parameter := range slices.Sorted(maps.Keys(q)) {
		names += " " + parameter
		if known && !slices.Contains(strings.Fields(e.parameters), parameter) {
			status, body = http.StatusBadRequest, `{"success":false,"message":"unknown parameter"}`
			known = false
		}
	}
	if known {
		status, body = e.answer(r, q)
	}
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s%s %d", name, names, status))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// always returns a function that returns status 200 and the given body.
func always(body string) func(*http.Request, url.Values) (int, string) {
	return func(*http.Request, url.Values) (int, string) { return http.StatusOK, body }
}
