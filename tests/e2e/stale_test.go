package e2e

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo/faults"
)

// TestStaleReason checks that each response says whether a price is stale, and why, while the venue fails and recovers.
func TestStaleReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t, startTime)
		const query = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price freshness { stale reason } } }`
		variables := vars{"ids": s.openTokens(1)}
		advance := func(d time.Duration) {
			s.clock.Advance(d)
			time.Sleep(d) // meanwhile, the service retries the refresh
		}
		wantFreshness := func(when, freshness string) {
			t.Helper()
			wantJSON(t, when, at(s.ask(t, query, variables, anonymous), "tokenPrices.0.freshness"), freshness)
			synctest.Wait()
		}
		wantFreshness("at first", `{"stale":false,"reason":null}`)
		s.setFaults(t, faults.Fault{Kind: faults.Status})
		advance(2 * time.Second)
		wantFreshness("after the fresh time", `{"stale":true,"reason":"EXPIRED"}`)
		advance(2 * time.Second)
		wantFreshness("after a failed refresh", `{"stale":true,"reason":"UPSTREAM_DOWN"}`)
		s.setFaults(t)
		advance(5 * time.Second)
		s.ask(t, query, variables, anonymous)
		synctest.Wait()
		wantFreshness("after a refresh", `{"stale":false,"reason":null}`)
	})
}
