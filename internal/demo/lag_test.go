package demo

import (
	"net/http"
	"testing"
	"time"
)

func TestLag(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 40, Clock: c, Lag: 5 * time.Second})
	tok := first(t, v, isOpen)
	target := "/api/exchange/prices?tokenId=" + tok.id
	want := func(price, age string) {
		t.Helper()
		w := send(v, target)
		got := decode[priceAnswer](t, w.Body.String())
		if got.Price.String() != price || w.Header().Get("Age") != age || w.Header().Get("Cache-Control") != "public, max-age=5" {
			t.Errorf("got price %s, %v; want price %s, age %s", got.Price, w.Header(), price, age)
		}
	}
	set := func(price Price) {
		t.Helper()
		if err := v.SetPrice(tok.id, price); err != nil {
			t.Fatal(err)
		}
	}
	set(3000)
	want("0.3", "0")
	set(4000)
	want("0.3", "0")
	c.Advance(1500 * time.Millisecond)
	want("0.3", "2") // the venue rounds Age up to whole seconds
	c.Advance(3499 * time.Millisecond)
	want("0.3", "5")
	c.Advance(time.Millisecond)
	want("0.4", "0")

	// A different URL has its own cached response.
	set(2000)
	target += "&"
	want("0.2", "0")

	// A restarted venue has no cached responses.
	v.Restart(CloseShed)
	set(6000)
	want("0.6", "0")
}

// TestLagOfAccounts checks that only requests with the same API key get the cached response of an account, and that the venue does
// not cache error responses.
func TestLagOfAccounts(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 40, Clock: c, Lag: time.Minute})
	target := "/api/user/balance?address=" + small
	before := get[balanceAnswer](t, v, target+credentials("demo-3"))
	tok := v.walletOf(small).positions[0].token
	price := Price(1000)
	if tok.price() == price {
		price = 2000
	}
	if err := v.SetPrice(tok.id, price); err != nil {
		t.Fatal(err)
	}
	if after := get[balanceAnswer](t, v, target+credentials("demo-3")); after != before {
		t.Errorf("got balance %v, want the cached %v", after, before)
	}
	if other := get[balanceAnswer](t, v, target+credentials("demo")); other == before {
		t.Errorf("another key got the cached balance %v", other)
	}
	if got := send(v, target+credentials("demo-3")).Header().Get("Cache-Control"); got != "private, max-age=60" {
		t.Errorf("got Cache-Control %q, want private, max-age=60", got)
	}
	c.Advance(time.Minute)
	if after := get[balanceAnswer](t, v, target+credentials("demo-3")); after == before {
		t.Errorf("after a minute: got the cached balance %v", after)
	}
	for _, target := range []string{target, target + credentials("demo-50"), "/api/exchange/prices", "/api/exchange/prices?tokenId=unknown"} {
		if h := send(v, target).Header(); h.Get("Cache-Control") != "" || h.Get("Age") != "" {
			t.Errorf("GET %s: got header %v, want no Age and no Cache-Control", target, h)
		}
	}
	if w := send(New(Config{Markets: 40, Clock: c}), "/api/exchange/market-search"); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "" {
		t.Errorf("without lag: got %d %v, want 200 and no Cache-Control", w.Code, w.Header())
	}
}
