package rest

import (
	"time"

	"oddsgraph/internal/market/reqctx"
)

// PublishedLimit is a limit that a venue documents for some endpoints: Calls in any Span, or a bucket of tokens if Refill is set.
type PublishedLimit struct {
	Endpoints []reqctx.Endpoint
	Calls     int
	Span      time.Duration
	// Refill is the number of tokens that the venue adds each second, up to Burst. A call costs Cost tokens.
	Refill, Burst, Cost float64
}
