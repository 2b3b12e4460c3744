package e2e

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/loaders"
	"oddsgraph/tests/tool"
)

// recordingSource wraps a loaders.Source. It records the keys of each call of Fetch, and counts the calls of Lookup and all their keys.
type recordingSource[K comparable, T any] struct {
	loaders.Source[K, T]
	mu      sync.Mutex
	lists   [][]K
	lookups int
	reads   int
}

func (w *recordingSource[K, T]) Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	w.mu.Lock()
	w.lookups++
	w.reads += len(keys)
	w.mu.Unlock()
	return w.Source.Lookup(ctx, keys, out, missing)
}

func (w *recordingSource[K, T]) Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]] {
	w.mu.Lock()
	w.lists = append(w.lists, slices.Clone(keys))
	w.mu.Unlock()
	return w.Source.Fetch(ctx, keys)
}

// fetchCount returns the number of calls of Fetch.
func (w *recordingSource[K, T]) fetchCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lists)
}

// TestPricesAreFetchedTogether checks that the loaders fetch all prices of a query with one call of Fetch. The number of calls to
// the venue would not prove this, because the cache merges calls of Fetch that arrive at almost the same time.
func TestPricesAreFetchedTogether(t *testing.T) {
	markets, prices, positions := map[string]object{}, map[string]object{}, []object{}
	for _, m := range []string{"a", "b", "c"} {
		markets[m] = object{"marketId": m, "slug": "slug-" + m, "eventId": "e", "status": "OPEN", "outcomes": []object{{"tokenId": m + "y", "outcome": "Yes"}, {"tokenId": m + "n", "outcome": "No"}}}
		positions = append(positions, object{"marketId": m, "outcome": "yes", "size": 1})
		for _, token := range []string{m + "y", m + "n"} {
			prices[token] = object{"tokenId": token, "price": 0.5}
		}
	}
	all := slices.Sorted(maps.Keys(prices))
	yes := []string{"ay", "by", "cy"}
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"positions":      func(url.Values) (int, any) { return http.StatusOK, object{"positions": positions} },
		"market-details": pick("markets", "ids", "id", markets), "prices": pick("prices", "tokenIds", "tokenId", prices),
		"market-search": func(url.Values) (int, any) {
			return http.StatusOK, object{"markets": []object{markets["a"], markets["b"], markets["c"]}, "nextCursor": nil}
		},
	})
	c, err := market.ParseCredentials([]byte(`{"apiKey":"k"}`))
	if err != nil {
		t.Fatal(err)
	}
	const account = `{ user(address: "` + addressOfAny + `") `
	for _, test := range []struct {
		name, query string
		want        []string
	}{
		{"tokens", `{ tokens(tokenIds: ["ay", "by", "cy"]) { price { price } } }`, yes},
		{"aliases", `{ a: token(tokenId: "ay") { price { price } } b: tokens(tokenIds: ["by"]) { price { price } } c: node(id: "VG9rZW4KY3k") { ... on Token { price { price } } } }`, yes},
		{"markets", `{ markets(marketIds: ["a", "b", "c"]) { tokens { price { price } } } }`, all},
		{"aliases of market", `{ a: market(marketId: "a") { tokens { price { price } } } b: market(marketId: "b") { tokens { price { price } } } c: market(marketId: "c") { tokens { price { price } } } }`, all},
		{"search", `{ searchMarkets { nodes { tokens { price { price } } } } }`, all},
		{"event", `{ event(eventId: "e") { markets { edges { node { tokens { price { price } } } } } } }`, all},
		{"positions", account + `{ positions { nodes { token { price { price } } } } } }`, yes},
		{"valuations", account + `{ positions { nodes { valuation(basis: VENUE) { price } } } } }`, yes},
		{"markets of positions", account + `{ positions { nodes { market { tokens { price { price } } } } } } }`, all},
		{"portfolio", account + `{ portfolio { positionsValue } } }`, yes},
		{"nodes", `{ nodes(ids: [` + positionIDs("a", "b", "c") + `]) { ... on Position { token { price { price } } } } }`, yes},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, "--venue-url="+v.URL)
			sources := app.Sources(s.Cache, 0)
			w := &recordingSource[string, market.Price]{Source: sources.Prices}
			sources.Prices = w
			if errs := execute(t, s, reqctx.WithCredentials(t.Context(), c), sources, test.query).Errors; len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := slices.Sorted(slices.Values(w.lists[0])); !slices.Equal(slices.Compact(got), test.want) || len(w.lists) > 1 {
				t.Errorf("the calls of Fetch had the keys %v, want one call with the keys %v", w.lists, test.want)
			}
		})
	}
}

