package kalshi

import (
	"slices"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. Calls
// that read books or candlesticks get three quarters of this limit, because Kalshi charges such a call once for each market that it
// reads. Limits assumes that each of these calls reads maxBilled markets. The remaining quarter is for all other calls.
func Limits() []rest.PublishedLimit {
	const forBilled = bucketTokens * 3 / 4
	billed := rest.PublishedLimit{
		Endpoints: []reqctx.Endpoint{reqctx.EndpointBook, reqctx.EndpointPriceHistory}, Refill: forBilled, Burst: forBilled, Cost: maxBilled * callTokens,
	}
	others := rest.PublishedLimit{Refill: bucketTokens - forBilled, Burst: bucketTokens - forBilled, Cost: callTokens}
	for e := range reqctx.Endpoint(reqctx.Endpoints) {
		if !slices.Contains(billed.Endpoints, e) {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	return []rest.PublishedLimit{billed, others}
}
