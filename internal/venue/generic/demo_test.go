package generic

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// wireFile is a request and its response of a golden file that the tests of the demo venue wrote.
type wireFile struct {
	Request        string
	Status         int
	ResponseHeader map[string]string
	Body           json.RawMessage
}

// TestClientReadsGoldenFiles checks that the client reads the demo venue's responses with one call, without an error and without drift.
func TestClientReadsGoldenFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "tests", "testdata", "venue", "demo", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no golden files of the demo venue (error %v)", err)
	}
	golden := map[string]wireFile{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		must(t, json.Unmarshal(b, &golden))
	}
	for name, w := range golden {
		t.Run(name, func(t *testing.T) {
			asked, err := url.Parse(w.Request)
			must(t, err)
			if w.Request == "/api/exchange/nothing" {
				t.Skip("the client does not call this endpoint")
			}
			seen := &recordingObserver{}
			v := newVenue(t, map[string]http.HandlerFunc{asked.Path: func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				for k, value := range w.ResponseHeader {
					rw.Header().Set(k, value)
				}
				rw.WriteHeader(w.Status)
				_, _ = rw.Write(w.Body)
			}})
			c := v.client(t, func(cfg *Config) { cfg.Observer = seen })
			if w.Status != 200 {
				checkReadError(t, c, asked.Path, w)
				return
			}
			text, left, err := readOfRequest(asked).text(t.Context(), asUser(t), c)
			if name == "positions-page" || name == "orders-page" {
				// The venue sends the recorded page for every request, so the read of a whole list must fail.
				if market.CodeOf(err) != market.CodeUpstreamBadResponse {
					t.Errorf("got %v from a venue that repeats its page, want %s", err, market.CodeUpstreamBadResponse)
				}
				return
			}
			if err != nil || left != nil || strings.Contains(text, string(market.CodeUpstreamBadResponse)) || v.count() != 1 {
				t.Errorf("got %s, left out %v and the error %v after %d calls, want no error after one call", text, left, err, v.count())
			}
			assertEqual(t, seen.driftText(), "")
		})
	}
}

// checkReadError checks the client's error for a recorded error response.
func checkReadError(t *testing.T, c *Client, path string, w wireFile) {
	want := map[int]market.Code{400: market.CodeUpstreamBadResponse, 401: market.CodeUnauthenticated, 403: market.CodeForbidden, 404: "",
		429: market.CodeRateLimited, 500: market.CodeUpstreamUnavailable, 503: market.CodeUpstreamUnavailable}
	code, known := want[w.Status]
	if !known {
		t.Fatalf("the test has no expected error code for the status %d", w.Status)
	}
	for _, r := range reads {
		if r.path() != path {
			continue
		}
		_, err := r.call(t.Context(), asUser(t), c)
		if got := market.CodeOf(err); got != code {
			t.Errorf("the read of %s returned %v, want %s", r.name, err, code)
		}
		if w.ResponseHeader["Retry-After"] == "60" && retryAfterOf(err) != string(code)+" 1m0s" {
			t.Errorf("the read of %s returned %v, want RetryAfter 1m0s", r.name, err)
		}
	}
}

// readOfRequest returns the read that sends a request.
func readOfRequest(asked *url.URL) read {
	q := asked.Query()
	all := readsFor(strings.Split(q.Get("tokenIds")+q.Get("tokenId"), ","), strings.Split(q.Get("ids")+q.Get("id"), ",")[0], q.Get("slug"), 0, 30000)
	i := slices.IndexFunc(all, func(r read) bool { return r.name == path.Base(asked.Path) })
	switch {
	case all[i].name != "market-details":
	case q.Has("tokenIds"):
		i++
	case q.Has("slug"):
		i += 2
	}
	return all[i]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatusesInAnyCase checks that the client reads statuses in upper case, lower case and mixed case, for markets and for orders.
func TestStatusesInAnyCase(t *testing.T) {
	for raw, want := range map[string]market.Status{"OPEN": market.StatusOpen, "closed": market.StatusClosed, "Resolved": market.StatusResolved, "cAnCeLlEd": market.StatusCancelled} {
		c := newVenue(t, everywhere(answer(`{"marketId":"M1","outcomes":[],"status":"`+raw+`"}`))).client(t)
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, []string{"M1"})
		if err != nil || results[0].Value == nil || results[0].Value.Status != want || results[0].Value.StatusRaw != raw {
			t.Errorf("the market with the status %s is %+v with the error %v, want the status %s", raw, results, err, want)
		}
	}
	for raw, want := range map[string]market.OrderStatus{"open": market.OrderOpen, "Filled": market.OrderFilled, "CANCELLED": market.OrderCancelled} {
		c := newVenue(t, everywhere(answer(`{"orders":[{"orderId":"O1","marketId":"M1","side":"buy","outcome":"YES","price":0.5,"size":1,"filledSize":0,"status":"`+raw+`"}]}`))).client(t)
		if orders, err := c.Orders(t.Context(), asUser(t), wallet); err != nil || orders[0].Status != want || orders[0].Side != market.SideBuy {
			t.Errorf("the order with the status %s is %+v with the error %v, want the status %s", raw, orders, err, want)
		}
	}
}
