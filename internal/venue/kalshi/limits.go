package kalshi

import (
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. Kalshi charges a
// call for candlesticks once for each market that the call reads. So books and candlesticks get three quarters of the limit, and all
// other calls get one quarter. Limits assumes that each call reads the greatest number of markets. Each part of the limit allows at
// least three calls at once.
func Limits() []rest.PublishedLimit {
	part := func(tokens, cost float64, endpoints ...upstream.Endpoint) rest.PublishedLimit {
		return rest.PublishedLimit{Endpoints: endpoints, Refill: tokens, Burst: tokens, Cost: cost}
	}
	others := part(bucketTokens*5/20, callTokens)
	for e := range upstream.Endpoint(upstream.Endpoints) {
		if e != upstream.EndpointBook && e != upstream.EndpointPriceHistory {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	return []rest.PublishedLimit{
		part(bucketTokens*9/20, callTokens, upstream.EndpointBook), part(bucketTokens*6/20, maxBilled*callTokens, upstream.EndpointPriceHistory), others,
	}
}
