package demo

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func post(v *Venue, name, body string) *httptest.ResponseRecorder {
	return handle(v, httptest.NewRequest(http.MethodPost, "/__control/"+name, strings.NewReader(body)))
}

func TestStats(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock(), Control: true})
	a, b := v.listing.tokens[0], v.listing.tokens[7]
	send(v, "/api/exchange/prices?tokenIds="+a.id+","+b.id)
	send(v, "/api/exchange/prices?tokenId="+a.id)
	send(v, "/api/exchange/prices?tokenId=unknown")
	send(v, "/api/exchange/market-details?ids="+a.market.id+","+b.market.id+",x")
	send(v, "/api/user/balance?address="+small)
	send(v, "/api/nothing")
	post(v, "stats", "")
	got := decode[Stats](t, send(v, "/__control/stats").Body.String())
	want := Stats{
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
	if w := post(v, "reset", ""); w.Code != 200 {
		t.Errorf("reset: got status %d, want 200", w.Code)
	}
	if s := v.Stats(); len(s.Requests)+len(s.Keys)+len(s.Statuses) > 0 {
		t.Errorf("after reset: got %+v, want no counts", s)
	}
}

func TestControl(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock(), Control: true, PublicPerMinute: 1})
	tok := first(t, v, func(tok *token) bool { return isOpen(tok) && tok.market.tick == 100 })
	if w := post(v, "price", `{"tokenId":"`+tok.id+`","price":0.77}`); w.Code != 200 || tok.price() != 7700 {
		t.Errorf("price: got %d %s and price %v, want 200 and 7700", w.Code, w.Body, tok.price())
	}
	if w := post(v, "step", `{"steps":5}`); w.Code != 200 || v.steps != 5 {
		t.Errorf("step: got %d %s and %d steps, want 200 and 5", w.Code, w.Body, v.steps)
	}
	var p *position
	for _, p = range v.accounts[small].positions {
		if isOpen(p.token) {
			break
		}
	}
	size := p.size
	if w := post(v, "trade", `{"address":"`+small+`","tokenId":"`+p.token.id+`","side":"BUY","size":10.5}`); w.Code != 200 || p.size != size+1050 {
		t.Errorf("trade: got %d %s and a position of %v, want 200 and %v", w.Code, w.Body, p.size, size+1050)
	}
	if w := post(v, "trade", `{"address":"`+small+`","tokenId":"`+p.token.id+`","side":"SELL","size":-0.01}`); w.Code != 400 {
		t.Errorf("a negative size: got %d %s, want 400", w.Code, w.Body)
	}
	if w := post(v, "trade", `{"address":"`+small+`","tokenId":"`+p.token.id+`","side":"SELL"}`); w.Code != 200 || v.accounts[small].positionIn(p.token) != nil {
		t.Errorf("a sale without a size: got %d %s, want 200 and no position", w.Code, w.Body)
	}
	if w := post(v, "trade", `{"address":"`+small+`","tokenId":"`+p.token.id+`","side":"SELL"}`); w.Code != 400 {
		t.Errorf("a sale without a position: got %d %s, want 400", w.Code, w.Body)
	}
	if w := post(v, "faults", `{"faults":[{"path":"*","kind":"status","status":503,"retryAfter":"2","count":1}]}`); w.Code != 200 {
		t.Errorf("faults: got %d %s, want 200", w.Code, w.Body)
	}
	if w := send(v, "/api/exchange/market-search"); w.Code != 503 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("after faults: got %d, want 503 with Retry-After", w.Code)
	}
	for _, c := range []struct {
		method, name, body string
		status             int
	}{
		{"POST", "stats", "", 405}, {"GET", "reset", "", 405}, {"GET", "faults", "", 405}, {"POST", "nothing", "", 404}, {"GET", "", "", 405},
		{"POST", "faults", "", 400}, {"POST", "faults", "[]", 400}, {"POST", "faults", `{"fault":[]}`, 400}, {"POST", "faults", `{"faults":[]} x`, 400},
		{"POST", "faults", `{"faults":[{"path":"*","kind":"odd"}]}`, 400}, {"POST", "faults", `{"faults":[{"path":"*","kind":"html","spin":1}]}`, 400},
		{"POST", "faults", `{"faults":[` + strings.Repeat(" ", maxControl) + `]}`, 400}, {"POST", "faults", `{"faults":[]}`, 200},
		{"POST", "price", `{"tokenId":"` + tok.id + `","price":1e-1}`, 400}, {"POST", "price", `{"tokenId":"` + tok.id + `","price":0.775}`, 400},
		{"POST", "price", `{"tokenId":"x","price":0.7}`, 400}, {"POST", "price", `{"price":"high"}`, 400},
		{"POST", "trade", `{"address":"` + small + `","tokenId":"` + p.token.id + `","side":"BUY","size":0.001}`, 400}, {"POST", "trade", `{}`, 400}, {"POST", "trade", `x`, 400},
		{"POST", "step", `{"steps":0}`, 400}, {"POST", "step", `{"steps":10001}`, 400}, {"POST", "step", ``, 400}, {"POST", "step", `{}`, 200},
	} {
		w := handle(v, httptest.NewRequest(c.method, "/__control/"+c.name, strings.NewReader(c.body)))
		if w.Code != c.status {
			t.Errorf("%s %s %.80s: got %d %s, want %d", c.method, c.name, c.body, w.Code, w.Body, c.status)
		}
		body := decode[object](t, w.Body.String())
		if (body["success"] == true) != (c.status == 200) {
			t.Errorf("%s %s %.80s: got body %s, want success %v", c.method, c.name, c.body, w.Body, c.status == 200)
		}
	}
	if w := post(New(Config{Markets: 1}), "reset", ""); w.Code != 404 {
		t.Errorf("without Control: got %d, want 404", w.Code)
	}
}

// TestControlRefusesOtherOrigins checks that the control endpoints refuse a request if its headers show that a web page of another
// origin sent it. They must accept all other requests.
func TestControlRefusesOtherOrigins(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock(), Control: true})
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
		w := handle(v, r)
		if w.Code != c.status {
			t.Errorf("%s %s: got %d, want %d", c.name, c.value, w.Code, c.status)
		}
	}
}
