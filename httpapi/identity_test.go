package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
	"oddsgraph/tests/tool"
)

const (
	testAddress = "0x1111111111111111111111111111111111111111"
	testToken   = "token-of-the-test"
)

// newTestIdentities returns identities that know one account. The Refusals of the identities use the returned clock. Only the test
// advances the clock.
func newTestIdentities(t testing.TB) (who *identities, clock *tool.Clock) {
	t.Helper()
	credentials, err := market.ParseCredentials([]byte(`{"apiKey":"of-the-account"}`))
	if err != nil {
		t.Fatal(err)
	}
	account := auth.FixedAccount{Token: testToken, Address: testAddress, Credentials: credentials.ForAccount(testAddress)}
	clock = tool.NewClock(time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC))
	return newIdentities(Config{
		Accounts: auth.Tokens{File: auth.Fixed(account)}, Refusals: auth.NewRefusals(clock), Client: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
	}), clock
}

// encodedCredentials are a client's credentials for the venue.
var encodedCredentials = base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"of-the-caller"}`))

// describeIdentity describes the identity in ctx. If err is not nil, it returns the code of err.
func describeIdentity(ctx context.Context, err error) string {
	if err != nil {
		return string(market.CodeOf(err))
	}
	c := request.CredentialsFrom(ctx)
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
		who, _ := newTestIdentities(t)
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
		if got := describeIdentity(ctx, err); got != test.want {
			t.Errorf("%s in the headers: the identity is %s, want %s", test.name, got, test.want)
		}
		who, _ = newTestIdentities(t)
		ctx, err = who.fromInit(t.Context(), payload, netip.MustParseAddr("192.0.2.1"))
		if got := describeIdentity(ctx, err); got != test.want {
			t.Errorf("%s in connection_init: the identity is %s, want %s", test.name, got, test.want)
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
	r, err := who.fromHeaders(plain)
	return who.reading(r.Context(), nil), err
}

// TestIdentitiesOfOneSocket checks the identity for combinations of headers and connection_init.
func TestIdentitiesOfOneSocket(t *testing.T) {
	for _, test := range []struct {
		header  string // value of one header: with a space it goes into Authorization, without a space into CredentialsHeader
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
		who, _ := newTestIdentities(t)
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
		if got := describeIdentity(ctx, err); got != test.want || err == nil && (identityFrom(ctx).account != nil) != (test.want == ofAccount) {
			t.Errorf("%+v: the identity is %s with the account %v", test, got, identityFrom(ctx).account)
		}
	}
}

// TestUncheckedAccountsReadOnlyTheirOwnWallet checks that an account can read only its own wallet if the venue checks no
// credentials.
func TestUncheckedAccountsReadOnlyTheirOwnWallet(t *testing.T) {
	who, _ := newTestIdentities(t)
	who.unchecked = true
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+testToken)
	ctx, err := readingOf(who, r)
	if err != nil {
		t.Fatal(err)
	}
	c := request.CredentialsFrom(ctx)
	if other := market.Address(strings.Replace(testAddress, "1", "2", 1)); !c.MayRead(testAddress) || c.MayRead(other) {
		t.Errorf("the account reads its own wallet: %v, another wallet: %v; want true and false", c.MayRead(testAddress), c.MayRead(other))
	}
}

// TestServiceWithoutAccountsRejectsTokens checks that a service without accounts rejects each token, and does not count the
// rejections.
func TestServiceWithoutAccountsRejectsTokens(t *testing.T) {
	cfg := testConfig(t)
	cfg.Refusals = auth.NewRefusals(market.SystemClock{})
	for range 10 {
		w := post(t, New(cfg), `{"query":"{ __typename }"}`, "Authorization", "Bearer x")
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Bearer realm="oddsgraph"` || answerOf(t, w).Errors[0].Extensions.Code != "UNAUTHENTICATED" {
			t.Errorf("a token at a service without accounts: got %d %v %s, want 401 and UNAUTHENTICATED", w.Code, w.Header(), w.Body)
		}
	}
}

