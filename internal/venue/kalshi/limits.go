package kalshi

import (
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. A call takes 10.
func Limits() []rest.PublishedLimit {
	all := rest.PublishedLimit{Refill: 200, Burst: 200, Cost: 10}
	for e := range reqctx.Endpoint(reqctx.Endpoints) {
		all.Endpoints = append(all.Endpoints, e)
	}
	return []rest.PublishedLimit{all}
}
