package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
)

// newRequest returns a request from a new client address. The headers are alternating names and values.
func (s *service) newRequest(t testing.TB, method, path, body string, header ...string) *http.Request {
	t.Helper()
	r := s.request(t, body, anonymous).Clone(t.Context())
	r.Method = method
	u, err := url.Parse(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	if r.URL = u; body == "" {
		r.Body, r.GetBody, r.ContentLength = nil, nil, 0
		r.Header.Del("Content-Type")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// TestIfNoneMatch checks the ETag of responses. While the venue's data are unchanged, a request with this ETag must get status 304.
// After a change, a request with the same ETag must get the new data. httpapi.TestConditionalRequests checks content codings.
func TestIfNoneMatch(t *testing.T) {
	s := start(t)
	token := s.openTokens(1)[0]
	path := "/graphql?" + url.Values{"query": {`{ tokenPrices(tokenIds: ["` + token + `"]) { price timestamp } }`}}.Encode()
	price := demo.Price(2300)
	for _, caller := range [][]string{nil, {httpapi.CredentialsHeader, keyOf50}} {
		ask := func(tag string) response {
			return s.do(t, s.newRequest(t, http.MethodGet, path, "", append(caller, "If-None-Match", tag)...))
		}
		first := ask("")
		tag := first.header.Get("ETag")
		if first.status != http.StatusOK || tag == "" {
			t.Fatalf("got status %d and the headers %v, want 200 and an ETag", first.status, first.header)
		}
		for _, known := range []string{tag, `"a", ` + tag + `, "b"`, "*"} {
			got := ask(known)
			if got.status != http.StatusNotModified || got.body != "" || got.header.Get("ETag") != tag || got.header.Get("Vary") != first.header.Get("Vary") ||
				got.header.Get("Cache-Control") != first.header.Get("Cache-Control") || got.header.Get("Content-Length") != "" && got.header.Get("Content-Length") != "0" {
				t.Errorf("If-None-Match %s: got %+v, want status 304", known, got)
			}
		}
		if got := ask(`"another"`); got.status != http.StatusOK || got.body != first.body {
			t.Errorf("If-None-Match with another tag: got %+v, want status 200", got)
		}
		price += 100
		if err := s.venue.SetPrice(token, price); err != nil {
			t.Fatal(err)
		}
		s.expireCaches()
		if got := ask(tag); got.status != http.StatusOK || got.header.Get("ETag") == tag || !strings.Contains(got.body, price.String()) {
			t.Errorf("after a change of the price: got %+v, want status 200 and the new price", got)
		}
	}
}

// TestCacheControl checks the header Cache-Control for clients with and without credentials.
func TestCacheControl(t *testing.T) {
	f := newAccountsFile(t)
	s := start(t, "--accounts-file="+f.path)
	token := s.openTokens(1)[0]
	for _, test := range []struct{ name, document, anonymous, identified string }{
		{"a price", `{ token(tokenId: "` + token + `") { price { price } market { question } } }`, "public, max-age=1", "private, max-age=1"},
		{"an unknown market", `{ market(marketId: "none") { question } }`, "public, max-age=60", "private, max-age=60"},
		{"the viewer", `{ viewer { address } }`, "private, max-age=0", "private, max-age=0"},
		{"an account", `{ user(address: "` + addressOf3 + `") { positions { totalCount } } }`, "no-store", "private, max-age=0"}, // fails without credentials
		{"the status", `{ serviceStatus { version } }`, "no-store", "no-store"},
		{"an error of a field", `{ market { question } searchMarkets { totalCount } }`, "no-store", "no-store"},
		{"an invalid document", `{ nope }`, "no-store", "no-store"},
		{"a document that is refused", `{ ` + strings.Repeat("a ", 2000) + ` }`, "no-store", "no-store"},
	} {
		for _, caller := range [][]string{nil, {httpapi.CredentialsHeader, keyOf3}, {"Authorization", "Bearer token-of-3"}} {
			want := test.anonymous
			if caller != nil {
				want = test.identified
			}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				got := s.do(t, s.newRequest(t, method, "/graphql?"+url.Values{"query": {test.document}}.Encode(), "", caller...))
				if got.header.Get("Cache-Control") != want || (got.header.Get("ETag") != "") != (want != "no-store") {
					t.Errorf("%s %s as %q: got the headers %v, want Cache-Control %q", method, test.name, caller, got.header, want)
				}
				for _, header := range []string{"Accept", "Accept-Encoding", "Authorization", httpapi.CredentialsHeader} {
					if !strings.Contains(strings.Join(got.header.Values("Vary"), ","), header) {
						t.Errorf("%s %s does not vary by %s", method, test.name, header)
					}
				}
			}
			got := s.do(t, s.newRequest(t, http.MethodPost, "/graphql", asJSON(vars{"query": test.document}), caller...))
			if got.header.Get("Cache-Control") != "no-store" || got.header.Get("ETag") != "" {
				t.Errorf("POST %s as %q: got the headers %v, want Cache-Control no-store", test.name, caller, got.header)
			}
		}
	}
	// Caches must not store responses to refused requests.
	for _, header := range [][]string{{"Authorization", "Bearer nobody"}, {httpapi.CredentialsHeader, "%"}, {"Accept", "image/png"}} {
		if got := s.do(t, s.newRequest(t, http.MethodGet, "/graphql?query={__typename}", "", header...)); got.status/100 != 4 || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("a request with %q: got status %d and the headers %v, want 4xx and Cache-Control no-store", header, got.status, got.header)
		}
	}
	s.setFaults(t, faults.Fault{Kind: faults.Status})
	if got := s.do(t, s.newRequest(t, http.MethodGet, "/graphql?"+url.Values{"query": {`{ market(marketId: "unread") { question } searchMarkets { totalCount } }`}}.Encode(), "")); got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a response with a failed field: got the headers %v, want Cache-Control no-store", got.header)
	}
}

