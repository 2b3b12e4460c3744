package kalshi

import (
	"slices"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. Kalshi
// charges a call for books or candlesticks once for each market that the call reads. So these calls get three quarters of the
// limit, and all other calls get one quarter. Limits assumes that a call for books or candlesticks reads maxBilled markets.
func Limits() []rest.PublishedLimit {
	const perMarketTokens = bucketTokens * 3 / 4
	perMarket := rest.PublishedLimit{
		Endpoints: []reqctx.Endpoint{reqctx.EndpointBook, reqctx.EndpointPriceHistory}, Refill: perMarketTokens, Burst: perMarketTokens, Cost: maxBilled * callTokens,
	}
	others := rest.PublishedLimit{Refill: bucketTokens - perMarketTokens, Burst: bucketTokens - perMarketTokens, Cost: callTokens}
	for e := range reqctx.Endpoint(reqctx.Endpoints) {
		if !slices.Contains(perMarket.Endpoints, e) {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	return []rest.PublishedLimit{perMarket, others}
}
