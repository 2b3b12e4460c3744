package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// twins sends random requests. It sends each request as a client does, and again with a header that bypasses the response cache.
type twins struct {
	*service
	random  *rand.Rand
	tokens  []string
	markets []string
	slugs   []string
	// hits maps the name of a query to the number of responses from the response cache.
	hits map[string]int
}

// Parts of twinQueries.
const (
	twinFreshness = `freshness { asOf receivedAt source stale } `
	twinPrice     = `price { price timestamp ` + twinFreshness + `} `
	twinBook      = `orderbook(depth: %d) { sequence bids { price size } asks { price size } ` + twinFreshness + `} `
)

// twinQueries maps names to queries.
var twinQueries = map[string]string{
	"prices":       `query ($tokens: [String!]!) { tokenPrices(tokenIds: $tokens) { tokenId price timestamp ` + twinFreshness + `} spreads(tokenIds: $tokens) { bestBid bestAsk ` + twinFreshness + `} }`,
	"token":        `query ($token: String!) { token(tokenId: $token) { outcome ` + twinPrice + fmt.Sprintf(twinBook, 5) + `far: ` + fmt.Sprintf(twinBook, 100) + `fillEstimate(side: BUY, size: "50") { cost filledSize ` + twinFreshness + `} market { question status } } }`,
	"history":      `query ($token: String!) { token(tokenId: $token) { history { from to points { price } ` + twinFreshness + `} candles { close } } }`,
	"days":         `query ($token: String!) { token(tokenId: $token) { history(from: "2026-03-01", to: "2026-03-03") { from to ` + twinFreshness + `} } }`,
	"markets":      `query ($markets: [String!]!) { markets(marketIds: $markets) { marketId description status ` + twinFreshness + `tokens { tokenId winner ` + twinPrice + `} } }`,
	"slug":         `query ($slug: String!) { market(slug: $slug) { question description status ` + twinFreshness + `} }`,
	"search":       `query ($n: Int!) { searchMarkets(sort: VOLUME, first: $n) { totalCount nodes { marketId status volume ` + twinFreshness + `tokens { tokenId ` + twinPrice + `} } pageInfo { hasNextPage endCursor } } }`,
	"event":        `{ event(eventId: "10001") { title volume markets(first: 3) { nodes { marketId question ` + twinFreshness + `} } } }`,
	"not found":    `{ token(tokenId: "none") { price { price } orderbook { bids { price } } } market(marketId: "none") { slug } }`,
	"nothing read": `{ __typename __schema { queryType { name } } }`,
	"balance":      `query ($address: Address!) { user(address: $address) { balance { cashBalance ` + twinFreshness + `} } }`,
	"portfolio":    `query ($address: Address!, $rows: Boolean!) { user(address: $address) { portfolio { positionsValue totalValue availableCash ` + twinFreshness + `} positions(first: 5, sort: VALUE) @include(if: $rows) { totalCount nodes { tokenId size ` + twinFreshness + `valuation { value basis ` + twinFreshness + `} market { status } token { ` + twinPrice + `} } } } }`,
	"rows":         `query ($address: Address!) { user(address: $address) { orders(first: 5) { totalCount nodes { orderId size filledSize } } trades(first: 5) { nodes { tradeId price } pageInfo { endCursor } } history(first: 5) { nodes { kind amount } } } }`,
	"viewer":       `{ viewer { address balance { cashBalance ` + twinFreshness + `} } __typename }`,
	"nodes":        `query ($ids: [ID!]!, $token: String!) { nodes(ids: $ids) { id __typename } token(tokenId: $token) { id } }`,
	"status":       `{ serviceStatus { version upstreamReachable } }`,
}

// twinKeys are the clients' credentials.
var twinKeys = []string{anonymous, keyOf3, keyOf50, credentials("demo-50", "label", "phone"), keyOfAny, credentials("demo-3", "address", addressOf3), credentials("demo", "address", addressOf50)}

func newTwins(s *service, seed uint64) *twins {
	w := &twins{service: s, random: rand.New(rand.NewPCG(seed, 1)), hits: map[string]int{}}
	w.tokens, w.markets = s.openTokens(4), s.openMarkets(4)
	for _, t := range s.venue.Tokens() {
		if len(w.slugs) < 2 && t.MarketID == w.markets[len(w.slugs)] {
			w.slugs = append(w.slugs, t.Slug)
		}
	}
	return w
}

// twinRequest is a request that a test sends with and without the response cache.
type twinRequest struct{ name, method, body, key string }

func (a twinRequest) String() string { return fmt.Sprintf("%s by %.20s: %s", a.method, a.key, a.body) }

