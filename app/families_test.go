package app

import (
	"testing"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/upstream"
)

// TestDocumentedLimits checks that the budget applies the documented limits of a driver's venue. The generic driver has no
// documented limit, so the configured limit of 20 calls a minute applies. The budget leaves a twentieth of each limit unused, and
// at least one call.
func TestDocumentedLimits(t *testing.T) {
	for _, test := range []struct {
		driver string
		want   int
	}{{"generic", 19}, {"polymarket", 475}, {"kalshi", 8}} {
		driver, want := test.driver, test.want
		b := newBudget(config.Venue{Driver: driver, PublicPerMinute: 20}, market.SystemClock{}, true, ratelimit.Sharing{})
		admitted := 0
		for range 600 {
			r := b.Reserve(upstream.CallRequest{Endpoint: upstream.EndpointBook, Priority: upstream.PriorityPrices, Deadline: time.Now()})
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
