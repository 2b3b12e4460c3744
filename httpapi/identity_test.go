package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/graph"
	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

const (
	testAddress = "0x1111111111111111111111111111111111111111"
	testToken   = "token-of-the-test"
)

// testAccounts returns a store with one account. revoke removes the account.
func testAccounts(t testing.TB) (store *auth.Store, revoke func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accounts.json")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := sha256.Sum256([]byte(testToken))
	write(fmt.Sprintf(`{"version":1,"accounts":[{"tokenSha256":%q,"address":%q,"credentials":{"apiKey":"of-the-account"}}]}`, hex.EncodeToString(hash[:]), testAddress))
	store, err := auth.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return store, func() {
		write(`{"version":1,"accounts":[]}`)
		if err := store.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

// heldClock is a clock that only the test moves.
type heldClock struct{ now time.Time }

func (c *heldClock) Now() time.Time { return c.now }

func newTestIdentities(t testing.TB) (who *identities, revoke func(), clock *heldClock) {
	t.Helper()
	store, revoke := testAccounts(t)
	clock = &heldClock{time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)}
	return newIdentities(Config{
		Accounts: auth.Tokens{File: store}, Refusals: auth.NewRefusals(clock), Client: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
	}), revoke, clock
}

// encodedCredentials are a client's credentials for the venue.
var encodedCredentials = base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"of-the-caller"}`))

// says describes the identity in ctx. If err is not nil, says returns the code of err.
func says(ctx context.Context, err error) string {
	if err != nil {
		return string(market.CodeOf(err))
	}
	c := reqctx.CredentialsFrom(ctx)
	if c == nil {
		return "anonymous"
	}
	address, _ := c.Address()
	return c.Wire() + string(address)
}

const (
	ofCaller  = `{"apiKey":"of-the-caller"}`
	ofAccount = `{"apiKey":"of-the-account"}` + testAddress
)

func TestIdentities(t *testing.T) {
	for _, test := range []struct {
		name                string
		credentials, bearer []string
		want                string
	}{
		{"nothing", nil, nil, "anonymous"},
		{"credentials", []string{encodedCredentials}, nil, ofCaller},
		{"a bearer token", nil, []string{"Bearer " + testToken}, ofAccount},
		{"in another case", nil, []string{"bEARER   " + testToken + " "}, ofAccount},
		{"both", []string{encodedCredentials}, []string{"Bearer " + testToken}, "BAD_USER_INPUT"},
		{"both, one empty", []string{""}, []string{"Bearer " + testToken}, "BAD_USER_INPUT"},
		{"two tokens", nil, []string{"Bearer " + testToken, "Bearer " + testToken}, "BAD_USER_INPUT"},
		{"two tokens in one", nil, []string{"Bearer " + testToken + ", Bearer x"}, "BAD_USER_INPUT"},
		{"two credentials", []string{encodedCredentials, encodedCredentials}, nil, "BAD_USER_INPUT"},
		{"no base64", []string{"%"}, nil, "BAD_USER_INPUT"},
		{"no token", nil, []string{"Bearer"}, "BAD_USER_INPUT"},
		{"an empty header", nil, []string{""}, "UNAUTHENTICATED"},
		{"a long token", nil, []string{"Bearer " + strings.Repeat("x", maxBearer+1)}, "BAD_USER_INPUT"},
		{"an unknown token", nil, []string{"Bearer " + testToken + "x"}, "UNAUTHENTICATED"},
		{"another scheme", nil, []string{"Basic " + testToken}, "UNAUTHENTICATED"},
		{"the token alone", nil, []string{testToken}, "UNAUTHENTICATED"},
	} {
		who, _, _ := newTestIdentities(t)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		payload := map[string]any{"other": 7}
		for i, value := range test.credentials {
			r.Header.Add(CredentialsHeader, value)
			payload[[]string{"x-venue-credentials", "X-Venue-Credentials"}[i]] = value
		}
		for i, value := range test.bearer {
			r.Header.Add("Authorization", value)
			payload[[]string{"authorization", "AUTHORIZATION"}[i]] = value
		}
		ctx, err := readingOf(who, r)
		if got := says(ctx, err); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		who, _, _ = newTestIdentities(t)
		ctx, err = who.fromInit(t.Context(), payload, netip.MustParseAddr("192.0.2.1"))
		if got := says(ctx, err); got != test.want {
			t.Errorf("%s in connection_init: %s, want %s", test.name, got, test.want)
		}
		if err == nil && (identityFrom(ctx).account != nil) != (test.want == ofAccount) {
			t.Errorf("%s in connection_init: the account is %v", test.name, identityFrom(ctx).account)
		}
		if err != nil && (strings.Contains(err.Error(), testToken) || strings.Contains(err.Error(), encodedCredentials)) {
			t.Errorf("%s: the error shows the secret: %v", test.name, err)
		}
	}
}

// readingOf returns the context for the reads of a request.
func readingOf(who *identities, plain *http.Request) (context.Context, error) {
	r := newRequest(plain)
	err := who.fromHeaders(r)
	return who.reading(r.Context()), err
}

// TestIdentitiesOfOneSocket checks the identity for combinations of headers and connection_init.
func TestIdentitiesOfOneSocket(t *testing.T) {
	for _, test := range []struct {
		header  string // credentials, or the value of Authorization if it contains a space
		payload map[string]any
		want    string
	}{
		{encodedCredentials, nil, ofCaller},
		{encodedCredentials, map[string]any{}, ofCaller},
		{encodedCredentials, map[string]any{CredentialsHeader: encodedCredentials}, ofCaller},
		{encodedCredentials, map[string]any{CredentialsHeader: base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"another"}`))}, "BAD_USER_INPUT"},
		{encodedCredentials, map[string]any{"authorization": "Bearer " + testToken}, "BAD_USER_INPUT"},
		{"Bearer " + testToken, map[string]any{"authorization": "Bearer " + testToken}, ofAccount},
		{"Bearer " + testToken, map[string]any{CredentialsHeader: encodedCredentials}, "BAD_USER_INPUT"},
		{"Bearer " + testToken, nil, ofAccount},
		{"", map[string]any{"authorization": 7}, "BAD_USER_INPUT"},
		{"", map[string]any{CredentialsHeader: nil}, "BAD_USER_INPUT"},
	} {
		who, _, _ := newTestIdentities(t)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if strings.Contains(test.header, " ") {
			r.Header.Set("Authorization", test.header)
		} else if test.header != "" {
			r.Header.Set(CredentialsHeader, test.header)
		}
		ctx, err := readingOf(who, r)
		if err != nil {
			t.Fatal(err)
		}
		ctx, err = who.fromInit(ctx, test.payload, netip.MustParseAddr("192.0.2.1"))
		if got := says(ctx, err); got != test.want || err == nil && (identityFrom(ctx).account != nil) != (test.want == ofAccount) {
			t.Errorf("%+v: %s %v", test, got, identityFrom(ctx).account)
		}
	}
}