// next returns a random request for one of the named queries. Equal requests may be encoded differently.
func (w *twins) next(names []string) twinRequest {
	r := w.random
	pick := func(choices []string) string { return choices[r.IntN(len(choices))] }
	a := twinRequest{name: pick(names), method: http.MethodPost, key: pick(twinKeys)}
	query := twinQueries[a.name]
	address := pick([]string{addressOf3, addressOf50})
	all := vars{
		"tokens": append([]string{pick(w.tokens), pick(w.tokens)}, "none")[:1+r.IntN(3)], "token": pick(w.tokens), "markets": w.markets[:1+r.IntN(len(w.markets))],
		"slug": pick(w.slugs), "n": 2 + r.IntN(2), "address": address, "rows": r.IntN(2) == 0,
		"ids": []string{model.EncodeID(model.KindUser, address), model.EncodeID(model.KindMarket, w.markets[0]), model.EncodeID(model.KindToken, w.tokens[0])}[:1+r.IntN(3)],
	}
	variables := vars{}
	for name, v := range all {
		if strings.Contains(query, "$"+name+":") {
			variables[name] = v
		}
	}
	if r.IntN(8) == 0 {
		variables["unused"] = 1
	}
	if r.IntN(8) == 0 {
		a.method = http.MethodGet
		a.body = url.Values{"query": {query}, "variables": {asJSON(variables)}}.Encode()
		return a
	}
	a.body = asJSON(vars{"query": query, "variables": variables})
	return a
}

// send sends a request and returns the body of the response. If execute is true, the request bypasses the response cache, and send
// removes the extension cost from the body.
func (w *twins) send(t testing.TB, a twinRequest, execute bool) string {
	t.Helper()
	r := w.request(t, a.body, a.key)
	if a.method == http.MethodGet {
		r.Method, r.Body, r.ContentLength, r.URL.RawQuery = http.MethodGet, nil, 0, a.body
	}
	if execute {
		r.Header.Set(httpapi.CostHeader, "1")
	}
	body := w.do(t, r).body
	if data, _, ok := strings.Cut(body, `,"extensions":{"cost":`); ok && execute {
		return data + "}"
	}
	return body
}

// sendAsClient returns the response that a client gets, and whether the response came from the response cache.
func (w *twins) sendAsClient(t testing.TB, a twinRequest) (body string, hit bool) {
	t.Helper()
	before := w.API.Stats().Responses.Hits
	body = w.send(t, a, false)
	return body, w.API.Stats().Responses.Hits > before
}

// names returns the sorted names of all queries except the given ones.
func names(except ...string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(twinQueries)) {
		if !slices.Contains(except, name) {
			out = append(out, name)
		}
	}
	return out
}

// TestCachedResponsesEqualExecution checks that each response from the response cache equals an execution at the same moment.
// Meanwhile the clock advances, the market moves, the caches evict and the venue fails. Background refreshes are off, so that both
// responses use the same values.
func TestCachedResponsesEqualExecution(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	for seed, args := range [][]string{
		{},
		{"--cache-responses=80KiB"}, // enough for about four responses
		nil,                         // little memory for cached data
		{"--cache-user-fresh=0s", "--cache-price-fresh=300ms"},
	} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			// The clock passes midnight during the test.
			s := startRigged(t, time.Date(2026, 3, 14, 23, 59, 30, 0, time.UTC), func(w *app.Wiring) {
				withoutStale(w)
				w.Reads.Stretch = 0
				if seed == 2 {
					w.Reads.Memory = 128 << 10
				}
			}, args...)
			w := newTwins(s, uint64(seed))
			for step := range 400 {
				w.disturb(t)
				a := w.next(names())
				for range 1 + w.random.IntN(4) {
					body, hit := w.sendAsClient(t, a)
					if !hit {
						continue
					}
					w.hits[a.name]++
					if executed := w.send(t, a, true); body != executed {
						t.Fatalf("step %d, %v: the cached response differs from the execution:\n  cached %s\nexecuted %s", step, a, body, executed)
					}
				}
			}
			if n := w.hits["status"]; n > 0 {
				t.Errorf("%d responses with serviceStatus came from the cache, want none", n)
			}
			stats, evicted := s.API.Stats().Responses, uint64(0)
			for _, kind := range s.Venue.Cache.Stats() {
				evicted += kind.Evictions
			}
			t.Logf("%+v, hits %v, %d evictions from the cache of data", stats, w.hits, evicted)
			for _, name := range names("status") {
				if w.hits[name] == 0 && seed == 0 {
					t.Errorf("no response to the query %s came from the cache", name)
				}
			}
			if stats.Hits < 250 || stats.Invalidated < 60 || seed == 1 && stats.Evicted < 10 || seed == 2 && evicted < 100 {
				t.Errorf("the cache has %+v; want at least 250 hits and 60 invalidated entries, and for seed 1 at least 10 evictions, for seed 2 at least 100 from the cache of data (%d)", stats, evicted)
			}
		})
	}
}

