package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	alice = "0x00000000000000000000000000000000000000a1"
	bob   = "0x00000000000000000000000000000000000000b0"
)

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// line returns an element of an accounts file.
func line(token, address, key, name string) string {
	return fmt.Sprintf(`{"tokenSha256":%q,"address":%q,"credentials":{"apiKey":%q,"secret":"s-%s"},"name":%q}`, hash(token), address, key, key, name)
}

func file(lines ...string) string {
	return `{"version":1,"accounts":[` + strings.Join(lines, ",\n") + `]}`
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, content string) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accounts.json")
	write(t, path, content)
	s, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, path
}

func lookup(t testing.TB, s *Store, token string) *Account {
	t.Helper()
	a, ok := s.Lookup(token)
	if !ok {
		t.Fatalf("Lookup does not find the token %s", token)
	}
	return a
}

func revoked(a *Account) bool { return market.CodeOf(a.Err()) == market.CodeUnauthenticated }

func TestLookup(t *testing.T) {
	s, _ := open(t, file(line("token-a", alice, "ka", "alice"), line("token-b", bob, "kb", "bob")))
	a := lookup(t, s, "token-a")
	if a.Name != "alice" || a.Address != alice || a.Credentials.Wire() != `{"apiKey":"ka","secret":"s-ka"}` {
		t.Errorf("got the account %+v with the credentials %s", a, a.Credentials.Wire())
	}
	if own, ok := a.Credentials.Address(); !ok || own != alice {
		t.Errorf("the credentials have the address %s, want %s", own, alice)
	}
	if b := lookup(t, s, "token-b"); b.Address != bob || b.Credentials.Wire() != `{"apiKey":"kb","secret":"s-kb"}` {
		t.Errorf("token-b has the account %+v", b)
	}
	for _, token := range []string{"", "token", "token-a ", "TOKEN-A", hash("token-a"), strings.Repeat("x", 1<<16)} {
		if a, ok := s.Lookup(token); ok || a != nil {
			t.Errorf("the unknown token %.80q has the account %+v", token, a)
		}
	}
	if status := s.Status(); status.Accounts != 2 || status.Err != nil || status.Since.IsZero() {
		t.Errorf("the status is %+v, want 2 accounts, no error and a time", status)
	}
}

// TestLookupComparesAll checks that an unknown hash finds no account if it differs from a known hash only in its last byte.
func TestLookupComparesAll(t *testing.T) {
	known := sha256.Sum256([]byte("token"))
	other := digest(known)
	other[31] ^= 1
	content := file(line("token", alice, "ka", "alice"), strings.Replace(line("token", bob, "kb", "bob"), hash("token"), hex.EncodeToString(other[:]), 1))
	s, _ := open(t, content)
	if a := lookup(t, s, "token"); a.Address != alice {
		t.Errorf("the token has the account %+v, want the address %s", a, alice)
	}
	if a := s.table.Load().find(other); a == nil || a.Address != bob {
		t.Errorf("the other hash has the account %+v, want the address %s", a, bob)
	}
	other[31] ^= 2
	if a := s.table.Load().find(other); a != nil {
		t.Errorf("a hash that differs in its last byte finds the account %+v", a)
	}
}

func TestReload(t *testing.T) {
	s, path := open(t, file(
		line("same", alice, "k1", "same"), line("renamed", alice, "k2", "old"), line("moved", alice, "k3", "moved"),
		line("rekeyed", alice, "k4", "rekeyed"), line("removed", alice, "k5", "removed"),
	))
	before := map[string]*Account{}
	for _, token := range []string{"same", "renamed", "moved", "rekeyed", "removed"} {
		before[token] = lookup(t, s, token)
	}
	var revokedNames []string
	s.OnRevoke(func(a *Account) {
		if !revoked(a) {
			t.Errorf("%s is not revoked yet", a.Name)
		}
		if now, _ := s.Lookup(a.Name); now == a {
			t.Errorf("Lookup still finds the account %s", a.Name)
		}
		revokedNames = append(revokedNames, a.Name)
	})
	write(t, path, file(
		line("new", bob, "k6", "new"), line("same", alice, "k1", "same"), line("renamed", alice, "k2", "young"),
		line("moved", bob, "k3", "moved"), line("rekeyed", alice, "k4b", "rekeyed"),
	))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(revokedNames)
	if want := []string{"moved", "rekeyed", "removed"}; !slices.Equal(revokedNames, want) {
		t.Errorf("%q were revoked, want %q", revokedNames, want)
	}
	if a := lookup(t, s, "same"); a != before["same"] || revoked(a) {
		t.Error("an unchanged account was replaced")
	}
	if a := lookup(t, s, "renamed"); a.Name != "young" || before["renamed"].Name != "old" || revoked(a) || a.revoked != before["renamed"].revoked {
		t.Errorf("the renamed account is %+v, want the name young and no revocation", a)
	}
	for _, token := range []string{"moved", "rekeyed"} {
		if a := lookup(t, s, token); a == before[token] || revoked(a) || !revoked(before[token]) {
			t.Errorf("%s: got the account %+v, want a new account in place of the revoked one", token, a)
		}
	}
	if _, ok := s.Lookup("removed"); ok || !revoked(before["removed"]) {
		t.Error("the removed account is still found")
	}
	if a := lookup(t, s, "new"); revoked(a) || s.Status().Accounts != 5 {
		t.Errorf("the new account is %+v and the status %+v, want a valid account and 5 accounts", a, s.Status())
	}

	revokedNames = nil
	write(t, path, file())
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if !revoked(before["same"]) || !revoked(before["renamed"]) || len(revokedNames) != 5 || s.Status().Accounts != 0 {
		t.Errorf("after all accounts were removed, %q were revoked and the status is %+v; want 5 revoked accounts and none left", revokedNames, s.Status())
	}
}

// TestRemovedFile checks that removing the file revokes all accounts within two seconds.
func TestRemovedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, path := open(t, file(line("token", alice, "ka", "alice")))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		limited := lookup(t, s, "token").Limit(ctx)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		<-limited.Done()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the accounts were revoked after %v, want at most 2 s", took)
		}
		synctest.Wait()
		if _, ok := s.Lookup("token"); ok || s.Status().Accounts != 0 {
			t.Error("Lookup still finds the token, or the status still counts the account")
		}
	})
}

// TestAccountShowsNoSecret checks that slog, encoding/json and fmt show none of the secrets of an account.
func TestAccountShowsNoSecret(t *testing.T) {
	s, _ := open(t, file(line("canary-token", alice, "canary-key", "alice")))
	a := lookup(t, s, "canary-token")
	var log strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "account", a, "copy", *a)
	}
	j, err := json.Marshal(a)
	if err != nil {
		t.Error(err)
	}
	for _, text := range []string{log.String(), string(j), fmt.Sprintf("%v %+v %#v %v %+v %#v", a, a, a, *a, *a, *a)} {
		if strings.Contains(text, "canary") || strings.Contains(text, hash("canary-token")) || !strings.Contains(text, alice) {
			t.Errorf("the text %s contains a secret, or lacks the address", text)
		}
	}
}
