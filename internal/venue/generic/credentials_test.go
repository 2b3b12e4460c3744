package generic

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

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
		for _, secret := range []string{"canary", "7f3a", "9c=", "eep", base64.StdEncoding.EncodeToString([]byte(canary))[:24], "venue.invalid"} {
			if text := fmt.Sprintf("%v\n%+v\n%#v", err, err, err); strings.Contains(text, secret) {
				t.Errorf("%q is in the error: %s", secret, text)
			}
		}
	}
}
