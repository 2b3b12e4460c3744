package e2e

import (
	"net/http"
	"strings"
	"testing"
)

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
