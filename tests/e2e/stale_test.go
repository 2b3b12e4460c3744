package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
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

// TestStaleValuesAreRefreshedTogether checks that the refreshes of stale values make no more calls than the first query. A third
// query must make no call.
func TestStaleValuesAreRefreshedTogether(t *testing.T) {
	t.Parallel()
	type page struct {
		query     string
		variables vars
	}
	pages := map[string]func(s *service) page{
		"search of 20 markets": func(*service) page {
			return page{`{ searchMarkets(first: 20, sort: VOLUME) { nodes { tokens { price { price } } } } }`, nil}
		},
		"thirty aliases": func(s *service) page {
			return page{"{ " + aliases(s.openTokens(30), "token(tokenId: %q) { price { price } market { question } }") + " }", nil}
		},
		"open orders": func(*service) page {
			return page{`{ user(address: "` + addressOf50 + `") { orders { nodes { market { question } token { price { price } spread { spread } } } } } }`, nil}
		},
		"watchlist": func(s *service) page {
			return page{`query ($ids: [String!]!) { tokens(tokenIds: $ids) { outcome market { question } price { price } spread { spread } orderbook { spread } } }`,
				vars{"ids": s.openTokens(10)}}
		},
		"watchlist of nodes": func(s *service) page {
			return page{`query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Token { market { question } price { price } spread { spread } } } }`,
				vars{"ids": tokenNodes(s.openTokens(30))}}
		},
	}
	files, err := filepath.Glob("examples/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d examples and the error %v, want at least one example and no error", len(files), err)
	}
	for _, file := range files {
		pages[filepath.Base(file)] = func(*service) page {
			p := page{query: read(t, file)}
			decode(t, read(t, strings.TrimSuffix(file, ".graphql")+".json"), &p.variables)
			return p
		}
	}
	for name, newPage := range pages {
		for _, delay := range []time.Duration{3500 * time.Millisecond, 20 * time.Second, 90 * time.Second} {
			t.Run(fmt.Sprintf("%s after %v", name, delay), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := startInBubble(t, startTime)
					p := newPage(s)
					ask := func() calls {
						return s.callsDuring(func() {
							s.ask(t, p.query, p.variables, keyOf50)
							time.Sleep(time.Second) // wait for the background refreshes
						})
					}
					first := ask()
					s.clock.Advance(delay)
					second := ask()
					for endpoint, n := range second {
						if n[0] > first[endpoint][0] || n[1] > first[endpoint][1] {
							t.Errorf("%s: the refreshes read %d keys in %d calls, want at most %d keys in %d calls, as for the first query", endpoint, n[1], n[0], first[endpoint][1], first[endpoint][0])
						}
					}
					wantCalls(t, ask(), calls{})
				})
			})
		}
	}
}

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
			// Equal requests leave a place free for the execution that they wait for. It may have got one before them.
			least := 24
			if query(0) == query(1) {
				least = 23
			}
			eventually(t, "24 operations of the client execute, and its other requests are refused", func() bool {
				stats := s.API.Stats()
				return stats.Executing >= least && stats.Executing <= 24 && stats.Waiting == 0
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

// TestThrottledUntil checks serviceStatus.throttledUntil, the time from which the rate limit allows calls again. In one
// subtest, the service has used up the limit. In the other, clients with the service's address have used up the limit.
func TestThrottledUntil(t *testing.T) {
	const status = `{ serviceStatus { throttledUntil } }`
	startLimited := func(t *testing.T) *service {
		return startAt(t, time.Now(), "--demo-markets=60", "--demo-public-per-minute=20")
	}
	// throttledFor returns the time from now, by the service's clock, to throttledUntil. It returns false if throttledUntil is null.
	throttledFor := func(t *testing.T, s *service) (time.Duration, bool) {
		t.Helper()
		v := at(s.ask(t, status, nil, anonymous), "serviceStatus.throttledUntil")
		if v == nil {
			return 0, false
		}
		when, err := time.Parse(time.RFC3339Nano, v.(string))
		if err != nil {
			t.Fatal(err)
		}
		return when.Sub(s.clock.Now()).Round(time.Second), true
	}
	book := func(t *testing.T, s *service, id string) (code string) {
		t.Helper()
		_, errors := s.query(t, `query ($id: String!) { token(tokenId: $id) { orderbook { sequence } } }`, vars{"id": id}, anonymous)
		if len(errors) > 0 {
			code = errors[0].Extensions.Code
		}
		return code
	}

	t.Run("the service has used up the limit", func(t *testing.T) {
		s := startLimited(t)
		for i, id := range s.openTokens(20) {
			wait, throttled := throttledFor(t, s)
			code := book(t, s, id)
			switch {
			case i < 19 && (throttled || code != ""):
				t.Fatalf("after %d calls: throttledUntil is %s ahead (null: %t) and a query got the code %q, want null and no error", i, wait, !throttled, code)
			case i == 19 && (!throttled || wait != time.Minute || code != "RATE_LIMITED"):
				t.Errorf("after %d calls: throttledUntil is %s ahead (null: %t) and a query got the code %q, want a minute and RATE_LIMITED", i, wait, !throttled, code)
			}
		}
		s.clock.Advance(time.Minute + time.Second)
		if wait, throttled := throttledFor(t, s); throttled {
			t.Errorf("after the minute: throttledUntil is %s ahead, want null", wait)
		}
		if code := book(t, s, s.openTokens(20)[19]); code != "" {
			t.Errorf("after the minute: a query got the code %s, want no error", code)
		}
	})

	t.Run("other clients have used up the limit", func(t *testing.T) {
		s := startLimited(t)
		ids := s.openTokens(2)
		for range 20 {
			s.raw(t, "/api/exchange/orderbook", "tokenId="+ids[0], anonymous)
		}
		if code := book(t, s, ids[0]); code != "RATE_LIMITED" {
			t.Errorf("a query got the code %q, want RATE_LIMITED", code)
		}
		if wait, throttled := throttledFor(t, s); !throttled || wait != time.Minute {
			t.Errorf("throttledUntil is %s ahead (null: %t), want a minute", wait, !throttled)
		}
	})
}

// TestAKeyThatIsUsedUpThrottlesNobodyElse checks calls without a key while other clients have used up the rate limit of a key, or a
// part of this limit. The service must not throttle these calls.
func TestAKeyThatIsUsedUpThrottlesNobodyElse(t *testing.T) {
	for name, otherCalls := range map[string]int{"a part is used up": 50, "the limit is used up": 60} {
		t.Run(name, func(t *testing.T) {
			s := startAt(t, time.Now(), "--demo-markets=60", "--demo-public-per-minute=20", "--demo-key-per-minute=60")
			for range otherCalls {
				s.raw(t, "/api/user/balance", "address="+addressOf3, keyOf3)
			}
			_, errors := s.query(t, `query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`, vars{"a": addressOf3}, keyOf3)
			if limited := len(errors) == 1 && errors[0].Extensions.Code == "RATE_LIMITED"; limited != (otherCalls == 60) {
				t.Errorf("after %d other calls, a query with the key got the errors %v, want RATE_LIMITED only after 60", otherCalls, errors)
			}
			data := s.ask(t, `query ($id: String!) { serviceStatus { throttledUntil } token(tokenId: $id) { orderbook { sequence } } }`,
				vars{"id": s.openTokens(1)[0]}, anonymous)
			if v := at(data, "serviceStatus.throttledUntil"); v != nil {
				t.Errorf("throttledUntil is %v, want null", v)
			}
			if at(data, "token.orderbook") == nil {
				t.Errorf("a query without the key got %s, want a book", asJSON(data))
			}
		})
	}
}