// disturb changes something in the service or the venue at random, or changes nothing.
func (w *twins) disturb(t testing.TB) {
	t.Helper()
	r := w.random
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	token, marketID := w.tokens[r.IntN(len(w.tokens))], w.markets[r.IntN(len(w.markets))]
	switch r.IntN(12) {
	case 0, 1:
		w.clock.Advance(time.Duration(r.IntN(400)) * time.Millisecond)
	case 2:
		w.clock.Advance(time.Duration(r.IntN(3000)) * time.Millisecond)
	case 3, 4:
		w.move(t, token)
	case 5:
		check(w.venue.Reword(marketID, fmt.Sprint("rules ", r.IntN(1000))))
	case 6:
		check(w.venue.Trade(addressOf3, token, demo.Buy, demo.Size(100+r.IntN(50))))
	case 7:
		check(w.venue.Trade(addressOf50, token, demo.Buy, demo.Size(100+r.IntN(50))))
	case 8:
		path := []string{"", "/api/exchange/prices", "/api/user/balance", "/api/exchange/market-details"}[r.IntN(4)]
		rule := []faults.Fault{
			{Kind: faults.Status}, {Kind: faults.Status, Status: 200, Body: tool.HTML}, {Answer: tool.HalfBroken}, {Kind: faults.JSON}, {Answer: tool.Empty(200)},
		}[r.IntN(5)]
		rule.Path, rule.Count = path, 1+r.IntN(5)
		w.setFaults(t, rule)
	case 9:
		w.setFaults(t)
	}
}

// TestCachedResponsesOfALiveMarket is like TestCachedResponsesEqualExecution, but with the stream. At times both the stream and
// REST fail. Values may change between two requests, so compare sends each request four times.
func TestCachedResponsesOfALiveMarket(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits for cached responses to expire
	s, _ := startLiveRigged(t, withoutRetries, "--trusted-proxies=127.0.0.1", "--demo-still")
	s.waitForStream(t)
	w := newTwins(s, 77)
	for i, key := range []string{keyOf3, keyOf50} {
		k := s.dial(t, key)
		k.subscribe(t, subPrices, vars{"ids": w.tokens}).reason(t, "INITIAL")
		for _, id := range w.tokens {
			k.subscribe(t, subBook, vars{"id": id}).reason(t, "INITIAL")
		}
		k.subscribe(t, subPortfolio, vars{"a": []string{addressOf3, addressOf50}[i]}).reason(t, "INITIAL")
	}
	var moving sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); moving.Wait() })
	moving.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		random := rand.New(rand.NewPCG(77, 2))
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				w.changeVenue(random)
			}
		}
	})
	liveQueries := names("history", "days", "search", "event", "not found")
	staleResponses := 0
	for round := range 6 {
		for range 150 {
			staleResponses += w.compare(t, liveQueries)
		}
		s.setFaults(t, faults.Fault{On: faults.OnOpens, Kind: faults.Status, Status: http.StatusServiceUnavailable}, faults.Fault{Kind: faults.Status, Status: http.StatusServiceUnavailable})
		if round%2 == 0 {
			s.venue.Restart(demo.CloseSlow)
		}
		for range 150 {
			staleResponses += w.compare(t, liveQueries)
		}
		s.setFaults(t)
		s.waitForStream(t)
	}
	stats := s.API.Stats().Responses
	t.Logf("%+v, hits %v, %d stale responses", stats, w.hits, staleResponses)
	if stats.Hits < 500 || stats.Invalidated < 100 || staleResponses == 0 {
		t.Errorf("got %+v and %d stale responses; want at least 500 hits, 100 invalidated entries and one stale response", stats, staleResponses)
	}
}

// changeVenue changes something at the venue at random, or changes nothing.
func (w *twins) changeVenue(random *rand.Rand) {
	token := w.tokens[random.IntN(len(w.tokens))]
	switch random.IntN(8) {
	case 0:
		_ = w.venue.Trade(addressOf3, token, demo.Buy, demo.Size(100+random.IntN(50)))
	case 1:
		_ = w.venue.Reword(w.markets[0], fmt.Sprint("rules ", random.IntN(1000)))
	case 2:
		_ = w.venue.SetPrice(token, demo.Price(3000+100*random.IntN(40)))
	}
}

