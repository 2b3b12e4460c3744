package app

import (
	"testing"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
)

// TestDocumentedLimits checks that the budget applies the documented limits of a driver's venue. The generic driver has no
// documented limit, so the configured limit of 20 calls a minute applies. The budget leaves a twentieth of each limit unused, and
// at least one call.
func TestDocumentedLimits(t *testing.T) {
	for driver, want := range map[string]int{"generic": 19, "polymarket": 475, "kalshi": 2} {
		b := newBudget(config.Venue{Driver: driver, PublicPerMinute: 20}, market.SystemClock{}, nil, ratelimit.Sharing{})
		admitted := 0
		for range 600 {
			r := b.Reserve(reqctx.CallRequest{Endpoint: reqctx.EndpointBook, Priority: reqctx.PriorityPrices, Deadline: time.Now()})
			if <-r.Decided(); r.Err() != nil {
				break
			}
			admitted++
		}
		b.Close()
		if admitted != want {
			t.Errorf("the budget for the driver %s admits %d calls at once, want %d", driver, admitted, want)
		}
	}
}
