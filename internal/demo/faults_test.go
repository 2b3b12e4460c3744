package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Markets: 40, Latency: time.Millisecond})
		target := "/api/exchange/prices?tokenId=" + v.listing.tokens[0].id
		length := send(v, target).Body.Len()
		for _, c := range []struct {
			fault Fault
			want  time.Duration
		}{
			{Fault{Kind: FaultDelay, DelayMs: 250}, 251 * time.Millisecond},
			{Fault{Kind: FaultStatus, Status: 503, DelayMs: 40}, 41 * time.Millisecond},
			{Fault{Kind: FaultDrip, DelayMs: 20}, time.Millisecond + time.Duration(length)*20*time.Millisecond},
		} {
			c.fault.Path = "*"
			if err := v.SetFaults([]Fault{c.fault}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if send(v, target); time.Since(began) != c.want {
				t.Errorf("fault %+v: the response took %v, want %v", c.fault, time.Since(began), c.want)
			}
		}
		for kind, sent := range map[FaultKind]int{FaultHang: 0, FaultHangBody: length / 2} {
			if err := v.SetFaults([]Fault{{Path: "*", Kind: kind}}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			began := time.Now()
			w := handle(v, httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil))
			cancel()
			if hung := time.Since(began).Round(time.Second); hung != time.Hour || w.Body.Len() != sent {
				t.Errorf("%s: the request took %v and got the body %q, want 1h and %d bytes", kind, hung, w.Body, sent)
			}
		}
	})
}

func TestUnknownList(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	if err := v.SetFaults([]Fault{{Path: "*", Kind: FaultUnknownList}}); err != nil {
		t.Fatal(err)
	}
	tok := v.listing.tokens[0]
	for target, status := range map[string]int{
		"/api/exchange/prices?tokenIds=" + tok.id:              200,
		"/api/exchange/spreads?tokenIds=" + tok.id:             400,
		"/api/exchange/spreads?tokenId=" + tok.id:              200,
		"/api/exchange/market-details?tokenIds=" + tok.id:      400,
		"/api/exchange/market-details?ids=" + tok.market.id:    400,
		"/api/exchange/market-details?id=" + tok.market.id:     200,
		"/api/exchange/market-details?slug=" + tok.market.slug: 200,
	} {
		if w := send(v, target); w.Code != status {
			t.Errorf("%s: got %d, want %d", target, w.Code, status)
		}
	}
}

func TestFaultRules(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	a, b := v.listing.tokens[0].id, v.listing.tokens[1].id
	price := func(ids string) int { return send(v, "/api/exchange/prices?tokenIds="+ids).Code }
	if err := v.SetFaults([]Fault{
		{Path: "/api/exchange/prices", Kind: FaultStatus, Status: 503, TokenID: a, Count: 2},
		{Path: "*", Kind: FaultStatus, Status: 500, Count: 1},
	}); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		ids  string
		want int
	}{{b + "," + a, 503}, {b, 500}, {b, 200}, {a, 503}, {a, 200}} {
		if got := price(c.ids); got != c.want {
			t.Errorf("request %d: got status %d, want %d", i, got, c.want)
		}
	}
	forever := []Fault{{Path: "*", Kind: FaultStatus}}
	for _, clear := range []func() error{
		func() error { return v.SetFaults(nil) },
		func() error { v.Reset(); return nil },
	} {
		if err := v.SetFaults(forever); err != nil || price(a) != 500 || price(a) != 500 {
			t.Errorf("a fault without a Count did not apply to two requests; error %v", err)
		}
		if err := clear(); err != nil || price(a) != 200 {
			t.Errorf("a cleared fault still applies; error %v", err)
		}
	}
	// The venue applies the rate limit before the faults, so a refused request does not reduce the Count of a fault.
	v.limits.public.perMinute = 1
	if err := v.SetFaults([]Fault{{Path: "*", Kind: FaultHTML, Count: 1}}); err != nil {
		t.Fatal(err)
	}
	if price(a) != 200 || price(a) != 429 {
		t.Error("got other statuses than 200 and then 429")
	}

	parsed, err := ParseFaults(strings.NewReader(`{"faults":[{"path":"*","kind":"hang","count":3}]}`))
	if err != nil || len(parsed) != 1 || parsed[0] != (Fault{Path: "*", Kind: FaultHang, Count: 3}) {
		t.Errorf("ParseFaults: got %+v and error %v", parsed, err)
	}
	for name, f := range map[string]Fault{
		"path":     {Path: "/api", Kind: FaultHTML},
		"no path":  {Kind: FaultHTML},
		"kind":     {Path: "*", Kind: "odd"},
		"count":    {Path: "*", Kind: FaultHTML, Count: -1},
		"status":   {Path: "*", Kind: FaultStatus, Status: 99},
		"redirect": {Path: "*", Kind: FaultRedirect, Status: 200},
		"body":     {Path: "*", Kind: FaultStatus, Body: "xml"},
		"delay":    {Path: "*", Kind: FaultDelay, DelayMs: 1 << 30},
		"bytes":    {Path: "*", Kind: FaultLarge, Bytes: -1},
		"header":   {Path: "*", Kind: FaultStatus, RetryAfter: "1\r\nX: y"},
		"location": {Path: "*", Kind: FaultRedirect, Location: "/here"},
		"token":    {Path: "*", Kind: FaultHTML, TokenID: strings.Repeat("x", 257)},
	} {
		if v.SetFaults([]Fault{{Path: "*", Kind: FaultHTML}, f}) == nil {
			t.Errorf("%s: %+v was accepted", name, f)
		}
	}
	if v.SetFaults(make([]Fault, maxFaults+1)) == nil {
		t.Error("too many faults were accepted")
	}
}
