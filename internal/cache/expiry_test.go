package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// TestUsersExpireApart checks that data of different users expires at different times, and that the balance and the positions of
// one user expire together.
func TestUsersExpireApart(t *testing.T) {
	const users, fresh, step = 1000, 2 * time.Second, 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v, func(cfg *Config) { cfg.User = TTL{Fresh: fresh} })
		addresses := make([]market.Address, users)
		for i := range addresses {
			addresses[i] = market.Address(fmt.Sprintf("0x%040x", i))
		}
		read := func(from int) (calls []ask) {
			readAll(t.Context(), c.Balances(), addresses...)
			readAll(t.Context(), c.Positions(), addresses...)
			return v.calls()[from:]
		}
		if n := len(read(0)); n != 2*users {
			t.Fatalf("the first reads made %d calls, want %d", n, 2*users)
		}
		begun, seen := time.Now(), 2*users
		var times []time.Duration // the times from the first reads to the next calls for balances
		for len(times) < users {
			time.Sleep(step)
			age := time.Since(begun)
			calls, again := read(seen), map[string]int{}
			for _, a := range calls {
				if a.endpoint == upstream.EndpointBalance {
					times = append(times, age)
				}
				again[a.keys[0]]++
			}
			for address, n := range again {
				if n != 2 {
					t.Fatalf("address %s: %d of its 2 entries expired after %v, want both", address, n, age)
				}
			}
			if seen += len(calls); age < fresh*3/4 && len(calls) > 0 || age > fresh {
				t.Fatalf("got %d calls after %v, want calls only between %v and %v", len(calls), age, fresh*3/4, fresh)
			}
		}
		if spread := times[users-1] - times[0]; spread < fresh/5 {
			t.Errorf("all calls were made within %v, want at least %v", spread, fresh/5)
		}
		for i := range users - users/3 {
			if within := times[i+users/3] - times[i]; within < 100*time.Millisecond {
				t.Errorf("a third of the calls was made within %v, want at least 100ms", within)
			}
		}
	})
}
