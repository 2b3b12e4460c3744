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

	"oddsgraph/app"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/request"
)

// recordingSource wraps a queries.Source. It records the keys of each call of Fetch, and counts the calls of Lookup and all their keys.
type recordingSource[K comparable, T any] struct {
	queries.Source[K, T]
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
			sources := app.Sources(s.Venue.Cache, 0)
			w := &recordingSource[string, market.Price]{Source: sources.Prices}
			sources.Prices = w
			if errs := execute(t, s, request.WithCredentials(t.Context(), c), sources, test.query).Errors; len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := slices.Sorted(slices.Values(w.lists[0])); !slices.Equal(slices.Compact(got), test.want) || len(w.lists) > 1 {
				t.Errorf("the calls of Fetch had the keys %v, want one call with the keys %v", w.lists, test.want)
			}
		})
	}
}

// TestRowsAreLookedUpTogether checks that one look-up reads the markets of all positions, and one their prices, and that values that are
// not selected are not looked up.
func TestRowsAreLookedUpTogether(t *testing.T) {
	s := start(t)
	sources := app.Sources(s.Venue.Cache, 0)
	c, err := market.ParseCredentials([]byte(`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := request.WithCredentials(t.Context(), c)
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
