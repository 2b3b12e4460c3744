package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/httpapi"
)

// accountsFile is an accounts file that maps bearer tokens to demo accounts.
type accountsFile struct{ path string }

func newAccountsFile(t testing.TB) accountsFile {
	t.Helper()
	f := accountsFile{filepath.Join(t.TempDir(), "accounts.json")}
	f.write(t, map[string]string{"token-of-3": "demo-3", "token-of-50": "demo-50", "token-of-nobody": "no such key"})
	return f
}

// write replaces the file. The parameter keys maps each bearer token to an API key of the demo venue.
func (f accountsFile) write(t testing.TB, keys map[string]string) {
	t.Helper()
	addresses := map[string]string{"demo-3": addressOf3, "demo-50": addressOf50, "no such key": addressOf3}
	list := []any{}
	for token, key := range keys {
		hash := sha256.Sum256([]byte(token))
		list = append(list, map[string]any{
			"tokenSha256": hex.EncodeToString(hash[:]), "address": addresses[key],
			"credentials": map[string]string{"apiKey": key, "secret": "demo", "passphrase": "demo"},
		})
	}
	b, err := json.Marshal(map[string]any{"version": 1, "accounts": list})
	if err != nil {
		t.Fatal(err)
	}
	next := f.path + ".next"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, f.path); err != nil {
		t.Fatal(err)
	}
}

// bearer executes a query with a bearer token.
func (s *service) bearer(t testing.TB, token, query string) response {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r := s.request(t, string(body), anonymous)
	r.Header.Set("Authorization", "Bearer "+token)
	return s.do(t, r)
}

const viewerQuery = `{ viewer { address positions { totalCount } } }`

func TestBearerTokens(t *testing.T) {
	f := newAccountsFile(t)
	s := start(t, "--accounts-file="+f.path)
	for token, want := range map[string]string{
		"token-of-3":  `{"data":{"viewer":{"address":"` + addressOf3 + `","positions":{"totalCount":3}}}}`,
		"token-of-50": `{"data":{"viewer":{"address":"` + addressOf50 + `","positions":{"totalCount":50}}}}`,
	} {
		if got := s.bearer(t, token, viewerQuery); got.status != http.StatusOK || got.body != want {
			t.Errorf("%s: %+v", token, got)
		}
	}
	wantJSON(t, "anonymous", s.ask(t, viewerQuery, nil, anonymous), `{"viewer":null}`)
	got := s.bearer(t, "token-of-4", viewerQuery)
	if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") == "" || !strings.Contains(got.body, `"UNAUTHENTICATED"`) {
		t.Errorf("an unknown token: %+v", got)
	}
	// If a token is no longer in the reloaded file, the service must refuse the token.
	f.write(t, map[string]string{"token-of-50": "demo-50"})
	if err := s.Files.Accounts.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := s.bearer(t, "token-of-3", viewerQuery); got.status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %+v", got)
	}
	if got := s.bearer(t, "token-of-50", viewerQuery); got.status != http.StatusOK {
		t.Errorf("one that is not: %+v", got)
	}
	if strings.Contains(s.log.String(), "token-of") {
		t.Error("a token is in the log")
	}
}

// TestRefusedByTheVenue checks the limit of refused credentials. If the venue has refused the same credentials in five requests
// from one address, the service must refuse further requests with these credentials from this address without a call. Valid
// credentials must work at once from another address, and a minute later from the same address. Credentials from the accounts file
// do not count, because the client did not send them.
func TestRefusedByTheVenue(t *testing.T) {
	f := newAccountsFile(t)
	s := start(t, "--accounts-file="+f.path)
	query := `{"query":"{ user(address: \"` + addressOf3 + `\") { positions { totalCount } trades { totalCount } } }"}`
	ask := func(from, name, value string) response {
		r := s.request(t, query, anonymous)
		r.Header.Set("X-Forwarded-For", from)
		r.Header.Set(name, value)
		return s.do(t, r)
	}
	for range 6 {
		if got := ask("198.51.100.1", "Authorization", "Bearer token-of-nobody"); got.status != http.StatusOK || !strings.Contains(got.body, `"UNAUTHENTICATED"`) {
			t.Fatalf("%+v", got)
		}
	}
	wrong := credentials("no such key")
	for range 5 {
		if got := ask("198.51.100.2", httpapi.CredentialsHeader, wrong); got.status != http.StatusOK || !strings.Contains(got.body, `"UNAUTHENTICATED"`) {
			t.Fatalf("%+v", got)
		}
	}
	wantCalls(t, s.callsDuring(func() {
		got := ask("198.51.100.2", httpapi.CredentialsHeader, wrong)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
			t.Errorf("%+v", got)
		}
	}), calls{})
	if got := ask("198.51.100.3, 10.1.1.1", httpapi.CredentialsHeader, keyOf3); got.status != http.StatusOK || strings.Contains(got.body, "errors") {
		t.Errorf("from elsewhere: %+v", got)
	}
	s.clock.Advance(60e9)
	if got := ask("198.51.100.2", httpapi.CredentialsHeader, keyOf3); got.status != http.StatusOK || strings.Contains(got.body, "errors") {
		t.Errorf("a minute later: %+v", got)
	}
}

// TestInvalidTokensLockOutNobody checks that valid tokens and credentials work from an address that sends many invalid tokens. If
// the address repeats an invalid token too often, it must get status 429.
func TestInvalidTokensLockOutNobody(t *testing.T) {
	f := newAccountsFile(t)
	s := start(t, "--accounts-file="+f.path)
	ask := func(name, value string) response {
		r := s.request(t, `{"query":"{ user(address: \"`+addressOf3+`\") { positions { totalCount } } }"}`, anonymous)
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		r.Header.Set(name, value)
		return s.do(t, r)
	}
	good := func() {
		t.Helper()
		for name, value := range map[string]string{"Authorization": "Bearer token-of-3", httpapi.CredentialsHeader: keyOf3} {
			if got := ask(name, value); got.status != http.StatusOK || strings.Contains(got.body, "errors") {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	for n := range 10 {
		if got := ask("Authorization", fmt.Sprint("Bearer invalid-", n)); got.status != http.StatusUnauthorized {
			t.Errorf("%+v", got)
		}
	}
	good()
	for range 10 {
		ask("Authorization", "Bearer invalid")
	}
	if got := ask("Authorization", "Bearer invalid"); got.status != http.StatusTooManyRequests {
		t.Errorf("the same invalid token: %+v", got)
	}
	good()
}

func TestAccountsThatCannotBeRead(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open.json")
	if err := os.WriteFile(open, []byte(`{"version":1,"accounts":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{open, filepath.Join(t.TempDir(), "none.json")} {
		err := run(t.Context(), []string{"--accounts-file=" + path, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0"}, nil, nil, &logBuffer{})
		if err == nil || !strings.Contains(err.Error(), "ODDSGRAPH_ACCOUNTS_FILE") {
			t.Errorf("%s: %v", path, err)
		}
	}
	err := run(t.Context(), []string{"--trusted-proxies=10.0.0.1/8", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0"}, nil, nil, &logBuffer{})
	if err == nil || !strings.Contains(fmt.Sprint(err), "ODDSGRAPH_TRUSTED_PROXIES") {
		t.Errorf("%v", err)
	}
}
