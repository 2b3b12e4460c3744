package demo

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serve starts an HTTP server for the venue. It returns the URL and a client that follows no redirects and does not decompress.
func serve(t *testing.T, v *Venue) (string, *http.Client) {
	t.Helper()
	s := httptest.NewServer(v)
	client := s.Client()
	client.Transport.(*http.Transport).DisableCompression = true
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return s.URL, client
}

// fetch sends a GET request over the network and reads the whole response.
func fetch(t *testing.T, client *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

func TestFaultsOverHTTP(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	url, client := serve(t, v)
	a, b := v.listing.tokens[0].id, v.listing.tokens[1].id
	prices := "/api/exchange/prices"
	target := url + prices + "?tokenIds=" + a + "," + b
	_, truth, err := fetch(t, client, target)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault Fault
		check func(*http.Response, string, error) bool
	}{
		{Fault{Kind: FaultStatus}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 500 && strings.Contains(body, `"code":"INTERNAL_ERROR"`) && r.Header.Get("Retry-After") == ""
		}},
		{Fault{Kind: FaultStatus, Status: 429, RetryAfter: "7"}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 429 && r.Header.Get("Retry-After") == "7" && strings.Contains(body, `"code":"RATE_LIMITED"`)
		}},
		{Fault{Kind: FaultStatus, Status: 429, RetryAfter: "Sat, 14 Mar 2026 15:10:00 GMT", Body: "html"}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 429 && strings.HasSuffix(r.Header.Get("Retry-After"), "GMT") && strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && strings.Contains(body, "<html>")
		}},
		{Fault{Kind: FaultStatus, Status: 503, Body: "empty"}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 503 && body == "" && err == nil
		}},
		{Fault{Kind: FaultHTML}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 200 && strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && strings.Contains(body, "<html>")
		}},
		{Fault{Kind: FaultEmpty}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 200 && body == "" && err == nil
		}},
		{Fault{Kind: FaultTruncated}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 200 && err == nil && body == truth[:len(truth)/2]
		}},
		{Fault{Kind: FaultWrongTypes}, func(r *http.Response, body string, err error) bool {
			rows := decode[struct{ Prices []object }](t, body).Prices
			_, isNumber := rows[0]["price"].(json.Number)
			_, isText := rows[0]["tokenId"].(string)
			return r.StatusCode == 200 && len(rows) == 2 && !isNumber && !isText && rows[0]["price"] != nil
		}},
		{Fault{Kind: FaultWrongTypes, TokenID: b}, func(r *http.Response, body string, err error) bool {
			rows := decode[struct{ Prices []object }](t, body).Prices
			_, first := rows[0]["price"].(json.Number)
			_, second := rows[1]["price"].(json.Number)
			return first && !second
		}},
		{Fault{Kind: FaultMissingFields}, func(r *http.Response, body string, err error) bool {
			rows := decode[struct{ Prices []object }](t, body).Prices
			return len(rows) == 2 && len(rows[0]) == 1 && rows[0]["tokenId"] == a
		}},
		{Fault{Kind: FaultUnknownFields}, func(r *http.Response, body string, err error) bool {
			o := decode[object](t, body)
			row := decode[struct{ Prices []object }](t, body).Prices[1]
			delete(o, "unheardOf")
			delete(o, "")
			return len(o) == 1 && row["unheardOf"] != nil && row["tokenId"] == b && row["price"] != nil
		}},
		{Fault{Kind: FaultText}, func(r *http.Response, body string, err error) bool {
			rows := decode[struct{ Prices []object }](t, body).Prices
			_, isText := rows[0]["price"].(string)
			return len(rows) == 2 && isText && rows[0]["tokenId"] == a
		}},
		{Fault{Kind: FaultNested}, func(r *http.Response, body string, err error) bool {
			return body == `{"success":true,"data":`+truth+`}`
		}},
		{Fault{Kind: FaultHalfBroken}, func(r *http.Response, body string, err error) bool {
			rows := decode[struct{ Prices []any }](t, body).Prices
			first, whole := rows[0].(map[string]any)
			_, second := rows[1].(map[string]any)
			return whole && first["tokenId"] == a && !second && len(rows) == 2
		}},
		{Fault{Kind: FaultLargeHeader, Bytes: 10_000}, func(r *http.Response, body string, err error) bool {
			return len(r.Header.Get("X-Large")) == 10_000 && body == truth
		}},
		{Fault{Kind: FaultSuccessFalse}, func(r *http.Response, body string, err error) bool {
			o := decode[object](t, body)
			return r.StatusCode == 200 && o["success"] == false && o["error"] != ""
		}},
		{Fault{Kind: FaultErrorOnly}, func(r *http.Response, body string, err error) bool {
			o := decode[object](t, body)
			return r.StatusCode == 200 && len(o) == 1 && o["error"] != ""
		}},
		{Fault{Kind: FaultDelay, DelayMs: 1}, func(r *http.Response, body string, err error) bool { return body == truth }},
		{Fault{Kind: FaultDrip, DelayMs: 1}, func(r *http.Response, body string, err error) bool {
			return body == truth && err == nil && r.ContentLength == int64(len(truth))
		}},
		{Fault{Kind: FaultReset}, func(r *http.Response, body string, err error) bool {
			return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) && body == truth[:len(truth)/2]
		}},
		{Fault{Kind: FaultLarge, Bytes: 3 << 20}, func(r *http.Response, body string, err error) bool {
			return err == nil && len(body) == 3<<20+len(truth) && strings.TrimLeft(body, " ") == truth
		}},
		{Fault{Kind: FaultGzipBomb}, func(r *http.Response, body string, err error) bool {
			z, zipErr := gzip.NewReader(strings.NewReader(body))
			if zipErr != nil || len(body) > 200_000 || r.Header.Get("Content-Encoding") != "gzip" {
				return false
			}
			n, copyErr := io.Copy(io.Discard, z)
			return copyErr == nil && n == int64(64<<20+len(truth))
		}},
		{Fault{Kind: FaultRedirect}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 302 && strings.Contains(r.Header.Get("Location"), ".invalid")
		}},
		{Fault{Kind: FaultRedirect, Status: 307, Location: "http://127.0.0.2/x"}, func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 307 && r.Header.Get("Location") == "http://127.0.0.2/x"
		}},
	} {
		c.fault.Path, c.fault.Count = prices, 1
		if err := v.SetFaults([]Fault{c.fault}); err != nil {
			t.Fatal(err)
		}
		if _, body, err := fetch(t, client, url+"/api/exchange/spreads?tokenId="+a); err != nil || !strings.HasPrefix(body, `{"tokenId"`) {
			t.Errorf("fault %+v changes the response of another endpoint", c.fault)
		}
		if r, body, err := fetch(t, client, target); !c.check(r, body, err) {
			t.Errorf("fault %+v: got response %v, %d bytes of body and error %v", c.fault, r, len(body), err)
		}
		if _, body, err := fetch(t, client, target); body != truth || err != nil {
			t.Errorf("fault %+v spoils more responses than its Count", c.fault)
		}
	}
}

// TestRefused checks that a request fails if the venue resets every connection, although the HTTP transport retries the request.
func TestRefused(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	url, client := serve(t, v)
	if err := v.SetFaults([]Fault{{Path: "*", Kind: FaultRefused}}); err != nil {
		t.Fatal(err)
	}
	if r, body, err := fetch(t, client, url+"/api/exchange/market-search"); err == nil {
		t.Errorf("got %v %s, want an error", r, body)
	}
}

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