// TestOrigins checks which pages of other origins may use the service. While the demo venue listens on a loopback address, pages on
// any port of localhost may use the service. All other pages need the flag --origins.
func TestOrigins(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		arg            string
		localhost, app bool
	}{
		"demo on loopback":      {"--demo-listen=127.0.0.1:0", true, false},
		"demo on all addresses": {"--demo-listen=0.0.0.0:0", false, false},
		"another venue":         {"--venue-url=" + elsewhere.URL, false, false},
		"configured":            {"--origins=https://b.example.com,https://app.example.com", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, test.arg)
			for origin, want := range map[string]bool{
				"http://localhost:5173": test.localhost, "http://127.0.0.1:3000": test.localhost, "https://app.example.com": test.app, "https://evil.example.com": false,
			} {
				for _, header := range [][]string{nil, {"Accept", "text/event-stream"}, {"Authorization", "Bearer nobody"}} {
					got := s.do(t, s.newRequest(t, http.MethodPost, "/graphql", `{"query":"{ __typename }"}`, append(header, "Origin", origin)...))
					if allow := got.header.Get("Access-Control-Allow-Origin"); (allow == origin) != want {
						t.Errorf("%s with %q: got Access-Control-Allow-Origin %q, want it: %t", origin, header, allow, want)
					}
				}
				conn, resp, err := websocket.Dial(t.Context(), strings.Replace(s.URL(), "http", "ws", 1)+"/graphql", &websocket.DialOptions{
					HTTPClient: s.client, HTTPHeader: http.Header{"Origin": {origin}}, Subprotocols: []string{"graphql-transport-ws"},
				})
				if conn != nil {
					_ = conn.CloseNow()
				}
				if want {
					if err != nil {
						t.Errorf("a WebSocket from %s fails: %v", origin, err)
					}
					continue
				}
				if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
					t.Errorf("a WebSocket from %s: got the error %v, want status 403", origin, err)
					continue
				}
				if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), origin) || !strings.Contains(string(body), "--origins") {
					t.Errorf("%s: the refusal says %q", origin, body)
				}
			}
		})
	}
}

