package demo

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
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

// TestPricesAndSpreads checks that lists of prices and spreads have the order of the request and leave out unknown tokens, and that
// they agree with requests for one token and with the book.
func TestPricesAndSpreads(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock()})
	for range 200 {
		v.Step()
	}
	var ids []string
	for _, tok := range v.Tokens()[:60] {
		ids = append(ids, tok.TokenID)
	}
	slices.Reverse(ids)
	list := strings.Join(slices.Insert(slices.Clone(ids), 5, "unknown"), ",")
	prices := get[struct{ Prices []priceAnswer }](t, v, "/api/exchange/prices?tokenIds="+list).Prices
	spreads := get[struct{ Spreads []spreadAnswer }](t, v, "/api/exchange/spreads?tokenIds="+list).Spreads
	if len(prices) != len(ids) || len(spreads) != len(ids) {
		t.Fatalf("got %d prices and %d spreads for %d tokens", len(prices), len(spreads), len(ids))
	}
	for i, id := range ids {
		q, _ := v.Quote(id)
		p, s := prices[i], spreads[i]
		if p.TokenID != id || p.Price.String() != q.Price.String() || !p.Timestamp.Equal(q.At) || p != get[priceAnswer](t, v, "/api/exchange/prices?tokenId="+id) {
			t.Errorf("got price %+v, want %+v", p, q)
		}
		book := get[bookAnswer](t, v, "/api/exchange/orderbook?depth=1&tokenId="+id)
		one := get[spreadAnswer](t, v, "/api/exchange/spreads?tokenId="+id)
		if s.TokenID != id || text(s.BestBid) != text(one.BestBid) || text(s.Spread) != text(one.Spread) || text(s.Spread) != text(book.Spread) || !s.Timestamp.Equal(book.Timestamp) {
			t.Errorf("got spread %+v in the list, %+v alone and book %+v", s, one, book)
		}
		if (s.BestBid != nil) != (len(book.Bids) > 0) || s.BestBid != nil && *s.BestBid != book.Bids[0].Price ||
			(s.BestAsk != nil) != (len(book.Asks) > 0) || s.BestAsk != nil && *s.BestAsk != book.Asks[0].Price ||
			(s.Spread != nil) != (s.BestBid != nil && s.BestAsk != nil) {
			t.Errorf("got spread %+v for book %+v", s, book)
		}
	}
}

// text returns a number as text, or "none" for nil.
func text(n *json.Number) string {
	if n == nil {
		return "none"
	}
	return n.String()
}

func TestOrderbookDepth(t *testing.T) {
	v := New(Config{Markets: 200, Clock: newClock()})
	deep := first(t, v, func(tok *token) bool {
		b := tok.book()
		return len(b.Bids) > 100 && len(b.Asks) > 100
	})
	whole := deep.book()
	for _, c := range []struct {
		query string
		depth int
	}{{"", 20}, {"&depth=1", 1}, {"&depth=50", 50}, {"&depth=200", 200}} {
		b := get[bookAnswer](t, v, "/api/exchange/orderbook?tokenId="+deep.id+c.query)
		if len(b.Bids) != min(c.depth, len(whole.Bids)) || len(b.Asks) != min(c.depth, len(whole.Asks)) {
			t.Errorf("query %q: got %d bids and %d asks, want at most %d of each, out of %d and %d", c.query, len(b.Bids), len(b.Asks), c.depth, len(whole.Bids), len(whole.Asks))
		}
		for i, l := range b.Bids {
			if l.Price.String() != whole.Bids[i].Price.String() || l.Size.String() != whole.Bids[i].Size.String() {
				t.Fatalf("%s: bid %d is %v, want %v", c.query, i, l, whole.Bids[i])
			}
		}
		if b.Seq != whole.Seq || b.Epoch != v.Epoch() || !b.Timestamp.Equal(whole.At) {
			t.Errorf("query %q: got seq %d, epoch %s and timestamp %v; want %d, %s and %v", c.query, b.Seq, b.Epoch, b.Timestamp, whole.Seq, v.Epoch(), whole.At)
		}
	}
	if New(Config{Markets: 1}).Epoch() == v.Epoch() {
		t.Error("two venues have the same epoch")
	}
}

