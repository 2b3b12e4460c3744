package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestDemoControl checks when the service's pages can control the demo venue: only with the embedded venue, --demo-control,
// loopback addresses and no trusted proxy. Even then, the service must refuse requests from other origins.
func TestDemoControl(t *testing.T) {
	t.Parallel()
	venue := start(t)
	send := func(t *testing.T, method, url, kind, body string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		if len(header) > 0 {
			r.Header.Set(header[0], header[1])
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const faults = `{"faults":[{"kind":"status","status":503}]}`
	const noProxies, jsonType = "--trusted-proxies=", "application/json"
	for name, test := range map[string]struct {
		args    []string
		get     int
		answer  string
		allowed bool
	}{
		"loopback":              {[]string{noProxies}, 200, `{"allowed":true}`, true},
		"polymarket":            {[]string{noProxies, "--demo-driver=polymarket", "--venue-driver=polymarket"}, 200, `{"allowed":true}`, true},
		"kalshi":                {[]string{noProxies, "--demo-driver=kalshi", "--venue-driver=kalshi"}, 200, `{"allowed":true}`, true},
		"switched off":          {[]string{noProxies, "--demo-control=false"}, 200, `{"allowed":false}`, false},
		"a trusted proxy":       {[]string{"--trusted-proxies=127.0.0.1"}, 200, `{"allowed":false}`, false},
		"all interfaces":        {[]string{noProxies, "--listen=0.0.0.0:0"}, 200, `{"allowed":false}`, false},
		"demo on all addresses": {[]string{noProxies, "--demo-listen=0.0.0.0:0"}, 200, `{"allowed":false}`, false},
		"a configured venue":    {[]string{noProxies, "--venue-url=" + venue.Demo.URL()}, 404, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, test.args...)
			path := "http://" + s.Addr().String() + "/demo/control"
			if status, body := send(t, "GET", path, "", ""); status != test.get || !strings.HasPrefix(body, test.answer) {
				t.Errorf("GET: %d %s, want %d %s", status, body, test.get, test.answer)
			}
			if !test.allowed {
				if status, body := send(t, "POST", path+"/faults", jsonType, faults); status < 400 || status > 499 {
					t.Errorf("POST: %d %s, want a refusal", status, body)
				}
				return
			}
			for _, refused := range []struct {
				what, kind string
				status     int
				header     []string
			}{
				{"faults", jsonType, 403, []string{"Origin", "http://localhost:5173"}},
				{"faults", jsonType, 403, []string{"Sec-Fetch-Site", "cross-site"}},
				{"faults", jsonType, 403, []string{"Sec-Fetch-Site", "same-site"}},
				{"faults", "text/plain", 415, nil},
				{"stats", jsonType, 404, nil},
				{"trade", jsonType, 404, nil},
			} {
				if status, body := send(t, "POST", path+"/"+refused.what, refused.kind, faults, refused.header...); status != refused.status {
					t.Errorf("%+v: got status %d and the body %s", refused, status, body)
				}
			}
			if status, _ := send(t, "OPTIONS", path+"/faults", "", "", "Origin", "http://localhost:5173"); status < 400 {
				t.Errorf("a preflight request gets status %d, want a refusal", status)
			}
			pricesStatus := func() int {
				status, _ := send(t, "GET", s.Demo.URL()+"/api/exchange/prices?tokenIds=1", "", "")
				return status
			}
			if status := pricesStatus(); status == 503 {
				t.Fatal("the venue fails before a fault is set")
			}
			if status, body := send(t, "POST", path+"/faults", jsonType, faults, "Origin", "http://"+s.Addr().String()); status != 200 {
				t.Errorf("POST /faults from the service's own page: got status %d and the body %s, want 200", status, body)
			}
			if status := pricesStatus(); status != 503 {
				t.Errorf("the venue answers with status %d despite the fault, want 503", status)
			}
			if status, body := send(t, "POST", path+"/reset", jsonType, "{}"); status != 200 || pricesStatus() == 503 {
				t.Errorf("POST /reset: got status %d and the body %s, want 200 and a venue without faults", status, body)
			}
		})
	}
}

// TestDemoTokens checks that the API keys of the demo accounts are valid bearer tokens only on loopback addresses, with the
// embedded venue and without an accounts file. The key that may read every wallet is never a valid token.
func TestDemoTokens(t *testing.T) {
	t.Parallel()
	venue := start(t)
	for name, test := range map[string]struct {
		flag  string
		valid bool
	}{
		"loopback":              {"", true},
		"all interfaces":        {"--listen=0.0.0.0:0", false},
		"no host":               {"--listen=:0", false},
		"demo on all addresses": {"--demo-listen=0.0.0.0:0", false},
		"an accounts file":      {"--accounts-file=" + newAccountsFile(t).path, false},
		"a configured venue":    {"--venue-url=" + venue.Demo.URL(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, strings.Fields(test.flag)...)
			for token, address := range map[string]string{"demo-3": addressOf3, "demo-50": addressOf50} {
				got := s.bearer(t, token, `{ viewer { address balance { cashBalance } } }`)
				if valid := got.status == http.StatusOK && strings.HasPrefix(got.body, `{"data":{"viewer":{"address":"`+address+`","balance":{"cashBalance":"`); valid != test.valid {
					t.Errorf("the token %s is valid: %t, want %t; got status %d and the body %s", token, valid, test.valid, got.status, got.body)
				}
				if !test.valid && (got.status != http.StatusUnauthorized || !strings.Contains(got.body, `"UNAUTHENTICATED"`)) {
					t.Errorf("the token %s: got status %d and the body %s, want 401 and UNAUTHENTICATED", token, got.status, got.body)
				}
			}
			if got := s.bearer(t, "demo", `{ viewer { address } }`); got.status != http.StatusUnauthorized {
				t.Errorf("the key of all wallets: got status %d and the body %s, want 401", got.status, got.body)
			}
		})
	}
}
