package e2e

import (
	"context"
	"fmt"
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
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// portfolioQuery reads an account's balance, its first 50 positions and its portfolio.
const portfolioQuery = `query ($address: Address!) {
  user(address: $address) {
    balance { totalValue }
    positions(first: 50) { nodes { marketId outcome size market { question status } token { tokenId price { price } } } }
    portfolio { positionsValue unrealizedPnl unpricedPositions }
  }
}`

// onBothDemos runs a test with the ordinary demo venue, and again with --demo-strict. The test must start the service with the
// given flags.
func onBothDemos(t *testing.T, test func(t *testing.T, strict bool, flags ...string)) {
	t.Run("ordinary", func(t *testing.T) { test(t, false) })
	t.Run("strict", func(t *testing.T) { test(t, true, "--demo-strict") })
}

// oneCallEach returns the numbers of calls and keys for n markets if the venue takes no lists of markets.
func oneCallEach(n int64) [2]int64 { return [2]int64{n, n} }

// TestPagesOfOneListTravelTogether checks that two selections of the same list in one query share their calls, even if they have
// different lengths and fields. The service must fetch prices only for positions whose price is selected.
func TestPagesOfOneListTravelTogether(t *testing.T) {
	t.Parallel()
	onBothDemos(t, testPagesOfOneList)
}

func testPagesOfOneList(t *testing.T, strict bool, flags ...string) {
	for name, test := range map[string]struct {
		selection string
		prices    int64
		errors    []string
	}{
		"both selections have prices":           {`a: positions(first: 10) { nodes { token { price { price } } } } b: positions(first: 30) { edges { node { token { price { price } } } } }`, 30, nil},
		"only the shorter selection has prices": {`a: positions(first: 30) { nodes { size } } b: positions(first: 10) { nodes { token { price { price } } } }`, 10, nil},
		"the second selection is invalid":       {`a: positions(first: 10) { nodes { token { price { price } } } } b: positions(first: 600) { nodes { token { price { price } } } }`, 10, []string{"user.b BAD_USER_INPUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, flags...)
			want := calls{"positions": {1, 1}, "prices": {1, test.prices}}
			if strict { // the strict venue does not name the token of a position, so the service reads the market
				want = calls{"positions": {2, 2}, "prices": {1, test.prices}, "market-details": oneCallEach(test.prices)}
			}
			got := s.callsDuring(func() {
				_, errors := s.query(t, `query ($address: Address!) { user(address: $address) { `+test.selection+` } }`, vars{"address": addressOf50}, keyOf50)
				wantErrors(t, errors, test.errors...)
			})
			wantCalls(t, got, want)
		})
	}
}

// aliases returns one field with an alias for each id. The format string of the field has a verb for the id.
func aliases(ids []string, format string) string {
	var b strings.Builder
	for i, id := range ids {
		fmt.Fprintf(&b, "a%d: "+format+"\n", i, id)
	}
	return b.String()
}

func tokenNodes(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = model.EncodeID(model.KindToken, id)
	}
	return out
}

// TestTokensTravelTogether checks that up to 50 tokens take one call for prices and one call for spreads in every form of query.
func TestTokensTravelTogether(t *testing.T) {
	t.Parallel()
	onBothDemos(t, testTokensTravelTogether)
}

