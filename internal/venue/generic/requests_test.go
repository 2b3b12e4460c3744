package generic

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// readRequests are reads that together use every parameter that the client sends.
var readRequests = []struct {
	name string
	// responses contains the bodies of the venue's responses, in order. The venue repeats the last response. The body "400" means a
	// response with status 400.
	responses []string
	call      func(ctx context.Context, call upstream.Call, t *testing.T, c *Client) error
}{
	{"prices", []string{`{}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Prices(ctx, call, []string{"101"})
		return err
	}},
	{"prices of several tokens", []string{`{}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Prices(ctx, call, []string{"101", "a b", "ä&=+", "x?#%"})
		return err
	}},
	{"spreads", []string{`[{"tokenId":"101","spread":0.1},{"tokenId":"102","spread":0.1}]`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Spreads(ctx, call, []string{"101", "102"})
		return err
	}},
	{"spreads from books", []string{"400", "400", `{"bids":[],"asks":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Spreads(ctx, call, []string{"101"})
		return err
	}},
	{"book", []string{`{"bids":[],"asks":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Book(ctx, call, "101", 20)
		return err
	}},
	{"price history", []string{`{"history":[]}`}, func(ctx context.Context, call upstream.Call, t *testing.T, c *Client) error {
		_, err := c.PriceHistory(ctx, call, "101", date(t, "2026-03-01"), date(t, "2026-03-14"))
		return err
	}},
	{"search with every filter", []string{`{"markets":[],"nextCursor":"c1"}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		q := everySearchFilter()
		q.Page = `{"c":"abc"}`
		_, err := c.Search(ctx, call, q)
		return err
	}},
	{"search without filters", []string{`{"markets":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Search(ctx, call, queries.Search{Limit: 20})
		return err
	}},
	{"markets by id", []string{`[{"marketId":"M1","question":"?"},{"marketId":"M2","question":"?"}]`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.MarketsByID(ctx, call, []string{"M1", "M2"})
		return err
	}},
	{"markets by token", []string{`[{"marketId":"M1","question":"?","outcomes":[{"tokenId":"101","outcome":"YES"},{"tokenId":"102","outcome":"NO"}]}]`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.MarketsByToken(ctx, call, []string{"101", "102"})
		return err
	}},
	{"market by slug", []string{`{"marketId":"M1","slug":"will-it-rain","question":"?"}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.MarketBySlug(ctx, call, "will-it-rain")
		return err
	}},
	{"balance", []string{`{"cashBalance":1}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Balance(ctx, call, wallet)
		return err
	}},
	{"positions, two pages", []string{`{"positions":[{"marketId":"M1","outcome":"YES","size":1}],"nextCursor":"c2"}`, `{"positions":[]}`},
		func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
			_, err := c.Positions(ctx, call, wallet)
			return err
		}},
	{"orders", []string{`{"orders":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Orders(ctx, call, wallet)
		return err
	}},
	{"trades with every filter", []string{`{"trades":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Trades(ctx, call, wallet, queries.Trades{MarketID: "M1", From: instant(1), To: instant(2), Limit: 20, Page: `{"o":40}`})
		return err
	}},
	{"trades up to the first instant", []string{`{"trades":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.Trades(ctx, call, wallet, queries.Trades{From: queries.At(time.Time{}), To: queries.At(time.Time{}), Limit: 20})
		return err
	}},
	{"history with every filter", []string{`{"history":[]}`}, func(ctx context.Context, call upstream.Call, _ *testing.T, c *Client) error {
		_, err := c.History(ctx, call, wallet, queries.History{Kinds: []market.HistoryKind{market.HistoryTrade, market.HistoryFee}, From: instant(1), To: instant(2), Limit: 20})
		return err
	}},
}

// instant returns the bound at a time in a zone other than UTC.
func instant(hour int) queries.Bound {
	return queries.At(time.Date(2026, 3, 14, hour+2, 9, 26, 535_000_000, time.FixedZone("", 7200)))
}

func everySearchFilter() queries.Search {
	return queries.Search{
		Text: "rain & snow, sun/", Status: []market.Status{market.StatusOpen, market.StatusClosed}, Category: "A&B", Tag: "uk", EndsAfter: instant(1), EndsBefore: instant(2),
		EventID: "E1", EventSlug: "rain-in-march", Sort: queries.SortVolume24h, Direction: queries.Descending, Limit: 50,
	}
}

// TestRequestBytes compares the client's requests with testdata/requests.txt. In this file, the words HOST and CREDENTIALS replace
// the host and the credentials.
func TestRequestBytes(t *testing.T) {
	var got strings.Builder
	for _, mode := range []string{rest.CredentialsQuery, rest.CredentialsHeader, rest.CredentialsNone} {
		for _, r := range readRequests {
			fmt.Fprintf(&got, "# credentials: %s; %s\n\n%s", mode, r.name, recordRequests(t, mode, r.responses, r.call))
		}
	}
	tool.Golden(t, filepath.Join("testdata", "requests.txt"), got.String())
}

// recordRequests makes a read with a new client, and returns the client's HTTP requests as text.
func recordRequests(t *testing.T, mode string, responses []string, call func(context.Context, upstream.Call, *testing.T, *Client) error) string {
	t.Helper()
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		body := responses[min(len(requests), len(responses)-1)]
		requests = append(requests, string(dump))
		mu.Unlock()
		if body == "400" {
			answerWith(http.StatusBadRequest, "application/json", `{"success":false,"error":"no such parameter","code":"BAD_REQUEST"}`)(w, r)
			return
		}
		answer(body)(w, r)
	}))
	defer server.Close()
	c := newClient(t, server.URL+prefix, func(cfg *Config) { cfg.CredentialsMode = mode })
	if err := call(t.Context(), asUser(t), t, c); err != nil && market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Error(err)
	}
	hide := strings.NewReplacer(strings.TrimPrefix(server.URL, "http://"), "HOST", url.QueryEscape(canary), "CREDENTIALS",
		base64.StdEncoding.EncodeToString([]byte(canary)), "CREDENTIALS", "\r\n", "\n")
	for i := range requests {
		requests[i] = hide.Replace(requests[i])
	}
	return strings.Join(requests, "")
}

// TestEveryEndpointHasRequests checks that testdata/requests.txt has a request to every endpoint.
func TestEveryEndpointHasRequests(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "requests.txt"))
	must(t, err)
	for e, path := range paths {
		if path != "" && !strings.Contains(string(golden), "\nGET "+prefix+path+"?") {
			t.Errorf("testdata/requests.txt has no request to %s", upstream.Endpoint(e))
		}
	}
}
