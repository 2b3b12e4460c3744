package jwt

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"oddsgraph/internal/market"
)

func TestTokens(t *testing.T) {
	one, two, ec := rsaKeys()[0], rsaKeys()[1], ecKey(t)
	i := newIssuer(t, published("rsa", one), published("ec", ec), jose.JSONWebKey{Key: []byte("a shared secret of 32 bytes here"), KeyID: "oct"},
		jose.JSONWebKey{Key: two.Public(), KeyID: "encrypts", Use: "enc"}, jose.JSONWebKey{Key: two.Public(), KeyID: "ps", Algorithm: "PS256"})
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	i.keys = append(i.keys, published("weak", weak))
	v, c, _ := newVerifier(t, i)
	now := c.Now()
	good := signed(t, jose.RS256, one, "rsa", now, nil)
	part := strings.Split(good, ".")
	der, err := x509.MarshalPKIXPublicKey(one.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	rs := func(change map[string]any) string { return signed(t, jose.RS256, one, "rsa", now, change) }
	const unauthenticated = "UNAUTHENTICATED"
	for name, test := range map[string]struct{ token, want, says string }{
		"RS256":                       {good, "", ""},
		"PS512":                       {signed(t, jose.PS512, one, "rsa", now, nil), "", ""},
		"ES256":                       {signed(t, jose.ES256, ec, "ec", now, nil), "", ""},
		"one audience":                {rs(map[string]any{"aud": "odds"}), "", ""},
		"expired within the leeway":   {rs(map[string]any{"exp": now.Add(-29 * time.Second).Unix()}), "", ""},
		"valid soon":                  {rs(map[string]any{"nbf": now.Add(29 * time.Second).Unix()}), "", ""},
		"another issuer":              {rs(map[string]any{"iss": "https://issuer.example"}), unauthenticated, "another issuer"},
		"no issuer":                   {rs(map[string]any{"iss": nil}), unauthenticated, "another issuer"},
		"another audience":            {rs(map[string]any{"aud": []string{"odds2"}}), unauthenticated, "another audience"},
		"no audience":                 {rs(map[string]any{"aud": nil}), unauthenticated, "another audience"},
		"expired":                     {rs(map[string]any{"exp": now.Add(-31 * time.Second).Unix()}), unauthenticated, "expired"},
		"no expiry":                   {rs(map[string]any{"exp": nil}), unauthenticated, "no expiry"},
		"not valid yet":               {rs(map[string]any{"nbf": now.Add(31 * time.Second).Unix()}), unauthenticated, "not valid yet"},
		"issued in the future":        {rs(map[string]any{"iat": now.Add(31 * time.Second).Unix()}), unauthenticated, "not valid yet"},
		"no subject":                  {rs(map[string]any{"sub": nil}), unauthenticated, "claim sub is missing"},
		"a subject that is no text":   {rs(map[string]any{"sub": 7}), unauthenticated, "claims can't be read"},
		"a subject without account":   {rs(map[string]any{"sub": "mallory"}), "FORBIDDEN", "no account"},
		"another key":                 {signed(t, jose.RS256, two, "rsa", now, nil), unauthenticated, "signature is wrong"},
		"a changed payload":           {part[0] + "." + encode(`{"iss":"https://issuer.example/","aud":"odds","sub":"alice","exp":9999999999}`) + "." + part[2], unauthenticated, "signature is wrong"},
		"an unknown key":              {signed(t, jose.RS256, one, "unknown", now, nil), unauthenticated, "does not publish"},
		"a key that is not named":     {signed(t, jose.RS256, one, "", now, nil), unauthenticated, "does not name its key"},
		"a key for encryption":        {signed(t, jose.RS256, two, "encrypts", now, nil), unauthenticated, "does not publish"},
		"a weak key":                  {signed(t, jose.RS256, weak, "weak", now, nil), unauthenticated, "does not publish"},
		"a shared secret":             {signed(t, jose.HS256, []byte("a shared secret of 32 bytes here"), "oct", now, nil), unauthenticated, "neither known nor a JWT"},
		"the public key as a secret":  {signed(t, jose.HS256, public, "rsa", now, nil), unauthenticated, "neither known nor a JWT"},
		"the key of another kind":     {signed(t, jose.ES256, ec, "rsa", now, nil), unauthenticated, "signature is wrong"},
		"an algorithm not of the key": {signed(t, jose.RS256, two, "ps", now, nil), unauthenticated, "algorithm in the token's header does not match"},
		"unsigned":                    {encode(`{"alg":"none"}`) + "." + part[1] + ".", unauthenticated, "neither known nor a JWT"},
		"unsigned with a key":         {encode(`{"alg":"none","kid":"rsa"}`) + "." + part[1] + "." + part[2], unauthenticated, "neither known nor a JWT"},
		"no JWT":                      {"a-token-of-the-file", unauthenticated, "neither known nor a JWT"},
		"rubbish":                     {"..", unauthenticated, "neither known nor a JWT"},
	} {
		a, err := v.Account(t.Context(), test.token)
		switch {
		case test.want == "" && (err != nil || a.Address[2] != 'a' || a.Err() != nil):
			t.Errorf("%s: got the account %v and the error %v, want a valid session of alice", name, a, err)
		case test.want != "" && (string(market.CodeOf(err)) != test.want || !strings.Contains(err.Error(), test.says) || a != nil):
			t.Errorf("%s: got the error %v, want %s with %q", name, err, test.want, test.says)
		}
		for segment := range strings.SplitSeq(test.token, ".") {
			if err != nil && segment != "" && strings.Contains(err.Error(), segment) {
				t.Errorf("%s: the error shows the token: %v", name, err)
			}
		}
	}
	if n := i.count(); n > 1 {
		t.Errorf("the keys were read %d times, want at most once", n)
	}
}

// TestKeysShareAnID checks that each token is verified with the key whose type or algorithm fits, if several keys have the same id.
func TestKeysShareAnID(t *testing.T) {
	one, two, ec := rsaKeys()[0], rsaKeys()[1], ecKey(t)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ps := published("k", two)
	ps.Algorithm = "PS256"
	v, c, _ := newVerifier(t, newIssuer(t, ps, published("k", ec), published("k", one), published("k", ed)))
	for algorithm, private := range map[jose.SignatureAlgorithm]any{jose.PS256: two, jose.ES256: ec, jose.RS256: one, jose.PS384: one, jose.EdDSA: ed} {
		if _, err := v.Account(t.Context(), signed(t, algorithm, private, "k", c.Now(), nil)); err != nil {
			t.Errorf("a token signed with %s: got the error %v", algorithm, err)
		}
	}
	if _, err := v.Account(t.Context(), signed(t, jose.ES256, ecKey(t), "k", c.Now(), nil)); market.CodeOf(err) != market.CodeUnauthenticated {
		t.Errorf("a token of a key that is not published: got the error %v, want UNAUTHENTICATED", err)
	}
}

// TestKeysAreRotated checks that tokens of a new key are accepted, and that the withdrawal of a key ends the sessions of the key.
func TestKeysAreRotated(t *testing.T) {
	one, two := rsaKeys()[0], rsaKeys()[1]
	i := newIssuer(t, published("1", one))
	v, c, _ := newVerifier(t, i)
	old, err := v.Account(t.Context(), signed(t, jose.RS256, one, "1", c.Now(), nil))
	if err != nil {
		t.Fatal(err)
	}
	ofOld := old.Limit(t.Context())
	i.set(nil, published("1", one), published("2", two))
	c.Advance(afterSuccess)
	fresh, err := v.Account(t.Context(), signed(t, jose.RS256, two, "2", c.Now(), nil))
	if err != nil || i.count() != 2 {
		t.Fatalf("a token of the new key: got the error %v after %d reads of the keys, want no error after 2", err, i.count())
	}
	if old.Err() != nil {
		t.Error("a session has ended though its key is still published")
	}
	i.set(nil, published("2", two))
	_ = v.keys.refresh(t.Context(), true)
	<-ofOld.Done()
	if cause := context.Cause(ofOld); market.CodeOf(cause) != market.CodeUnauthenticated || !strings.Contains(cause.Error(), "withdrawn") {
		t.Errorf("the session of the withdrawn key ended with the cause %v, want UNAUTHENTICATED with withdrawn", cause)
	}
	if fresh.Err() != nil {
		t.Error("the session of the other key has ended")
	}
	if _, err := v.Account(t.Context(), signed(t, jose.RS256, one, "1", c.Now(), nil)); market.CodeOf(err) != market.CodeUnauthenticated {
		t.Errorf("a token of the withdrawn key: got the error %v, want UNAUTHENTICATED", err)
	}
	// If the issuer publishes a different key with a known id, the sessions of the previous key end.
	i.set(nil, published("2", one))
	_ = v.keys.refresh(t.Context(), true)
	<-fresh.Limit(t.Context()).Done()
}

// TestUnknownKeysAreFetchedOnce checks that tokens with many unknown key ids cause at most one read of the issuer's keys within the
// time afterSuccess.
func TestUnknownKeysAreFetchedOnce(t *testing.T) {
	one := rsaKeys()[0]
	i := newIssuer(t, published("1", one))
	v, c, _ := newVerifier(t, i)
	flood := func() {
		for n := range 50 {
			if _, err := v.Account(t.Context(), signed(t, jose.RS256, one, fmt.Sprint("unknown-", n), c.Now(), nil)); market.CodeOf(err) != market.CodeUnauthenticated {
				t.Fatal(err)
			}
		}
	}
	if flood(); i.count() != 1 {
		t.Errorf("the keys were read %d times, want 1", i.count())
	}
	if c.Advance(afterSuccess); i.count() != 1 {
		t.Errorf("without tokens, the keys were read %d times, want 1", i.count())
	}
	if flood(); i.count() != 2 {
		t.Errorf("half a minute later, the keys were read %d times, want 2", i.count())
	}
}

// TestTheIssuerFails checks that known keys stay in use if the issuer fails, and that the code of the error is
// CodeUpstreamUnavailable while no keys are known.
func TestTheIssuerFails(t *testing.T) {
	one, two := rsaKeys()[0], rsaKeys()[1]
	good, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{published("1", one), published("2", two)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(good)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no keys": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(append(good[:len(good):len(good)], bytes.Repeat([]byte(" "), maxKeySet)...))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"cut off":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		i := newIssuer(t)
		i.set(answer)
		v, c, _ := newVerifier(t, i)
		token := signed(t, jose.RS256, one, "1", c.Now(), nil)
		for range 3 {
			if _, err := v.Account(t.Context(), token); market.CodeOf(err) != market.CodeUpstreamUnavailable {
				t.Errorf("%s, before the first keys: got the error %v, want UPSTREAM_UNAVAILABLE", name, err)
			}
		}
		if i.count() != 1 {
			t.Errorf("%s: the keys were read %d times, want 1", name, i.count())
		}
		i.set(nil, published("1", one))
		c.Advance(afterFailure)
		if _, err := v.Account(t.Context(), token); err != nil {
			t.Errorf("%s, after the issuer works again: got the error %v", name, err)
		}
		i.set(answer)
		c.Advance(afterSuccess)
		if _, err := v.Account(t.Context(), signed(t, jose.RS256, two, "2", c.Now(), nil)); market.CodeOf(err) != market.CodeUnauthenticated {
			t.Errorf("%s, a key that cannot be fetched: got the error %v, want UNAUTHENTICATED", name, err)
		}
		if a, err := v.Account(t.Context(), signed(t, jose.RS256, one, "1", c.Now(), nil)); err != nil || a.Err() != nil {
			t.Errorf("%s, a known key: got the error %v", name, err)
		}
	}
}

// hanging is a transport without responses. RoundTrip closes asked, waits until the request is cancelled, and returns an error.
type hanging struct{ asked chan struct{} }

func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	close(h.asked)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestTheIssuerHangs checks that a read of the keys ends after fetchTimeout. A second call that waits for this read must return
// when its own context ends.
func TestTheIssuerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		k := newKeys("http://issuer.example", market.SystemClock{}, slog.New(slog.DiscardHandler))
		k.client.Transport = hanging{asked}
		over := make(chan error)
		began := time.Now()
		go func() {
			_, err := k.find(context.Background(), "1", "RS256")
			over <- err
		}()
		<-asked
		left := errors.New("left")
		ctx, leave := context.WithCancelCause(t.Context())
		go func() {
			_, err := k.find(ctx, "1", "RS256")
			over <- err
		}()
		synctest.Wait()
		leave(left)
		if err := <-over; !errors.Is(err, left) {
			t.Errorf("the call whose context ended: got the error %v, want %v", err, left)
		}
		if err := <-over; market.CodeOf(err) != market.CodeUpstreamUnavailable || time.Since(began) != fetchTimeout {
			t.Errorf("after %s: got the error %v, want UPSTREAM_UNAVAILABLE after %s", time.Since(began), err, fetchTimeout)
		}
	})

}