// TestRefusalsAreCounted checks that an invalid token gets status 429 for a minute if it was sent five times. Other tokens and
// credentials from the same address must not get this status.
func TestRefusalsAreCounted(t *testing.T) {
	cfg := testConfig(t)
	who, clock := newTestIdentities(t)
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
		t.Errorf("the sixth request with the same token: got %d %v %s, want 429 and RATE_LIMITED", w.Code, w.Header(), w.Body)
	}
	client := netip.MustParseAddr("192.0.2.1")
	if _, err := who.fromInit(t.Context(), map[string]any{"authorization": "Bearer guess"}, client); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("the same token in connection_init: got the error %v, want RATE_LIMITED", err)
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
			t.Errorf("%s: got %d %s, want %d", what, w.Code, w.Body, test.want)
		}
	}
	clock.Advance(time.Minute)
	if w := post(t, h, query, "Authorization", "Bearer guess"); w.Code != 401 {
		t.Errorf("the same token a minute later: got %d %s, want 401", w.Code, w.Body)
	}
}

// TestRefusalOfOtherVenue checks that a further venue, which gets no credentials, cannot refuse those of a client.
func TestRefusalOfOtherVenue(t *testing.T) {
	refusal := &gqlerror.Error{Extensions: map[string]any{"code": "UNAUTHENTICATED", "venue": "b"}}
	if resp := (&graphql.Response{Errors: gqlerror.List{refusal}}); unauthenticated(resp) {
		t.Error("the refusal of a further venue counts")
	} else if delete(refusal.Extensions, "venue"); !unauthenticated(resp) {
		t.Error("the refusal of the first venue does not count")
	}
}

// TestCounted checks that the limits count a client by its account only if the account is known.
func TestCounted(t *testing.T) {
	who, _ := newTestIdentities(t)
	counted := func(name, value string, want quota.Client) context.Context {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set(name, value)
		ctx, err := readingOf(who, r)
		if got := who.countedIn(ctx); err != nil || got != want || request.From(ctx).Caller != want.String() {
			t.Errorf("%s %s: the limits count %s, the caller is %s, the error is %v; want %s for both", name, value, got, request.From(ctx).Caller, err, want)
		}
		return ctx
	}
	address, account := quota.Anonymous(netip.MustParseAddr("192.0.2.1")), quota.Account("0x2")
	counted("X-Nothing", "", address)
	counted("Authorization", "Bearer "+testToken, quota.Account(testAddress))
	invented := counted(CredentialsHeader, encodedCredentials, address)
	counted(CredentialsHeader, credentialsOf("also-invented"), address)
	who.countAcceptance(invented, "0x2")
	counted(CredentialsHeader, encodedCredentials, account)
	if got := who.countedIn(invented); got != account {
		t.Errorf("after the venue has accepted the credentials, the limits count their socket as %s, want %s", got, account)
	}
	who.countAcceptance(invented, "0x3") // does not change the account
	counted(CredentialsHeader, encodedCredentials, account)
	who.countRefusal(invented, &graphql.Response{Errors: gqlerror.List{{Extensions: map[string]any{"code": "UNAUTHENTICATED"}}}})
	counted(CredentialsHeader, encodedCredentials, address)
	who.public = true
	who.countAcceptance(invented, "0x2")
	counted(CredentialsHeader, encodedCredentials, address)
}

// TestCredentialHeadersAreRemoved checks that fromHeaders removes the credential headers, and does not change the original request.
func TestCredentialHeadersAreRemoved(t *testing.T) {
	for name, value := range map[string]string{CredentialsHeader: encodedCredentials, "Authorization": "Bearer " + testToken} {
		who, _ := newTestIdentities(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set(name, value)
		own, err := who.fromHeaders(r)
		if err != nil || own.Header.Get(name) != "" {
			t.Errorf("the request has the headers %v and the error %v, want no %s", own.Header, err, name)
		}
		got := own.plain(who.reading(own.Context(), nil))
		if request.CredentialsFrom(got.Context()) == nil || got.Header.Get(name) != "" {
			t.Errorf("the plain request has the headers %v; want no %s in them, and want credentials in its context", got.Header, name)
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
	who, _ := newTestIdentities(f)
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
				t.Errorf("credentials %q, bearer token %q: got the error %v", credentials, bearer, err)
			}
		case (identityFrom(ctx).credentials != nil) != (credentials+bearer != ""):
			t.Errorf("credentials %q, bearer token %q: the identity is %+v", credentials, bearer, identityFrom(ctx))
		case bearer != "" && !strings.Contains(bearer, testToken):
			t.Errorf("the invalid header %q was accepted as a bearer token", bearer)
		}
	})
}
