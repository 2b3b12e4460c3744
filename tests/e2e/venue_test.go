package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oddsgraph/graph/model"
)

// capabilities lists what the simulators of Polymarket and Kalshi serve. Tests in TypeScript get one element of the list as JSON in
// the environment variable SERVES.
var capabilities = []struct {
	Driver   string `json:"driver"`
	Sort     bool   `json:"sort"`     // sorted lists of markets
	Search   bool   `json:"search"`   // search for markets by text
	Accounts bool   `json:"accounts"` // data of all wallets, without credentials
	Orders   bool   `json:"orders"`   // open orders of a wallet
	Cash     bool   `json:"cash"`     // cash balance of a wallet
	Trades   bool   `json:"trades"`   // public trades of a market
	examples []exampleResult
}{
	{
		Driver: "polymarket", Sort: true, Search: true, Accounts: true, Trades: true,
		examples: []exampleResult{
			{example: "price-board", absent: []string{"tokens.price.timestamp"}}, // a midpoint has no time
			{
				example: "market-page", absent: []string{
					"market.category", "market.resolution", "market.tokens.orderbook.sequence", "market.tokens.price.freshness.asOf",
				},
			},
			{example: "event-page", absent: []string{"event.markets.nodes.groupItemTitle"}},
			{example: "history-and-candles", absent: []string{"token.history.points.volume", "token.candles.volume"}},
			{example: "trade-ticket"},
			{example: "search", unsupported: []string{"searchMarkets UNSUPPORTED"}},
			{
				example: "search",
				change:  vars{"query": "", "filter": vars{"status": []string{"OPEN"}}},
				absent:  []string{"searchMarkets.nodes.category", "searchMarkets.totalCount"},
			},
			{
				example: "portfolio", unsupported: []string{
					"user.balance.cashBalance UNSUPPORTED", "user.orders UNSUPPORTED", "user.portfolio.availableCash UNSUPPORTED",
					"user.portfolio.totalValue UNSUPPORTED",
				},
				absent: []string{
					"user.balance.reportedTotalValue",
					"user.portfolio.freshness.asOf", // the prices of open positions are midpoints, which have no time
				},
			},
		},
	},
	{
		Driver: "kalshi", Trades: true,
		examples: []exampleResult{
			{example: "price-board", absent: []string{"tokens.price.timestamp"}},
			{
				example: "market-page", absent: []string{
					"market.category", "market.event.title", "market.tags", "market.resolution", "market.tokens.orderbook.sequence",
					"market.tokens.price.freshness.asOf", "market.liquidity",
					"market.volume", "market.volume24h", // Kalshi counts volumes in contracts, but these fields are amounts of money
				},
			},
			{example: "event-page", absent: []string{"event.volume", "event.markets.nodes.volume24h"}},
			{example: "history-and-candles"},
			{example: "trade-ticket", absent: []string{"token.fillEstimate.freshness.asOf"}},
			{example: "search", unsupported: []string{"searchMarkets UNSUPPORTED"}},
			{
				example: "search", change: vars{"query": "", "filter": vars{"status": []string{"OPEN"}}, "sort": "RELEVANCE"},
				absent: []string{
					"searchMarkets.nodes.category", "searchMarkets.nodes.event.title", "searchMarkets.nodes.liquidity", "searchMarkets.nodes.volume24h",
					"searchMarkets.totalCount",
				},
			},
			{
				example:     "portfolio",
				unsupported: []string{"user.balance UNSUPPORTED", "user.orders UNSUPPORTED", "user.portfolio UNSUPPORTED", "user.positions UNSUPPORTED"},
			},
		},
	},
}

// exampleResult is the expected response to an example. All fields of the response must have values, except the paths in the lists
// unsupported and absent.
type exampleResult struct {
	example string
	// change replaces variables of the example. It is set if the driver does not support the original variables.
	change vars
	// unsupported lists the paths and codes of the expected errors. absent lists the paths of values that are null without an
	// error. The paths have no list indexes.
	unsupported, absent []string
}