// TestUncheckedAccountsReadOnlyTheirOwnWallet checks that an account can read only its own wallet if the venue checks no
// credentials.
func TestUncheckedAccountsReadOnlyTheirOwnWallet(t *testing.T) {
	who, _, _ := newTestIdentities(t)
	who.unchecked = true
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+testToken)
	ctx, err := readingOf(who, r)
	if err != nil {
		t.Fatal(err)
	}
	c := reqctx.CredentialsFrom(ctx)
	if other := market.Address(strings.Replace(testAddress, "1", "2", 1)); !c.MayRead(testAddress) || c.MayRead(other) {
		t.Errorf("the account reads its own wallet: %v, another wallet: %v; want true and false", c.MayRead(testAddress), c.MayRead(other))
	}
}

// TestNoBearerTokensAreKnown checks that a service without accounts rejects each token, and does not count the rejections.
func TestNoBearerTokensAreKnown(t *testing.T) {
	cfg := testConfig(t)
	cfg.Refusals = auth.NewRefusals(market.SystemClock{})
	for range 10 {
		w := post(t, New(cfg), `{"query":"{ __typename }"}`, "Authorization", "Bearer x")
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Bearer realm="oddsgraph"` || answerOf(t, w).Errors[0].Extensions.Code != "UNAUTHENTICATED" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
}

// TestRefusalsAreCounted checks that an invalid token gets status 429 for a minute if it was sent five times. Other tokens and
// credentials from the same address must not get this status.
func TestRefusalsAreCounted(t *testing.T) {
	cfg := testConfig(t)
	who, _, clock := newTestIdentities(t)
	cfg.Accounts, cfg.Refusals = who.accounts, who.refusals
	h := New(cfg)
	const query = `{"query":"{ __typename }"}`
	for range 5 {
		if w := post(t, h, query, "Authorization", "Bearer guess"); w.Code != 401 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := post(t, h, query, "Authorization", "Bearer guess")
	if w.Code != 429 || w.Header().Get("Retry-After") != "60" || answerOf(t, w).Errors[0].Extensions.Code != "RATE_LIMITED" {
		t.Errorf("the same again: %d %v %s", w.Code, w.Header(), w.Body)
	}
	client := netip.MustParseAddr("192.0.2.1")
	if _, err := who.fromInit(t.Context(), map[string]any{"authorization": "Bearer guess"}, client); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("connection_init: %v", err)
	}
	for what, test := range map[string]struct {
		name, value string
		want        int
	}{
		"another bad token": {"Authorization", "Bearer another-guess", 401},
		"credentials":       {CredentialsHeader, encodedCredentials, 200},
		"a known token":     {"Authorization", "Bearer " + testToken, 200},
		"nothing":           {"X-Nothing", "", 200},
	} {
		if w := post(t, h, query, test.name, test.value); w.Code != test.want {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	clock.now = clock.now.Add(time.Minute)
	if w := post(t, h, query, "Authorization", "Bearer guess"); w.Code != 401 {
		t.Errorf("a minute later: %d %s", w.Code, w.Body)
	}
}

// heldBalances is a source whose Fetch waits until the test closes the channel answer. If accepted is false, Fetch rejects all
// credentials.
type heldBalances struct {
	refusing
	asked    chan struct{}
	answer   chan struct{}
	accepted bool
}

func (h *heldBalances) Fetch(ctx context.Context, keys []market.Address) []market.Result[market.Read[*market.Balance]] {
	h.asked <- struct{}{}
	<-h.answer
	if h.accepted {
		return make([]market.Result[market.Read[*market.Balance]], len(keys))
	}
	return h.refusing.Fetch(ctx, keys)
}

// TestGuessesAreBounded checks that at most 20 unknown credentials from one address reach the venue at once. Later, other
// credentials must be accepted only if the venue has accepted the first 20.
func TestGuessesAreBounded(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		cfg := testConfig(t)
		who, _, _ := newTestIdentities(t)
		venue := &heldBalances{asked: make(chan struct{}, 200), answer: make(chan struct{}), accepted: accepted}
		cfg.Refusals, cfg.Sources, cfg.Operations = who.refusals, loaders.Sources{Balances: venue}, 256
		cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{Clock: market.SystemClock{}, Sources: cfg.Sources}})
		h := New(cfg)
		ask := func(n int) *httptest.ResponseRecorder {
			key := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"apiKey":"guess-%d"}`, n))
			return post(t, h, `{"query":"{ user(address: \"`+testAddress+`\") { balance { cashBalance } } }"}`, CredentialsHeader, key)
		}
		var all sync.WaitGroup
		var refused atomic.Int64
		for n := range 100 {
			all.Go(func() {
				if w := ask(n); strings.Contains(w.Body.String(), "RATE_LIMITED") {
					refused.Add(1)
				}
			})
		}
		eventually(t, func() bool { return refused.Load() == 80 })
		if n := len(venue.asked); n > 20 {
			t.Errorf("%d guesses are under way", n)
		}
		close(venue.answer)
		all.Wait()
		if n := len(venue.asked); n != 20 {
			t.Errorf("the venue was asked %d times", n)
		}
		got := ask(1000).Body.String()
		if limited := strings.Contains(got, "RATE_LIMITED"); limited == accepted {
			t.Errorf("other credentials, with those before accepted %v: %s", accepted, got)
		}
	}
}

