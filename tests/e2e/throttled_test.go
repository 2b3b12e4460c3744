package e2e

import (
	"testing"
	"time"
)

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