// TestCookiesChangeNothing checks that the service ignores headers that browsers add by themselves.
func TestCookiesChangeNothing(t *testing.T) {
	f := newAccountsFile(t)
	s := start(t, "--accounts-file="+f.path)
	ambient := []string{"Cookie", "Authorization=Bearer token-of-3; X-Venue-Credentials=" + keyOf3 + "; token=token-of-3", "Proxy-Authorization", "Bearer token-of-3", "Referer", "https://app.example.com/?token=token-of-3"}
	for _, query := range []string{`{ viewer { address } }`, `{ user(address: "` + addressOf3 + `") { positions { totalCount } } }`, `{ searchMarkets(first: 1) { totalCount } }`} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			for method, path := range map[string]string{"GET": "/graphql?" + url.Values{"query": {query}}.Encode(), "POST": "/graphql"} {
				body := ""
				if method == "POST" {
					body = asJSON(vars{"query": query})
				}
				plain := s.do(t, s.newRequest(t, method, path, body, "Accept", accept))
				withCookies := s.do(t, s.newRequest(t, method, path, body, append(ambient, "Accept", accept)...))
				for _, got := range []response{plain, withCookies} {
					for _, own := range []string{"X-Request-Id", "Date"} {
						got.header.Del(own)
					}
				}
				if plain.status != withCookies.status || plain.print() != withCookies.print() || strings.Contains(withCookies.body, `"totalCount":3}`) {
					t.Errorf("%s %s: the response is %s\nwith cookies, the response is %s", method, query, plain.print(), withCookies.print())
				}
			}
		}
	}
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.URL(), "http", "ws", 1)+"/graphql", &websocket.DialOptions{
		HTTPClient: s.client, HTTPHeader: http.Header{"Cookie": {ambient[1]}}, Subprotocols: []string{"graphql-transport-ws"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	k := &socket{conn: conn, subs: make(map[string]*events), done: make(chan struct{})}
	k.send(t, frame{Type: "connection_init"})
	if f, err := k.read(t.Context()); err != nil || f.Type != "connection_ack" {
		t.Fatal(f, err)
	}
	go k.listen()
	if ev := k.subscribe(t, `{ viewer { address } }`, nil).next(t); asJSON(ev.data) != `{"viewer":null}` {
		t.Errorf("a WebSocket with a cookie got %+v, want no viewer", ev)
	}
	_ = conn.CloseNow()
	<-k.done
}

// TestSecurityHeaders checks the security headers of the responses on each path, and of the responses to refused requests.
func TestSecurityHeaders(t *testing.T) {
	s := start(t)
	for _, r := range []*http.Request{
		s.newRequest(t, "GET", "/", ""), s.newRequest(t, "GET", "/schema.graphql", ""), s.newRequest(t, "GET", "/healthz", ""), s.newRequest(t, "GET", "/readyz", ""), s.newRequest(t, "GET", "/nothing", ""),
		s.newRequest(t, "GET", "/graphql?query={__typename}", ""), s.newRequest(t, "GET", "/graphql", ""), s.newRequest(t, "DELETE", "/graphql", ""), s.newRequest(t, "OPTIONS", "/graphql", ""),
		s.newRequest(t, "POST", "/graphql", `{"query":"{ nope }"}`), s.newRequest(t, "POST", "/graphql", `x`), s.newRequest(t, "POST", "/graphql", `{"query":"{__typename}"}`, "Accept", "text/event-stream"),
		s.newRequest(t, "POST", "/graphql", `{}`, "Authorization", "Bearer nobody"), s.newRequest(t, "GET", "/graphql", "", "Upgrade", "websocket", "Connection", "Upgrade"),
	} {
		got := s.do(t, r)
		policy := got.header.Get("Content-Security-Policy")
		if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Referrer-Policy") != "no-referrer" || got.header.Get("X-Request-Id") == "" ||
			!strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe-eval") {
			t.Errorf("%s %s: a security header is missing or wrong: %v", r.Method, r.URL, got.header)
		}
		for _, gossip := range []string{"Server", "X-Powered-By", "Set-Cookie"} {
			if got.header.Get(gossip) != "" {
				t.Errorf("%s %s: the header %s is %q, want none", r.Method, r.URL, gossip, got.header.Get(gossip))
			}
		}
		script, _, _ := strings.Cut(policy[strings.Index(policy, "script-src")+1:], ";")
		if strings.Contains(policy, "script-src") && strings.Contains(script, "unsafe-inline") {
			t.Errorf("%s allows inline scripts: %s", r.URL, policy)
		}
	}
}

