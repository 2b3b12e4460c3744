package generic

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

func TestCredentialModes(t *testing.T) {
	for _, mode := range []string{"", rest.CredentialsQuery, rest.CredentialsHeader, rest.CredentialsNone} {
		for _, r := range reads {
			t.Run(mode+"/"+r.name, func(t *testing.T) {
				v := newVenue(t, everywhere(answer(`{}`)))
				c := v.client(t, func(cfg *Config) { cfg.CredentialsMode = mode })
				_, _ = r.call(t.Context(), asUser(t), c)
				got := v.last()
				query := got.URL.Query().Get("credentials")
				header, _ := base64.StdEncoding.DecodeString(got.Header.Get("X-Api-Credentials"))
				wantQuery, wantHeader := "", ""
				switch {
				case !r.user:
				case mode == rest.CredentialsHeader:
					wantHeader = canary
				case mode != rest.CredentialsNone:
					wantQuery = canary
				}
				assertEqual(t, query, wantQuery)
				assertEqual(t, string(header), wantHeader)
				if r.user && got.URL.Query().Get("address") != string(wallet) {
					t.Errorf("the address is %q", got.URL.Query().Get("address"))
				}
				if !r.user && strings.Contains(fmt.Sprint(got.URL, got.Header), "canary") {
					t.Errorf("a public call carries credentials: %v", got.URL)
				}
			})
		}
	}
}

func TestUserReadsNeedCredentials(t *testing.T) {
	for _, r := range reads {
		if !r.user {
			continue
		}
		seen := &recordingObserver{}
		v := newVenue(t, everywhere(answer(`{}`)))
		_, err := r.call(t.Context(), upstream.Call{}, v.client(t, func(cfg *Config) { cfg.Observer = seen }))
		if market.CodeOf(err) != market.CodeUnauthenticated || v.count() != 0 || len(seen.calls) != 0 {
			t.Errorf("the read of %s without credentials returned %v after %d calls, want %s after none", r.name, err, v.count(), market.CodeUnauthenticated)
		}
		none := v.client(t, func(cfg *Config) { cfg.CredentialsMode = rest.CredentialsNone })
		if _, err := r.call(t.Context(), upstream.Call{}, none); market.CodeOf(err) == market.CodeUnauthenticated || v.count() == 0 {
			t.Errorf("the read of %s in the mode none returned %v after %d calls, want a call", r.name, err, v.count())
		}
	}
}

// TestNoCredentials checks that a client for a venue without credentials makes no call that has any, in whatever mode.
func TestNoCredentials(t *testing.T) {
	for _, mode := range []string{rest.CredentialsQuery, rest.CredentialsNone} {
		for _, r := range reads {
			v := newVenue(t, everywhere(answer(`{}`)))
			c := v.client(t, func(cfg *Config) { cfg.CredentialsMode, cfg.NoCredentials = mode, true })
			if _, err := r.call(t.Context(), asUser(t), c); market.CodeOf(err) != market.CodeInternal || v.count() != 0 {
				t.Errorf("the read of %s in the mode %s returned %v after %d calls, want %s after none", r.name, mode, err, v.count(), market.CodeInternal)
			}
		}
	}
}

