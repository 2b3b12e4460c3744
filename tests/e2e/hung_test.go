package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestHungEndpointLeavesRoomForOtherRequests checks that a client still gets values that need no call to the venue while most of
// the client's requests wait for a hung endpoint. Equal requests are a separate case, because they share an execution.
func TestHungEndpointLeavesRoomForOtherRequests(t *testing.T) {
	t.Parallel() // the test mostly waits
	for name, query := range map[string]func(n int) string{
		"different requests": func(n int) string { return fmt.Sprintf(`{ market(marketId: "unknown-%d") { slug } }`, n) },
		"equal requests":     func(int) string { return `{ market(marketId: "unknown") { slug } }` },
	} {
		t.Run(name, func(t *testing.T) {
			venue := newSlowVenue(t)
			// There are 64 places for running operations. Half of them are for operations that wait for the venue, of which one
			// client may take 24.
			s := startLive(t, append(venue.patientArgs(), "--max-operations=64", "--trusted-proxies=127.0.0.1")...)
			s.waitForStream(t)
			s.venue = venue.demo
			ask := func(query string) *http.Request {
				r := s.request(t, asJSON(vars{"query": query}), anonymous)
				r.Header.Set("X-Forwarded-For", "192.0.2.1")
				return r
			}
			cached := fmt.Sprintf(`{ tokenPrices(tokenIds: [%q]) { price } }`, s.openTokens(1)[0])
			if got := s.do(t, ask(cached)); got.status != http.StatusOK {
				t.Fatalf("%+v", got)
			}
			release := venue.hold("/api/exchange/market-details")
			var all sync.WaitGroup
			defer all.Wait()
			defer release()
			const hungRequests = 40
			for n := range hungRequests {
				all.Go(func() {
					if got := s.do(t, ask(query(n))); got.status != http.StatusOK && got.status != http.StatusServiceUnavailable {
						t.Errorf("a request to the hung endpoint got %+v", got)
					}
				})
			}
			eventually(t, "24 operations of the client execute, and its other requests are refused", func() bool {
				stats := s.API.Stats()
				return stats.Executing == 24 && stats.Waiting == 0
			})
			for n := range 5 {
				if got := s.do(t, ask(strings.Replace(cached, "price }", fmt.Sprintf("a%d: price }", n), 1))); got.status != http.StatusOK || strings.Contains(got.body, "errors") {
					t.Errorf("a query for a cached value got %+v", got)
				}
			}
			if got := s.do(t, ask(`{ serviceStatus { version } }`)); got.status != http.StatusOK {
				t.Errorf("a query that needs no venue got %+v", got)
			}
		})
	}
}
