package generic

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/upstream"
	"oddsgraph/tests/tool"
)

// pricesUpTo returns a handler that responds with prices. If the URL has more than maxBytes bytes or more than maxIDs ids, the
// handler responds with the given status.
func pricesUpTo(maxBytes, maxIDs, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := strings.Split(r.URL.Query().Get("tokenIds")+r.URL.Query().Get("tokenId"), ",")
		if len("http://"+r.Host+r.URL.RequestURI()) > maxBytes || len(asked) > maxIDs {
			answerWith(status, "application/json", `{"success":false,"message":"too long"}`)(w, r)
			return
		}
		var rows []string
		for _, id := range asked {
			rows = append(rows, fmt.Sprintf(`{"tokenId":%q,"price":0.5}`, id))
		}
		answer(`{"prices":[`+strings.Join(rows, ",")+`]}`)(w, r)
	}
}

// TestListsFitURLs checks how many calls the client makes for lists of short and long ids, and that no URL is too long.
func TestListsFitURLs(t *testing.T) {
	for _, tt := range []struct{ ids, digits, maxURL, calls int }{
		{50, 19, 0, 1}, {90, 19, 0, 1}, {26, 77, 0, 2}, {24, 77, 0, 1}, {50, 77, 8 << 10, 1}, {8, 256, 0, 2}, {100, 3, 0, 1}, {101, 3, 0, 2},
	} {
		length := max(tt.maxURL, DefaultMaxURL)
		v := newVenue(t, everywhere(pricesUpTo(length, 1000, 414)))
		c := v.client(t, func(cfg *Config) { cfg.MaxURL = tt.maxURL })
		ids := idsOf(fmt.Sprintf("%%0%dd", tt.digits), tt.ids)
		if got := c.Cost(upstream.EndpointPrices, tt.ids, tt.ids*tt.digits); got != tt.calls {
			t.Errorf("the cost of %d ids of %d digits is %d, want %d", tt.ids, tt.digits, got, tt.calls)
		}
		results, err := c.Prices(t.Context(), ids)
		if err != nil || v.count() != tt.calls {
			t.Errorf("the read of %d ids of %d digits returned the error %v after %d calls, want %d calls", tt.ids, tt.digits, err, v.count(), tt.calls)
		}
		for i, r := range results {
			if r.Value == nil || r.Value.TokenID != ids[i] {
				t.Errorf("the result of %s is %+v, want its price", ids[i], r)
			}
		}
		for _, r := range v.requests {
			if n := len(v.URL + r.URL.RequestURI()); n > length {
				t.Errorf("a URL has %d bytes, want at most %d", n, length)
			}
		}
	}
}

// TestURLLimitIsLearned checks that the client halves a list that the venue refuses because the URL is too long or the list has too
// many ids. Until relearnAfter has passed, all lists must have an accepted length.
func TestURLLimitIsLearned(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"414": pricesUpTo(1300, 1000, 414), "431": pricesUpTo(1300, 1000, 431), "400": pricesUpTo(1300, 1000, 400), "400 for too many ids": pricesUpTo(10_000, 50, 400),
	} {
		t.Run(name, func(t *testing.T) {
			v := newVenue(t, everywhere(h))
			clock := tool.NewClock(time.Unix(1_700_000_000, 0))
			c := v.client(t, func(cfg *Config) { cfg.Clock = clock })
			ids := idsOf("%019d", 80)
			for i, calls := range []int{3, 2, 2} {
				results, err := c.Prices(t.Context(), ids)
				must(t, err)
				for i, r := range results {
					if r.Value == nil || r.Value.TokenID != ids[i] {
						t.Errorf("the result of %s is %+v, want its price", ids[i], r)
					}
				}
				if got := v.count(); got != calls {
					t.Errorf("read %d made %d calls, want %d", i, got, calls)
				}
				v.mu.Lock()
				v.requests = nil
				v.mu.Unlock()
			}
			if got := c.Cost(upstream.EndpointPrices, 80, 80*19); got != 2 {
				t.Errorf("the cost of 80 ids is %d, want 2", got)
			}
			clock.Advance(relearnAfter)
			if got := c.Cost(upstream.EndpointPrices, 80, 80*19); got != 1 {
				t.Errorf("after relearnAfter, the cost of 80 ids is %d, want 1", got)
			}
		})
	}
}

// TestParameterNamesAreLearned checks which id parameters the client tries if the venue accepts only one of them.
func TestParameterNamesAreLearned(t *testing.T) {
	for _, tt := range []struct {
		accepted string
		names    DetailNames
		// calls contains the id parameter of each expected call. The test makes three reads: of two markets, of one market, and of
		// a market that does not exist. A | separates the reads.
		calls string
	}{
		{"marketId", DetailNames{}, "ids marketId marketId | marketId | marketId"},
		{"id", DetailNames{}, "ids marketId id id | id | id"},
		{"ids", DetailNames{}, "ids | ids | ids"},
		{"conditionId", DetailNames{ID: "conditionId"}, "ids conditionId conditionId | conditionId | conditionId"},
		{"markets", DetailNames{ID: "conditionId", IDs: "markets"}, "markets | conditionId | conditionId"},
	} {
		t.Run(tt.accepted, func(t *testing.T) {
			v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				if !q.Has(tt.accepted) {
					answerWith(http.StatusBadRequest, "application/json", `{"success":false,"message":"unknown parameter"}`)(w, r)
					return
				}
				var rows []string
				for id := range strings.SplitSeq(q.Get(tt.accepted), ",") {
					if id != "none" {
						rows = append(rows, marketJSON(strings.TrimPrefix(id, "M")))
					}
				}
				switch {
				case strings.HasSuffix(tt.accepted, "s"):
					answer(`{"markets":[`+strings.Join(rows, ",")+`]}`)(w, r)
				case len(rows) == 1:
					answer(rows[0])(w, r)
				default:
					answerWith(http.StatusNotFound, "application/json", `{"success":false}`)(w, r)
				}
			}))
			c := v.client(t, func(cfg *Config) { cfg.Names = tt.names })
			var got []string
			for i, ids := range [][]string{{"M1", "M2"}, {"M3"}, {"none"}} {
				before := v.count()
				results, err := c.MarketsByID(t.Context(), ids)
				if tt.accepted != "markets" && (err != nil || i < 2 && results[0].Value == nil || i == 2 && (results[0].Value != nil || results[0].Err != nil)) {
					t.Errorf("the read of %v returned %+v and the error %v", ids, results, err)
				}
				got = append(got, strings.Join(v.parameters(before), " "))
			}
			assertEqual(t, strings.Join(got, " | "), tt.calls)
		})
	}
}
