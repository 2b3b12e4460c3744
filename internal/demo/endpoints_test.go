package demo

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestErrors(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	id, market := v.listing.tokens[0].id, v.listing.markets[0]
	user := "?address=" + small + credentials("demo-3")
	many := func(n int) string { return strings.Repeat(id+",", n-1) + id }
	for _, c := range []struct {
		target string
		status int
		code   string
	}{
		{"/", 404, "NOT_FOUND"},
		{"/api/exchange/price", 404, "NOT_FOUND"},
		{"/__control/stats", 404, "NOT_FOUND"},
		{"/api/exchange/prices", 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenId=", 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenId=" + id + "&tokenIds=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenIds=" + id + ",", 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenIds=" + strings.Repeat("x", 257), 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenIds=" + many(101), 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenIds=" + many(100), 200, ""},
		{"/api/exchange/prices?tokenId=1&x=" + strings.Repeat("y", maxQuery), 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenId=1;2", 400, "BAD_REQUEST"},
		{"/api/exchange/prices?tokenId=1", 404, "NOT_FOUND"},
		{"/api/exchange/spreads?tokenId=1", 404, "NOT_FOUND"},
		{"/api/exchange/orderbook", 400, "BAD_REQUEST"},
		{"/api/exchange/orderbook?tokenId=1", 404, "NOT_FOUND"},
		{"/api/exchange/orderbook?depth=0&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/orderbook?depth=201&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/orderbook?depth=many&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/orderbook?depth=200&tokenId=" + id, 200, ""},
		{"/api/exchange/price-history", 400, "BAD_REQUEST"},
		{"/api/exchange/price-history?tokenId=1", 404, "NOT_FOUND"},
		{"/api/exchange/price-history?startDate=yesterday&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/price-history?endDate=2026-02-30&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/price-history?startDate=2026-03-02&endDate=2026-03-01&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/price-history?startDate=2025-03-14&endDate=2026-03-14&tokenId=" + id, 200, ""},
		{"/api/exchange/price-history?startDate=2025-03-13&endDate=2026-03-14&tokenId=" + id, 400, "BAD_REQUEST"},
		{"/api/exchange/market-details", 400, "BAD_REQUEST"},
		{"/api/exchange/market-details?id=nothing", 404, "NOT_FOUND"},
		{"/api/exchange/market-details?tokenId=nothing", 404, "NOT_FOUND"},
		{"/api/exchange/market-details?slug=nothing", 404, "NOT_FOUND"},
		{"/api/exchange/market-details?id=" + market.id + "&slug=" + market.slug, 400, "BAD_REQUEST"},
		{"/api/exchange/market-details?ids=" + many(51), 400, "BAD_REQUEST"},
		{"/api/exchange/market-details?tokenIds=" + many(50), 200, ""},
		{"/api/exchange/market-search?limit=0", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?limit=101", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?limit=100", 200, ""},
		{"/api/exchange/market-search?sort=fame", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?order=up", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?status=OPEN,AJAR", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?endsAfter=soon", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?endsBefore=soon", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?cursor=!", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?cursor=eA", 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?q=" + strings.Repeat("x", 201), 400, "BAD_REQUEST"},
		{"/api/exchange/market-search?q=" + strings.Repeat("x+", 17), 400, "BAD_REQUEST"},
		{"/api/user/positions" + user + "&limit=0", 400, "BAD_REQUEST"},
		{"/api/user/positions" + user + "&cursor=x", 400, "BAD_REQUEST"},
		{"/api/user/orders" + user + "&limit=10001", 400, "BAD_REQUEST"},
		{"/api/user/trades" + user + "&limit=501", 400, "BAD_REQUEST"},
		{"/api/user/trades" + user + "&limit=500", 200, ""},
		{"/api/user/trades" + user + "&from=soon", 400, "BAD_REQUEST"},
		{"/api/user/trades" + user + "&to=soon", 400, "BAD_REQUEST"},
		{"/api/user/trades" + user + "&offset=-1", 400, "BAD_REQUEST"},
		{"/api/user/trades" + user + "&offset=1&cursor=" + cursorAt(3), 400, "BAD_REQUEST"},
		{"/api/user/history" + user + "&type=TRADE,GIFT", 400, "BAD_REQUEST"},
	} {
		w := send(v, c.target)
		if w.Code != c.status {
			t.Errorf("GET %.120s: got %d %.200s, want %d", c.target, w.Code, w.Body, c.status)
			continue
		}
		if ct := w.Header().Get("Content-Type"); ct != "application/json" {
			t.Errorf("GET %.120s: got Content-Type %q, want application/json", c.target, ct)
		}
		body := decode[object](t, w.Body.String())
		if c.status == 200 {
			continue
		}
		if text, _ := body["error"].(string); body["success"] != false || text == "" || body["code"] != c.code {
			t.Errorf("GET %.120s: got body %v, want success false, an error and code %s", c.target, body, c.code)
		}
	}
}

func TestMethods(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	target := "/api/exchange/prices?tokenId=" + v.listing.tokens[0].id
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405, "OPTIONS": 405} {
		w := handle(v, httptest.NewRequest(method, target, nil))
		if allow := w.Header().Get("Allow"); w.Code != status || (status == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s: got %d and Allow %q, want %d", method, w.Code, allow, status)
		}
	}
}

// all reads all pages of a search and returns the markets.
func all(t *testing.T, v *Venue, query string) []marketAnswer {
	t.Helper()
	var found []marketAnswer
	for cursor := ""; ; {
		page := get[searchAnswer](t, v, "/api/exchange/market-search?"+query+cursor)
		found = append(found, page.Markets...)
		if page.NextCursor == nil {
			if len(found) != page.TotalCount {
				t.Fatalf("search %q: got %d markets on all pages, but totalCount %d", query, len(found), page.TotalCount)
			}
			return found
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

func TestSearchFilters(t *testing.T) {
	v := New(Config{Markets: 400, Clock: newClock()})
	event := v.listing.events[17]
	soon, late := "2026-04-01T00:00:00Z", "2026-09-01"
	for query, fits := range map[string]func(*market) bool{
		"":                        func(*market) bool { return true },
		"status=RESOLVED":         func(m *market) bool { return m.status == statusResolved },
		"status=open,DISPUTED":    func(m *market) bool { return m.status == statusOpen || m.status == statusDisputed },
		"category=crypto":         func(m *market) bool { return m.category == "Crypto" },
		"tag=elections":           func(m *market) bool { return slices.Contains(m.tags, "elections") },
		"eventId=" + event.id:     func(m *market) bool { return m.event == event },
		"eventSlug=" + event.slug: func(m *market) bool { return m.event == event },
		"endsAfter=" + soon + "&endsBefore=" + late: func(m *market) bool {
			return m.endAt >= millisOf(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)) && m.endAt <= millisOf(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC))
		},
		"q=bitcoin":               func(m *market) bool { return mentions(m, "bitcoin") },
		"q=will+bit":              func(m *market) bool { return mentions(m, "will") && mentions(m, "bit") },
		"q=nothingatall":          func(*market) bool { return false },
		"q=inflation&status=OPEN": func(m *market) bool { return mentions(m, "inflation") && m.status == statusOpen },
	} {
		want := map[string]bool{}
		for _, m := range v.listing.markets {
			if fits(m) {
				want[m.id] = true
			}
		}
		for _, m := range all(t, v, "limit=37&"+query) {
			if !want[m.MarketID] {
				t.Errorf("search %q: got market %s, which does not match or is a duplicate", query, m.Slug)
			}
			delete(want, m.MarketID)
			if m.Description != nil || m.Resolution != nil {
				t.Errorf("search %q: got market %s with a description or a resolution, want neither", query, m.Slug)
			}
		}
		if len(want) > 0 {
			t.Errorf("search %q: %d matching markets are missing", query, len(want))
		}
	}
}

func mentions(m *market, word string) bool {
	text := strings.ToLower(m.question + m.event.title + m.category + strings.Join(m.tags, " "))
	for _, tok := range m.tokens {
		text += strings.ToLower(" " + tok.label)
	}
	return strings.Contains(text, word)
}

func TestCredentials(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	in := func(key, secret, passphrase string) string {
		return `{"apiKey":"` + key + `","secret":"` + secret + `","passphrase":"` + passphrase + `"}`
	}
	cases := []struct {
		name, json, address string
		status              int
	}{
		{"own wallet", in("demo-3", "demo", "demo"), small, 200},
		{"upper case without 0x", in("demo", "demo", "demo"), strings.ToUpper(other[2:]), 400},
		{"key for every wallet", in("demo", "demo", "demo"), other, 200},
		{"another wallet", in("demo-3", "demo", "demo"), medium, 403},
		{"additional fields", `{"apiKey":"demo-3","secret":"demo","passphrase":"demo","address":"x","n":1}`, small, 200},
		{"wrong secret", in("demo-3", "Demo", "demo"), small, 401},
		{"wrong passphrase", in("demo-3", "demo", ""), small, 401},
		{"unknown key", in("demo-4", "demo", "demo"), small, 401},
		{"no key", `{"secret":"demo","passphrase":"demo"}`, small, 401},
		{"not JSON", `demo-3`, small, 401},
		{"not an object", `["demo-3"]`, small, 401},
		{"too long", in("demo-3", "demo", "demo") + strings.Repeat(" ", maxCredentials), small, 401},
		{"no credentials", "", small, 401},
		{"short address", in("demo", "demo", "demo"), small[:41], 400},
		{"no address", in("demo", "demo", "demo"), "", 400},
		{"not hexadecimal", in("demo", "demo", "demo"), strings.Replace(small, "1", "g", 1), 400},
		{"no credentials and a bad address", "", "x", 401},
	}
	for _, e := range endpoints {
		if !e.user {
			continue
		}
		for _, c := range cases {
			target := e.path + "?address=" + c.address
			if w := send(v, target+"&credentials="+url.QueryEscape(c.json)); w.Code != c.status {
				t.Errorf("%s, %s, sent in the query: got %d %s, want %d", e.path, c.name, w.Code, w.Body, c.status)
			}
			r := httptest.NewRequest(http.MethodGet, target, nil)
			if c.json != "" {
				r.Header.Set("X-Api-Credentials", base64.StdEncoding.EncodeToString([]byte(c.json)))
			}
			w := handle(v, r)
			if w.Code != c.status {
				t.Errorf("%s, %s, sent in the header: got %d %s, want %d", e.path, c.name, w.Code, w.Body, c.status)
			}
			if strings.Contains(w.Body.String(), "demo-4") || strings.Contains(w.Body.String(), "passphrase") {
				t.Errorf("%s, %s: the response contains the credentials: %s", e.path, c.name, w.Body)
			}
		}
		r := httptest.NewRequest(http.MethodGet, e.path+"?address="+small, nil)
		r.Header.Set("X-Api-Credentials", in("demo", "demo", "demo")) // invalid base64
		if w := handle(v, r); w.Code != 401 {
			t.Errorf("%s, invalid base64: got %d, want 401", e.path, w.Code)
		}
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Markets: 40})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := v.Run(ctx); err != context.DeadlineExceeded {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if v.steps < 40 || v.steps > 100 {
			t.Errorf("got %d steps in 10 s, want 40 to 100", v.steps)
		}
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Markets: 40, Latency: 20 * time.Millisecond})
		began := time.Now()
		if w := send(v, "/api/exchange/market-search"); w.Code != 200 || time.Since(began) != 20*time.Millisecond {
			t.Errorf("got %d after %v, want 200 after 20ms", w.Code, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		began = time.Now()
		w := handle(v, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/exchange/market-search", nil))
		if time.Since(began) != 5*time.Millisecond || w.Body.Len() > 0 {
			t.Errorf("got a response after %v with %d bytes, want none after 5ms", time.Since(began), w.Body.Len())
		}
	})
}