// runOverSimulators calls runNodeTest once for the simulator of each driver.
func runOverSimulators(t *testing.T, dir, file string, env []string) {
	for _, venue := range capabilities {
		t.Run(venue.Driver, func(t *testing.T) {
			runNodeTest(t, dir, file, append(slices.Clone(env), "SERVES="+asJSON(venue)),
				"--demo-driver="+venue.Driver, "--venue-driver="+venue.Driver, "--demo-markets=60")
		})
	}
}

// TestSearchesAreDeclared checks that a search is UNSUPPORTED if, and only if, VenueStatus does not list its sort or its condition.
func TestSearchesAreDeclared(t *testing.T) {
	t.Parallel()
	conditions := map[string]vars{
		"TEXT": {"query": "the"}, "STATUS": {"filter": vars{"status": "OPEN"}}, "CATEGORY": {"filter": vars{"category": "Sports"}},
		"TAG": {"filter": vars{"tag": "Sports"}}, "ENDS_AT": {"filter": vars{"endsAfter": "2020-01-01T00:00:00.000Z"}},
	}
	sorts := []string{"RELEVANCE", "VOLUME", "VOLUME_24H", "LIQUIDITY", "STARTS_AT", "ENDS_AT", "PRICE_CHANGE_24H"}
	for _, driver := range []string{"generic", "polymarket", "kalshi"} {
		t.Run(driver, func(t *testing.T) {
			// check runs a search with each field on a new service, because a search for some conditions uses up the venue's limit.
			check := func(kind, value string, variables vars) {
				synctest.Test(t, func(t *testing.T) {
					s := startInBubble(t, startTime, "--demo-driver="+driver, "--venue-driver="+driver)
					venue := at(s.ask(t, `{ serviceStatus { venue { marketSorts eventSorts marketFilters eventFilters } } }`, nil, anonymous), "serviceStatus.venue")
					for field, prefix := range map[string]string{"searchMarkets": "market", "searchEvents": "event"} {
						query := `query ($query: String! = "", $filter: MarketSearchFilter, $sort: MarketSort) {
							` + field + `(query: $query, filter: $filter, sort: $sort, first: 1) { totalCount } }`
						_, errors := s.query(t, query, variables, anonymous)
						refused := slices.ContainsFunc(errors, func(e graphError) bool { return strings.HasSuffix(e.String(), "UNSUPPORTED") })
						if listed := slices.Contains(list(venue, prefix+kind), any(value)); listed == refused {
							t.Errorf("%s %s: listed in %s: %v; errors: %v", field, value, prefix+kind, listed, errors)
						}
					}
				})
			}
			for _, sort := range sorts {
				check("Sorts", sort, vars{"sort": sort, "filter": vars{"status": "OPEN"}})
			}
			for condition, variables := range conditions {
				check("Filters", condition, variables)
			}
		})
	}
}

