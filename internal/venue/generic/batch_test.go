package generic

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/internal/upstream"
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
		length := cmp.Or(tt.maxURL, DefaultMaxURL)
		v := newVenue(t, everywhere(pricesUpTo(length, 1000, 414)))
		c := v.client(t, with(func(table *Table) { table[settingMaxURL] = strconv.Itoa(length) }))
		ids := idsOf(fmt.Sprintf("%%0%dd", tt.digits), tt.ids)
		if got := c.Cost(upstream.EndpointPrices, tt.ids, tt.ids*tt.digits); got != tt.calls {
			t.Errorf("the cost of %d ids of %d digits is %d, want %d", tt.ids, tt.digits, got, tt.calls)
		}
		results, err := c.Prices(t.Context(), upstream.Call{}, ids)
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

// TestLongListsAreHalved checks that the client halves a list that the venue refuses because the URL is too long or the list has too
// many ids. The refusal changes nothing for the next read.
func TestLongListsAreHalved(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"414": pricesUpTo(1300, 1000, 414), "431, undecided": pricesUpTo(1300, 1000, 431), "400": pricesUpTo(1300, 1000, 400), "400 for too many ids": pricesUpTo(10_000, 50, 400),
	} {
		t.Run(name, func(t *testing.T) {
			v, o := newVenue(t, everywhere(h)), &recordingObserver{}
			c := v.client(t, func(cfg *Config) {
				if cfg.Observer = o; name != "431, undecided" {
					cfg.Table[settingMaxURL] = "2048"
				}
			})
			ids := idsOf("%019d", 80)
			for i := range 2 {
				results, err := c.Prices(t.Context(), upstream.Call{}, ids)
				must(t, err)
				for i, r := range results {
					if r.Value == nil || r.Value.TokenID != ids[i] {
						t.Errorf("the result of %s is %+v, want its price", ids[i], r)
					}
				}
				if got := v.count(); got != 3*(i+1) {
					t.Errorf("after read %d there are %d calls, want %d", i, got, 3*(i+1))
				}
			}
			if tooLong := name == "414"; strings.Contains(o.driftText(), "prices: contradicts max-url") != tooLong {
				t.Errorf("the drift is %q, want one that names max-url: %t", o.driftText(), tooLong)
			}
			if got := c.Cost(upstream.EndpointPrices, 80, 80*19); got != 1 {
				t.Errorf("the cost of 80 ids is %d, want 1", got)
			}
		})
	}
}
