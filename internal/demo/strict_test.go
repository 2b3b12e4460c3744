package demo

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// strictVenue returns a strict venue and one of its open tokens.
func strictVenue(t *testing.T) (*Venue, *token) {
	t.Helper()
	v := New(Config{Markets: 400, Clock: newClock(), Strict: true})
	return v, first(t, v, func(tok *token) bool { return isOpen(tok) && len(tok.book().Bids) > 3 })
}

func TestStrictVenueRefusesUnknownParameters(t *testing.T) {
	v, tok := strictVenue(t)
	user := "?address=" + small + credentials("demo-3")
	for target, refused := range map[string][]string{
		"/api/exchange/prices?tokenId=" + tok.id:                                                {"depth=1", "tokenid=x", "=x"},
		"/api/exchange/prices?tokenIds=" + tok.id:                                               {"limit=1"},
		"/api/exchange/orderbook?depth=50&tokenId=" + tok.id:                                    {"tokenIds=x", "side=BUY"},
		"/api/exchange/price-history?startDate=2026-03-13&endDate=2026-03-13&tokenId=" + tok.id: {"interval=HOUR"},
		"/api/exchange/spreads?tokenIds=" + tok.id:                                              {"depth=1"},
		"/api/exchange/market-search?q=will&status=OPEN&sort=volume&order=asc&limit=1":          {"offset=0", "pair=BTC-USD"},
		"/api/exchange/market-details?marketId=" + tok.market.id:                                {"id=x", "ids=x", "tokenIds=x"},
		"/api/exchange/market-details?tokenId=" + tok.id:                                        {"limit=1"},
		"/api/exchange/market-details?slug=" + tok.market.slug:                                  {"event=x"},
		"/api/user/balance" + user:                                                              {"limit=1"},
		"/api/user/positions" + user:                                                            {"limit=500", "cursor=", "offset=0"},
		"/api/user/orders" + user:                                                               {"limit=500", "cursor=", "status=OPEN"},
		"/api/user/trades" + user + "&limit=1&from=2026-03-01":                                  {"type=TRADE"},
		"/api/user/history" + user + "&limit=1&type=TRADE":                                      {"kind=TRADE"},
	} {
		if w := send(v, target); w.Code != http.StatusOK {
			t.Errorf("GET %s: got %d %s, want 200", target, w.Code, w.Body)
		}
		for _, more := range refused {
			name, _, _ := strings.Cut(more, "=")
			w := send(v, target+"&"+more)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "unknown parameter "+name) {
				t.Errorf("GET %s&%s: got %d %s, want 400 and unknown parameter %s", target, more, w.Code, w.Body, name)
			}
		}
	}
	s := open(t, Config{Strict: true})
	for text, want := range map[string]string{ // a strict venue compares the text of the credentials
		`{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}`: "authenticated",
		`{"apiKey":"demo-3","passphrase":"demo","secret":"demo"}`: "error",
	} {
		w := send(v, "/api/user/balance?address="+small+"&credentials="+url.QueryEscape(text))
		if (w.Code == http.StatusOK) != (want == "authenticated") {
			t.Errorf("credentials %s: got %d, want %s", text, w.Code, want)
		}
		l := s.dial(t)
		l.send("auth", `"address":"`+small+`","credentials":`+text)
		l.take(want)
	}
	for _, target := range []string{"id=" + tok.market.id, "ids=" + tok.market.id, "tokenIds=" + tok.id} {
		if w := send(v, "/api/exchange/market-details?"+target); w.Code != http.StatusBadRequest {
			t.Errorf("market-details?%s: got %d, want 400", target, w.Code)
		}
	}
}

func TestStrictVenueServesDocumentedForms(t *testing.T) {
	v, tok := strictVenue(t)
	partly := 0
	for _, o := range v.walletOf(medium).orders {
		if o.status() == "PARTIALLY_FILLED" {
			partly++
		}
	}
	if partly == 0 {
		t.Fatal("no order is partly filled")
	}
	user := "?address=" + medium + credentials("demo-50")
	for target, want := range map[string]string{ // members of the response and of the first element of each list
		"/api/exchange/prices?tokenId=" + tok.id:        "price timestamp tokenId",
		"/api/exchange/orderbook?tokenId=" + tok.id:     "asks bids spread asks:price asks:size bids:price bids:size",
		"/api/exchange/price-history?tokenId=" + tok.id: "history history:price history:timestamp history:volume",
		"/api/user/balance" + user:                      "cashBalance portfolioValue totalValue",
		"/api/user/positions" + user:                    "positions positions:avgPrice positions:currentPrice positions:marketId positions:outcome positions:size positions:unrealizedPnl",
		"/api/user/orders" + user: "orders orders:createdAt orders:filledSize orders:marketId orders:orderId orders:outcome orders:price orders:side " +
			"orders:size orders:status",
	} {
		answer := get[object](t, v, target)
		names := slices.Sorted(maps.Keys(answer))
		for _, name := range slices.Sorted(maps.Keys(answer)) {
			if rows, ok := answer[name].([]any); ok {
				for _, member := range slices.Sorted(maps.Keys(rows[0].(object))) {
					names = append(names, name+":"+member)
				}
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("GET %s:\n got %s\nwant %s", target, got, want)
		}
	}
	orders := get[ordersAnswer](t, v, "/api/user/orders"+user).Orders
	filled := 0
	for i, o := range v.walletOf(medium).orders {
		if orders[i].Status != "OPEN" || orders[i].FilledSize.String() != o.filled.String() {
			t.Errorf("order %d: got %+v, want status OPEN and filledSize %v", i, orders[i], o.filled)
		}
		if o.filled > 0 {
			filled++
		}
	}
	if filled != partly {
		t.Errorf("got %d partly filled orders, want %d", filled, partly)
	}
	// If the description of the venue's API does not list the members of a response, the strict venue sends all members.
	if m := get[marketAnswer](t, v, "/api/exchange/market-details?marketId="+tok.market.id); m.Question != tok.market.question || m.Description == nil {
		t.Errorf("got market %+v, want the question %q and a description", m, tok.market.question)
	}
}