// TestPricesBelowEventsAreFetchedTogether checks that the loaders fetch the prices of the markets of all events together, even if
// the markets of one event arrive late. If these markets never arrive, the markets of the other events must still get their prices.
func TestPricesBelowEventsAreFetchedTogether(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits
	rows, found, prices := map[string][]object{}, []object{}, map[string]object{}
	for _, event := range []string{"e0", "e1", "e2", "late"} {
		for _, suffix := range []string{"a", "b", "c"} {
			id := event + suffix
			rows[event] = append(rows[event], object{"marketId": id, "slug": id, "eventId": event, "status": "OPEN", "outcomes": []object{{"tokenId": id + "y", "outcome": "Yes"}, {"tokenId": id + "n", "outcome": "No"}}})
			prices[id+"y"], prices[id+"n"] = object{"tokenId": id + "y", "price": 0.5}, object{"tokenId": id + "n", "price": 0.5}
		}
		found = append(found, rows[event][0])
	}
	const (
		nodes = `{ searchMarkets { nodes { event { markets { nodes { tokens { price { price } } } } } } } }`
		edges = `{ searchMarkets { edges { node { tokens { price { price } } event { endsAt markets(first: 2) { edges { node { tokens { price { price } } } } } } } } } }`
	)
	for _, test := range []struct {
		name, query string
		// hangs is true if the venue never returns the markets of the event "late".
		hangs bool
		// lists are the expected numbers of keys in the calls of Fetch, in order.
		lists []int
		// prices is the expected number of prices in the response.
		prices int
	}{
		{"nodes", nodes, false, []int{24}, 24},
		{"prices of the found markets, then of two markets of each event", edges, false, []int{8, 8}, 24},
		{"the markets of one event never arrive", nodes, true, nil, 18},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &recordingSource[string, market.Price]{}
			ended := make(chan struct{})
			v := newStub(t, map[string]func(q url.Values) (int, any){
				"market-search": func(q url.Values) (int, any) {
					event := q.Get("eventId")
					switch {
					case event == "":
						return http.StatusOK, object{"markets": found, "nextCursor": nil}
					case event == "late" && test.hangs:
						<-ended
					case event == "late": // waits, so that a faulty service would fetch the prices of the other events too early
						until(200*time.Millisecond, func() bool { return w.fetchCount() == len(test.lists) })
					}
					return http.StatusOK, object{"markets": rows[event], "nextCursor": nil}
				},
				"prices": pick("prices", "tokenIds", "tokenId", prices),
			})
			defer close(ended)
			s := start(t, "--venue-url="+v.URL)
			sources := app.Sources(s.Cache, 0)
			w.Source, sources.Prices = sources.Prices, w
			ctx := t.Context()
			if test.hangs {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
			}
			resp := execute(t, s, ctx, sources, test.query)
			if (len(resp.Errors) > 0) != test.hangs || strings.Count(string(resp.Data), `"0.5"`) != test.prices {
				t.Errorf("got the data %s and the errors %v, want %d prices, and errors: %t", resp.Data, resp.Errors, test.prices, test.hangs)
			}
			var lengths []int
			for _, list := range w.lists {
				lengths = append(lengths, len(list))
			}
			if !test.hangs && !slices.Equal(lengths, test.lists) {
				t.Errorf("the calls of Fetch had the keys %v, want calls with %v keys", w.lists, test.lists)
			}
		})
	}
}