// TestGlobalIDsNameTheVenue checks that the global ids of a token and of a user differ between venues. A service must find the
// objects of its own venue by id, and refuse the ids of other venues.
func TestGlobalIDsNameTheVenue(t *testing.T) {
	t.Parallel()
	generic := start(t)
	services := map[string]*service{
		"polymarket": start(t, "--venue-driver=polymarket", "--demo-driver=polymarket", "--demo-control=false", "--demo-markets=60"),
		"kalshi":     startKalshi(t),
	}
	const idsQuery = `{ token(tokenId: "123") { id } user(address: "0x1111111111111111111111111111111111111111") { id } }`
	genericData := generic.ask(t, idsQuery, nil, anonymous)
	genericIDs := []string{model.EncodeID(model.KindToken, "123"), model.EncodeID(model.KindUser, "0x1111111111111111111111111111111111111111")}
	if got := []string{text(genericData, "token.id"), text(genericData, "user.id")}; !slices.Equal(got, genericIDs) {
		t.Errorf("the ids of the generic driver are %q, want %q", got, genericIDs)
	}
	foreign := map[string]string{"generic": genericIDs[0]}
	for name, s := range services {
		data := s.ask(t, idsQuery, nil, anonymous)
		if got, want := []string{text(data, "token.id"), text(data, "user.id")}, []string{name + "." + genericIDs[0], name + "." + genericIDs[1]}; !slices.Equal(got, want) {
			t.Errorf("the ids of %s are %q, want %q", name, got, want)
		}
		foreign[name] = text(data, "token.id")
		markets := s.ask(t, `{ searchMarkets(first: 1, filter: { status: [OPEN] }) { nodes { id marketId venue event { id } tokens { id tokenId } } } }`, nil, anonymous)
		market := at(markets, "searchMarkets.nodes.0")
		ids := []string{text(market, "id"), text(market, "event.id"), text(market, "tokens.0.id")}
		nodes := s.ask(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Market { venue marketId } ... on Token { tokenId } } }`, vars{"ids": ids}, anonymous)
		if got := pluck(nodes, "nodes", "id"); !slices.Equal(got, ids) || !strings.HasPrefix(ids[1], name+".") {
			t.Errorf("%s: the query for the nodes %q returned the nodes %q, want the same ids and a prefix %s.", name, ids, got, name)
		}
		if text(market, "venue") != name || text(nodes, "nodes.0.venue") != name || at(nodes, "nodes.0.marketId") != at(market, "marketId") || at(nodes, "nodes.2.tokenId") != at(market, "tokens.0.tokenId") {
			t.Errorf("%s: the nodes are %v, want the market and the token of %v", name, nodes, market)
		}
	}
	services["generic"] = generic
	for own, s := range services {
		for other, id := range foreign {
			data, failed := s.query(t, `query ($id: ID!) { node(id: $id) { id } }`, vars{"id": id}, anonymous)
			if own == other {
				if len(failed) > 0 || text(data, "node.id") != id {
					t.Errorf("%s: the id %s got %v and the errors %v, want the node with this id", own, id, data, failed)
				}
				continue
			}
			if len(failed) != 1 || failed[0].Extensions.Code != "BAD_USER_INPUT" || !strings.Contains(failed[0].Message, own) || !strings.Contains(failed[0].Message, other) {
				t.Errorf("an id of %s got the errors %v from the service of %s, want BAD_USER_INPUT that names both venues", other, failed, own)
			}
		}
	}
	if venue, ok := at(generic.ask(t, `{ searchMarkets(first: 1) { nodes { venue } } }`, nil, anonymous), "searchMarkets.nodes.0.venue").(string); ok {
		t.Errorf("a market of the generic driver has the venue %q, want null", venue)
	}
}

// TestPositionIDsNameTheVenue checks that the id of a position names the venue, and that a client can subscribe to the position by
// this id.
func TestPositionIDsNameTheVenue(t *testing.T) {
	t.Parallel()
	s := startPolymarket(t)
	const page = `query($a: Address!) { user(address: $a) { positions(first: 1) { nodes { id } } } }`
	id := text(s.ask(t, page, vars{"a": addressOf50}, anonymous), "user.positions.nodes.0.id")
	const query = `subscription($a: Address!, $ids: [ID!]) { portfolioChanged(address: $a, positionIds: $ids) { reason changed { id } } }`
	first := s.dial(t, anonymous).subscribe(t, query, vars{"a": addressOf50, "ids": []any{id}}).value(t)
	if got := pluck(first, "changed", "id"); text(first, "reason") != "INITIAL" || !slices.Equal(got, []string{id}) || !strings.HasPrefix(id, "polymarket.") {
		t.Errorf("the first event is %v, want INITIAL with the position %s", first, id)
	}
}

// TestTolerancesAreTested checks that each clause of "What it tolerates" in docs/venues/generic.md has a test. The map names a test
// by its directory, its function, and optionally a text that the function must contain.
func TestTolerancesAreTested(t *testing.T) {
	clauses := map[string][]string{
		"as numbers or strings, read from their literals":                              {"internal/venue/wire TestDecimalsAreExact", "internal/venue/generic TestBookForms strings-best-last"},
		"never through a float":                                                        {"internal/venue/wire TestDecimalsAreExact 123456789012345678901234567890.5", "internal/venue/generic TestPriceForms object-without-id"},
		"as RFC 3339, or as seconds or milliseconds since 1970, as numbers or strings": {"internal/venue/wire TestTimes"},
		"bare, under their name, under `data`, under `results`":                        {"internal/venue/generic TestPriceForms bare-array", "internal/venue/generic TestPriceForms list", "internal/venue/generic TestPriceForms data-list", "internal/venue/generic TestSearchForms results"},
		"prices and spreads as a map by id":                                            {"internal/venue/generic TestPriceForms map-of-objects", "internal/venue/generic TestSpreadForms map-of-objects"},
		"an array of one element in place of an object":                                {"internal/venue/generic TestPriceForms array-of-one"},
		"outcomes of a market as arrays in JSON strings":                               {"internal/venue/generic TestMarketForms json-in-strings"},
		"pages by cursor":              {"internal/venue/generic TestWholeLists byCursors"},
		"pages by offset":              {"internal/venue/generic TestWholeLists byOffsets", "tests/e2e TestTradesByOffset"},
		"levels in any order":          {"internal/venue/generic TestBookForms strings-best-last"},
		"levels as objects or pairs":   {"internal/venue/generic TestBookForms pairs"},
		"empty sides":                  {"internal/venue/generic TestBookForms empty-side"},
		"more levels than requested":   {"internal/venue/generic TestBookForms more-levels"},
		"no spread":                    {"internal/venue/generic TestBookForms pairs"},
		"A side that is null is empty": {"internal/venue/generic TestBookForms null-sides"},
		"A side that is missing makes the book unreadable":       {"internal/venue/generic TestBookForms missing-side"},
		"A price that is null means that the token has no price": {"internal/venue/generic TestPriceForms null-price"},
		"A row without a price is unreadable":                    {"internal/venue/generic TestPriceForms null-prices"},
		"If a book cannot be read, its spread is null with an error, and so are all sums that need it": {
			"internal/venue/generic TestFailedBooksAreNotMissingSpreads", "tests/e2e TestFailedBooksAreErrors"},
		"as a value":     {"internal/venue/generic TestPriceForms object"},
		"as bid and ask": {"internal/venue/generic TestPriceForms map-of-sides"},
		"From both, the client computes the mean (`MIDPOINT`)":                {"tests/e2e TestPricesOfTwoSides MIDPOINT"},
		"If only one is there, the client uses it (`BEST_BID` or `BEST_ASK`)": {"tests/e2e TestPricesOfTwoSides BEST_BID", "tests/e2e TestPricesOfTwoSides BEST_ASK"},
		"in camelCase or snake_case":                                          {"internal/venue/wire TestNamesInSnakeCase", "internal/venue/generic TestPositionForms snake-case"},
		"unknown members":                                                     {"internal/venue/generic TestPriceForms unknown-fields"},
		"a missing status":                                                    {"internal/venue/generic TestMarketForms no-status"},
		"statuses in any case":                                                {"internal/venue/generic TestOrderForms lower-case-snake", "internal/venue/generic TestStatusesInAnyCase"},
		"that the client does not know: they become `UNKNOWN`":                {"internal/venue/generic TestMarketForms unknown-status", "internal/venue/generic TestOrderForms unknown-values"},
		"have the venue's spelling":                                           {"internal/venue/generic TestOrderForms UNKNOWN(BORROW)"},
		"`statusRaw`, `sideRaw` and `kindRaw`":                                {"tests/e2e TestPositionsWithoutTokens sideRaw", "tests/e2e TestPositionsWithoutTokens statusRaw", "tests/e2e TestTradesByOffset kindRaw"},
		"of the stream that name a market instead of a token":                 {"tests/e2e TestFramesThatNameAMarket"},
		"if the market was read before: with the label of an outcome, or without a label if the market has YES and NO": {"tests/e2e TestFramesThatNameAMarket", "internal/venue/generic/codec TestBadFrames M9"},
		"to prices, trades, markets and accounts without a snapshot":                                                   {"internal/feed/follow TestQuietPrice", "internal/feed/follow TestAccountWithoutSnapshot", "tests/e2e TestQuietMarkets"},
		"Without the latest trades, `TradesUpdate.known` is false":                                                     {"internal/feed/follow TestQuietTradesOfAVenueWithoutAList"},
		"in the status": {"internal/venue/generic TestStatuses"},
		"in a body with status 200 (`success: false` or `error`)": {"internal/venue/generic TestErrorForms error-alone", "internal/venue/generic TestErrorForms message"},
		"as HTML":          {"internal/venue/generic TestStatuses slow down"},
		"as an empty body": {"internal/venue/generic TestStatuses status: 204"},
		"that are missing: the client reads the first levels of the order books instead, one call per token": {"internal/venue/generic TestSpreadsWithoutTheEndpoint"},
		"marks them `basis: ORDER_BOOK`": {"internal/venue/generic TestSpreadsFailOverToBooks SpreadOfBook", "tests/e2e TestMinimalVenue ORDER_BOOK"},
		"The client also reads the books if the endpoint does not respond, responds with an error, or responds with unreadable data": {
			"internal/venue/generic TestSpreadsFailOverToBooks timeout", "internal/venue/generic TestSpreadsFailOverToBooks 503", "internal/venue/generic TestSpreadsFailOverToBooks bad elements"},
		"It calls the endpoint again when the backoff ends":                                                       {"internal/venue/generic TestSpreadsFailOverToBooks MaxBackoff"},
		"If the endpoint responds with 429, the error is `RATE_LIMITED` and the client reads no books":            {"internal/venue/generic TestSpreadsWithoutNeedForBooks 429"},
		"If the venue limits the calls for books, the client stops reading books":                                 {"internal/venue/generic TestBooksForSpreadsAreBounded rate limit"},
		"that the venue does not support: the service detects this after the start, and reads the ids one by one": {"internal/venue/generic TestProbe", "internal/venue/generic TestUndecidedLists"},
	}
	_, section, _ := strings.Cut(read(t, "docs/venues/generic.md"), "## What it tolerates\n")
	section, _, _ = strings.Cut(section, "\n## ")
	guide := strings.Join(strings.Fields(section), " ")
	rest := guide
	for clause, tests := range clauses {
		if strings.Count(guide, clause) != 1 {
			t.Errorf("the guide does not contain exactly once: %s", clause)
		}
		rest = strings.Replace(rest, clause, "", 1)
		for _, test := range tests {
			wantTest(t, test)
		}
	}
	rest = regexp.MustCompile(`\*\*[A-Z][a-z ]*\*\*|\b(and|or|with)\b|[-:;,. ]`).ReplaceAllString(rest, "")
	if rest != "" {
		t.Errorf("no clause of the map covers this text of the guide: %s", rest)
	}
}

// wantTest checks that the named test function exists and contains the named text.
func wantTest(t *testing.T, named string) {
	t.Helper()
	dir, rest, _ := strings.Cut(named, " ")
	function, text, _ := strings.Cut(rest, " ")
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, body, ok := strings.Cut(string(b), "\nfunc "+function+"("); ok {
			golden, _ := os.ReadFile(filepath.Join(dir, "testdata", "forms", function+".txt")) // the cases of a test of forms
			if body, _, _ = strings.Cut(body, "\n}\n"); !strings.Contains(body+string(golden), text) {
				t.Errorf("%s in %s does not contain %q", function, dir, text)
			}
			return
		}
	}
	t.Errorf("there is no %s in %s", function, dir)
}
