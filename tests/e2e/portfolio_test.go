package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// raw sends a request to the demo venue and returns the decoded response. Tests compute expected values from the response.
func (s *service) raw(t testing.TB, path, query, credentials string) any {
	t.Helper()
	if credentials != anonymous {
		b, err := base64.StdEncoding.DecodeString(credentials)
		if err != nil {
			t.Fatal(err)
		}
		query += "&credentials=" + url.QueryEscape(string(b))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Demo.URL()+path+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := s.do(t, r)
	if resp.status != http.StatusOK {
		t.Fatalf("%s: the venue answered %d %s", path, resp.status, resp.body)
	}
	var v any
	decode(t, resp.body, &v)
	return v
}

// number returns the exact value of a JSON number or string, and nil for null.
func number(t testing.TB, v any) *big.Rat {
	t.Helper()
	var literal string
	switch v := v.(type) {
	case nil:
		return nil
	case json.Number:
		literal = v.String()
	case string:
		literal = v
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok || strings.ContainsAny(literal, "eE/") {
		t.Fatalf("%v is not a number in plain decimal notation", v)
	}
	return r
}

// wantNumber compares a number in a response of the service with an exact value. The number must be a JSON string, or null if want
// is nil.
func wantNumber(t testing.TB, what string, got any, want *big.Rat) {
	t.Helper()
	if _, isText := got.(string); got != nil && !isText {
		t.Errorf("%s is %v, which is not a string", what, got)
		return
	}
	g := number(t, got)
	if (g == nil) != (want == nil) || g != nil && g.Cmp(want) != 0 {
		t.Errorf("%s is %v, want %v", what, got, show(want))
	}
	if s, _ := got.(string); strings.HasPrefix(s, "-") && g.Sign() == 0 || strings.HasPrefix(s, ".") {
		t.Errorf("%s is written %q, want a digit before the point, and no minus sign before zero", what, s)
	}
}

func show(r *big.Rat) string {
	if r == nil {
		return "null"
	}
	return r.FloatString(12)
}

func mul(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
func add(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }
func sub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

// roundHalfEven rounds to the given number of decimal places.
func roundHalfEven(r *big.Rat, places int) *big.Rat {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := mul(r, new(big.Rat).SetInt(scale))
	twice := new(big.Int).Mul(scaled.Num(), big.NewInt(2))
	// n is floor(scaled + 1/2). If scaled is halfway between two integers and n is odd, the result is n - 1.
	n := new(big.Int).Div(twice.Add(twice, scaled.Denom()), new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
	tie := sub(new(big.Rat).SetInt(n), scaled).Cmp(big.NewRat(1, 2)) == 0
	if tie && n.Bit(0) == 1 {
		n.Sub(n, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(n, scale)
}

// holdings contains the venue's data from which tests compute the values of an account's positions.
type holdings struct {
	positions                 []any
	prices, spreads, outcomes map[string]any // by token
	markets                   map[string]any // by token
	cash, reserved            *big.Rat
}

func (s *service) holdings(t testing.TB, address, key string) holdings {
	t.Helper()
	h := holdings{prices: map[string]any{}, spreads: map[string]any{}, outcomes: map[string]any{}, markets: map[string]any{}}
	h.positions = list(s.raw(t, "/api/user/positions", "address="+address, key), "positions")
	var tokens []string
	for _, p := range h.positions {
		tokens = append(tokens, text(p, "tokenId"))
	}
	for part := range slices.Chunk(tokens, 50) {
		ids := "tokenIds=" + strings.Join(part, ",")
		for _, p := range list(s.raw(t, "/api/exchange/prices", ids, anonymous), "prices") {
			h.prices[text(p, "tokenId")] = p
		}
		for _, p := range list(s.raw(t, "/api/exchange/spreads", ids, anonymous), "spreads") {
			h.spreads[text(p, "tokenId")] = p
		}
		for _, m := range list(s.raw(t, "/api/exchange/market-details", ids, anonymous), "markets") {
			for _, o := range list(m, "outcomes") {
				h.outcomes[text(o, "tokenId")], h.markets[text(o, "tokenId")] = o, m
			}
		}
	}
	h.cash = number(t, at(s.raw(t, "/api/user/balance", "address="+address, key), "cashBalance"))
	h.reserved = new(big.Rat)
	for _, o := range list(s.raw(t, "/api/user/orders", "address="+address, key), "orders") {
		if text(o, "side") == "BUY" {
			h.reserved = add(h.reserved, mul(number(t, at(o, "price")), sub(number(t, at(o, "size")), number(t, at(o, "filledSize")))))
		}
	}
	return h
}

// price returns the price of a position and the basis of the price. It returns nil if there is no price. If basis is empty, price
// uses the first basis that has a price, in the order below.
func (h holdings) price(t testing.TB, position any, basis string) (*big.Rat, string) {
	t.Helper()
	token := text(position, "tokenId")
	switch basis {
	case "":
		for _, b := range []string{"SETTLEMENT", "VENUE", "MIDPOINT", "BEST_BID", "POSITION"} {
			if p, _ := h.price(t, position, b); p != nil {
				return p, b
			}
		}
	case "SETTLEMENT":
		if text(h.markets[token], "status") == "RESOLVED" {
			if at(h.outcomes[token], "winner") == true {
				return big.NewRat(1, 1), basis
			}
			return new(big.Rat), basis
		}
	case "VENUE":
		return number(t, at(h.prices[token], "price")), basis
	case "BEST_BID":
		return number(t, at(h.spreads[token], "bestBid")), basis
	case "BEST_ASK":
		return number(t, at(h.spreads[token], "bestAsk")), basis
	case "MIDPOINT":
		bid, ask := number(t, at(h.spreads[token], "bestBid")), number(t, at(h.spreads[token], "bestAsk"))
		if bid != nil && ask != nil {
			return mul(add(bid, ask), big.NewRat(1, 2)), basis
		}
	case "POSITION":
		return number(t, at(position, "currentPrice")), basis
	}
	return nil, basis
}

var bases = []string{"", "SETTLEMENT", "VENUE", "LAST", "MIDPOINT", "BEST_BID", "BEST_ASK", "POSITION"}

// basisArgument returns the GraphQL argument that selects a basis for valuation or portfolio. It returns "" if basis is "".
func basisArgument(basis string) string {
	if basis == "" {
		return ""
	}
	return "(basis: " + basis + ")"
}

func TestValuationsAndPortfolioAreExact(t *testing.T) {
	s := start(t)
	for _, account := range []struct{ address, key string }{{addressOf3, keyOf3}, {addressOf50, keyOf50}, {addressOfAny, keyOfAny}} {
		h := s.holdings(t, account.address, account.key)
		priced := map[string]int{}
		for _, basis := range bases {
			t.Run(account.address[:6]+" "+basis, func(t *testing.T) {
				data := s.ask(t, `query ($a: Address!) { user(address: $a) {
				  positions(first: 500) { nodes {
				    size avgPrice currentPrice unrealizedPnl costBasis
				    valuation`+basisArgument(basis)+` { price basis value unrealizedPnl unrealizedPnlPercent freshness { source stale } }
				  } }
				  portfolio`+basisArgument(basis)+` { positionsValue costBasis unrealizedPnl totalValue availableCash unpricedPositions uncostedPositions freshness { source stale } }
				} }`, vars{"a": account.address}, account.key)
				nodes := list(data, "user.positions.nodes")
				if len(nodes) != len(h.positions) {
					t.Fatalf("got %d positions, want %d", len(nodes), len(h.positions))
				}
				total, cost, pnl, unpriced := new(big.Rat), new(big.Rat), new(big.Rat), 0
				for i, p := range h.positions {
					what := fmt.Sprintf("position %d: ", i)
					size, avg := number(t, at(p, "size")), number(t, at(p, "avgPrice"))
					positionCost := mul(size, avg)
					for _, field := range []string{"size", "avgPrice", "currentPrice", "unrealizedPnl"} {
						wantNumber(t, what+field, at(nodes[i], field), number(t, at(p, field)))
					}
					wantNumber(t, what+"costBasis", at(nodes[i], "costBasis"), positionCost)
					price, wantBasis := h.price(t, p, basis)
					v := at(nodes[i], "valuation")
					if price == nil {
						if unpriced++; v != nil {
							t.Errorf("%svaluation is %s, want null", what, asJSON(v))
						}
						continue
					}
					priced[wantBasis]++
					value := mul(size, price)
					gain := sub(value, positionCost)
					wantNumber(t, what+"price", at(v, "price"), price)
					wantNumber(t, what+"value", at(v, "value"), value)
					wantNumber(t, what+"pnl", at(v, "unrealizedPnl"), gain)
					percent := roundHalfEven(mul(big.NewRat(100, 1), new(big.Rat).Quo(gain, positionCost)), 6)
					wantNumber(t, what+"percent", at(v, "unrealizedPnlPercent"), percent)
					if got := text(v, "basis"); got != wantBasis {
						t.Errorf("%sbasis is %s, want %s", what, got, wantBasis)
					}
					wantJSON(t, what+"freshness", at(v, "freshness"), `{"source":"COMPUTED","stale":false}`)
					total, cost, pnl = add(total, value), add(cost, positionCost), add(pnl, gain)
				}
				if unpriced == len(h.positions) {
					cost, pnl = nil, nil
				}
				portfolio := at(data, "user.portfolio")
				wantNumber(t, "positionsValue", at(portfolio, "positionsValue"), total)
				wantNumber(t, "costBasis", at(portfolio, "costBasis"), cost)
				wantNumber(t, "unrealizedPnl", at(portfolio, "unrealizedPnl"), pnl)
				wantNumber(t, "totalValue", at(portfolio, "totalValue"), add(total, h.cash))
				wantNumber(t, "availableCash", at(portfolio, "availableCash"), sub(h.cash, h.reserved))
				if got := fmt.Sprintf("%v %v", at(portfolio, "unpricedPositions"), at(portfolio, "uncostedPositions")); got != fmt.Sprintf("%d 0", unpriced) {
					t.Errorf("unpricedPositions and uncostedPositions are %s, want %d 0", got, unpriced)
				}
				wantJSON(t, "freshness", at(portfolio, "freshness"), `{"source":"COMPUTED","stale":false}`)
			})
		}
		if account.address == addressOf50 && (priced["SETTLEMENT"] < 4 || priced["MIDPOINT"] == 0 || priced["MIDPOINT"] == 50) {
			t.Errorf("the numbers of prices by basis are %v; want at least 4 with SETTLEMENT, and some but not all with MIDPOINT", priced)
		}
	}
}

// TestThePortfolioOfManyPositions checks the value of 2,000 positions. The service must make as few calls as the venue allows.
func TestThePortfolioOfManyPositions(t *testing.T) {
	t.Parallel()
	onBothDemos(t, testPortfolioOfManyPositions)
}

func testPortfolioOfManyPositions(t *testing.T, strict bool, flags ...string) {
	// The holdings come from a service whose venue is not strict, because a strict venue omits some of these data.
	h := start(t).holdings(t, addressOf2000, keyOf2000)
	s := start(t, append(flags, "--limit-calls=2000", "--venue-timeout=1m", "--request-timeout=2m")...) // a busy machine takes long for 700 calls
	total := new(big.Rat)
	markets := map[string]bool{}
	unsettled := int64(0)
	for _, p := range h.positions {
		price, basis := h.price(t, p, "")
		if basis != "SETTLEMENT" {
			unsettled++
		}
		total = add(total, mul(number(t, at(p, "size")), price))
		markets[text(p, "marketId")] = true
	}
	var data any
	got := s.callsDuring(func() {
		data = s.ask(t, `{ user(address: "`+addressOf2000+`") { portfolio { positionsValue } positions(first: 1) { totalCount } } }`, nil, keyOf2000)
	})
	wantNumber(t, "positionsValue", at(data, "user.portfolio.positionsValue"), total)
	if n := fmt.Sprint(at(data, "user.positions.totalCount")); n != "2000" {
		t.Errorf("totalCount is %s, want 2000", n)
	}
	want := calls{"positions": {1, 1}, "prices": {21, 2000}, "market-details": {int64(len(markets)+49) / 50, int64(len(markets))}}
	if strict {
		// The service reads each position's market to find the position's token. It reads no price of a token in a settled market.
		n := int64(len(markets))
		want = calls{"positions": {2, 2}, "prices": {(unsettled + 97) / 98, unsettled}, "market-details": {n, n}}
	}
	wantCalls(t, got, want)
}

// TestOneSetOfPrices checks that all fields of a response use the same price of a token while the market moves.
func TestOneSetOfPrices(t *testing.T) {
	s := start(t, "--cache-price-fresh=0s", "--demo-latency=1ms")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				s.venue.Step()
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	seen := map[string]bool{}
	for range 20 {
		data := s.ask(t, `{ user(address: "`+addressOfAny+`") {
		  positions(first: 500) { nodes { token { price { price } } valuation(basis: VENUE) { price value } again: valuation(basis: VENUE) { price } } }
		  portfolio(basis: VENUE) { positionsValue }
		} }`, nil, keyOfAny)
		total := new(big.Rat)
		for i, p := range list(data, "user.positions.nodes") {
			if a, b, c := text(p, "token.price.price"), text(p, "valuation.price"), text(p, "again.price"); a != b || b != c {
				t.Errorf("position %d has the prices %s, %s and %s, want equal prices", i, a, b, c)
			}
			total = add(total, number(t, at(p, "valuation.value")))
		}
		wantNumber(t, "positionsValue", at(data, "user.portfolio.positionsValue"), total)
		seen[show(total)] = true
	}
	if len(seen) < 2 {
		t.Error("positionsValue never changed, so the market did not move during the test")
	}
}

func TestSortsOfPositions(t *testing.T) {
	s := start(t)
	h := s.holdings(t, addressOf50, keyOf50)
	type row struct {
		token                     string
		value, pnl, percent, ends *big.Rat // sort keys: the row with the largest key comes first
	}
	rows := make([]row, len(h.positions))
	for i, p := range h.positions {
		price, _ := h.price(t, p, "")
		size, cost := number(t, at(p, "size")), mul(number(t, at(p, "size")), number(t, at(p, "avgPrice")))
		r := row{token: text(p, "tokenId"), value: mul(size, price)}
		r.pnl = sub(r.value, cost)
		r.percent = new(big.Rat).Quo(r.pnl, cost)
		end, ok := new(big.Int).SetString(strings.NewReplacer("-", "", "T", "", ":", "", ".", "", "Z", "").Replace(text(h.markets[r.token], "endDate")), 10)
		if !ok {
			t.Fatalf("the market of token %s has no end date", r.token)
		}
		r.ends = new(big.Rat).SetInt(end.Neg(end))
		rows[i] = r
	}
	for _, test := range []struct {
		sort string
		key  func(row) *big.Rat
	}{
		{"VENUE", nil},
		{"VALUE", func(r row) *big.Rat { return r.value }},
		{"PNL", func(r row) *big.Rat { return r.pnl }},
		{"PNL_PERCENT", func(r row) *big.Rat { return roundHalfEven(mul(r.percent, big.NewRat(100, 1)), 6) }},
		{"ENDS_AT", func(r row) *big.Rat { return r.ends }},
	} {
		t.Run(test.sort, func(t *testing.T) {
			sorted := slices.Clone(rows)
			if test.key != nil {
				slices.SortStableFunc(sorted, func(a, b row) int { return test.key(b).Cmp(test.key(a)) })
			}
			var want []string
			for _, r := range sorted {
				want = append(want, r.token)
			}
			var got []string
			s.pages(t, `query ($after: String, $sort: PositionSort) { user(address: "`+addressOf50+`") { positions(first: 13, after: $after, sort: $sort) { nodes { tokenId } pageInfo { hasNextPage endCursor hasPreviousPage startCursor } edges { cursor } totalCount } } }`,
				"user.positions", vars{"sort": test.sort}, keyOf50, func(page any) { got = append(got, pluck(page, "nodes", "tokenId")...) })
			if !slices.Equal(got, want) {
				t.Errorf("the positions have the tokens\n     %v, want\n     %v", got, want)
			}
		})
	}
}

func TestFiltersOfPositions(t *testing.T) {
	s := start(t)
	h := s.holdings(t, addressOf50, keyOf50)
	const query = `query ($in: [String!], $least: Decimal, $redeemable: Boolean) { user(address: "` + addressOf50 + `") {
	  positions(first: 500, marketIds: $in, minSize: $least, redeemable: $redeemable) { totalCount nodes { tokenId redeemable } } } }`
	median := func() string {
		sizes := make([]string, len(h.positions))
		for i, p := range h.positions {
			sizes[i] = fmt.Sprint(at(p, "size"))
		}
		slices.SortFunc(sizes, func(a, b string) int { return number(t, a).Cmp(number(t, b)) })
		return sizes[len(sizes)/2]
	}()
	marketIDs := []string{text(h.positions[3], "marketId"), "none", text(h.positions[41], "marketId"), text(h.positions[3], "marketId")}
	wins := func(p any) bool { price, _ := h.price(t, p, "SETTLEMENT"); return price != nil && price.Sign() > 0 }
	for _, test := range []struct {
		name string
		vars vars
		keep func(p any) bool
	}{
		{"no filter", nil, func(any) bool { return true }},
		{"all filters null", vars{"in": nil, "least": nil, "redeemable": nil}, func(any) bool { return true }},
		{"markets", vars{"in": marketIDs}, func(p any) bool { return slices.Contains(marketIDs, text(p, "marketId")) }},
		{"one market, not in a list", vars{"in": marketIDs[0]}, func(p any) bool { return text(p, "marketId") == marketIDs[0] }},
		{"an empty list of markets", vars{"in": []string{}}, func(any) bool { return false }},
		{"least size", vars{"least": median}, func(p any) bool { return number(t, at(p, "size")).Cmp(number(t, median)) >= 0 }},
		{"least size as a JSON number", vars{"least": json.Number(median)}, func(p any) bool { return number(t, at(p, "size")).Cmp(number(t, median)) >= 0 }},
		{"redeemable", vars{"redeemable": true}, wins},
		{"not redeemable", vars{"redeemable": false}, func(p any) bool { return !wins(p) }},
		{"all filters", vars{"in": heldMarkets(s, addressOf50, 40), "least": "100", "redeemable": false}, func(p any) bool {
			return slices.Contains(heldMarkets(s, addressOf50, 40), text(p, "marketId")) && number(t, at(p, "size")).Cmp(big.NewRat(100, 1)) >= 0 && !wins(p)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []string
			for _, p := range h.positions {
				if test.keep(p) {
					want = append(want, fmt.Sprint(text(p, "tokenId"), wins(p)))
				}
			}
			positions := at(s.ask(t, query, test.vars, keyOf50), "user.positions")
			var got []string
			for _, p := range list(positions, "nodes") {
				got = append(got, fmt.Sprint(text(p, "tokenId"), at(p, "redeemable")))
			}
			if !slices.Equal(got, want) || fmt.Sprint(at(positions, "totalCount")) != fmt.Sprint(len(want)) {
				t.Errorf("totalCount is %v, and the positions (token and redeemable) are\n     %v, want\n     %v", at(positions, "totalCount"), got, want)
			}
			if strings.Contains(test.name, "redeemable") && (len(want) == 0 || len(want) == 50) {
				t.Errorf("%d of 50 positions match the filter, want some but not all", len(want))
			}
		})
	}
}

// TestRedeemableReadsEachMarketOnce checks that the service reads each market once if a query filters positions by redeemable and
// selects their markets.
func TestRedeemableReadsEachMarketOnce(t *testing.T) { onBothDemos(t, testRedeemableCalls) }

func testRedeemableCalls(t *testing.T, strict bool, flags ...string) {
	s := start(t, flags...)
	want := calls{"positions": {1, 1}, "market-details": {1, 49}}
	if strict {
		want = calls{"positions": {2, 2}, "market-details": oneCallEach(49)}
	}
	got := s.callsDuring(func() {
		s.ask(t, `{ user(address: "`+addressOf50+`") { positions(first: 500, redeemable: true, sort: ENDS_AT) { nodes { redeemable market { resolution { winningOutcome } } } } } }`, nil, keyOf50)
	})
	wantCalls(t, got, want)
}