// TestRefusedFieldsAreNotLookedUp checks that the loaders look up no keys for a field with invalid arguments. They must also look
// up no positions for a query without credentials.
func TestRefusedFieldsAreNotLookedUp(t *testing.T) {
	s := start(t)
	sources := app.Sources(s.Cache, 0)
	markets, books := &recordingSource[market.MarketRef, market.Market]{Source: sources.Markets}, &recordingSource[queries.Book, market.Book]{Source: sources.Books}
	positions := &recordingSource[market.Address, []market.Position]{Source: sources.Positions}
	sources.Markets, sources.Books, sources.Positions = markets, books, positions
	for _, query := range []string{
		`{ market(marketId: "a", slug: "b") { slug } }`, `{ market { slug } }`, `{ market(marketId: "a/b") { slug } }`,
		`{ token(tokenId: "a") { orderbook(depth: 0) { spread } } }`, `{ token(tokenId: "a") { orderbook(depth: 201) { spread } } }`,
		`{ token(tokenId: "a") { fillEstimate(side: BUY) { cost } } }`, `{ token(tokenId: "a") { fillEstimate(side: BUY, size: "0") { cost } } }`,
		`{ token(tokenId: "a") { fillEstimate(side: BUY, size: "x") { cost } } }`, `{ token(tokenId: "a") { fillEstimate(side: UNKNOWN, amount: "1") { cost } } }`,
		`{ user(address: "` + addressOfAny + `") { positions(after: "x") { totalCount } } }`, `{ user(address: "` + addressOfAny + `") { positions { totalCount } } }`,
	} {
		if errs := execute(t, s, t.Context(), sources, query).Errors; len(errs) != 1 {
			t.Errorf("%s: got the errors %v, want one error", query, errs)
		}
		if n := markets.reads + books.reads + positions.reads; n > 0 {
			t.Fatalf("%s looks up %d keys", query, n)
		}
	}
}

// TestRowsAreLookedUpTogether checks that one look-up reads the markets of all positions, and one their prices, and that values that are
// not selected are not looked up.
func TestRowsAreLookedUpTogether(t *testing.T) {
	s := start(t)
	sources := app.Sources(s.Cache, 0)
	c, err := market.ParseCredentials([]byte(`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := reqctx.WithCredentials(t.Context(), c)
	for positions, want := range map[string][2]int{ // the markets and prices that are looked up
		`{ nodes { market { slug } token { price { price } } } }`:            {3, 3},
		`{ edges { node { outcome m: market { slug } } } }`:                  {3, 0},
		`{ nodes { token { tokenId p: price { price } } } }`:                 {0, 3},
		`{ nodes { size } nodes { ... on Position { size outcome } } }`:      {0, 0},
		`{ totalCount nodes { token { price @skip(if: true) { price } } } }`: {0, 0},
	} {
		query := `{ user(address: "` + addressOf50 + `") { positions(first: 3) ` + positions + ` } }`
		if errs := execute(t, s, ctx, sources, query).Errors; len(errs) > 0 { // now all values are cached
			t.Fatal(errs)
		}
		markets, prices := &recordingSource[market.MarketRef, market.Market]{Source: sources.Markets}, &recordingSource[string, market.Price]{Source: sources.Prices}
		recorded := sources
		recorded.Markets, recorded.Prices = markets, prices
		if errs := execute(t, s, ctx, recorded, query).Errors; len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := [2]int{markets.reads, prices.reads}; got != want || markets.lookups > 1 || prices.lookups > 1 {
			t.Errorf("%s: %d look-ups of %d markets and %d look-ups of %d prices, want at most one each, of %v", positions, markets.lookups, got[0], prices.lookups, got[1], want)
		}
	}
}

// positionIDs returns the global ids of the positions of addressOfAny in the given markets, quoted and separated by commas.
func positionIDs(markets ...string) string {
	var ids []string
	for _, m := range markets {
		ids = append(ids, strconv.Quote(model.EncodeID(model.KindPosition, addressOfAny, m, "yes")))
	}
	return strings.Join(ids, ", ")
}
