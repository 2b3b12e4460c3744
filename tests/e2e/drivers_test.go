package e2e

import (
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// driverCapabilities are the examples over the simulator of each driver. A field that a driver does not serve is null with the code
// UNSUPPORTED; all others have values, except those that a venue of the kind never has.
var driverCapabilities = []struct {
	driver  string
	example string
	// change replaces variables, for a second run of an example that the driver does not serve with its own variables.
	change vars
	// unsupported lists errors, absent the paths of further values that are missing, both without indexes.
	unsupported, absent []string
}{
	{driver: "polymarket", example: "price-board", absent: []string{"tokens.price.timestamp"}}, // a midpoint has no time
	{
		driver: "polymarket", example: "market-page", absent: []string{
			"market.category", "market.resolution", "market.tokens.orderbook.sequence", "market.tokens.price.freshness.asOf",
		},
	},
	{driver: "polymarket", example: "event-page", absent: []string{"event.markets.nodes.groupItemTitle"}},
	{driver: "polymarket", example: "history-and-candles", absent: []string{"token.history.points.volume", "token.candles.volume"}},
	{driver: "polymarket", example: "trade-ticket"},
	{driver: "polymarket", example: "search", unsupported: []string{"searchMarkets UNSUPPORTED"}},
	{
		driver: "polymarket", example: "search",
		change: vars{"query": "", "filter": vars{"status": []string{"OPEN"}}},
		absent: []string{"searchMarkets.nodes.category", "searchMarkets.totalCount"},
	},
	{
		driver: "polymarket", example: "portfolio", unsupported: []string{"user.orders UNSUPPORTED"},
		absent: []string{
			"user.balance.cashBalance", "user.balance.totalValue", "user.portfolio.availableCash", "user.portfolio.totalValue",
			"user.portfolio.freshness.asOf", // open positions have midpoints, which have no time
		},
	},
	{driver: "kalshi", example: "price-board", absent: []string{"tokens.price.timestamp"}},
	{
		driver: "kalshi", example: "market-page", absent: []string{
			"market.category", "market.event.title", "market.tags", "market.resolution", "market.tokens.orderbook.sequence",
			"market.tokens.price.freshness.asOf", "market.volume", "market.volume24h", "market.liquidity", // Kalshi counts contracts
		},
	},
	{driver: "kalshi", example: "event-page", absent: []string{"event.volume", "event.markets.nodes.volume24h"}},
	{driver: "kalshi", example: "history-and-candles"},
	{driver: "kalshi", example: "trade-ticket", absent: []string{"token.fillEstimate.freshness.asOf"}},
	{driver: "kalshi", example: "search", unsupported: []string{"searchMarkets UNSUPPORTED"}},
	{
		driver: "kalshi", example: "search", change: vars{"query": "", "filter": vars{"status": []string{"OPEN"}}, "sort": "RELEVANCE"},
		absent: []string{
			"searchMarkets.nodes.category", "searchMarkets.nodes.event.title", "searchMarkets.nodes.liquidity", "searchMarkets.nodes.volume24h",
			"searchMarkets.totalCount",
		},
	},
	{
		driver: "kalshi", example: "portfolio",
		unsupported: []string{"user.balance UNSUPPORTED", "user.orders UNSUPPORTED", "user.portfolio UNSUPPORTED", "user.positions UNSUPPORTED"},
	},
}

// TestExamplesByDriver runs the examples over the simulator of each driver.
func TestExamplesByDriver(t *testing.T) {
	t.Parallel()
	index := regexp.MustCompile(`\.\d+`)
	for i, c := range driverCapabilities {
		t.Run(c.driver+" "+c.example+" "+strconv.Itoa(i), func(t *testing.T) {
			var variables vars
			decode(t, read(t, "examples/"+c.example+".json"), &variables)
			var data any
			var failed []graphError
			synctest.Test(t, func(t *testing.T) {
				s := startInBubble(t, time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), "--demo-driver="+c.driver, "--venue-driver="+c.driver)
				sent := translated(map[string]any(variables), s.simulatedID).(map[string]any)
				for name, value := range c.change {
					sent[name] = value
				}
				data, failed = s.query(t, read(t, "examples/"+c.example+".graphql"), sent, keyOf50)
			})
			var errors []string
			for _, e := range failed {
				errors = append(errors, index.ReplaceAllString(e.String(), ""))
			}
			slices.Sort(errors)
			if errors = slices.Compact(errors); !slices.Equal(errors, c.unsupported) {
				t.Errorf("errors %v, want %v: %+v", errors, c.unsupported, failed)
			}
			for _, path := range missing(data, "") {
				if !slices.Contains(c.absent, path) && !slices.Contains(c.unsupported, path+" UNSUPPORTED") {
					t.Errorf("there is nothing at %s", path)
				}
			}
		})
	}
}

// simulatedID returns the identifier of the simulator for one of the demo venue; "" for another text.
func (s *service) simulatedID(demoID string) string {
	switch {
	case s.Demo.Polymarket != nil:
		return s.Demo.Polymarket.ID(demoID)
	case s.Demo.Kalshi != nil:
		return s.Demo.Kalshi.ID(demoID)
	}
	return ""
}

// translated returns variables with all texts replaced for which id is not empty.
func translated(value any, id func(string) string) any {
	switch v := value.(type) {
	case string:
		if other := id(v); other != "" {
			return other
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = translated(v[i], id)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name := range v {
			out[name] = translated(v[name], id)
		}
		return out
	}
	return value
}
