package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"oddsgraph/tests/tool"
)

// identityProvider signs tokens and publishes its key.
type identityProvider struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	unwanted []string // the query and the Authorization header of each request that has a query or this header
}

// heard returns the queries and Authorization headers that the provider received. There should be none.
func (p *identityProvider) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unwanted
}

func newIdentityProvider(t testing.TB) *identityProvider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &identityProvider{key: key}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.RawQuery != "" {
			p.mu.Lock()
			p.unwanted = append(p.unwanted, r.URL.RawQuery+" "+r.Header.Get("Authorization"))
			p.mu.Unlock()
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig"}}})
	}))
	t.Cleanup(p.Close)
	return p
}

// token returns a signed token for a subject. The token has the usual claims and the claims in more. A claim in more replaces a
// usual claim with the same name.
func (p *identityProvider) token(t testing.TB, subject string, expiry time.Time, more map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{"iss": "https://id.example/", "aud": "odds", "https://odds.example/account": subject, "exp": expiry.Unix()}).Claims(more).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// args returns the flags of a service that accepts the provider's tokens. The subject "desk" has the account addressOf3.
func (p *identityProvider) args(t testing.TB) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accounts.json")
	file := fmt.Sprintf(`{"version":1,"accounts":[{"subject":"desk","address":%q,"credentials":{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}}]}`, addressOf3)
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"--accounts-file=" + path, "--jwt-issuer=https://id.example/", "--jwt-audience=odds", "--jwt-jwks-url=" + p.URL,
		"--jwt-account-claim=https://odds.example/account", "--trusted-proxies=127.0.0.1",
	}
}

// TestSignedTokens checks tokens of an identity provider over HTTP, WebSockets and event streams.
func TestSignedTokens(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits
	p := newIdentityProvider(t)
	s := startLive(t, p.args(t)...)
	s.waitForStream(t)
	now := time.Now()
	for name, test := range map[string]struct {
		token  string
		status int
		want   string
	}{
		"good":           {p.token(t, "desk", now.Add(time.Hour), nil), 200, `"address":"` + addressOf3 + `","positions":{"totalCount":3}`},
		"expired":        {p.token(t, "desk", now.Add(-time.Hour), nil), 401, "expired"},
		"unmapped":       {p.token(t, "nobody", now.Add(time.Hour), nil), 403, "no account"},
		"other audience": {p.token(t, "desk", now.Add(time.Hour), map[string]any{"aud": "else"}), 401, "audience"},
		"not a JWT":      {"a-token-of-the-file", 401, "neither known nor a JWT"},
	} {
		if got := s.bearer(t, test.token, viewerQuery); got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s: got status %d, want %d with %q: %s", name, got.status, test.status, test.want, got.body)
		}
		if strings.Contains(s.log.String(), test.token) {
			t.Errorf("%s: the token is in the log", name)
		}
	}
	// Sockets and event streams end 30 s after their token expires. So connections with expiredToken end in 20 s.
	expiredToken, validToken := p.token(t, "desk", time.Now().Add(-10*time.Second), nil), p.token(t, "desk", time.Now().Add(time.Hour), nil)
	expiring, valid := s.dialBearer(t, expiredToken), s.dialBearer(t, validToken)
	expiring.subscribe(t, subPortfolio, vars{"a": addressOf3}).reason(t, "INITIAL")
	last := valid.subscribe(t, subPortfolio, vars{"a": addressOf3})
	last.reason(t, "INITIAL")
	stream := s.sseBearer(t, expiredToken, subOrders, vars{"a": addressOf3})
	if code := expiring.waitClosed(t); code != 4403 {
		t.Errorf("the socket of an expired token was closed with the code %d, want 4403", code)
	}
	stream.reason(t, "INITIAL")
	stream.wantEnd(t, "UNAUTHENTICATED")
	if valid.err != nil {
		t.Errorf("the socket of a valid token ended with the error: %v", valid.err)
	}
}

// TestCanaryOfSignedTokens checks that no output of the service contains a secret from any part of a token.
func TestCanaryOfSignedTokens(t *testing.T) {
	p, venue := newIdentityProvider(t), newEcho(t)
	s := start(t, append(p.args(t), "--venue-url="+venue.URL, "--venue-timeout=50ms", "--request-timeout=500ms")...)
	later := s.clock.Now().Add(time.Hour)
	for _, how := range []string{"well", "refused", "failed"} {
		for name, tokenWith := range map[string]func(secret string) string{
			"a claim":     func(secret string) string { return p.token(t, "desk", later, vars{"note": secret}) },
			"a subject":   func(secret string) string { return p.token(t, secret, later, nil) },
			"an issuer":   func(secret string) string { return p.token(t, "desk", later, vars{"iss": secret}) },
			"an audience": func(secret string) string { return p.token(t, "desk", later, vars{"aud": secret}) },
			"an expired token": func(secret string) string {
				return p.token(t, "desk", s.clock.Now().Add(-time.Hour), vars{"note": secret})
			},
			"the name of a key":        func(secret string) string { return tokenWithHeader(vars{"alg": "ES256", "kid": secret}) },
			"the name of an algorithm": func(secret string) string { return tokenWithHeader(vars{"alg": secret, "kid": "k"}) },
			"a signature":              func(secret string) string { return tokenWithHeader(vars{"alg": "ES256", "kid": "k"}) + secret },
		} {
			venue.setResponse(how)
			secret := newCanary()
			token := tokenWith(secret)
			for _, accept := range []string{"application/json", "text/event-stream"} {
				r := s.request(t, asJSON(vars{"query": everything}), anonymous)
				r.Header.Set("Accept", accept)
				r.Header.Set("Authorization", "Bearer "+token)
				got := s.do(t, r)
				_, signature, _ := strings.Cut(token[strings.Index(token, ".")+1:], ".")
				for _, text := range []string{got.print(), s.log.String()} {
					if form := findSecret(text, secret); form != "" || strings.Contains(text, signature) {
						t.Errorf("venue call %s, secret in %s: the output contains the signature or the secret (as %q): %.1000s", how, name, form, text)
					}
				}
			}
			venue.search(t, secret, nil)
			s.search(t, secret)
			s.expireCaches()
		}
	}
	for _, secret := range p.heard() {
		t.Errorf("the identity provider received the query or Authorization header %s", secret)
	}
}

// tokenWithHeader returns a token with the given header and an invalid signature.
func tokenWithHeader(header vars) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(asJSON(header))) + "." + encode([]byte(`{"sub":"desk"}`)) + "." + encode(make([]byte, 64))
}
