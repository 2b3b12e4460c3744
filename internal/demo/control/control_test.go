package control_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/control"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/demo/kalshi"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/tests/tool"
)

const small = "0x1111111111111111111111111111111111111111"

func open(on bool) (*demo.Venue, *control.Server) {
	v := demo.New(demo.Config{Markets: 120, Clock: tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))})
	return v, control.New(v, on)
}

func send(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func post(h http.Handler, name, body string) *httptest.ResponseRecorder {
	return send(h, http.MethodPost, "/__control/"+name, body)
}

func TestStats(t *testing.T) {
	v, s := open(true)
	all := v.Tokens()
	a, b := all[0], all[7]
	for _, target := range []string{
		"/api/exchange/prices?tokenIds=" + a.TokenID + "," + b.TokenID, "/api/exchange/prices?tokenId=" + a.TokenID, "/api/exchange/prices?tokenId=unknown",
		"/api/exchange/market-details?ids=" + a.MarketID + "," + b.MarketID + ",x", "/api/user/balance?address=" + small, "/api/nothing",
	} {
		send(s, http.MethodGet, target, "")
	}
	post(s, "stats", "")
	var got demo.Stats
	if err := json.Unmarshal(send(s, http.MethodGet, "/__control/stats", "").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := demo.Stats{
		Requests: map[string]int64{"/api/exchange/prices": 3, "/api/exchange/market-details": 1, "/api/user/balance": 1},
		Keys:     map[string]int64{"/api/exchange/prices": 4, "/api/exchange/market-details": 3, "/api/user/balance": 1},
		Statuses: map[string]int64{"200": 3, "401": 1, "404": 2},
	}
	if !maps.Equal(got.Requests, want.Requests) || !maps.Equal(got.Keys, want.Keys) || !maps.Equal(got.Statuses, want.Statuses) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if fmt.Sprint(v.Stats()) != fmt.Sprint(got) {
		t.Errorf("Stats(): got %+v, want %+v as in the response", v.Stats(), got)
	}
	if w := post(s, "reset", ""); w.Code != 200 {
		t.Errorf("reset: got status %d, want 200", w.Code)
	}
	if s := v.Stats(); len(s.Requests)+len(s.Keys)+len(s.Statuses) > 0 {
		t.Errorf("after reset: got %+v, want no counts", s)
	}
}

func TestControl(t *testing.T) {
	v, s := open(true)
	var tok demo.Token
	for _, m := range v.Markets() {
		if m.Status == "OPEN" && m.TickSize == 100 {
			tok = demo.Token{TokenID: m.TokenIDs[0], MarketID: m.MarketID}
			break
		}
	}
	if w := post(s, "price", `{"tokenId":"`+tok.TokenID+`","price":0.77}`); w.Code != 200 {
		t.Errorf("price: got %d %s, want 200", w.Code, w.Body)
	}
	if q, _ := v.Quote(tok.TokenID); q.Price != 7700 {
		t.Errorf("got the price %v, want 0.77", q.Price)
	}
	held := func(id string) demo.Size {
		i := slices.IndexFunc(v.Positions(small), func(p demo.Position) bool { return p.TokenID == id })
		if i < 0 {
			return 0
		}
		return v.Positions(small)[i].Size
	}
	var p demo.Position
	for _, p = range v.Positions(small) {
		i := slices.IndexFunc(v.Tokens(), func(tok demo.Token) bool { return tok.TokenID == p.TokenID })
		if v.Tokens()[i].Status == "OPEN" {
			break
		}
	}
	if w := post(s, "trade", `{"address":"`+small+`","tokenId":"`+p.TokenID+`","side":"BUY","size":10.5}`); w.Code != 200 || held(p.TokenID) != p.Size+1050 {
		t.Errorf("trade: got %d %s and a position of %v, want 200 and %v", w.Code, w.Body, held(p.TokenID), p.Size+1050)
	}
	if w := post(s, "trade", `{"address":"`+small+`","tokenId":"`+p.TokenID+`","side":"SELL","size":-0.01}`); w.Code != 400 {
		t.Errorf("a negative size: got %d %s, want 400", w.Code, w.Body)
	}
	if w := post(s, "trade", `{"address":"`+small+`","tokenId":"`+p.TokenID+`","side":"SELL"}`); w.Code != 200 || held(p.TokenID) != 0 {
		t.Errorf("a sale without a size: got %d %s, want 200 and no position", w.Code, w.Body)
	}
	if w := post(s, "trade", `{"address":"`+small+`","tokenId":"`+p.TokenID+`","side":"SELL"}`); w.Code != 400 {
		t.Errorf("a sale without a position: got %d %s, want 400", w.Code, w.Body)
	}
	if w := post(s, "faults", `{"faults":[{"kind":"status","status":503,"retryAfter":"2","count":1}]}`); w.Code != 200 {
		t.Errorf("faults: got %d %s, want 200", w.Code, w.Body)
	}
	if w := send(s, "GET", "/__control/faults", ""); w.Body.String() != `{"faults":[{"kind":"status","count":1,"status":503,"retryAfter":"2"}]}` {
		t.Errorf("got the faults %s", w.Body)
	}
	if w := send(s, "GET", "/api/exchange/market-search", ""); w.Code != 503 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("after faults: got %d, want 503 with Retry-After", w.Code)
	}
	for _, c := range []struct {
		method, name, body string
		status             int
	}{
		{"POST", "stats", "", 405}, {"GET", "reset", "", 405}, {"POST", "nothing", "", 404}, {"GET", "", "", 405},
		{"POST", "faults", "", 400}, {"POST", "faults", "[]", 400}, {"POST", "faults", `{"fault":[]}`, 400}, {"POST", "faults", `{"faults":[]} x`, 400},
		{"POST", "faults", `{"faults":[{"kind":"odd"}]}`, 400}, {"POST", "faults", `{"faults":[{"kind":"drip","spin":1}]}`, 400},
		{"POST", "faults", `{"faults":[` + strings.Repeat(" ", 1<<20) + `]}`, 400}, {"POST", "faults", `{"faults":[]}`, 200},
		{"POST", "price", `{"tokenId":"` + tok.TokenID + `","price":1e-1}`, 400}, {"POST", "price", `{"tokenId":"` + tok.TokenID + `","price":0.775}`, 400},
		{"POST", "price", `{"tokenId":"x","price":0.7}`, 400}, {"POST", "price", `{"price":"high"}`, 400},
		{"POST", "trade", `{"address":"` + small + `","tokenId":"` + p.TokenID + `","side":"BUY","size":0.001}`, 400}, {"POST", "trade", `{}`, 400}, {"POST", "trade", `x`, 400},
		{"POST", "step", `{"steps":0}`, 400}, {"POST", "step", `{"steps":10001}`, 400}, {"POST", "step", ``, 400}, {"POST", "step", `{}`, 200},
		{"POST", "restart", ``, 400}, {"POST", "restart", `{"code":1006}`, 400}, {"POST", "restart", `{"code":5000}`, 400}, {"POST", "restart", `{"cod":1}`, 400},
		{"POST", "market", `{"marketId":"` + tok.MarketID + `"}`, 400}, {"POST", "market", `{"marketId":"` + tok.MarketID + `","status":"CLOSED","description":"x"}`, 400},
		{"POST", "market", `{"marketId":"` + tok.MarketID + `","tickSize":"x"}`, 400}, {"POST", "market", `{"marketId":"` + tok.MarketID + `","description":"x"}`, 200},
		{"POST", "market", `{"marketId":"` + tok.MarketID + `","tickSize":0.001}`, 200}, {"POST", "market", `{"marketId":"` + tok.MarketID + `","status":"CLOSED"}`, 200},
		{"POST", "market", `{"marketId":"` + tok.MarketID + `","winningTokenId":"` + tok.TokenID + `"}`, 200}, {"POST", "market", `{"marketId":"x","status":"CLOSED"}`, 400},
	} {
		w := send(s, c.method, "/__control/"+c.name, c.body)
		if w.Code != c.status {
			t.Errorf("%s %s %.80s: got %d %s, want %d", c.method, c.name, c.body, w.Code, w.Body, c.status)
		}
		if strings.Contains(w.Body.String(), `"success":true`) != (c.status == 200) {
			t.Errorf("%s %s %.80s: got body %s, want success %v", c.method, c.name, c.body, w.Body, c.status == 200)
		}
	}
	if _, s := open(false); post(s, "reset", "").Code != 404 {
		t.Error("without control, the endpoints exist")
	}
}

// TestControlRefusesOtherOrigins checks that the control endpoints refuse a request if its headers show that a web page of another
// origin sent it. They must accept all other requests.
func TestControlRefusesOtherOrigins(t *testing.T) {
	_, s := open(true)
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403}, {"Origin", "http://evil.example", 403}, {"Origin", "null", 403},
		{"Sec-Fetch-Site", "same-origin", 200}, {"Sec-Fetch-Site", "none", 200}, {"Origin", "http://example.com", 200}, {"User-Agent", "curl", 200},
	} {
		r := httptest.NewRequest(http.MethodPost, "/__control/reset", nil)
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set(c.name, c.value)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%s %s: got %d, want %d", c.name, c.value, w.Code, c.status)
		}
	}
}

