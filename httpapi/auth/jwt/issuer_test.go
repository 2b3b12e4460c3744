package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"

	"oddsgraph/httpapi/auth"
	"oddsgraph/tests/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is an identity provider with a server for its keys.
type issuer struct {
	*httptest.Server

	mu     sync.Mutex
	keys   []jose.JSONWebKey
	answer http.HandlerFunc // if not nil, answers requests for the keys in place of the field keys
	reads  int
}

func newIssuer(t testing.TB, keys ...jose.JSONWebKey) *issuer {
	i := &issuer{keys: keys}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.reads++
		answer, set := i.answer, jose.JSONWebKeySet{Keys: i.keys}
		i.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) set(answer http.HandlerFunc, keys ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer, i.keys = answer, keys
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reads
}

// rsaKeys creates the keys once, because creating RSA keys is slow.
var rsaKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	out := make([]*rsa.PrivateKey, 2)
	for i := range out {
		out[i], _ = rsa.GenerateKey(rand.Reader, 2048)
	}
	return out
})

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func published(id string, private crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{Key: private.Public(), KeyID: id, Use: "sig"}
}

// signed returns a signed token with valid claims. The map change replaces or adds claims. A nil value removes a claim.
func signed(t testing.TB, algorithm jose.SignatureAlgorithm, key any, id string, now time.Time, change map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"iss": "https://issuer.example/", "aud": []string{"other", "odds"}, "sub": "alice", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	token, err := josejwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// accountsFile returns a store with one account, which has the subject alice. revoke removes the account from the file and reloads
// the store.
func accountsFile(t testing.TB) (store *auth.Store, revoke func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accounts.json")
	write := func(list string) {
		if err := os.WriteFile(path, []byte(`{"version":1,"accounts":[`+list+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"subject":"alice","address":"0x` + strings.Repeat("a", 40) + `","credentials":{"apiKey":"k"}}`)
	store, err := auth.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return store, func() {
		write("")
		if err := store.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

func newVerifier(t testing.TB, i *issuer) (v *Verifier, c *tool.Clock, revoke func()) {
	t.Helper()
	store, revoke := accountsFile(t)
	c = tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	v = New(Config{
		Issuer: "https://issuer.example/", Audience: "odds", URL: i.URL, Claim: "sub",
		Account: store.Subject, Clock: c, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(v.keys.client.CloseIdleConnections)
	return v, c, revoke
}
