package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// sendFrom sends a GET request from the given client address.
func sendFrom(v *Venue, address, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = address + ":1234"
	return handle(v, r)
}

func TestLimitHeaders(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 1, Clock: c, PublicPerMinute: 3, KeyPerMinute: 2})
	public := "/api/exchange/market-search"
	began := c.Now()
	reset := strconv.FormatInt(began.Unix()+60, 10)
	for remaining := 2; remaining >= 0; remaining-- {
		target := public
		if remaining == 1 {
			target = "/api/exchange/nothing" // an error response counts too, and has the X-RateLimit headers
		}
		w := sendFrom(v, "10.0.0.1", target)
		if h := w.Header(); h.Get("X-RateLimit-Limit") != "3" || h.Get("X-RateLimit-Remaining") != strconv.Itoa(remaining) || h.Get("X-RateLimit-Reset") != reset || h.Get("Retry-After") != "" {
			t.Errorf("with %d remaining requests: got header %v", remaining, h)
		}
		c.Advance(10 * time.Second)
	}
	w := sendFrom(v, "10.0.0.1", public)
	if h := w.Header(); w.Code != 429 || h.Get("Retry-After") != "30" || h.Get("X-RateLimit-Remaining") != "0" || h.Get("X-RateLimit-Reset") != reset {
		t.Errorf("beyond the limit: got %d %v, want 429, 0 remaining requests and Retry-After 30", w.Code, h)
	}
	if body := decode[object](t, w.Body.String()); body["code"] != "RATE_LIMITED" || body["success"] != false {
		t.Errorf("beyond the limit: got body %v, want success false and RATE_LIMITED", body)
	}
	if w := sendFrom(v, "10.0.0.2", public); w.Code != 200 {
		t.Errorf("other address: got %d, want 200", w.Code)
	}
	// Each API key has a separate limit for all requests with the key, from any address. A request without a valid key counts
	// towards the limit of its address.
	user := "/api/user/balance?address=" + small
	for i, want := range []int{200, 200, 429} {
		if w := sendFrom(v, fmt.Sprintf("10.0.1.%d", i), user+credentials("demo-3")); w.Code != want {
			t.Errorf("request %d with the key: got %d, want %d", i, w.Code, want)
		}
	}
	if w := sendFrom(v, "10.0.0.1", user+credentials("demo")); w.Code != 200 {
		t.Errorf("other key: got %d, want 200", w.Code)
	}
	if w := sendFrom(v, "10.0.0.1", user+credentials("nobody")); w.Code != 429 {
		t.Errorf("invalid key from a limited address: got %d, want 429", w.Code)
	}
	if w := sendFrom(v, "10.0.0.3", user+credentials("nobody")); w.Code != 401 {
		t.Errorf("invalid key: got %d, want 401", w.Code)
	}
	c.Advance(30 * time.Second)
	if w := sendFrom(v, "10.0.0.1", public); w.Code != 200 {
		t.Errorf("after Retry-After: got %d, want 200", w.Code)
	}
	if s := v.Stats(); s.Statuses["429"] != 3 {
		t.Errorf("got numbers of responses by status %v, want 3 with 429", s.Statuses)
	}
}
