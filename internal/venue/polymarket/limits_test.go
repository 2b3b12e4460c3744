package polymarket

import (
	"slices"
	"testing"
	"time"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// TestLimitsAreThosePublished compares the sums of the limits with https://docs.polymarket.com/api-reference/rate-limits, for each
// path and for each API. Each sum counts every limit that contains one of the endpoints.
func TestLimitsAreThosePublished(t *testing.T) {
	limits := Limits()
	sum := func(endpoints ...reqctx.Endpoint) (calls int) {
		for _, l := range limits {
			if l.Span != 10*time.Second {
				t.Errorf("the limit of %v is for %s, want 10 s", l.Endpoints, l.Span)
			}
			for _, e := range l.Endpoints {
				if slices.Contains(endpoints, e) {
					calls += l.Calls
					break
				}
			}
		}
		return calls
	}
	all := func(paths rest.Paths) (list []reqctx.Endpoint) {
		for e, path := range paths {
			if path != "" {
				list = append(list, reqctx.Endpoint(e))
			}
		}
		return list
	}
	for _, test := range []struct {
		what      string
		published int
		endpoints []reqctx.Endpoint
	}{
		{"Data API", 1000, all(dataPaths)},
		{"/v2/positions", 150, []reqctx.Endpoint{reqctx.EndpointPositions}},
		{"/v2/trades", 200, []reqctx.Endpoint{reqctx.EndpointTrades, reqctx.EndpointMarketTrades}},
		{"Gamma API", 4000, all(gammaPaths)},
		{"/markets and /events", 900, all(gammaPaths)},
		{"/markets", 300, []reqctx.Endpoint{reqctx.EndpointSearch, reqctx.EndpointMarketsByID, reqctx.EndpointMarketsByToken, reqctx.EndpointMarketBySlug, reqctx.EndpointCategories}},
		{"/events", 500, []reqctx.Endpoint{reqctx.EndpointEvent, reqctx.EndpointEventSearch}},
		{"/public-search", 350, []reqctx.Endpoint{reqctx.EndpointSearch, reqctx.EndpointEventSearch}},
		{"CLOB API", 9000, all(clobPaths)},
		{"/midpoints", 500, []reqctx.Endpoint{reqctx.EndpointPrices}},
		{"/books", 500, []reqctx.Endpoint{reqctx.EndpointSpreads, reqctx.EndpointBook}},
		{"/prices-history", 1000, []reqctx.Endpoint{reqctx.EndpointPriceHistory}},
	} {
		if got := sum(test.endpoints...); got == 0 || got > test.published {
			t.Errorf("%s: the limits allow %d calls, want at most %d", test.what, got, test.published)
		}
	}
	if got := sum(all(dataPaths)...); got != 1000 {
		t.Errorf("the limits allow %d calls of the Data API, want all 1,000", got)
	}
	seen := map[reqctx.Endpoint]bool{}
	for _, l := range limits {
		for _, e := range l.Endpoints {
			if seen[e] {
				t.Errorf("the endpoint %s has two limits", e)
			}
			seen[e] = true
		}
	}
	for _, paths := range []rest.Paths{gammaPaths, clobPaths, dataPaths} {
		for _, e := range all(paths) {
			if !seen[e] {
				t.Errorf("the endpoint %s has no limit", e)
			}
		}
	}
}