// compare sends a request four times. The first and the third request may get a cached response. The second and the fourth bypass
// the response cache. If both cached responses are equal, and both executed responses are equal, all four must be equal. compare
// returns 1 if the last response has stale values, and 0 otherwise.
func (w *twins) compare(t testing.TB, names []string) (staleResponses int) {
	t.Helper()
	a := w.next(names)
	cached, hit := w.sendAsClient(t, a)
	executed := w.send(t, a, true)
	cachedAgain, hitAgain := w.sendAsClient(t, a)
	executedAgain := w.send(t, a, true)
	if hit {
		w.hits[a.name]++
	}
	if hit && hitAgain && cached == cachedAgain && executed == executedAgain && cached != executed {
		t.Fatalf("%v: the cached response differs from the execution:\n  cached %s\nexecuted %s", a, cached, executed)
	}
	if strings.Contains(executedAgain, `"stale":true`) {
		staleResponses = 1
	}
	return staleResponses
}

// TestCachedRelativeRangeEndsAtMidnight queries the prices of the last days. The service may cache the response only until
// midnight, even if the prices are still fresh at midnight.
func TestCachedRelativeRangeEndsAtMidnight(t *testing.T) {
	s := startAt(t, time.Date(2026, 3, 14, 23, 59, 59, 0, time.UTC))
	w := newTwins(s, 1)
	a := twinRequest{"history", http.MethodPost, asJSON(vars{"query": twinQueries["history"], "variables": vars{"token": w.tokens[0]}}), anonymous}
	w.sendAsClient(t, a)
	s.clock.Advance(999 * time.Millisecond)
	if body, hit := w.sendAsClient(t, a); !hit || !strings.Contains(body, `"to":"2026-03-14"`) {
		t.Errorf("before midnight: got %.200s (cached: %t), want a cached response", body, hit)
	}
	s.clock.Advance(time.Millisecond)
	if body, hit := w.sendAsClient(t, a); hit || !strings.Contains(body, `"to":"2026-03-15"`) {
		t.Errorf("after midnight: got %.200s (cached: %t), want an executed response", body, hit)
	}
}

// TestFutureRangeIsRefusedUntilItBegins queries a range that begins tomorrow. The service may cache the error only until midnight.
func TestFutureRangeIsRefusedUntilItBegins(t *testing.T) {
	s := startAt(t, time.Date(2026, 3, 14, 23, 59, 59, 0, time.UTC))
	w := newTwins(s, 1)
	a := twinRequest{"history", http.MethodPost, asJSON(vars{
		"query": `query($token: String!) { token(tokenId: $token) { history(from: "2026-03-15") { to } } }`, "variables": vars{"token": w.tokens[0]},
	}), anonymous}
	w.sendAsClient(t, a)
	if body, hit := w.sendAsClient(t, a); !hit || !strings.Contains(body, "from (2026-03-15) is after to (2026-03-14)") {
		t.Errorf("before midnight: got %.200s (cached: %t), want the cached error", body, hit)
	}
	s.clock.Advance(time.Second)
	if body, hit := w.sendAsClient(t, a); hit || !strings.Contains(body, `"to":"2026-03-15"`) {
		t.Errorf("after midnight: got %.200s (cached: %t), want an executed response", body, hit)
	}
}

func TestRevokedAccountGetsNoCachedResponse(t *testing.T) {
	f := newAccountsFile(t)
	f.write(t, map[string]string{"lost": "demo-50", "kept": "demo-3"})
	s := start(t, "--accounts-file="+f.path)
	const query = `{ viewer { address balance { cashBalance } } }`
	entries := func() int { return s.API.Stats().Responses.Entries }
	for range 2 {
		for token, address := range map[string]string{"lost": addressOf50, "kept": addressOf3} {
			if got := s.bearer(t, token, query); !strings.Contains(got.body, address) || strings.Contains(got.body, "errors") {
				t.Errorf("token %s: got %+v, want the account %s", token, got, address)
			}
		}
	}
	if s.API.Stats().Responses.Hits != 2 || entries() != 2 {
		t.Errorf("the cache has %+v, want 2 hits and 2 entries", s.API.Stats().Responses)
	}
	f.write(t, map[string]string{"kept": "demo-3"})
	if err := s.Files.Accounts.Reload(); err != nil {
		t.Fatal(err)
	}
	if entries() != 1 {
		t.Errorf("%d responses are cached after the revocation, want 1", entries())
	}
	if got := s.bearer(t, "lost", query); got.status != http.StatusUnauthorized {
		t.Errorf("the revoked token got %+v, want status 401", got)
	}
	if got := s.bearer(t, "kept", query); !strings.Contains(got.body, addressOf3) || s.API.Stats().Responses.Hits != 3 {
		t.Errorf("the token that was kept got %+v, want a cached response", got)
	}
}

// TestResponseCacheSwitchedOff checks that the service executes every request if the response cache is off.
func TestResponseCacheSwitchedOff(t *testing.T) {
	s := start(t, "--cache-responses=0")
	w := newTwins(s, 1)
	for range 30 {
		if _, hit := w.sendAsClient(t, w.next(names())); hit {
			t.Fatal("a response came from the cache")
		}
	}
}
