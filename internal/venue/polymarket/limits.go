package polymarket

import (
	"time"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limits. Polymarket first delays calls above a limit, and only later refuses them. So the client
// cannot learn the limits from errors. Endpoints with the same path share a limit, except the two endpoints for events.
// EndpointEvent has its own limit of 200 calls, and EndpointEventSearch shares a limit of 300 calls with other endpoints. So the
// two endpoints together make at most 500 calls, which is Polymarket's limit for their path.
//
// The Data API also has a limit of 1,000 calls for all its paths together. Its paths for the value and for the activity of an account
// have no limits of their own, so they share what the other two limits leave of it.
func Limits() []rest.PublishedLimit {
	limit := func(calls int, endpoints ...upstream.Endpoint) rest.PublishedLimit {
		return rest.PublishedLimit{Endpoints: endpoints, Calls: calls, Span: 10 * time.Second}
	}
	const data, positions, trades = 1000, 150, 200
	return []rest.PublishedLimit{
		limit(500, upstream.EndpointPrices),
		limit(500, upstream.EndpointSpreads, upstream.EndpointBook),
		limit(1000, upstream.EndpointPriceHistory),
		limit(300, upstream.EndpointSearch, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken, upstream.EndpointMarketBySlug,
			upstream.EndpointEventSearch, upstream.EndpointCategories),
		limit(200, upstream.EndpointEvent), // with EndpointEventSearch above, at most 500 calls to the path of events
		limit(positions, upstream.EndpointPositions),
		limit(trades, upstream.EndpointTrades, upstream.EndpointMarketTrades),
		limit(data-positions-trades, upstream.EndpointBalance, upstream.EndpointHistory),
	}
}