func testTokensTravelTogether(t *testing.T, _ bool, flags ...string) {
	const selection = "{ tokenId price { price } spread { spread } }"
	for _, form := range []struct {
		name  string
		query func(ids []string) (query string, variables vars)
	}{
		{"tokens", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { tokens(tokenIds: $ids) " + selection + " }", vars{"ids": ids}
		}},
		{"literal ids", func(ids []string) (string, vars) {
			return `{ tokens(tokenIds: ["` + strings.Join(ids, `", "`) + `"]) ` + selection + " }", nil
		}},
		{"tokenPrices and spreads", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } spreads(tokenIds: $ids) { spread } }", vars{"ids": ids}
		}},
		{"tokenPrices, then their token's spread", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price token { spread { spread } } } }", vars{"ids": ids}
		}},
		{"tokens and tokenPrices, half each", func(ids []string) (string, vars) {
			return "query ($a: [String!]!, $b: [String!]!) { tokens(tokenIds: $a) " + selection + " tokenPrices(tokenIds: $b) { price token { spread { spread } } } }",
				vars{"a": ids[:len(ids)/2], "b": ids[len(ids)/2:]}
		}},
		{"ids twice", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { tokens(tokenIds: $ids) " + selection + " again: tokens(tokenIds: $ids) " + selection + " }",
				vars{"ids": slices.Concat(ids, ids)}
		}},
		{"aliases", func(ids []string) (string, vars) {
			return "{ " + aliases(ids, `token(tokenId: %q) `+selection) + " }", nil
		}},
		{"aliases of the fields", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { tokens(tokenIds: $ids) { p1: price { price } p2: price { price } s1: spread { spread } s2: spread { bestBid } } }", vars{"ids": ids}
		}},
		{"named fragments", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { ...Board } fragment Board on Query { tokens(tokenIds: $ids) { ...Priced } } fragment Priced on Token " + selection, vars{"ids": ids}
		}},
		{"inline fragments", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { ... { tokens(tokenIds: $ids) { ... on Token { price { price } } ... { spread { spread } } } } }", vars{"ids": ids}
		}},
		{"fragments on Node", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!) { tokens(tokenIds: $ids) { ...Any } } fragment Any on Node { id ... on Token " + selection + " }", vars{"ids": ids}
		}},
		{"nodes", func(ids []string) (string, vars) {
			return "query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Token " + selection + " } }", vars{"ids": tokenNodes(ids)}
		}},
		{"nodes in a fragment on Node", func(ids []string) (string, vars) {
			return "query ($ids: [ID!]!) { nodes(ids: $ids) { ...Any } } fragment Any on Node { ... on Token " + selection + " ... on Market { question } }", vars{"ids": tokenNodes(ids)}
		}},
		{"aliases of node", func(ids []string) (string, vars) {
			return "{ " + aliases(tokenNodes(ids), "node(id: %q) { ... on Token "+selection+" }") + " }", nil
		}},
		{"included and skipped", func(ids []string) (string, vars) {
			return "query ($ids: [String!]!, $yes: Boolean!, $no: Boolean!) { tokens(tokenIds: $ids) @include(if: $yes) { price @skip(if: $no) { price } spread @include(if: $yes) { spread } orderbook @include(if: $no) { spread } } }",
				vars{"ids": ids, "yes": true, "no": false}
		}},
	} {
		t.Run(form.name, func(t *testing.T) {
			for _, size := range []int{1, 41, 50} {
				s := start(t, append(flags, "--demo-markets=100")...) // a small venue starts faster
				query, variables := form.query(s.openTokens(size))
				var data any
				got := s.callsDuring(func() { data = s.ask(t, query, variables, anonymous) })
				wantCalls(t, got, calls{"prices": {1, int64(size)}, "spreads": {1, int64(size)}})
				if answer := asJSON(data); strings.Contains(answer, "null") {
					t.Errorf("a value is null in %s", answer)
				}
			}
		})
	}
}

// heldMarkets returns the market ids of an account's first n positions.
func heldMarkets(s *service, address string, n int) []string {
	var ids []string
	for _, p := range s.venue.Positions(address)[:n] {
		ids = append(ids, p.MarketID)
	}
	return ids
}

// TestSettledPositionsAreNotPriced checks that the service fetches no price for a settled position, because a share of such a
// position is worth 1 or 0.
func TestSettledPositionsAreNotPriced(t *testing.T) { onBothDemos(t, testSettledPositionsAreNotPriced) }

func testSettledPositionsAreNotPriced(t *testing.T, strict bool, flags ...string) {
	s := start(t, flags...)
	portfolio := func() any {
		return s.ask(t, `query ($address: Address!) { user(address: $address) { portfolio { positionsValue }
			positions(first: 50) { nodes { valuation { basis } } } } }`, vars{"address": addressOf50}, keyOf50)
	}
	data := portfolio()
	var open, settled int64
	for _, p := range list(data, "user.positions.nodes") {
		if text(p, "valuation.basis") == "SETTLEMENT" {
			settled++
		} else {
			open++
		}
	}
	if settled == 0 || open == 0 {
		t.Fatalf("the account has %d settled and %d open positions, want some of both", settled, open)
	}
	s.clock.Advance(40 * time.Second) // the cached prices have expired, but the cached markets have not
	got := s.callsDuring(func() { portfolio() })
	want := calls{"positions": {1, 1}, "prices": {1, open}}
	if strict {
		want["positions"] = [2]int64{2, 2} // the venue may cut a list after 50 rows
	}
	wantCalls(t, got, want)
}

// recordingSource wraps a reads.Source. It records the keys of each call of Fetch, and counts the calls of Lookup and all their keys.
type recordingSource[K comparable, T any] struct {
	reads.Source[K, T]
	mu      sync.Mutex
	lists   [][]K
	lookups int
	reads   int
}

func (w *recordingSource[K, T]) Lookup(ctx context.Context, keys []K, out []reads.Result[*T], missing []int) []int {
	w.mu.Lock()
	w.lookups++
	w.reads += len(keys)
	w.mu.Unlock()
	return w.Source.Lookup(ctx, keys, out, missing)
}

func (w *recordingSource[K, T]) Fetch(ctx context.Context, keys []K) []reads.Result[*T] {
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
