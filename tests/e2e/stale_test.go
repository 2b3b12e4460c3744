package e2e

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
)

// TestStaleReason checks that each response says whether a price is stale, and why, while the venue fails and recovers.
func TestStaleReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t, startTime)
		const query = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price freshness { stale reason } } }`
		variables := vars{"ids": s.openTokens(1)}
		pass := func(d time.Duration) {
			s.clock.Advance(d)
			time.Sleep(d) // meanwhile, the service retries the refresh
		}
		want := func(when, freshness string) {
			t.Helper()
			wantJSON(t, when, at(s.ask(t, query, variables, anonymous), "tokenPrices.0.freshness"), freshness)
			synctest.Wait()
		}
		want("at first", `{"stale":false,"reason":null}`)
		s.setFaults(t, demo.Fault{Path: "*", Kind: demo.FaultStatus})
		pass(2 * time.Second)
		want("after the fresh time", `{"stale":true,"reason":"EXPIRED"}`)
		pass(2 * time.Second)
		want("after a failed refresh", `{"stale":true,"reason":"UPSTREAM_DOWN"}`)
		s.setFaults(t)
		pass(5 * time.Second)
		s.ask(t, query, variables, anonymous)
		synctest.Wait()
		want("after a refresh", `{"stale":false,"reason":null}`)
	})
}
