package ratelimit

import (
	"math"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Family is a separate limit of the venue for some of its endpoints.
type Family struct {
	// Endpoints are the endpoints that share the limit. No other family contains them.
	Endpoints []reqctx.Endpoint
	// Limit is the number of calls that the venue accepts in any period of the length Span. The budget uses only the part of Limit
	// that Usable returns.
	Limit int
	Span  time.Duration
}

// Bucket returns a family that never exceeds a token bucket of the venue. The bucket contains at most maxTokens. Each second the
// venue adds tokensPerSecond, and each call removes tokensPerCall. The span of the family is the time in which an empty bucket
// becomes full. The limit of the family is the number of calls for which a full bucket has tokens.
func Bucket(endpoints []reqctx.Endpoint, tokensPerSecond, maxTokens, tokensPerCall float64) Family {
	return Family{
		Endpoints: endpoints, Limit: max(int(maxTokens/tokensPerCall), 1),
		Span: time.Duration(math.Ceil(max(maxTokens, tokensPerCall) / tokensPerSecond * float64(time.Second))),
	}
}