// TestRefusedCredentials checks that the service asks the venue at most five times about invalid credentials of one client. After
// that, the service must refuse these credentials for a minute without a call. Other credentials of the same client must still
// work.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	f := newAccountsFile(t)
	const query = `{ user(address: "` + addressOf3 + `") { positions { totalCount } } }`
	wrong := credentials("no such key")
	for _, test := range []struct {
		name, trusted string
		// from returns the X-Forwarded-For header of the n-th request.
		from func(n int) string
		// blocked is true if the service attributes all these requests to one client.
		blocked bool
	}{
		{"no trusted proxy", "", func(n int) string { return fmt.Sprintf("192.0.2.%d", n) }, true},
		{"trusted proxy", "127.0.0.1", func(n int) string { return fmt.Sprintf("192.0.2.%d", n) }, false},
		{"forged address before the proxy's entry", "127.0.0.1", func(n int) string { return fmt.Sprintf("192.0.2.%d, 198.51.100.7", n) }, true},
		{"invalid address", "127.0.0.1", func(n int) string { return fmt.Sprintf("192.0.2.%d, junk", n) }, true},
		{"two proxies", "127.0.0.1,10.0.0.0/8", func(n int) string { return fmt.Sprintf("192.0.2.%d, 198.51.100.7, 10.1.2.3", n) }, true},
		{"addresses of one IPv6 network", "127.0.0.1", func(n int) string { return fmt.Sprintf("2001:db8::%d", n) }, true},
		{"addresses of several IPv6 networks", "127.0.0.1", func(n int) string { return fmt.Sprintf("2001:db8:0:%d::1", n) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, "--accounts-file="+f.path, "--trusted-proxies="+test.trusted)
			n := 0
			withAddress := func(r *http.Request) *http.Request {
				n++
				r.Header.Set("X-Forwarded-For", test.from(n))
				return r
			}
			post := func(name, value string) response {
				return s.do(t, withAddress(s.newRequest(t, "POST", "/graphql", asJSON(vars{"query": query}), name, value)))
			}
			overSocket := func(header string, value string) string {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				n++
				conn, _, err := websocket.Dial(ctx, strings.Replace(s.URL(), "http", "ws", 1)+"/graphql", &websocket.DialOptions{
					HTTPClient: s.client, HTTPHeader: http.Header{"X-Forwarded-For": {test.from(n)}}, Subprotocols: []string{"graphql-transport-ws"},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.CloseNow()
				k := &socket{conn: conn}
				k.send(t, frame{Type: "connection_init", Payload: []byte(asJSON(vars{header: value}))})
				if f, err := k.read(ctx); err != nil || f.Type != "connection_ack" {
					return fmt.Sprint(int(websocket.CloseStatus(err)))
				}
				k.send(t, frame{ID: "1", Type: "subscribe", Payload: []byte(asJSON(vars{"query": query}))})
				f, err := k.read(ctx)
				return fmt.Sprint(string(f.Payload), err)
			}
			for range 3 {
				if got := post("Authorization", "Bearer nobody"); got.status != http.StatusUnauthorized {
					t.Errorf("an unknown token: got %+v, want status 401", got)
				}
			}
			for range 2 {
				if got := overSocket("Authorization", "Bearer nobody"); got != "4403" {
					t.Errorf("an unknown token on a socket: got %s, want the close code 4403", got)
				}
			}
			asked := s.callsDuring(func() {
				for range 3 {
					if got := post(httpapi.CredentialsHeader, wrong); !strings.Contains(got.body, "UNAUTHENTICATED") {
						t.Errorf("refused credentials: got %+v, want UNAUTHENTICATED", got)
					}
				}
				if got := s.do(t, withAddress(s.newRequest(t, "POST", "/graphql", asJSON(vars{"query": query}), httpapi.CredentialsHeader, wrong, "Accept", "text/event-stream"))); !strings.Contains(got.body, "UNAUTHENTICATED") {
					t.Errorf("refused credentials over SSE: got %+v, want UNAUTHENTICATED", got)
				}
				if got := overSocket(httpapi.CredentialsHeader, wrong); !strings.Contains(got, "UNAUTHENTICATED") {
					t.Errorf("refused credentials on a socket: got %s, want UNAUTHENTICATED", got)
				}
			})
			wantCalls(t, asked, calls{"positions": {5, 5}})
			for range 6 { // refused credentials from the accounts file do not count, because the client did not send them
				if got := post("Authorization", "Bearer token-of-nobody"); got.status != http.StatusOK || !strings.Contains(got.body, "UNAUTHENTICATED") {
					t.Errorf("refused credentials from the accounts file: got %+v, want UNAUTHENTICATED", got)
				}
			}
			isLimited := func(got response) bool {
				return got.status == http.StatusTooManyRequests && got.header.Get("Retry-After") == "60" && strings.Contains(got.body, "RATE_LIMITED")
			}
			asked = s.callsDuring(func() {
				for name, value := range map[string]string{httpapi.CredentialsHeader: wrong, "Authorization": "Bearer nobody"} {
					if got := post(name, value); isLimited(got) != test.blocked {
						t.Errorf("%s after five refusals: got %+v, want status 429: %t", name, got, test.blocked)
					}
				}
				if got := overSocket(httpapi.CredentialsHeader, wrong); (got == "4403") != test.blocked {
					t.Errorf("a socket after five refusals: got %s, want the close code 4403: %t", got, test.blocked)
				}
			})
			if test.blocked && len(asked) > 0 {
				t.Errorf("blocked credentials caused the calls %v, want none", asked)
			}
			if got := post(httpapi.CredentialsHeader, credentials("another bad key")); !strings.Contains(got.body, "UNAUTHENTICATED") {
				t.Errorf("other invalid credentials: got %+v, want UNAUTHENTICATED", got)
			}
			if got := post("Authorization", "Bearer nobody-else"); got.status != http.StatusUnauthorized {
				t.Errorf("another invalid token: got %+v, want status 401", got)
			}
			if got := post(httpapi.CredentialsHeader, keyOf3); got.status != http.StatusOK || strings.Contains(got.body, "errors") {
				t.Errorf("valid credentials: got %+v, want status 200 without errors", got)
			}
			if got := s.do(t, withAddress(s.newRequest(t, "POST", "/graphql", `{"query":"{ searchMarkets { totalCount } }"}`))); got.status != http.StatusOK || strings.Contains(got.body, "errors") {
				t.Errorf("without credentials: got %+v, want status 200 without errors", got)
			}
			s.clock.Advance(61e9)
			if got := post(httpapi.CredentialsHeader, wrong); !strings.Contains(got.body, "UNAUTHENTICATED") {
				t.Errorf("refused credentials a minute later: got %+v, want UNAUTHENTICATED", got)
			}
		})
	}
}

