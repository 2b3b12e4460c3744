package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accountsFile is an accounts file that maps bearer tokens to demo accounts.
type accountsFile struct{ path string }

func newAccountsFile(t testing.TB) accountsFile {
	t.Helper()
	f := accountsFile{filepath.Join(t.TempDir(), "accounts.json")}
	f.write(t, map[string]string{"token-of-3": "demo-3", "token-of-50": "demo-50", "token-of-nobody": "no such key"})
	return f
}

// write replaces the file. The map keys contains an API key of the demo venue for each bearer token.
func (f accountsFile) write(t testing.TB, keys map[string]string) {
	t.Helper()
	addresses := map[string]string{"demo-3": addressOf3, "demo-50": addressOf50, "no such key": addressOf3}
	list := []any{}
	for token, key := range keys {
		list = append(list, map[string]any{
			"tokenSha256": hashOf(token), "address": addresses[key],
			"credentials": map[string]string{"apiKey": key, "secret": "demo", "passphrase": "demo"},
		})
	}
	next := write(t, filepath.Dir(f.path), "next.json", asJSON(vars{"version": 1, "accounts": list}))
	if err := os.Rename(next, f.path); err != nil {
		t.Fatal(err)
	}
}

// bearer executes a query with a bearer token.
func (s *service) bearer(t testing.TB, token, query string) response {
	t.Helper()
	r := s.request(t, asJSON(vars{"query": query}), anonymous)
	r.Header.Set("Authorization", "Bearer "+token)
	return s.do(t, r)
}

const viewerQuery = `{ viewer { address positions { totalCount } } }`

// TestServeRefusesBadFiles checks that the command "serve" returns an error if a file is missing or invalid, or if a trusted proxy
// is invalid.
func TestServeRefusesBadFiles(t *testing.T) {
	dir := t.TempDir()
	manifest := write(t, dir, "manifest.json", `{"trusted-1":"{ nope }"}`)
	for want, args := range map[string][]string{
		"ODDSGRAPH_ACCOUNTS_FILE":   {"--accounts-file=" + filepath.Join(dir, "none.json")},
		"trusted-1":                 {"--documents-trusted=require", "--documents-manifest=" + manifest},
		"ODDSGRAPH_TRUSTED_PROXIES": {"--trusted-proxies=10.0.0.1/8"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience) // ends the program if it accepts the arguments
		err := run(ctx, append(args, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0"), nil, nil, &logBuffer{})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("arguments %v: got the error %v, want an error with %s", args, err, want)
		}
	}
}
