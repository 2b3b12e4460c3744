package polymarket

import (
	"slices"
	"testing"
	"time"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// TestLimitsAreThosePublished compares the sums of the limits with https://docs.polymarket.com/api-reference/rate-limits, for each
// path and for each API. Each sum counts every limit that contains one of the endpoints.
func TestLimitsAreThosePublished(t *testing.T) {
	limits := Limits()
	sum := func(endpoints ...upstream.Endpoint) (calls int) {
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
	all := func(paths rest.Paths) (list []upstream.Endpoint) {
		for e, path := range paths {
			if path != "" {
				list = append(list, upstream.Endpoint(e))
			}
		}
		return list
	}
	for _, test := range []struct {
		what      string
		published int
		endpoints []upstream.Endpoint
	}{
		{"Data API", 1000, all(dataPaths)},
		{"/v2/positions", 150, []upstream.Endpoint{upstream.EndpointPositions}},
		{"/v2/trades", 200, []upstream.Endpoint{upstream.EndpointTrades, upstream.EndpointMarketTrades}},
		{"Gamma API", 4000, all(gammaPaths)},
		{"/markets and /events", 900, all(gammaPaths)},
		{"/markets", 300, []upstream.Endpoint{upstream.EndpointSearch, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken, upstream.EndpointMarketBySlug, upstream.EndpointCategories}},
		{"/events", 500, []upstream.Endpoint{upstream.EndpointEvent, upstream.EndpointEventSearch}},
		{"/public-search", 350, []upstream.Endpoint{upstream.EndpointSearch, upstream.EndpointEventSearch}},
		{"CLOB API", 9000, all(clobPaths)},
		{"/midpoints", 500, []upstream.Endpoint{upstream.EndpointPrices}},
		{"/books", 500, []upstream.Endpoint{upstream.EndpointSpreads, upstream.EndpointBook}},
		{"/prices-history", 1000, []upstream.Endpoint{upstream.EndpointPriceHistory}},
	} {
		if got := sum(test.endpoints...); got == 0 || got > test.published {
			t.Errorf("%s: the limits allow %d calls, want at most %d", test.what, got, test.published)
		}
	}
	if got := sum(all(dataPaths)...); got != 1000 {
		t.Errorf("the limits allow %d calls of the Data API, want all 1,000", got)
	}
	seen := map[upstream.Endpoint]bool{}
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
