package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"oddsgraph/httpapi/origins"
)

func TestCORS(t *testing.T) {
	for _, test := range []struct {
		configured []string
		origin     string
		allow      string // Access-Control-Allow-Origin
	}{
		{nil, "https://app.example", ""},
		{nil, "http://example.com", ""}, // the service's own pages need no header
		{[]string{"https://app.example"}, "https://app.example", "https://app.example"},
		{[]string{"https://app.example"}, "https://evil.example", ""},
		{[]string{"https://app.example"}, "null", ""},
		{[]string{"https://app.example"}, "", ""},
		{[]string{"*"}, "https://evil.example", "*"},
	} {
		cfg := testConfig(t)
		cfg.Origins = test.configured
		h := New(cfg)
		w := post(t, h, `{"query":"{ __typename }"}`, "Origin", test.origin)
		got := w.Header()
		if w.Code != 200 || got.Get("Access-Control-Allow-Origin") != test.allow || got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%+v: %d %v", test, w.Code, got)
		}
		if exposed := got.Get("Access-Control-Expose-Headers"); (exposed == "Etag, Retry-After, X-Request-Id, Www-Authenticate") != (test.allow != "") {
			t.Errorf("%+v: Access-Control-Expose-Headers is %q", test, exposed)
		}
		if varies := got.Values("Vary"); (varies[0] == "Origin") != (test.configured != nil) {
			t.Errorf("%+v: Vary is %q", test, varies)
		}
		for method, headers := range map[string]string{"POST": "authorization,content-type,x-venue-credentials", "GET": "traceparent", "DELETE": "content-type", "POST ": "x-evil"} {
			w = send(t, h, "OPTIONS", PathGraphQL, "", "Origin", test.origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
			good := test.allow != "" && (method == "POST" || method == "GET")
			if got := w.Header(); w.Code != 204 || (got.Get("Access-Control-Allow-Origin") == test.allow) != (good || test.allow == "") || got.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%+v: preflight of %s with %s: %d %v", test, method, headers, w.Code, got)
			}
		}
	}
}

// TestAllowedHeaders checks which headers a page of an allowed origin may send.
func TestAllowedHeaders(t *testing.T) {
	for _, test := range []struct {
		configured []string
		asked      string
		want       bool
	}{
		// what OpenTelemetry and Sentry add in browsers
		{nil, "baggage,content-type,traceparent", true}, {nil, "baggage,content-type,traceparent,tracestate", true}, {nil, "baggage,content-type,sentry-trace", true},
		// what clients add: Apollo Client, Apollo Kotlin for the web, the clients of GraphQL Hive
		{nil, "apollographql-client-name,apollographql-client-version,content-type", true}, {nil, "x-apollo-operation-id,x-apollo-operation-name,x-apollo-operation-type", true},
		{nil, "content-type,graphql-client-name,graphql-client-version", true}, {nil, "apollo-require-preflight", true},
		{nil, "content-type,x-b3-traceid", false}, {[]string{"X-B3-TraceId"}, "content-type,x-b3-traceid", true}, {[]string{"X-B3-TraceId"}, "baggage,x-b3-traceid,x-other", false},
		{[]string{"*"}, "content-type,x-b3-traceid,x-other", true},
	} {
		cfg := testConfig(t)
		cfg.Origins, cfg.CORSHeaders = []string{"https://app.example"}, test.configured
		w := send(t, New(cfg), "OPTIONS", PathGraphQL, "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", test.asked)
		if got := w.Header().Get("Access-Control-Allow-Headers"); (got == test.asked) != test.want || (w.Header().Get("Access-Control-Allow-Origin") != "") != test.want {
			t.Errorf("%q with %q configured: got the headers %v, want them allowed: %t", test.asked, test.configured, w.Header(), test.want)
		}
	}
}

// TestLoopbackOrigins checks that LoopbackOrigins allows localhost, 127.0.0.1 and [::1] with any port, in addition to the
// configured origins.
func TestLoopbackOrigins(t *testing.T) {
	for origin, want := range map[string]bool{
		"http://localhost:5173": true, "http://LOCALHOST": true, "https://localhost:3000": true, "http://127.0.0.1:1": true, "http://[::1]:5173": true,
		"https://app.example":       true, // configured
		"http://localhost.evil.com": false, "http://evil.com": false, "http://127.0.0.1.evil.com": false, "http://127.0.0.2": false,
		"http://evil.com#localhost": false, "http://localhost@evil.com": false, "http://evil@localhost": false, "file://localhost": false, "null": false,
	} {
		for _, loopback := range []bool{true, false} {
			want := want && (loopback || origin == "https://app.example")
			cfg := testConfig(t)
			cfg.Origins, cfg.LoopbackOrigins = []string{"https://app.example"}, loopback
			h := New(cfg)
			if got := post(t, h, `{"query":"{ __typename }"}`, "Origin", origin).Header().Get("Access-Control-Allow-Origin"); (got == origin) != want || got != "" && !want {
				t.Errorf("%s with LoopbackOrigins %v: Access-Control-Allow-Origin is %q, want it allowed: %v", origin, loopback, got, want)
			}
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://graph.example/graphql", nil)
			r.Header.Set("Origin", origin)
			if err := origins.New(cfg.Origins, loopback, nil).Check(r); (err == nil) != want {
				t.Errorf("%s with LoopbackOrigins %v: got the error %v, want it allowed: %v", origin, loopback, err, want)
			}
		}
	}
}

// TestRefusedOriginIsNamed checks that the error contains the start of the origin in quotes, and the flag that allows the origin.
func TestRefusedOriginIsNamed(t *testing.T) {
	h := New(testConfig(t))
	for origin, says := range map[string]string{
		"http://127.0.0.1:5173":                 `origin "http://127.0.0.1:5173" is not allowed; allow it with --origins (ODDSGRAPH_ORIGINS)`,
		"http://a\x1b[31m\"\u00fc":              `origin "http://a\x1b[31m\"\u00fc" is not allowed`,
		"http://" + strings.Repeat("a", 60_000): `origin "http://` + strings.Repeat("a", 193) + `" is not allowed`,
	} {
		w := send(t, h, "GET", PathGraphQL, "", "Origin", origin, "Connection", "Upgrade", "Upgrade", "websocket")
		if w.Code != 403 || !strings.HasPrefix(w.Body.String(), says) || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("the response to the origin %.50q is %d %s, want 403 and %.80s", origin, w.Code, w.Body, says)
		}
	}
}
