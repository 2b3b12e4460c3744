package kalshi

import (
	"slices"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. Kalshi charges a
// call for books or candlesticks once for each market that the call reads. So these calls get three quarters of the limit, and all
// other calls get one quarter. Limits assumes that each call reads the greatest number of markets. This number depends on whether
// the driver has a key. Each part of the limit allows at least three calls at once.
func Limits(hasKey bool) []rest.PublishedLimit {
	part := func(tokens, cost float64, endpoints ...upstream.Endpoint) rest.PublishedLimit {
		return rest.PublishedLimit{Endpoints: endpoints, Refill: tokens, Burst: tokens, Cost: cost}
	}
	perMarket := []rest.PublishedLimit{part(bucketTokens*3/4, maxBilled*callTokens, upstream.EndpointBook, upstream.EndpointPriceHistory)}
	if !hasKey {
		perMarket = []rest.PublishedLimit{
			part(bucketTokens*9/20, callTokens, upstream.EndpointBook), part(bucketTokens*6/20, maxBilledUnsigned*callTokens, upstream.EndpointPriceHistory),
		}
	}
	others := part(bucketTokens/4, callTokens)
	for e := range upstream.Endpoint(upstream.Endpoints) {
		if !slices.ContainsFunc(perMarket, func(l rest.PublishedLimit) bool { return slices.Contains(l.Endpoints, e) }) {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	return append(perMarket, others)
}