// TestRevocation checks that the context of a request ends when its account is revoked.
func TestRevocation(t *testing.T) {
	who, revoke, _ := newTestIdentities(t)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+testToken)
	ctx, err := readingOf(who, r)
	if err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	revoke()
	<-ctx.Done()
	if code := market.CodeOf(context.Cause(ctx)); code != market.CodeUnauthenticated {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
	if _, err := readingOf(who, r); market.CodeOf(err) != market.CodeUnauthenticated {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCredentialsLeaveTheHeaders checks that identities.handler passes on headers without credentials, and does not change the
// original request.
func TestCredentialsLeaveTheHeaders(t *testing.T) {
	for name, value := range map[string]string{CredentialsHeader: encodedCredentials, "Authorization": "Bearer " + testToken} {
		var got *http.Request
		who, _, _ := newTestIdentities(t)
		h := who.handler(nil, func(_ http.ResponseWriter, r *request) {
			if r.Header.Get(name) != "" {
				t.Errorf("headers %v", r.Header)
			}
			got = r.plain(who.reading(r.Context()))
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set(name, value)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if reqctx.CredentialsFrom(got.Context()) == nil || got.Header.Get(name) != "" {
			t.Errorf("headers %v", got.Header)
		}
		if r.Header.Get(name) == "" {
			t.Error("the caller's own request was changed")
		}
	}
}

func FuzzIdentity(f *testing.F) {
	for _, seed := range [][2]string{{encodedCredentials, ""}, {"", "Bearer " + testToken}, {"", "Bearer"}, {"%%%", "Basic x"}, {"e30=", "bearer a b"}} {
		f.Add(seed[0], seed[1])
	}
	who, _, _ := newTestIdentities(f)
	who.refusals = noRefusals{}
	f.Fuzz(func(t *testing.T, credentials, bearer string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if credentials != "" {
			r.Header.Set(CredentialsHeader, credentials)
		}
		if bearer != "" {
			r.Header.Set("Authorization", bearer)
		}
		ctx, err := readingOf(who, r)
		switch {
		case err != nil:
			if code := market.CodeOf(err); code != market.CodeBadUserInput && code != market.CodeUnauthenticated {
				t.Errorf("%q %q: %v", credentials, bearer, err)
			}
		case (identityFrom(ctx).credentials != nil) != (credentials+bearer != ""):
			t.Errorf("%q %q: it is %+v", credentials, bearer, identityFrom(ctx))
		case bearer != "" && !strings.Contains(bearer, testToken):
			t.Errorf("%q is taken for a token", bearer)
		}
	})
}