// TestKnownDocumentsOverEveryTransport checks that clients can send the hash of a registered document over a WebSocket and over
// event streams.
func TestKnownDocumentsOverEveryTransport(t *testing.T) {
	s := startLive(t)
	const document = `subscription S { streamStatusChanged { __typename } }`
	const name = `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"HASH"}}}`
	named := strings.Replace(name, "HASH", hashOf(document), 1)
	k := s.dial(t, anonymous)
	say := func(id, payload string) *events {
		e := newEvents(id)
		k.mu.Lock()
		k.subs[id] = e
		k.mu.Unlock()
		k.send(t, frame{ID: id, Type: "subscribe", Payload: []byte(payload)})
		return e
	}
	say("miss", named).wantEnd(t, "PERSISTED_QUERY_NOT_FOUND")
	say("invalid", asJSON(vars{"query": "{ nope }", "extensions": vars{"persistedQuery": vars{"version": 1, "sha256Hash": hashOf("{ nope }")}}})).wantEnd(t, "GRAPHQL_VALIDATION_FAILED")
	say("still a miss", strings.Replace(name, "HASH", hashOf("{ nope }"), 1)).wantEnd(t, "PERSISTED_QUERY_NOT_FOUND")
	say("registers", asJSON(vars{"query": document, "extensions": vars{"persistedQuery": vars{"version": 1, "sha256Hash": hashOf(document)}}})).value(t)
	say("hit", named).value(t)
	say("by id", asJSON(vars{"documentId": "sha256:" + hashOf(document)})).value(t)
	for _, r := range []*http.Request{s.newRequest(t, "POST", "/graphql", named), s.newRequest(t, "GET", "/graphql/sha256:"+hashOf(document), ""), s.newRequest(t, "GET", "/graphql?documentId="+hashOf(document), "")} {
		s.stream(t, r.Method+" "+r.URL.Path, r).value(t)
	}
}

