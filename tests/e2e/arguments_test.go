package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/graph/model"
)

func distinctIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	return ids
}

// TestArgumentsOutOfRange checks that the service refuses each invalid argument, variable or document with one error, and makes no
// call to the venue.
func TestArgumentsOutOfRange(t *testing.T) {
	s := start(t)
	user := func(field string) string { return `{ user(address: "` + addressOf50 + `") { ` + field + ` } }` }
	token := func(field string) string { return `{ token(tokenId: "1") { ` + field + ` } }` }
	for _, test := range []struct {
		query string
		vars  vars
		want  string
		says  string
	}{
		// first
		{user(`positions(first: 0) { totalCount }`), nil, "user.positions BAD_USER_INPUT", "first is 0; it must be 1 to 500"},
		{user(`positions(first: 501) { totalCount }`), nil, "user.positions BAD_USER_INPUT", "first is 501; it must be 1 to 500"},
		{user(`orders(first: -1) { totalCount }`), nil, "user.orders BAD_USER_INPUT", "first is -1; it must be 1 to 500"},
		{user(`trades(first: 101) { totalCount }`), nil, "user.trades BAD_USER_INPUT", "first is 101; it must be 1 to 100"},
		{user(`history(first: 101) { totalCount }`), nil, "user.history BAD_USER_INPUT", "first is 101; it must be 1 to 100"},
		{`{ searchMarkets(first: 101) { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "first is 101; it must be 1 to 100"},
		{`{ searchMarkets(first: 3000000000) { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "it must be 1 to 100"},
		// after
		{user(`positions(after: "?") { totalCount }`), nil, "user.positions BAD_USER_INPUT", "after is not a cursor of this list"},
		{user(`positions(after: "AAAA") { totalCount }`), nil, "user.positions BAD_USER_INPUT", "after is not a cursor of this list"},
		{user(`trades(after: "AAAA") { totalCount }`), nil, "user.trades BAD_USER_INPUT", "after is not a cursor of this list"},
		{`{ searchMarkets(after: "` + strings.Repeat("A", 5000) + `") { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "after is not a cursor of this list"},
		// ids
		{`{ token(tokenId: "") { tokenId } }`, nil, "token BAD_USER_INPUT", "1 to 256 bytes"},
		{`{ token(tokenId: "` + strings.Repeat("9", 257) + `") { tokenId } }`, nil, "token BAD_USER_INPUT", "1 to 256 bytes"},
		{`{ token(tokenId: "1,2") { tokenId } }`, nil, "token BAD_USER_INPUT", "no comma, slash or control character"},
		{`{ market(marketId: "a/b") { slug } }`, nil, "market BAD_USER_INPUT", "no comma, slash or control character"},
		{`{ market(slug: "a\u0007b") { slug } }`, nil, "market BAD_USER_INPUT", "no comma, slash or control character"},
		{`{ event(eventId: "") { slug } }`, nil, "event BAD_USER_INPUT", "1 to 256 bytes"},
		{`{ market { slug } }`, nil, "market BAD_USER_INPUT", "give exactly one of marketId and slug"},
		{`{ market(marketId: "a", slug: "b") { slug } }`, nil, "market BAD_USER_INPUT", "give exactly one of marketId and slug"},
		{`{ event(eventId: null) { slug } }`, nil, "event BAD_USER_INPUT", "give exactly one of eventId and slug"},
		{`{ event(eventId: "a", slug: "b") { slug } }`, nil, "event BAD_USER_INPUT", "give exactly one of eventId and slug"},
		{`query ($ids: [String!]!) { tokens(tokenIds: $ids) { price { price } } }`, vars{"ids": distinctIDs(501)}, "tokens BAD_USER_INPUT", "tokenIds holds 501 ids; at most 500 are accepted"},
		{`query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } }`, vars{"ids": distinctIDs(501)}, "tokenPrices BAD_USER_INPUT", "at most 500 are accepted"},
		{`query ($ids: [String!]!) { spreads(tokenIds: $ids) { spread } }`, vars{"ids": distinctIDs(501)}, "spreads BAD_USER_INPUT", "at most 500 are accepted"},
		{`query ($ids: [String!]!) { markets(marketIds: $ids) { slug } }`, vars{"ids": distinctIDs(501)}, "markets BAD_USER_INPUT", "at most 500 are accepted"},
		{`query ($ids: [ID!]!) { nodes(ids: $ids) { id } }`, vars{"ids": distinctIDs(501)}, "nodes BAD_USER_INPUT", "at most 500 are accepted"},
		{`query ($ids: [String!]) { user(address: "` + addressOf50 + `") { positions(marketIds: $ids) { totalCount } } }`, vars{"ids": distinctIDs(501)}, "user.positions BAD_USER_INPUT", "at most 500 are accepted"},
		{`query ($ids: [String!]) { user(address: "` + addressOf50 + `") { orders(marketIds: $ids) { totalCount } } }`, vars{"ids": distinctIDs(501)}, "user.orders BAD_USER_INPUT", "at most 500 are accepted"},
		{user(`trades(marketId: "a,b") { totalCount }`), nil, "user.trades BAD_USER_INPUT", "no comma, slash or control character"},
		{`{ node(id: "x") { id } }`, nil, "node BAD_USER_INPUT", "id is not a global id of this graph"},
		{`{ node(id: "` + model.EncodeID("Balance", addressOf50) + `") { id } }`, nil, "node BAD_USER_INPUT", "id is not a global id of this graph"},
		{`{ node(id: "` + model.EncodeID(model.KindMarket, "a,b") + `") { id } }`, nil, "node BAD_USER_INPUT", "no comma, slash or control character"},
		{`{ node(id: "` + model.EncodeID(model.KindEvent, "a/b") + `") { id } }`, nil, "node BAD_USER_INPUT", "no comma, slash or control character"},
		{`{ node(id: "` + model.EncodeID(model.KindUser, "0x12") + `") { id } }`, nil, "node BAD_USER_INPUT", "0x and 40 hex digits"},
		{`{ node(id: "` + model.EncodeID(model.KindPosition, "0x12", "a", "b") + `") { id } }`, nil, "node BAD_USER_INPUT", "0x and 40 hex digits"},
		// addresses
		{`{ user(address: "0x12") { address } }`, nil, "user BAD_USER_INPUT", "address: an address is 0x and 40 hex digits"},
		{`{ user(address: "` + strings.Repeat("g", 42) + `") { address } }`, nil, "user BAD_USER_INPUT", "0x and 40 hex digits"},
		{`query ($a: Address!) { user(address: $a) { address } }`, vars{"a": 5}, "user BAD_USER_INPUT", "0x and 40 hex digits"},
		// searches
		{`{ searchMarkets(query: "` + strings.Repeat("a", 1001) + `") { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "query has 1001 bytes; at most 1000 are accepted"},
		{`{ searchMarkets(filter: {status: [OPEN, UNKNOWN]}) { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "status UNKNOWN"},
		{user(`history(kinds: UNKNOWN) { totalCount }`), nil, "user.history BAD_USER_INPUT", "kind UNKNOWN"},
		// times
		{user(`trades(from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z") { totalCount }`), nil, "user.trades BAD_USER_INPUT", "from is after to"},
		{user(`history(from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z") { totalCount }`), nil, "user.history BAD_USER_INPUT", "from is after to"},
		{user(`trades(from: "2026-01-02") { totalCount }`), nil, "user.trades BAD_USER_INPUT", "from: a DateTime is an RFC 3339 instant"},
		{`{ searchMarkets(filter: {endsBefore: 1700000000}) { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "filter.endsBefore: a DateTime is an RFC 3339 instant"},
		{`{ searchMarkets(filter: {endsBefore: "9999-12-31T23:59:59-12:00"}) { totalCount } }`, nil, "searchMarkets BAD_USER_INPUT", "in the years 1 to 9999 of UTC"},
		{user(`trades(to: "9999-12-31T23:59:59-12:00") { totalCount }`), nil, "user.trades BAD_USER_INPUT", "in the years 1 to 9999 of UTC"},
		{token(`history(from: "2026-01-02", to: "2026-01-01") { from }`), nil, "token.history BAD_USER_INPUT", "from (2026-01-02) is after to (2026-01-01)"},
		{token(`history(from: "2026-03-15") { from }`), nil, "token.history BAD_USER_INPUT", "from (2026-03-15) is after to (2026-03-14)"},
		{token(`history(from: "2025-03-13", to: "2026-03-14") { from }`), nil, "token.history BAD_USER_INPUT", "367 days; at most 366 are accepted"},
		{token(`candles(from: "2025-03-13") { open }`), nil, "token.candles BAD_USER_INPUT", "367 days; at most 366 are accepted"},
		{token(`candles(from: "2026-02-30") { open }`), nil, "token.candles BAD_USER_INPUT", "from: a Date has the form YYYY-MM-DD"},
		{token(`history(to: 20260101) { from }`), nil, "token.history BAD_USER_INPUT", "to: a Date has the form YYYY-MM-DD"},
		// books
		{token(`orderbook(depth: 0) { spread }`), nil, "token.orderbook BAD_USER_INPUT", "depth is 0; it must be 1 to 200"},
		{token(`orderbook(depth: 201) { spread }`), nil, "token.orderbook BAD_USER_INPUT", "depth is 201; it must be 1 to 200"},
		{token(`fillEstimate(side: BUY) { cost }`), nil, "token.fillEstimate BAD_USER_INPUT", "give exactly one of size and amount"},
		{token(`fillEstimate(side: BUY, size: 1, amount: 1) { cost }`), nil, "token.fillEstimate BAD_USER_INPUT", "give exactly one of size and amount"},
		{token(`fillEstimate(side: SELL, size: 0) { cost }`), nil, "token.fillEstimate BAD_USER_INPUT", "more than 0"},
		{token(`fillEstimate(side: SELL, amount: "-0.01") { cost }`), nil, "token.fillEstimate BAD_USER_INPUT", "more than 0"},
		{token(`fillEstimate(side: UNKNOWN, size: 1) { cost }`), nil, "token.fillEstimate BAD_USER_INPUT", "side must be BUY or SELL"},
		// variables
		{`query ($n: Int) { searchMarkets(first: $n) { totalCount } }`, vars{"n": 1.5}, " GRAPHQL_VALIDATION_FAILED", "variable $n: the value is no Int"},
		{`query ($n: Int) { searchMarkets(first: $n) { totalCount } }`, vars{"n": true}, " GRAPHQL_VALIDATION_FAILED", "variable $n: the value is no Int"},
		{`query ($id: String!) { token(tokenId: $id) { price { price } } }`, nil, " GRAPHQL_VALIDATION_FAILED", "variable $id: must be defined"},
		{`query ($id: String!, $n: Int!) { token(tokenId: $id) { price { price } } searchMarkets(first: $n) { totalCount } }`, vars{"id": "1"}, " GRAPHQL_VALIDATION_FAILED", "variable $n: must be defined"},
		{`query ($n: Int!) { tokens(tokenIds: ["1", "2"]) { price { price } } searchMarkets(first: $n) { totalCount } }`, nil, " GRAPHQL_VALIDATION_FAILED", "variable $n: must be defined"},
		{`query ($s: OrderSide!) { token(tokenId: "1") { fillEstimate(side: $s, size: 1) { cost } } }`, vars{"s": "buy"}, " GRAPHQL_VALIDATION_FAILED", "variable $s: buy is not a valid OrderSide"},
		{`query ($i: CandleInterval!) { token(tokenId: "1") { candles(interval: $i) { open } } }`, vars{"i": "Hour"}, " GRAPHQL_VALIDATION_FAILED", "Hour is not a valid CandleInterval"},
		{`query ($b: PriceBasis) { user(address: "` + addressOf50 + `") { portfolio(basis: $b) { positionsValue } } }`, vars{"b": "venue"}, " GRAPHQL_VALIDATION_FAILED", "venue is not a valid PriceBasis"},
		{`query ($f: MarketSearchFilter) { searchMarkets(filter: $f) { totalCount } }`, vars{"f": vars{"status": []string{"OPEN", "open"}}}, " GRAPHQL_VALIDATION_FAILED", "variable $f.status[1]: open is not a valid MarketStatus"},
		{`query ($f: MarketSearchFilter) { searchMarkets(filter: $f) { totalCount } }`, vars{"f": vars{"status": "open"}}, " GRAPHQL_VALIDATION_FAILED", "open is not a valid MarketStatus"},
		{`query ($f: MarketSearchFilter) { searchMarkets(filter: $f) { totalCount } }`, vars{"f": vars{"state": "OPEN"}}, " GRAPHQL_VALIDATION_FAILED", "variable $f.state: unknown field"},
		{`query ($k: [HistoryKind!]) { user(address: "` + addressOf50 + `") { history(kinds: $k) { totalCount } } }`, vars{"k": "trade"}, " GRAPHQL_VALIDATION_FAILED", "trade is not a valid HistoryKind"},
		{`query ($t: [String!]!) { tokenPrices(tokenIds: $t) { price } }`, vars{"t": []any{"1", 2851044534032347000}}, " GRAPHQL_VALIDATION_FAILED", "variable $t[1]: the value is no String"},
		{`query ($f: MarketSearchFilter) { searchMarkets(filter: $f) { totalCount } }`, vars{"f": vars{"category": 5}}, " GRAPHQL_VALIDATION_FAILED", "variable $f.category: the value is no String"},
		{`query ($i: ID!) { node(id: $i) { id } }`, vars{"i": 1.5}, " GRAPHQL_VALIDATION_FAILED", "variable $i: the value is no ID"},
		{`query ($n: Int) { searchMarkets(first: $n) { totalCount } }`, vars{"n": "10"}, " GRAPHQL_VALIDATION_FAILED", "variable $n: the value is no Int"},
		{`query ($b: FillFor) { token(tokenId: "1") { fillEstimate(side: BUY, for: $b) { cost } } }`, vars{"b": vars{"size": "1", "amount": nil}}, " GRAPHQL_VALIDATION_FAILED", "variable $b: must have exactly one field"},
		{`query ($b: FillFor) { token(tokenId: "1") { fillEstimate(side: BUY, for: $b) { cost } } }`, vars{"b": vars{"size": []string{"1"}}}, " GRAPHQL_VALIDATION_FAILED", "variable $b.size: the value is no Decimal"},
		// null for an argument or an item that must not be null, which validation permits because of a default
		{`query ($t: String = "1") { token(tokenId: $t) { tokenId } }`, vars{"t": nil}, "token BAD_USER_INPUT", "tokenId: cannot be null"},
		{`query ($t: [String!] = ["1"]) { tokenPrices(tokenIds: $t) { price } }`, vars{"t": nil}, "tokenPrices BAD_USER_INPUT", "tokenIds: cannot be null"},
		{`query ($t: String = "1") { tokenPrices(tokenIds: ["2", $t]) { price } }`, vars{"t": nil}, "tokenPrices BAD_USER_INPUT", "tokenIds[1]: cannot be null"},
		{`query ($q: String) { searchMarkets(query: $q) { totalCount } }`, vars{"q": nil}, "searchMarkets BAD_USER_INPUT", "query: cannot be null"},
		{`query ($q: String) { searchEvents(query: $q) { totalCount } }`, vars{"q": nil}, "searchEvents BAD_USER_INPUT", "query: cannot be null"},
		{`query ($a: Address = "` + addressOf50 + `") { user(address: $a) { address } }`, vars{"a": nil}, "user BAD_USER_INPUT", "address: cannot be null"},
		{`query ($i: [ID!] = ["x"]) { nodes(ids: $i) { id } }`, vars{"i": nil}, "nodes BAD_USER_INPUT", "ids: cannot be null"},
		{`query ($n: String = "Query") { __type(name: $n) { name } }`, vars{"n": nil}, "__type BAD_USER_INPUT", "name: cannot be null"},
		{`query ($i: CandleInterval) { token(tokenId: "1") { candles(interval: $i) { open } } }`, vars{"i": nil}, "token.candles BAD_USER_INPUT", "interval: cannot be null"},
		{`query ($s: OrderSide = BUY) { token(tokenId: "1") { fillEstimate(side: $s, size: 1) { cost } } }`, vars{"s": nil}, "token.fillEstimate BAD_USER_INPUT", "side: cannot be null"},
		// documents
		{`{`, nil, " GRAPHQL_PARSE_FAILED", "Expected Name"},
		{`# nothing`, nil, " GRAPHQL_PARSE_FAILED", "the document has no operation"},
		{`{ nope }`, nil, " GRAPHQL_VALIDATION_FAILED", `Cannot query field "nope" on type "Query"`},
		{`mutation { nope }`, nil, " GRAPHQL_VALIDATION_FAILED", "mutation"},
		{`{ ` + strings.Repeat("a: __typename ", 1000) + ` }`, nil, " BAD_USER_INPUT", "the document has more than 1500 tokens"},
	} {
		got := s.callsDuring(func() {
			data, errors := s.query(t, test.query, test.vars, keyOf50)
			if wantErrors(t, errors, test.want); len(errors) == 1 && !strings.Contains(errors[0].Message, test.says) {
				t.Errorf("%.200s\n fails with %q\n   want a message with %q", test.query, errors[0].Message, test.says)
			}
			if text := asJSON(data); !strings.HasSuffix(strings.TrimRight(text, "}"), "null") {
				t.Errorf("%.200s\n returns %s, want null", test.query, text)
			}
		})
		if len(got) > 0 {
			t.Errorf("%.200s\n makes the venue calls %v, want none", test.query, got)
		}
		if t.Failed() {
			t.Fatalf("the query was %.300s", test.query)
		}
	}
}

func TestBadIDsFailAlone(t *testing.T) {
	s := start(t)
	good, markets := s.openTokens(2), s.openMarkets(2)
	data, errors := s.query(t, `query ($tokens: [String!]!, $markets: [String!]!, $nodes: [ID!]!) {
	  tokens(tokenIds: $tokens) { tokenId price { price } } tokenPrices(tokenIds: $tokens) { tokenId } spreads(tokenIds: $tokens) { tokenId }
	  markets(marketIds: $markets) { marketId } nodes(ids: $nodes) { id }
	}`, vars{
		"tokens": []string{good[0], "a,b", good[1]}, "markets": []string{"", markets[0], strings.Repeat("a", 257), markets[1]},
		"nodes": []string{"!", model.EncodeID(model.KindToken, good[0]), model.EncodeID(model.KindMarket, "a\tb"), model.EncodeID(model.KindMarket, markets[0])},
	}, anonymous)
	wantErrors(t, errors, "markets.0 BAD_USER_INPUT", "markets.2 BAD_USER_INPUT", "nodes.0 BAD_USER_INPUT", "nodes.2 BAD_USER_INPUT",
		"spreads.1 BAD_USER_INPUT", "tokenPrices.1 BAD_USER_INPUT", "tokens.1 BAD_USER_INPUT")
	for path, want := range map[string][]string{"tokens": {good[0], "<nil>", good[1]}, "tokenPrices": {good[0], "<nil>", good[1]}, "spreads": {good[0], "<nil>", good[1]}} {
		if got := pluck(data, path, "tokenId"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if got, want := pluck(data, "markets", "marketId"), []string{"<nil>", markets[0], "<nil>", markets[1]}; !slices.Equal(got, want) {
		t.Errorf("markets: got %v, want %v", got, want)
	}
	if text(data, "tokens.0.price.price") == "" || text(data, "nodes.1.id") == "" || text(data, "nodes.3.id") == "" {
		t.Errorf("a price or a node is missing in %s", asJSON(data))
	}
}

// TestDecimalsAreReadExactly checks that the service reads every form of a Decimal exactly, and refuses invalid values.
func TestDecimalsAreReadExactly(t *testing.T) {
	s := start(t)
	id := s.openTokens(1)[0]
	const digits = "12345678901234567890123456789012345678901234567890"
	for _, test := range []struct {
		literal string
		value   any
		want    string // the filled size; "all" if the size exceeds the whole book; "" if an error is expected
	}{
		{`"1.25"`, "1.25", "1.25"},
		{`1.25`, json.Number("1.25"), "1.25"},
		{`3`, json.Number("3"), "3"},
		{`3e0`, json.Number("3e0"), "3"},
		{`"+2.50"`, "+2.50", "2.5"},
		{`12.5e-1`, json.Number("12.5e-1"), "1.25"},
		{`0.1234567890123456789012345678901234567890`, json.Number("0.1234567890123456789012345678901234567890"), "0.123456789012345678901234567890123456789"},
		{digits, json.Number(digits), "all"},
		{`1e64`, json.Number("1e64"), "all"},
		{`1e65`, json.Number("1e65"), ""},
		{`1e999`, json.Number("1e999"), ""},
		{`"` + strings.Repeat("1", 65) + `"`, strings.Repeat("1", 65), ""},
		{strings.Repeat("1", 65), json.Number(strings.Repeat("1", 65)), ""},
		{`"NaN"`, "NaN", ""},
		{`"Infinity"`, "Infinity", ""},
		{`"0x10"`, "0x10", ""},
		{`"1,5"`, "1,5", ""},
		{`""`, "", ""},
		{`true`, true, ""},
	} {
		for form, ask := range map[string]func() (any, []graphError){
			"literal": func() (any, []graphError) {
				return s.query(t, `query ($id: String!) { token(tokenId: $id) { fillEstimate(side: BUY, size: `+test.literal+`) { filledSize complete } } }`, vars{"id": id}, anonymous)
			},
			"variable": func() (any, []graphError) {
				return s.query(t, `query ($id: String!, $size: Decimal) { token(tokenId: $id) { fillEstimate(side: BUY, size: $size) { filledSize complete } } }`, vars{"id": id, "size": test.value}, anonymous)
			},
			"default of a variable": func() (any, []graphError) {
				return s.query(t, `query ($id: String!, $size: Decimal = `+test.literal+`) { token(tokenId: $id) { fillEstimate(side: BUY, size: $size) { filledSize complete } } }`, vars{"id": id}, anonymous)
			},
		} {
			data, errors := ask()
			got := at(data, "token.fillEstimate")
			switch test.want {
			case "":
				if wantErrors(t, errors, "token.fillEstimate BAD_USER_INPUT"); got != nil {
					t.Errorf("%s %s: the estimate is %s, want null", form, test.literal, asJSON(got))
				}
			case "all":
				if wantErrors(t, errors); at(got, "complete") != false {
					t.Errorf("%s %s: the estimate is %s, want complete false", form, test.literal, asJSON(got))
				}
			default:
				if wantErrors(t, errors); text(got, "filledSize") != test.want || at(got, "complete") != true {
					t.Errorf("%s %s: the estimate is %s, want the filled size %s", form, test.literal, asJSON(got), test.want)
				}
			}
		}
	}
	for _, literal := range []string{`[1]`, `{a: 1}`, `{a: 99999999999999999999}`, `[99999999999999999999]`} {
		_, errors := s.query(t, `{ token(tokenId: "1") { fillEstimate(side: BUY, size: `+literal+`) { cost } } }`, nil, anonymous)
		wantErrors(t, errors, " GRAPHQL_VALIDATION_FAILED")
	}
	for _, value := range []any{[]int{1}, vars{"a": 1}} {
		_, errors := s.query(t, `query ($size: Decimal) { token(tokenId: "1") { fillEstimate(side: BUY, size: $size) { cost } } }`, vars{"size": value}, anonymous)
		wantErrors(t, errors, " GRAPHQL_VALIDATION_FAILED")
	}
}

// TestNullsAndDefaults checks that the service uses the default of an argument that is null or missing.
func TestNullsAndDefaults(t *testing.T) {
	s := start(t)
	id := s.openTokens(1)[0]
	const selection = ` { orderbook%1 { bids { price } } history%2 { from to points { timestamp } } } }`
	with := func(a, b string) string {
		return strings.NewReplacer("%1", a, "%2", b).Replace(`query ($id: String!) { token(tokenId: $id)` + selection)
	}
	want := s.ask(t, with("", ""), vars{"id": id}, anonymous)
	got := s.ask(t, with("(depth: null)", "(from: null, to: null, order: null)"), vars{"id": id}, anonymous)
	wantJSON(t, "null arguments", got, asJSON(want))
	if n := len(list(want, "token.orderbook.bids")); n > 20 || n < 3 {
		t.Errorf("the book has %d bids, want 3 to 20", n)
	}
	pages := s.ask(t, `query ($n: Int) { a: searchMarkets { nodes { marketId } } b: searchMarkets(first: null, after: null, filter: null) { nodes { marketId } } c: searchMarkets(first: $n) { nodes { marketId } }
	  user(address: "`+addressOf50+`") { positions(first: null, sort: null, marketIds: null) { nodes { size } } trades(first: null) { nodes { size } } history { nodes { kind } } } }`, vars{"n": nil}, keyOf50)
	for path, n := range map[string]int{"a.nodes": 20, "b.nodes": 20, "c.nodes": 20, "user.positions.nodes": 50, "user.trades.nodes": 50, "user.history.nodes": 50} {
		if got := len(list(pages, path)); got != n {
			t.Errorf("%s has %d elements, want %d", path, got, n)
		}
	}
}

// TestOneOfInputs checks @oneOf input objects of markets, events and fill estimates. The service must refuse an object with no
// member or with two members. It must also refuse an object together with an older argument, such as marketId or size.
func TestOneOfInputs(t *testing.T) {
	t.Parallel()
	s := start(t)
	const find = `{ searchMarkets(first: 1, filter: { status: OPEN }) { nodes { marketId slug event { eventId slug } tokens { tokenId } } } }`
	found := s.ask(t, find, nil, anonymous)
	m := at(found, "searchMarkets.nodes.0")
	const query = `query($m: MarketBy!, $s: MarketBy!, $e: EventBy!, $id: String!, $t: String!, $f: FillFor!) {
		byID: market(by: $m) { marketId } bySlug: market(by: $s) { marketId } byMember: market(by: { marketId: $id }) { marketId }
		event(by: $e) { eventId }
		token(tokenId: $t) { old: fillEstimate(side: BUY, size: 10) { cost } new: fillEstimate(side: BUY, for: { size: "10" }) { cost } given: fillEstimate(side: BUY, for: $f) { cost } } }`
	id := text(m, "marketId")
	values := vars{
		"m": vars{"marketId": id}, "s": vars{"slug": text(m, "slug")}, "id": id, "e": vars{"eventId": text(m, "event.eventId")},
		"t": text(m, "tokens.0.tokenId"), "f": vars{"size": 10},
	}
	got := s.ask(t, query, values, anonymous)
	for _, path := range []string{"byID.marketId", "bySlug.marketId", "byMember.marketId"} {
		wantText(t, got, path, id)
	}
	wantText(t, got, "event.eventId", text(m, "event.eventId"))
	cost := text(got, "token.old.cost")
	wantText(t, got, "token.new.cost", cost)
	wantText(t, got, "token.given.cost", cost)

	for _, bad := range []struct{ name, query, want string }{
		{"no argument", `{ market { id } }`, "give exactly one of marketId and slug"},
		{"both forms", `{ market(marketId: "1", by: { slug: "a" }) { id } }`, "give only one of marketId, slug and by"},
		{"two members", `{ event(by: { eventId: "1", slug: "a" }) { id } }`, "must specify exactly one key"},
		{"no member", `{ event(by: {}) { id } }`, "must specify exactly one key"},
		{"size and for", `{ token(tokenId: "1") { fillEstimate(side: BUY, size: 1, for: { amount: 1 }) { cost } } }`, "give only one of size, amount and for"},
	} {
		if message := s.refusal(t, bad.query, nil); !strings.Contains(message, bad.want) {
			t.Errorf("%s: got the message %q, want one that contains %q", bad.name, message, bad.want)
		}
	}
	const byVariable = `query($by: MarketBy!) { market(by: $by) { id } }`
	for _, by := range []vars{{}, {"marketId": nil}, {"marketId": "1", "slug": nil}, {"marketId": "1", "slug": "a"}} {
		if message := s.refusal(t, byVariable, vars{"by": by}); !strings.Contains(message, "variable $by: must have exactly one field") {
			t.Errorf("%v: got the message %q, want one that says that one field must be set", by, message)
		}
	}
}

// refusal returns the message of the only error of a query.
func (s *service) refusal(t *testing.T, query string, variables vars) string {
	t.Helper()
	_, errs := s.query(t, query, variables, anonymous)
	if len(errs) != 1 {
		t.Fatalf("%s: got %d errors, want one: %+v", query, len(errs), errs)
	}
	return errs[0].Message
}