// printErrorChain formats an error, and all errors that it wraps, with several verbs of package fmt.
func printErrorChain(err error) string {
	var b strings.Builder
	var walk func(err error)
	walk = func(err error) {
		if err == nil {
			return
		}
		fmt.Fprintf(&b, "%v\n%+v\n%#v\n%q\n", err, err, err, err)
		switch x := err.(type) {
		case interface{ Unwrap() error }:
			walk(x.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range x.Unwrap() {
				walk(e)
			}
		}
	}
	walk(err)
	return b.String()
}

// TestErrorsHaveNoCredentials checks that no error contains credentials. The URL or the header of each call contains credentials,
// and the calls fail in many ways.
func TestErrorsHaveNoCredentials(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	untrusted := httptest.NewUnstartedServer(answer(`{}`))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	echo := func(status int, contentType, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			wire := r.URL.Query().Get("credentials") + r.Header.Get("X-Api-Credentials")
			fields, _ := market.ParseCredentials([]byte(canary))
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, format, url.QueryEscape(wire), "canary-key-7f3a canary/secret+9c= canary-extra canary-deep 7300419265", strconv.Quote(fields.Wire()), strconv.Quote(r.URL.String()))
		}
	}
	served := func(h http.HandlerFunc) string { return newVenue(t, everywhere(h)).URL + prefix }
	for name, base := range map[string]string{
		"refused":     closed.URL,
		"unknown":     "http://venue.invalid",
		"certificate": untrusted.URL,
		"not TLS":     strings.Replace(elsewhere.URL, "http:", "https:", 1),
		"redirect": served(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}),
		"timeout":    served(hang),
		"drip":       served(drip),
		"reset":      served(reset),
		"not JSON":   served(answer(`{"positions":[`)),
		"echo 400":   served(echo(400, "application/json", `{"success":false,"error":"bad %s and %s","code":"BAD","message":%s,"url":%s}`)),
		"echo 401":   served(echo(401, "application/json", `{"success":false,"message":"no %s","error":{"message":"%s"},"msg":%s,"url":%s}`)),
		"echo 200":   served(echo(200, "application/json", `{"success":false,"error":"no %s, %s","code":%s,"x":%s}`)),
		"echo wire":  served(echo(200, "application/json", `{"success":false,"x":"%s%s","error":%s,"y":%s}`)),
		"echo url":   served(echo(500, "application/json", `{"success":false,"x":"%s%s","y":%s,"error":%s}`)),
		"echo rows":  served(echo(200, "application/json", `{"positions":[{"marketId":"%s %s","outcome":%s,"size":%s}]}`)),
		"echo as id": served(echo(200, "application/json", `[{"marketId":"M","orderId":"%s,","tradeId":"%s,","size":%s,"price":%s,"timestamp":"canary-key-7f3a"}]`)),
		"echo HTML":  served(echo(403, "text/html", `<p>%s %s %s %s`)),
	} {
		for _, mode := range []string{rest.CredentialsQuery, rest.CredentialsHeader} {
			for _, r := range reads {
				if !r.user {
					continue
				}
				t.Run(name+"/"+mode+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					c := newClient(t, base, func(cfg *Config) {
						cfg.CredentialsMode, cfg.Timeout = mode, 2*time.Second
						if name == "timeout" || name == "drip" {
							cfg.Timeout = 50 * time.Millisecond
						}
					})
					_, err := r.call(t.Context(), asUser(t), c)
					if err == nil {
						t.Fatal("no error")
					}
					text := printErrorChain(err)
					for _, secret := range append(secretSpellings(t), base) {
						if strings.Contains(text, secret) {
							t.Fatalf("%q is in the error:\n%s", secret, text)
						}
					}
				})
			}
		}
	}
}

// secretSpellings returns parts of the credentials in canary, in each encoding in which the client sends credentials.
func secretSpellings(t *testing.T) []string {
	c, err := market.ParseCredentials([]byte(canary))
	must(t, err)
	return []string{
		"canary", "7f3a", "9c=", "secret+9c", "7300419265", "eep", url.QueryEscape("canary/secret+9c="), `\"phrase`,
		base64.StdEncoding.EncodeToString([]byte(c.Wire()))[:24],
	}
}

func TestRedactedMessageIsBounded(t *testing.T) {
	c := newVenue(t, everywhere(answerWith(500, "application/json", `{"error":"`+strings.Repeat("é", 20_000)+`\u0000\n"}`))).client(t)
	_, err := c.Balance(t.Context(), asUser(t), wallet)
	if text := err.Error(); len(text) > 400 || strings.ContainsAny(text, "\x00\n") || !strings.Contains(text, "éé…") {
		t.Errorf("the error has %d bytes, want at most 400 bytes without control characters: %.500q", len(text), text)
	}
}

// leakyTransport returns errors that contain the URL and the header, as http.Client and tracing transports do.
type leakyTransport struct{}

func (leakyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: fmt.Errorf("failed with %v", r.Header)}
}

func TestTransportErrorsAreNotExposed(t *testing.T) {
	for _, mode := range []string{rest.CredentialsQuery, rest.CredentialsHeader} {
		c := newClient(t, "http://venue.invalid", func(cfg *Config) { cfg.Transport, cfg.CredentialsMode = leakyTransport{}, mode })
		_, err := c.Balance(t.Context(), asUser(t), wallet)
		if market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Fatalf("got %v, want %s", err, market.CodeUpstreamUnavailable)
		}
		for _, secret := range append(secretSpellings(t), "venue.invalid") {
			if strings.Contains(printErrorChain(err), secret) {
				t.Errorf("%q is in the error: %s", secret, printErrorChain(err))
			}
		}
	}
}
