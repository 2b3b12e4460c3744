package venue

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// TestSpreadsWithoutTheEndpoint reads spreads of venues that do not serve them, from order books, and finds out only once.
func TestSpreadsWithoutTheEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		// first and later are the calls of the first read of two tokens and of one after it.
		first, later int
	}{
		"404": {answerWith(404, "application/json", `{"success":false}`), 5, 2},
		"400": {answerWith(400, "application/json", `{"success":false}`), 5, 2},
		"501": {answerWith(501, "application/json", ``), 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVenue(t, map[string]http.HandlerFunc{
				paths[market.EndpointSpreads]: test.serve,
				paths[market.EndpointBook]:    answer(`{"bids":[{"price":0.4,"size":1}],"asks":[{"price":0.43,"size":2}],"spread":0.03}`),
			})
			clock := &heldClock{t: time.Unix(1_700_000_000, 0)}
			c := v.client(t, func(cfg *Config) { cfg.Clock = clock })
			for i, calls := range []int{test.first, test.later} {
				before := v.count()
				results, err := c.Spreads(t.Context(), []string{"101", "102"})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range results {
					if r.Err != nil || r.Value == nil || r.Value.BestBid.String() != "0.4" || r.Value.BestAsk.String() != "0.43" || r.Value.Spread.String() != "0.03" {
						t.Errorf("read %d: %+v", i, r)
					}
				}
				if got := v.count() - before; got != calls {
					t.Errorf("read %d: %d calls, want %d: %v", i, got, calls, v.queries()[before:])
				}
			}
		})
	}
}

// TestSpreadsThatExist leaves the books alone where the venue says of one token that it knows nothing, or is busy.
func TestSpreadsThatExist(t *testing.T) {
	var status atomic.Int32
	v := newVenue(t, map[string]http.HandlerFunc{paths[market.EndpointSpreads]: func(w http.ResponseWriter, r *http.Request) {
		answerWith(int(status.Load()), "application/json", `{"bestBid":0.4,"bestAsk":0.43}`)(w, r)
	}})
	c := v.client(t)
	for i, code := range []int32{200, 404, 429} {
		status.Store(code)
		if _, err := c.Spreads(t.Context(), []string{"101"}); (err != nil) != (code == 429) || v.count() != i+1 { // a call for a book fails the test
			t.Errorf("%d: %v after %d calls", code, err, v.count())
		}
	}
}
