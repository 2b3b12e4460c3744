package e2e

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	sorts := []string{"RELEVANCE", "VOLUME", "VOLUME_24H", "LIQUIDITY", "STARTS_AT", "ENDS_AT"}
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