// TestSaturatedService checks, over each transport, that a service with the maximum number of operations that wait for the venue
// refuses further queries that need the venue. Of the four places, two are for such operations, and one client may take one of them.
func TestSaturatedService(t *testing.T) {
	venue := newSlowVenue(t)
	s, _ := startLiveRigged(t, func(w *app.Wiring) { w.Front = func(front *httpapi.Config) { front.Queue = 0 } }, append(venue.patientArgs(), "--max-operations=4")...)
	s.waitForStream(t)
	s.venue = venue.demo
	token := s.openTokens(1)[0]
	open := s.dial(t, anonymous).subscribe(t, subPrices, vars{"ids": []string{token}})
	open.value(t)
	release := venue.hold("/api/user/history")
	defer release()
	const slow = `{ user(address: "` + addressOf3 + `") { history { totalCount } } }`
	done := make(chan response, 1)
	go func() { done <- s.do(t, s.request(t, asJSON(vars{"query": slow}), keyOf3)) }()
	<-venue.waiting
	const furtherQuery = `{ market(marketId: "none") { slug } }`
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		path, body := "/graphql", asJSON(vars{"query": furtherQuery})
		if method == http.MethodGet {
			path, body = "/graphql?"+url.Values{"query": {furtherQuery}}.Encode(), ""
		}
		got := s.do(t, s.newRequest(t, method, path, body))
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || got.header.Get("Cache-Control") != "no-store" || !strings.Contains(got.body, `"retryAfterMs":1000`) {
			t.Errorf("%s: got %+v, want status 503 and Retry-After 1", method, got)
		}
	}
	if ev := s.dial(t, anonymous).subscribe(t, furtherQuery, nil).next(t); len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "RATE_LIMITED" || ev.data != nil {
		t.Errorf("a query on a socket: got %+v, want the error RATE_LIMITED", ev)
	}
	if got := s.do(t, s.newRequest(t, http.MethodPost, "/graphql", asJSON(vars{"query": furtherQuery}), "Accept", "text/event-stream")); !strings.Contains(got.body, "RATE_LIMITED") || !strings.HasSuffix(got.body, "event: complete\ndata:\n\n") {
		t.Errorf("a query over SSE: got %+v, want the error RATE_LIMITED and an event complete", got)
	}
	// Queries that do not need the venue, open subscriptions and health checks still work.
	if got := s.do(t, s.newRequest(t, http.MethodPost, "/graphql", `{"query":"{ __typename }"}`)); got.status != http.StatusOK {
		t.Errorf("a query that does not need the venue: got %+v, want status 200", got)
	}
	s.move(t, token)
	open.until(t, "a change", func(v any) bool { return text(v, "reason") == "CHANGE" })
	if got := s.do(t, s.newRequest(t, http.MethodGet, "/healthz", "")); got.status != http.StatusOK {
		t.Errorf("/healthz: got %+v, want status 200", got)
	}
	release()
	if got := <-done; got.status != http.StatusOK || strings.Contains(got.body, "errors") {
		t.Errorf("the first query: got %+v, want status 200 without errors", got)
	}
	if got := s.do(t, s.newRequest(t, http.MethodPost, "/graphql", `{"query":"{ __typename }"}`)); got.status != http.StatusOK {
		t.Errorf("a query after the first query: got %+v, want status 200", got)
	}
}
