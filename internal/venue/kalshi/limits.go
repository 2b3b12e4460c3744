package kalshi

import (
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. A call takes 10. The
// calls that the rate limit admits empty at most half of the bucket. The other half is for a call for several markets: the rate limit
// admits its markets one by one, but Kalshi bills all of them when the call arrives.
func Limits() []rest.PublishedLimit {
	all := rest.PublishedLimit{Refill: bucketTokens, Burst: bucketTokens / 2, Cost: callTokens}
	for e := range reqctx.Endpoint(reqctx.Endpoints) {
		all.Endpoints = append(all.Endpoints, e)
	}
	return []rest.PublishedLimit{all}
}