// TestSessionsAreRemembered checks that a known token is not verified again until its session expires or its account is revoked.
func TestSessionsAreRemembered(t *testing.T) {
	one := rsaKeys()[0]
	i := newIssuer(t, published("1", one))
	v, c, revoke := newVerifier(t, i)
	token := signed(t, jose.RS256, one, "1", c.Now(), nil)
	first, err := v.Account(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.Account(t.Context(), token); err != nil || again != first {
		t.Errorf("the token was verified again: %v", err)
	}
	c.Advance(time.Hour + leeway + time.Second)
	if _, err := v.Account(t.Context(), token); market.CodeOf(err) != market.CodeUnauthenticated || !strings.Contains(err.Error(), "expired") {
		t.Errorf("the expired token: got the error %v, want UNAUTHENTICATED with expired", err)
	}
	later := signed(t, jose.RS256, one, "1", c.Now(), nil)
	second, err := v.Account(t.Context(), later)
	if err != nil {
		t.Fatal(err)
	}
	ofSecond := second.Limit(t.Context())
	revoke()
	<-ofSecond.Done()
	if cause := context.Cause(ofSecond); market.CodeOf(cause) != market.CodeUnauthenticated || !strings.Contains(cause.Error(), "revoked") {
		t.Errorf("the session of the revoked account ended with the cause %v, want UNAUTHENTICATED with revoked", cause)
	}
	if _, err := v.Account(t.Context(), later); market.CodeOf(err) != market.CodeForbidden {
		t.Errorf("a token of the revoked account: got the error %v, want FORBIDDEN", err)
	}
}

// TestSessionsAreBounded checks that a session needs at most SessionBytes, that the verifier keeps at most MaxSessions, and that
// dropped sessions free their memory.
func TestSessionsAreBounded(t *testing.T) {
	key := ecKey(t)
	v, c, _ := newVerifier(t, newIssuer(t, published("ec", key)))
	grown := func(from, to int) int {
		tokens := make([]string, 0, to-from)
		for n := range to - from {
			tokens = append(tokens, signed(t, jose.ES256, key, "ec", c.Now(), map[string]any{"jti": fmt.Sprint(from + n)}))
		}
		before := heap()
		for _, token := range tokens {
			if _, err := v.Account(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		grown := heap() - before
		runtime.KeepAlive(tokens)
		return grown
	}
	grown(0, 100)
	const n = 1900
	each := grown(100, 100+n) / n
	t.Logf("a session takes %d bytes", each)
	if each > SessionBytes {
		t.Errorf("a session takes %d bytes, more than %d", each, SessionBytes)
	}
	grown(100+n, MaxSessions+200)
	if n := v.sessions.Len(); n != MaxSessions {
		t.Errorf("%d sessions are remembered, want %d", n, MaxSessions)
	}
	const more = 3000
	left := grown(MaxSessions+200, MaxSessions+200+more) / more
	t.Logf("a session that displaces another one takes %d bytes", left)
	if left > SessionBytes/8 {
		t.Errorf("each session that is no longer remembered leaves %d bytes, want at most %d", left, SessionBytes/8)
	}
}

// TestSessionsExpire checks that the contexts that Limit returns end when the session expires.
func TestSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, revoke := accountsFile(t)
		account, _ := store.Subject("alice")
		session := account.Session(time.Hour, context.Background())
		began := time.Now()
		ctx := session.Limit(t.Context())
		<-ctx.Done()
		if cause := context.Cause(ctx); time.Since(began) != time.Hour || market.CodeOf(cause) != market.CodeUnauthenticated || !strings.Contains(cause.Error(), "expired") {
			t.Errorf("after %s: %v", time.Since(began), cause)
		}
		if err := session.Err(); err != context.Cause(ctx) {
			t.Errorf("Err of the expired session is %v, want the cause of its context", err)
		}
		late := session.Limit(t.Context())
		synctest.Wait()
		if late.Err() == nil || account.Err() != nil {
			t.Errorf("a new context of the expired session has the error %v, want an error; the account has the error %v, want nil", late.Err(), account.Err())
		}
		if revoke(); !strings.Contains(account.Err().Error(), "revoked") {
			t.Errorf("Err of the revoked account is %v, want revoked", account.Err())
		}
	})
}

// TestLimitedContextsLeaveNothing checks that a context that Limit returns frees its memory if the context ends long before the
// session.
func TestLimitedContextsLeaveNothing(t *testing.T) {
	store, _ := accountsFile(t)
	account, _ := store.Subject("alice")
	key, withdraw := context.WithCancel(t.Context())
	defer withdraw()
	session := account.Session(time.Hour, key)
	before := heap()
	const n = 10_000
	for range n {
		ctx, cancel := context.WithCancel(t.Context())
		limited := session.Limit(ctx)
		cancel()
		<-limited.Done()
	}
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // goroutines may still be releasing contexts
		if left := (heap() - before) / n; left < 200 { // some bytes remain, because a map does not shrink
			break
		} else if time.Now().After(late) {
			t.Fatalf("each ended context leaves %d bytes, want less than 200", left)
		}
	}
	runtime.KeepAlive(session)
}

// heap returns the number of heap bytes in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
