package rest

import (
	"time"

	"oddsgraph/internal/upstream"
)

// PublishedLimit is a limit that a venue documents for some endpoints. If Refill is 0, Calls is the greatest number of calls in any
// period of the length Span. If Refill is not 0, the limit is a bucket of tokens.
type PublishedLimit struct {
	Endpoints []upstream.Endpoint
	Calls     int
	Span      time.Duration
	// Refill is the number of tokens that the venue adds each second, up to Burst. A call costs Cost tokens.
	Refill, Burst, Cost float64
}