func TestMarketDetails(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 120, Clock: c})
	for _, m := range v.listing.markets {
		one := get[marketAnswer](t, v, "/api/exchange/market-details?id="+m.id)
		if one.MarketID != m.id || one.Slug != m.slug || one.Status != m.status || one.Description == nil || *one.Description == "" ||
			one.AcceptingOrders != (m.status == statusOpen) || one.EventID != m.event.id || one.EventSlug != m.event.slug ||
			one.EventTitle != m.event.title || one.TickSize.String() != m.tick.String() || len(one.Outcomes) != len(m.tokens) ||
			(one.Resolution != nil) != (m.status == statusResolved) || !one.EndDate.Equal(m.endAt.Time()) || one.UpdatedAt.After(c.Now()) {
			t.Fatalf("the details %+v differ from the market %+v", one, m.state())
		}
		for i, o := range one.Outcomes {
			q, _ := v.Quote(o.TokenID)
			if o.Price.String() != q.Price.String() || (o.Winner != nil) != (m.status == statusResolved) ||
				o.Winner != nil && (*o.Winner != (o.Outcome == one.Resolution.Outcome) || *o.Winner != (i == m.winner) || *o.Winner != (o.Price == "1")) {
				t.Fatalf("market %s: the outcome %+v does not fit the price %v and the winner %d", m.slug, o, q.Price, m.winner)
			}
		}
	}
	m, n := v.listing.markets[3], v.listing.markets[0]
	for _, query := range []string{"slug=" + m.slug, "marketId=" + m.id, "tokenId=" + m.tokens[1].id} {
		if one := get[marketAnswer](t, v, "/api/exchange/market-details?"+query); one.MarketID != m.id {
			t.Errorf("%s: got market %s, want %s", query, one.MarketID, m.id)
		}
	}
	for _, query := range []string{
		"ids=" + m.id + ",unknown," + n.id + "," + m.id,
		"tokenIds=" + m.tokens[1].id + ",unknown," + n.tokens[0].id + "," + m.tokens[0].id,
	} {
		markets := get[struct{ Markets []marketAnswer }](t, v, "/api/exchange/market-details?"+query).Markets
		if len(markets) != 2 || markets[0].MarketID != m.id || markets[1].MarketID != n.id {
			t.Errorf("%s: got markets %+v, want %s and %s", query, markets, m.id, n.id)
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

func TestSearchOrder(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock()})
	number := func(n json.Number) int64 { return fixed(t, n, 6) }
	for sort, key := range map[string]func(marketAnswer) int64{
		"volume":    func(m marketAnswer) int64 { return number(m.Volume) },
		"volume24h": func(m marketAnswer) int64 { return number(m.Volume24h) },
		"liquidity": func(m marketAnswer) int64 { return number(m.Liquidity) },
		"endsAt":    func(m marketAnswer) int64 { return m.EndDate.UnixMilli() },
	} {
		up := func(a, b marketAnswer) int { return cmp.Compare(key(a), key(b)) }
		down := func(a, b marketAnswer) int { return up(b, a) }
		if !slices.IsSortedFunc(all(t, v, "limit=99&sort="+sort), down) || !slices.IsSortedFunc(all(t, v, "limit=100&order=ASC&sort="+sort), up) {
			t.Errorf("%s: the order is not descending, or not ascending with order=ASC", sort)
		}
	}
	m := v.listing.markets[2]
	if found := all(t, v, "q="+url.QueryEscape(m.question)); len(found) == 0 || found[0].MarketID != m.id {
		t.Errorf("the first result for %q is another market", m.question)
	}
	if n := len(all(t, v, "limit=100&q="+url.QueryEscape(m.question+" zebra"))); n > 0 {
		t.Errorf("got %d markets for a word that no market has", n)
	}
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
