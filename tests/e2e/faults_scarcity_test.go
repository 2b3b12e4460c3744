package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oddsgraph/internal/demo/faults"
)

const pricesQuery = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price freshness { stale } } }`

// queryFrom sends a query for tokens from the given client address.
func (s *service) queryFrom(ctx context.Context, from netip.Addr, query string, ids ...string) (r reply, err error) {
	var out graphResult
	began := time.Now()
	err = s.postFrom(ctx, from, query, vars{"ids": ids}, anonymous, &out)
	return reply{data: out.Data, errors: out.Errors, took: time.Since(began)}, err
}

// answerCount returns how many of the requested values arrived. Each other value must have an error RATE_LIMITED with a retry time
// of at most five minutes. The response must arrive within answerLimit.
func (r *reply) answerCount(asked int) (int, error) {
	if r.took > answerLimit {
		return 0, fmt.Errorf("the answer took %v", r.took)
	}
	for _, e := range r.errors {
		if ms := e.Extensions.RetryAfterMs; e.Extensions.Code != "RATE_LIMITED" || ms <= 0 || ms > 5*60_000 {
			return 0, fmt.Errorf("the error %s has the retry time %d ms", e, ms)
		}
	}
	return asked - len(r.errors), nil
}

// TestThrottledPrices reads prices after the venue has refused a call with a Retry-After of five minutes. The service must return
// stale prices until they are five minutes old, and must then refuse the query.
func TestThrottledPrices(t *testing.T) {
	t.Parallel()
	// The venue accepts 40 calls per minute. The clock shows almost the real time, because deadlines are in real time.
	s := startAt(t, time.Now(), longCallTimeout, "--request-timeout=30s", "--demo-markets=300", "--demo-public-per-minute=40", "--cache-stretch=5m", "--log-level=error")
	ids := s.openTokens(6)
	ask := func(when string, stale bool, refused int) {
		before := s.venue.Stats().Requests["/api/exchange/prices"]
		got, err := s.queryFrom(t.Context(), client(1), pricesQuery, ids[:3]...)
		n, wrong := got.answerCount(3)
		if err != nil || wrong != nil || n != 3-refused {
			t.Errorf("%s: got %d prices, want %d: %v, %v", when, n, 3-refused, wrong, err)
		}
		for i, id := range ids[:3] {
			v := at(got.data, fmt.Sprint("tokenPrices.", i))
			if q, _ := s.venue.Quote(id); v != nil && (text(v, "price") != plain(q.Price) || at(v, "freshness.stale") != stale) {
				t.Errorf("%s: a price is %s", when, asJSON(v))
			}
		}
		if asked := s.venue.Stats().Requests["/api/exchange/prices"] - before; asked != 0 && (stale || refused > 0) {
			t.Errorf("%s: the venue got %d calls for prices, want none", when, asked)
		}
	}
	ask("at first", false, 0)
	s.clock.Advance(10 * time.Second)
	s.setFaults(t, faults.Fault{Path: "/api/exchange/prices", Kind: faults.Status, Status: 429, RetryAfter: "300"})
	if got, err := s.queryFrom(t.Context(), client(1), pricesQuery, ids[5]); err != nil || len(got.errors) != 1 {
		t.Errorf("the throttled price: got the GraphQL errors %v and the error %v, want one GraphQL error", got.errors, err)
	}
	s.clock.Advance(50 * time.Second)
	ask("after a minute", true, 0)
	s.clock.Advance(240 * time.Second)
	ask("a second before the end", true, 0)
	s.clock.Advance(2 * time.Second)
	ask("after five minutes", true, 3)
}
