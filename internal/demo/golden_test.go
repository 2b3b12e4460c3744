package demo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// golden is a request, and the exact response that the venue must send. A golden file has the responses of an endpoint by name; the
// tests of internal/venue/generic decode the same files.
type golden struct {
	Request string            `json:"request"`
	Header  map[string]string `json:"header,omitempty"`
	Status  int               `json:"status"`
	// ResponseHeader contains the header fields Retry-After and X-Ratelimit-* of the response, if the response has these fields.
	ResponseHeader map[string]string `json:"responseHeader,omitempty"`
	Body           json.RawMessage   `json:"body"`
}

const goldenDir = "../../tests/testdata/venue/demo"

// TestGolden checks that the venue sends the responses in the golden files.
func TestGolden(t *testing.T) {
	v := New(Config{Markets: 40, Seed: 1, Clock: newClock()})
	v.epoch = "golden"
	for range 50 {
		v.Step()
	}
	limited := New(Config{Markets: 1, Seed: 1, Clock: newClock(), PublicPerMinute: 1})
	send(limited, "/api/exchange/market-search")

	yes := first(t, v, func(tok *token) bool {
		b := tok.book()
		return isOpen(tok) && tok.market.binary() && len(b.Bids) > 3 && len(b.Asks) > 3
	})
	categorical := first(t, v, func(tok *token) bool { return isOpen(tok) && !tok.market.binary() })
	settled := first(t, v, func(tok *token) bool { return tok.market.status == statusResolved })
	upcoming := first(t, v, func(tok *token) bool { return tok.market.status == statusUpcoming })
	no := yes.market.tokens[1]
	secondPage := func(path string) string { // returns the URL of the second page
		base := path + "?limit=2&address=" + medium + credentials("demo-50")
		page := get[struct{ NextCursor string }](t, v, base)
		return base + "&cursor=" + page.NextCursor
	}
	list := yes.id + "," + "unknown," + categorical.id + "," + settled.id + "," + upcoming.id
	user := func(key string) string { return "?address=" + small + credentials(key) }
	header := map[string]string{"X-Api-Credentials": "eyJhcGlLZXkiOiJkZW1vLTMiLCJzZWNyZXQiOiJkZW1vIiwicGFzc3BocmFzZSI6ImRlbW8ifQ=="}
	files := map[string]golden{
		"prices-one":            {Request: "/api/exchange/prices?tokenId=" + yes.id},
		"prices-list":           {Request: "/api/exchange/prices?tokenIds=" + list},
		"orderbook":             {Request: "/api/exchange/orderbook?depth=3&tokenId=" + yes.id},
		"orderbook-mirrored":    {Request: "/api/exchange/orderbook?depth=3&tokenId=" + no.id},
		"orderbook-empty":       {Request: "/api/exchange/orderbook?tokenId=" + settled.id},
		"price-history":         {Request: "/api/exchange/price-history?startDate=2026-02-20&endDate=2026-02-20&tokenId=" + yes.id},
		"price-history-empty":   {Request: "/api/exchange/price-history?tokenId=" + upcoming.id},
		"spreads-one":           {Request: "/api/exchange/spreads?tokenId=" + yes.id},
		"spreads-list":          {Request: "/api/exchange/spreads?tokenIds=" + list},
		"market-search":         {Request: "/api/exchange/market-search?limit=2&q=bitcoin"},
		"market-search-last":    {Request: "/api/exchange/market-search?status=UPCOMING&sort=endsAt&order=asc&limit=3&eventId=" + upcoming.market.event.id},
		"market-search-empty":   {Request: "/api/exchange/market-search?q=nothingatall"},
		"market-details-id":     {Request: "/api/exchange/market-details?id=" + yes.market.id},
		"market-details-slug":   {Request: "/api/exchange/market-details?slug=" + categorical.market.slug},
		"market-details-ids":    {Request: "/api/exchange/market-details?ids=" + settled.market.id + ",unknown," + upcoming.market.id},
		"market-details-tokens": {Request: "/api/exchange/market-details?tokenIds=" + no.id + "," + yes.id + "," + categorical.id},
		"balance":               {Request: "/api/user/balance" + user("demo-3")},
		"balance-header":        {Request: "/api/user/balance?address=" + small, Header: header},
		"positions":             {Request: "/api/user/positions" + user("demo-3")},
		"positions-page":        {Request: secondPage("/api/user/positions")},
		"orders":                {Request: "/api/user/orders" + user("demo-3")},
		"orders-page":           {Request: secondPage("/api/user/orders")},
		"trades":                {Request: secondPage("/api/user/trades")},
		"trades-offset":         {Request: "/api/user/trades" + user("demo-3") + "&limit=2&offset=3"},
		"history":               {Request: secondPage("/api/user/history")},
		"history-types":         {Request: "/api/user/history" + user("demo-3") + "&limit=4&type=DEPOSIT,WITHDRAWAL,REDEEM,FEE,REWARD"},
		"error-400":             {Request: "/api/exchange/orderbook?depth=201&tokenId=" + yes.id},
		"error-401":             {Request: "/api/user/balance?address=" + small},
		"error-403":             {Request: "/api/user/balance?address=" + medium + credentials("demo-3")},
		"error-404":             {Request: "/api/exchange/orderbook?tokenId=unknown"},
		"error-404-path":        {Request: "/api/exchange/nothing"},
		"error-429":             {Request: "/api/exchange/market-search"},
	}
	sent := map[string]map[string]golden{} // by endpoint and name
	for name, g := range files {
		var handler http.Handler = v
		if name == "error-429" {
			handler = limited
		}
		r := httptest.NewRequest(http.MethodGet, g.Request, nil)
		for field, value := range g.Header {
			r.Header.Set(field, value)
		}
		w := handle(handler, r)
		g.Status, g.Body = w.Code, w.Body.Bytes()
		for _, field := range []string{"Retry-After", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			if value := w.Header().Get(field); value != "" {
				if g.ResponseHeader == nil {
					g.ResponseHeader = make(map[string]string)
				}
				g.ResponseHeader[field] = value
			}
		}
		endpoint := "errors"
		if g.Status == http.StatusOK {
			endpoint = path.Base(r.URL.Path)
		}
		if sent[endpoint] == nil {
			sent[endpoint] = make(map[string]golden)
		}
		sent[endpoint][name] = g
	}
	found, err := filepath.Glob(filepath.Join(goldenDir, "*.json"))
	if err != nil || len(found) != len(sent) {
		t.Errorf("got the golden files %v and the error %v, want one for each of %d endpoints", found, err, len(sent))
	}
	for endpoint, all := range sent { // a body keeps the notation of its numbers and the order of its members
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			t.Fatal(err)
		}
		tool.Golden(t, filepath.Join(goldenDir, endpoint+".json"), text.String())
	}
}
