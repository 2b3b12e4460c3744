package kalshi

import (
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. A call costs 10.
// Burst is only half of the bucket. The other half is a reserve for a call for several markets: the rate limit admits the markets
// of such a call one by one, but Kalshi charges for all of them when the call arrives.
func Limits() []rest.PublishedLimit {
	all := rest.PublishedLimit{Refill: bucketTokens, Burst: bucketTokens / 2, Cost: callTokens}
	for e := range reqctx.Endpoint(reqctx.Endpoints) {
		all.Endpoints = append(all.Endpoints, e)
	}
	return []rest.PublishedLimit{all}
}
