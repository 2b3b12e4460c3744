package exec_test

import (
	"testing"

	"oddsgraph/graph/model"
)

// TestInputs checks that gqlgen and package exec give the same responses to documents whose arguments, variables, conditions and
// merged fields are hard to handle. It skips invalid documents.
func TestInputs(t *testing.T) {
	w0 := string(wallets[0])
	tok := model.EncodeID("Token", "token-3")
	usr := model.EncodeID("User", w0)
	mkt := model.EncodeID("Market", "market-1")
	evt := model.EncodeID("Event", "event-1")
	documents := []struct {
		text      string
		variables map[string]any
	}{
		{`query ($x: String!) { tokens(tokenIds: ["token-1", $x]) { tokenId } }`, map[string]any{"x": "token-2"}},
		{`query ($x: String = "token-4") { tokens(tokenIds: ["token-1", $x]) { tokenId } }`, nil},
		{`query ($x: String) { tokens(tokenIds: ["token-1", $x]) { tokenId } }`, map[string]any{"x": nil}},
		{`query ($s: [MarketStatus!]) { searchMarkets(filter: {status: $s}) { totalCount nodes { id } } }`, map[string]any{"s": "OPEN"}},
		{`query ($s: [MarketStatus!]) { searchMarkets(filter: {status: $s}) { totalCount nodes { id } } }`, map[string]any{"s": []any{"OPEN", "CLOSED"}}},
		{`query ($s: [MarketStatus!]) { searchMarkets(filter: {status: $s}) { totalCount nodes { id } } }`, nil},
		{`query ($s: [MarketStatus!]) { searchMarkets(filter: {status: $s}) { totalCount nodes { id } } }`, map[string]any{"s": nil}},
		{`query ($s: MarketStatus!) { searchMarkets(filter: {status: [OPEN, $s]}) { totalCount nodes { id } } }`, map[string]any{"s": "CLOSED"}},
		{`{ searchMarkets(filter: {status: OPEN}) { totalCount nodes { id } } }`, nil},
		{`{ searchMarkets(filter: {}) { totalCount nodes { id } } }`, nil},
		{`{ searchMarkets(filter: null) { totalCount nodes { id } } }`, nil},
		{`{ searchMarkets(filter: {status: [], category: null}) { totalCount nodes { id } } }`, nil},
		{`query ($c: String) { searchMarkets(filter: {category: $c, tag: "x"}) { totalCount } }`, nil},
		{`query ($c: String = "y") { searchMarkets(filter: {category: $c, tag: "x"}) { totalCount } }`, nil},
		{`query ($c: String = "y") { searchMarkets(filter: {category: $c, tag: "x"}) { totalCount } }`, map[string]any{"c": nil}},
		{`query ($f: MarketSearchFilter) { searchMarkets(filter: $f) { totalCount } }`, map[string]any{"f": map[string]any{"status": "OPEN", "endsAfter": "2026-03-01T00:00:00.123456789+05:30"}}},
		{`query ($f: MarketSearchFilter = {status: [CLOSED], tag: "q"}) { searchMarkets(filter: $f) { totalCount } }`, nil},
		{`query ($q: String) { searchMarkets(query: $q) { totalCount } }`, nil},
		{`query ($n: Int) { searchMarkets(first: $n) { totalCount nodes { id } } }`, nil},
		{`query ($n: Int) { searchMarkets(first: $n) { totalCount nodes { id } } }`, map[string]any{"n": nil}},
		{`query ($n: Int = 3) { searchMarkets(first: $n) { totalCount nodes { id } } }`, nil},
		{`query ($n: Int = 3) { searchMarkets(first: $n) { totalCount nodes { id } } }`, map[string]any{"n": nil}},
		{`query ($n: Int) { searchMarkets(first: $n) { totalCount nodes { id } } }`, map[string]any{"n": 5000000000}},
		{`{ searchMarkets(first: 2147483648) { totalCount nodes { id } } }`, nil},
		{`{ searchMarkets(first: 9223372036854775808) { totalCount nodes { id } } }`, nil},
		{`{ node(id: 5) { id } }`, nil},
		{`{ nodes(ids: [1, "` + tok + `"]) { id } }`, nil},
		{`{ nodes(ids: "` + tok + `") { id __typename } }`, nil},
		{`query ($i: ID!) { nodes(ids: [$i, $i]) { id __typename } }`, map[string]any{"i": tok}},
		{`query ($i: [ID!]!) { nodes(ids: $i) { id __typename } }`, map[string]any{"i": tok}},
		{`{ token(tokenId: """token-1""") { tokenId } }`, nil},
		{`{ token(tokenId: "token\u002D1") { tokenId id } }`, nil},
		{`{ searchMarkets(query: "a\u0000b\"\\ \uD83D\uDE00") { totalCount } }`, nil},
		{`{ searchMarkets(query: """
   a
     b \""" c
""") { totalCount } }`, nil},
		{`{ token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: 1e2) { cost complete averagePrice worstPrice filledSize slippage } b: fillEstimate(side: SELL, amount: 1.50) { cost complete averagePrice } c: fillEstimate(side: BUY, size: "1.5") { cost } } }`, nil},
		{`{ token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: -1) { cost } } }`, nil},
		{`{ token(tokenId: "token-1") { a: fillEstimate(side: UNKNOWN, size: 1) { cost } } }`, nil},
		{`{ token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: 1, amount: null) { cost } } }`, nil},
		{`query ($z: Decimal, $a: Decimal) { token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: $z, amount: $a) { cost } } }`, map[string]any{"z": 3}},
		{`query ($z: Decimal, $a: Decimal) { token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: $z, amount: $a) { cost } } }`, map[string]any{"z": 3, "a": nil}},
		{`query ($z: Decimal = 7, $a: Decimal) { token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: $z, amount: $a) { cost } } }`, nil},
		{`query ($z: Decimal = 7.5) { token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: $z) { cost } } }`, nil},
		{`query ($z: Decimal = "7.5") { token(tokenId: "token-1") { a: fillEstimate(side: BUY, size: $z) { cost } } }`, nil},
		{`{ nodes(ids: ["` + tok + `", "` + usr + `", "` + mkt + `", "` + evt + `"]) { ... on Market { x: slug y: event { title } } ... on Event { x: slug y: __typename z: volume } } }`, nil},
		{`{ nodes(ids: ["` + tok + `", "` + usr + `", "` + mkt + `", "` + evt + `"]) { ... on Market { x: slug t: tokens { tokenId } } ... on Event { x: slug m: markets(first: 1) { nodes { t: tokens { id } } } } ... on Token { t2: market { t: tokens { outcome } } } ...A } } fragment A on Node { id ... on Market { t: tokens { id outcome } } ... on Token { t2: market { slug } } }`, nil},
		{`query ($a: Boolean = true) { token(tokenId: "token-1") { ... @skip(if: $a) { tokenId } id } }`, nil},
		{`query ($a: Boolean = false) { token(tokenId: "token-1") { ... @skip(if: $a) { tokenId } id } }`, map[string]any{}},
		{`query ($a: Boolean!) { token(tokenId: "token-1") { ...F @include(if: $a) ...F @skip(if: $a) } } fragment F on Token { id tokenId }`, map[string]any{"a": true}},
		{`query ($a: Boolean!) { token(tokenId: "token-1") { market @include(if: $a) { slug } market @skip(if: $a) { marketId } market { question } } }`, map[string]any{"a": true}},
		{`query ($a: Boolean!) { a: token(tokenId: "token-1") { market { ...on Market @include(if: $a) { slug tokens { id } } tokens @skip(if: $a) { outcome } } market { tokens { tokenId } } } }`, map[string]any{"a": false}},
		{`{ viewer { ... on Node { id } ... on User { address portfolio { positionsValue } } orders { totalCount } } user(address: "0X1111111111111111111111111111111111111111") { id address } }`, nil},
		{`{ viewer { portfolio(basis: null) { totalValue availableCash } positions(first: null, sort: null, redeemable: null, minSize: null, marketIds: null) { totalCount nodes { id } } } }`, nil},
		{`{ viewer { positions(marketIds: [], minSize: -0.0) { totalCount } p: positions(minSize: 0) { totalCount } q: positions(marketIds: "market-1") { totalCount nodes { marketId } } } }`, nil},
		{`{ __typename viewer { __typename } ...Q } fragment Q on Query { __typename a: __typename viewer { address __typename } }`, nil},
		{`{ token(tokenId: "token-1") { history(from: "2026-03-01", to: "2026-03-05", order: DESC) { points { price } } h: history(order: null) { from to } candles { open } c: candles(interval: WEEK) { start open close volume } } }`, nil},
		{`query ($o: SortOrder, $i: CandleInterval!) { token(tokenId: "token-1") { history(order: $o) { from } candles(interval: $i) { start } } }`, map[string]any{"i": "HOUR"}},
		{`query ($i: CandleInterval) { token(tokenId: "token-1") { candles(interval: $i) { start } } }`, nil},
		{`query ($i: CandleInterval = HOUR) { token(tokenId: "token-1") { candles(interval: $i) { start } } }`, nil},
		{`query ($d: Int) { token(tokenId: "token-1") { orderbook(depth: $d) { bids { price } } a: orderbook(depth: 5) { asks { s: size price } bids { price s: size } } b: orderbook(depth: 200) { asks { price size } } } }`, map[string]any{"d": 200}},
		{`{ tokens(tokenIds: ["token-1","token-1","token-1"]) { tokenId price { price } } tokenPrices(tokenIds: ["token-1","token-99","token-1"]) { price token { price { price } id } } spreads(tokenIds: ["token-2","zzz"]) { midpoint token { spread { bestBid } } } }`, nil},
		{`{ markets(marketIds: ["market-0","market-0"]) { tokens { market { tokens { market { marketId } } } } resolution { winningToken { id } winningOutcome } } }`, nil},
		{`{ market(marketId: null, slug: "slug-1") { id } }`, nil},
		{`query ($s: String, $m: String) { market(marketId: $m, slug: $s) { id } }`, map[string]any{"s": "slug-1"}},
		{`query ($s: String, $m: String) { market(marketId: $m, slug: $s) { id } }`, map[string]any{"s": "slug-1", "m": nil}},
		{`query ($s: String, $m: String = "market-2") { market(marketId: $m, slug: $s) { id } }`, map[string]any{"m": nil, "s": "slug-1"}},
		{`query ($from: DateTime, $to: DateTime) { viewer { trades(from: $from, to: $to, marketId: "market-1") { totalCount nodes { id price } pageInfo { endCursor } } } }`, map[string]any{"from": "2026-03-01T00:00:00Z"}},
		{`query ($k: [HistoryKind!]) { viewer { history(kinds: $k) { totalCount nodes { id kind } } } }`, map[string]any{"k": "TRADE"}},
		{`{ viewer { history(kinds: TRADE) { totalCount } h: history(kinds: [TRADE, TRADE]) { totalCount } u: history(kinds: UNKNOWN) { totalCount } } }`, nil},
		{`{ serviceStatus { version } __schema { queryType { name } } }`, nil},
		{`{ node(id: "` + mkt + `") { ... on Market { slug: question question: slug } id: __typename } }`, nil},
		{`query ($ids: [String!]! = ["token-1"]) { tokens(tokenIds: $ids) { tokenId } }`, nil},
		{`query ($ids: [String!] = ["token-1"]) { tokens(tokenIds: $ids) { tokenId } }`, nil},
		{`query ($a: Address!) { user(address: $a) { id address } }`, map[string]any{"a": "0X1111111111111111111111111111111111111111"}},
		{`query ($a: Address = "0x1111111111111111111111111111111111111111") { user(address: $a) { id address } }`, nil},
	}
	compared := 0
	for seed := range uint64(6) {
		b := newExecutorPair(t, &universe{seed: seed, misses: int(seed) * 5, failures: int(seed%3) * 8})
		for _, d := range documents {
			if o, err := b.parse(d.text, d.variables); err == nil {
				compared++
				o.compare(d.text)
			}
		}
	}
	if compared < 6*60 {
		t.Errorf("only %d documents were valid, want at least %d", compared, 6*60)
	}
}