// TestBefore checks the server before a venue in another process: calls and their faults, and that it cannot change the markets.
func TestBefore(t *testing.T) {
	v, _ := open(false)
	real := httptest.NewServer(v)
	t.Cleanup(real.Close)
	address, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := control.Before(address, true)
	target := "/api/exchange/prices?tokenId=" + v.Tokens()[0].TokenID
	if w := send(s, "GET", target, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"price":`) {
		t.Errorf("got %d %s, want a price", w.Code, w.Body)
	}
	if err := s.Faults.Set([]faults.Fault{{Kind: faults.Truncate}}); err != nil {
		t.Fatal(err)
	}
	if w := send(s, "GET", target, ""); w.Code != 200 || json.Valid(w.Body.Bytes()) {
		t.Errorf("got %d %s, want half of a price", w.Code, w.Body)
	}
	for name, want := range map[string]int{"reset": 200, "restart": 200, "step": 404} {
		if w := post(s, name, `{}`); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, want)
		}
	}
}

// TestDialectsHaveTheSameEvents checks that the markets of all dialects have the same prices, books, trades and changes, if the seed
// and the start are the same.
func TestDialectsHaveTheSameEvents(t *testing.T) {
	states := map[string]string{}
	for _, name := range []string{"generic", "polymarket", "kalshi"} {
		clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
		config := demo.Config{Markets: 120, Seed: 4, Clock: clock, MarketEvery: time.Second}
		var v control.Venue
		switch name {
		case "polymarket":
			v = polymarket.New(config)
		case "kalshi":
			v = kalshi.New(kalshi.Config{Demo: config})
		default:
			v = demo.New(config)
		}
		var b strings.Builder
		for range 300 {
			clock.Advance(150 * time.Millisecond)
			v.Engine().Step()
		}
		for _, m := range v.Engine().Markets() {
			fmt.Fprintln(&b, m)
			for _, id := range m.TokenIDs {
				q, _ := v.Engine().Quote(id)
				book, _ := v.Engine().Book(id)
				fmt.Fprintln(&b, q, book, v.Engine().Tape(id))
			}
		}
		states[name] = b.String()
	}
	for name, state := range states {
		if state != states["generic"] {
			t.Errorf("the markets of %s have other events", name)
		}
	}
}
