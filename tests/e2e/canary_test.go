package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"oddsgraph/httpapi"
)

// newCanary returns a unique secret of letters and digits, so that no escaping changes it.
func newCanary() string { return "canary" + strings.ToLower(rand.Text()) }

// canaryForms returns the forms in which a secret could appear: plain, in upper case, in hex, in base64 at any offset, and as its
// SHA-256 hash in hex or base64.
func canaryForms(secret string) []string {
	var out []string
	add := func(s string) { out = append(out, s) }
	add(secret)
	add(strings.ToUpper(secret))
	add(hex.EncodeToString([]byte(secret)))
	add(strings.ToUpper(hex.EncodeToString([]byte(secret))))
	for shift := range 3 {
		whole := []byte(strings.Repeat("\x00", shift) + secret)
		whole = whole[:len(whole)/3*3] // drop the last bytes, because their base64 form depends on the text after the secret
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add(encoding.EncodeToString(whole)[[]int{0, 2, 3}[shift]:])
		}
	}
	sum := sha256.Sum256([]byte(secret))
	add(hex.EncodeToString(sum[:]))
	add(base64.RawStdEncoding.EncodeToString(sum[:]))
	add(base64.RawURLEncoding.EncodeToString(sum[:]))
	return out
}

// findSecret returns the first form in which a text contains the secret, or "" if the text does not contain the secret.
func findSecret(text, secret string) string {
	for _, form := range canaryForms(secret) {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}

func TestFindSecret(t *testing.T) {
	secret := newCanary()
	sum := sha256.Sum256([]byte(secret))
	for _, text := range []string{secret, url.QueryEscape(secret), "a" + secret, hex.EncodeToString([]byte("x" + secret)), hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:])} {
		if findSecret(text, secret) == "" {
			t.Errorf("the secret is not found in %s", text)
		}
	}
	for before := range 4 {
		for after := range 4 {
			text := strings.Repeat("{", before) + secret + strings.Repeat("}", after)
			if findSecret(base64.StdEncoding.EncodeToString([]byte(text)), secret) == "" {
				t.Errorf("the secret is not found in the base64 form of %s", text)
			}
		}
	}
	if got := findSecret(newCanary()+base64.StdEncoding.EncodeToString([]byte(newCanary())), secret); got != "" {
		t.Errorf("the form %s of the secret is found in a text without the secret", got)
	}
}

// echo is a venue that repeats each request in its errors. setResponse chooses how the venue responds. One kind of response
// redirects the service to another server, the stranger.
type echo struct {
	*httptest.Server
	stranger *httptest.Server

	mu  sync.Mutex
	how string
	// requests are the requests that the venue received, without bodies.
	requests []*http.Request
	// strayURLs are the URLs of the requests that the stranger received.
	strayURLs []string
	release   chan struct{}
}

func newEcho(t testing.TB) *echo {
	e := &echo{release: make(chan struct{})}
	e.stranger = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.strayURLs = append(e.strayURLs, r.URL.String())
	}))
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(func() {
		close(e.release)
		e.Close()
		e.stranger.Close()
	})
	return e
}

func (e *echo) serve(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	how := e.how
	e.requests = append(e.requests, r.Clone(context.Background()))
	e.mu.Unlock()
	var headers bytes.Buffer
	_ = r.Header.Write(&headers)
	decoded, _ := base64.StdEncoding.DecodeString(r.Header.Get("X-Api-Credentials"))
	// The credentials come first, because the service keeps only the beginning of a venue's message.
	all := strings.Join([]string{r.URL.Query().Get("credentials"), string(decoded), r.Header.Get("X-Api-Credentials"), r.URL.String(), r.URL.Query().Encode(), headers.String()}, " ")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", strings.NewReplacer("\r", "", "\n", "").Replace(all))
	failure := asJSON(vars{"success": false, "error": all, "message": all, "code": all})
	switch how {
	case "refused":
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(failure))
	case "failed":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(failure))
	case "failed as text":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(all))
	case "reported":
		_, _ = w.Write([]byte(failure))
	case "drifted":
		_, _ = w.Write([]byte(asJSON(vars{"positions": []any{vars{all: all}, all}, "orders": all, "markets": []any{all}, all: all})))
	case "broken off":
		_, _ = w.Write([]byte(failure[:len(failure)/2]))
	case "limited":
		w.Header().Set("Retry-After", all)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(failure))
	case "redirected":
		w.Header().Set("Location", e.stranger.URL+r.URL.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "silent":
		select {
		case <-r.Context().Done():
		case <-e.release:
		}
	case "hung up":
		panic(http.ErrAbortHandler)
	default:
		_, _ = w.Write([]byte(`{"positions":[],"orders":[],"markets":[],"trades":[],"history":[],"prices":[],"balance":{"cashBalance":"1"}}`))
	}
}

// echoResponses are the arguments of setResponse: the ways in which an echo can respond.
var echoResponses = []string{"well", "refused", "failed", "failed as text", "reported", "drifted", "broken off", "limited", "redirected", "silent", "hung up"}

// setResponse chooses how the echo responds, and forgets all earlier requests.
func (e *echo) setResponse(how string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.how, e.requests, e.strayURLs = how, nil, nil
}

// search fails the test if a request to the venue contains the secret outside the allowed place, or if the stranger received a
// request. The allowed place is a URL parameter or a header. removeAllowed removes this parameter or header from a request and
// returns its values. If removeAllowed is nil, no place is allowed. search reports whether any request had the allowed parameter or
// header.
func (e *echo) search(t testing.TB, secret string, removeAllowed func(r *http.Request) *[]string) (there bool) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.requests {
		q, h := r.URL.Query(), r.Header.Clone()
		if removeAllowed != nil {
			there = removeAllowed(&http.Request{URL: r.URL, Header: h, Form: q}) != nil || there
		}
		var headers bytes.Buffer
		_ = h.Write(&headers)
		for what, text := range map[string]string{"path": r.URL.Path, "query": q.Encode(), "header": headers.String(), "host": r.Host} {
			if form := findSecret(text, secret); form != "" {
				t.Errorf("the venue got %s in the %s of a request for %s", form, what, r.URL.Path)
			}
		}
	}
	for _, u := range e.strayURLs {
		t.Errorf("the stranger got a request for %s", u)
	}
	return there
}

// search fails the test if the secret is in the service's log or metrics.
func (s *service) search(t testing.TB, secret string) {
	t.Helper()
	if log := s.log.String(); findSecret(log, secret) != "" {
		for line := range strings.Lines(log) {
			if form := findSecret(line, secret); form != "" {
				t.Errorf("%s is in the log: %.500s", form, line)
				break
			}
		}
	}
	for _, accept := range []string{"text/plain", "application/openmetrics-text"} {
		got := s.askAdmin(t, http.MethodGet, "/metrics", "Accept", accept)
		if form := findSecret(got.body, secret); form != "" || len(got.body) < 1000 {
			t.Errorf("the metrics have %d bytes and contain %q, want at least 1000 bytes without a secret", len(got.body), form)
		}
	}
}

func (got response) print() string {
	var b bytes.Buffer
	_ = got.header.Write(&b)
	return b.String() + got.body
}

// everything reads all kinds of data of an account, and some public data.
const everything = `{ user(address: "` + addressOfAny + `") { balance { cashBalance } positions { nodes { size } } orders { totalCount } trades { totalCount } history { totalCount } portfolio { positionsValue } }
	viewer { address balance { cashBalance } } searchMarkets { totalCount } tokenPrices(tokenIds: ["1"]) { price } serviceStatus { version } }`

// TestCredentialsStayWhereTheyBelong checks that a secret in credentials appears only in calls to the venue, even if the venue
// repeats the secret in errors. The mode says where a call may contain the credentials: in the query, in a header, or nowhere.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	for _, mode := range []string{"query", "header", "none"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			venue := newEcho(t)
			s := start(t, "--venue-url="+venue.URL, "--venue-credentials="+mode, "--venue-timeout=50ms", "--request-timeout=500ms")
			removeAllowed := map[string]func(r *http.Request) *[]string{
				"query":  func(r *http.Request) *[]string { return takeFrom(r.Form, "credentials") },
				"header": func(r *http.Request) *[]string { return takeFrom(url.Values(r.Header), "X-Api-Credentials") },
			}[mode]
			for _, how := range echoResponses {
				for _, field := range []string{"apiKey", "secret", "passphrase", "note", "deep"} {
					venue.setResponse(how)
					secret := newCanary()
					c := vars{"apiKey": "k", "secret": "s", "passphrase": "p"}
					if c[field] = secret; field == "deep" {
						c[field] = vars{"list": []any{7, secret}}
					}
					value, there := base64.StdEncoding.EncodeToString([]byte(asJSON(c))), false
					// The timeout is short, so a busy service may make no call to the venue. In this case, the test sends the
					// queries again.
					until(patience, func() bool {
						said := []string{s.do(t, s.request(t, asJSON(vars{"query": everything}), value)).print()}
						get := s.newRequest(t, http.MethodGet, "/graphql?"+url.Values{"query": {everything}}.Encode(), "", httpapi.CredentialsHeader, value)
						said = append(said, s.do(t, get).print())
						s.expireCaches() // ends backoffs, open circuits and cached refusals
						for _, text := range said {
							if form := findSecret(text, secret); form != "" {
								t.Errorf("venue %s, secret in %s: %s is in the response %.1000s", how, field, form, text)
							}
						}
						there = venue.search(t, secret, removeAllowed)
						return there || removeAllowed == nil || how == "limited" || t.Failed() // after a response with status 429, the service makes no calls
					})
					if !there && removeAllowed != nil && how != "limited" {
						t.Errorf("venue %s, secret in %s: the venue got no credentials", how, field)
					}
					s.search(t, secret)
				}
				if t.Failed() {
					t.Fatalf("the test failed while the venue was %s", how)
				}
			}
		})
	}
}

// takeFrom removes a URL parameter or a header. It returns the removed values, or nil if there are none.
func takeFrom(from url.Values, name string) *[]string {
	values, ok := from[name]
	if !ok {
		return nil
	}
	delete(from, name)
	return &values
}

// canaryPlace is a place in a request that could hold a secret.
type canaryPlace struct {
	name string
	send func(t testing.TB, s *service, secret string) (answer string)
	// echoed is true if the service may repeat the secret in its response. Examples are a name in the client's document and a
	// request id.
	echoed bool
	// named is true if the secret is the name of an operation in the document. The service logs this name.
	named bool
	// parameter is the URL parameter in which the venue may receive the secret, or empty. If it is "tokenId", the parameter
	// "tokenIds" may contain the secret too.
	parameter string
}

func canaryPlaces() []canaryPlace {
	const typename = `{ __typename }`
	post := func(body string, header ...string) func(t testing.TB, s *service, secret string) string {
		return func(t testing.TB, s *service, secret string) string {
			fill := strings.NewReplacer("CANARY", secret)
			r := s.request(t, fill.Replace(body), anonymous)
			for i := 0; i+1 < len(header); i += 2 {
				r.Header.Set(header[i], fill.Replace(header[i+1]))
			}
			return s.do(t, r).print()
		}
	}
	get := func(path string) func(t testing.TB, s *service, secret string) string {
		return func(t testing.TB, s *service, secret string) string {
			return s.do(t, s.newRequest(t, http.MethodGet, strings.ReplaceAll(path, "CANARY", secret), "")).print()
		}
	}
	ask := func(document string, variables ...any) string {
		m := vars{"query": document}
		if len(variables) > 0 {
			m["variables"] = variables[0]
		}
		return asJSON(m)
	}
	// speak sends messages over a WebSocket, and then an operation with the id "over". It returns everything that arrives until the
	// socket closes or this operation completes.
	speak := func(header http.Header, messages ...string) func(t testing.TB, s *service, secret string) string {
		return func(t testing.TB, s *service, secret string) string {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			h := http.Header{}
			for name := range header {
				h.Set(name, strings.ReplaceAll(header.Get(name), "CANARY", secret))
			}
			conn, resp, err := websocket.Dial(ctx, strings.Replace(s.URL(), "http", "ws", 1)+httpapi.PathGraphQL, &websocket.DialOptions{
				Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: s.client, HTTPHeader: h,
			})
			var out bytes.Buffer
			if resp != nil {
				_ = resp.Header.Write(&out)
			}
			if err != nil {
				return out.String() + err.Error()
			}
			defer conn.CloseNow()
			conn.SetReadLimit(-1)
			for _, m := range append(messages, `{"type":"subscribe","id":"over","payload":{"query":"`+typename+`"}}`) {
				if err := conn.Write(ctx, websocket.MessageText, []byte(strings.ReplaceAll(m, "CANARY", secret))); err != nil {
					break
				}
			}
			for !strings.Contains(out.String(), `{"id":"over","type":"complete"}`) {
				_, b, err := conn.Read(ctx)
				if err != nil {
					fmt.Fprintf(&out, "%v", err)
					break
				}
				out.Write(b)
			}
			return out.String()
		}
	}
	const hello = `{"type":"connection_init"}`
	subscribe := func(payload string) string { return `{"type":"subscribe","id":"1","payload":` + payload + `}` }
	const events = "text/event-stream"
	return []canaryPlace{
		{name: "credentials that are no base64", send: post(ask(everything), httpapi.CredentialsHeader, "!CANARY")},
		{name: "credentials that are no JSON", send: func(t testing.TB, s *service, secret string) string {
			return post(ask(everything), httpapi.CredentialsHeader, base64.StdEncoding.EncodeToString([]byte(`{"apiKey":`+secret)))(t, s, secret)
		}},
		{name: "credentials without an API key", parameter: "credentials", send: func(t testing.TB, s *service, secret string) string {
			return post(ask(everything), httpapi.CredentialsHeader, base64.StdEncoding.EncodeToString([]byte(`{"secret":"`+secret+`","address":"`+secret+`"}`)))(t, s, secret)
		}},
		{name: "credentials with a bad address", parameter: "credentials", send: func(t testing.TB, s *service, secret string) string {
			return post(ask(everything), httpapi.CredentialsHeader, base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"a","address":"`+secret+`"}`)))(t, s, secret)
		}},
		{name: "a bearer token", send: post(ask(everything), "Authorization", "Bearer CANARY")},
		{name: "a bearer token of two words", send: post(ask(everything), "Authorization", "Bearer a CANARY")},
		{name: "a header for basic authentication", send: post(ask(everything), "Authorization", "Basic CANARY")},
		{name: "an Authorization header without a scheme", send: post(ask(everything), "Authorization", "CANARY")},
		{name: "a cookie", send: post(ask(everything), "Cookie", "session=CANARY")},
		{name: "a header with an API key", send: post(ask(everything), "X-Api-Key", "CANARY")},
		{name: "unknown headers", send: post(ask(everything), "X-Canary", "CANARY", "X-Api-Credentials", "CANARY")},
		{name: "the name of a header", send: func(t testing.TB, s *service, secret string) string {
			return post(ask(everything), "X-"+secret, "a")(t, s, secret)
		}},
		{name: "headers that browsers send", send: post(ask(everything), "User-Agent", "CANARY", "Referer", "https://a/CANARY", "Origin", "https://CANARY.example", "Accept-Language", "CANARY")},
		{name: "headers of proxies", send: post(ask(everything), "X-Forwarded-For", "CANARY", "Forwarded", "for=CANARY", "X-Real-Ip", "CANARY", "X-Forwarded-Host", "CANARY")},
		{name: "headers of traces", send: post(ask(everything), "Traceparent", "CANARY", "Tracestate", "a=CANARY", "Baggage", "a=CANARY")},
		{name: "headers that describe the accepted response", send: post(ask(everything), "Accept", "application/json;a=CANARY, CANARY/*", "Accept-Encoding", "CANARY", "If-None-Match", `"CANARY"`, "Range", "CANARY=0-")},
		{name: "an Accept header with an unsupported type", send: post(ask(everything), "Accept", "image/CANARY")},
		{name: "the media type of the body", send: post(ask(everything), "Content-Type", "text/CANARY; charset=CANARY")},
		{name: "the charset of the body", send: post(ask(everything), "Content-Type", "application/json; charset=CANARY")},
		{name: "the content coding of the body", send: post(ask(everything), "Content-Encoding", "CANARY")},
		{name: "a request id", echoed: true, send: post(ask(everything), "X-Request-Id", "CANARY")},
		{name: "an invalid request id", send: post(ask(everything), "X-Request-Id", "CANARY CANARY")},
		{name: "a method", send: func(t testing.TB, s *service, secret string) string {
			return s.do(t, s.newRequest(t, strings.ToUpper(secret), "/graphql", "")).print()
		}},

		{name: "a path", send: get("/CANARY")},
		{name: "a path with a query", send: get("/a?CANARY=CANARY")},
		{name: "an unknown parameter of the URL", send: get("/graphql?query={__typename}&CANARY=CANARY")},
		{name: "an invalid escape in the URL", send: get("/graphql?query=%zzCANARY")},
		{name: "a document's id in the path", send: get("/graphql/CANARY")},
		{name: "a document's id in a parameter", send: get("/graphql?documentId=CANARY")},
		{name: "invalid variables in the URL", send: get("/graphql?query={__typename}&variables=CANARY")},
		{name: "invalid extensions in the URL", send: get("/graphql?query={__typename}&extensions=%22CANARY%22")},
		{name: "an operation's name in the URL", echoed: true, send: get("/graphql?query={__typename}&operationName=CANARY")},
		{name: "a parameter of a health check", send: get("/readyz?CANARY=CANARY")},
		{name: "parameters of the GraphiQL page", send: get("/?query=CANARY&headers=CANARY")},

		{name: "a body that is not JSON", send: post(`CANARY`)},
		{name: "a truncated body", send: post(`{"query":"{ CANARY`)},
		{name: "a body that is a list", send: post(`["CANARY"]`)},
		{name: "unknown members of the body", send: post(`{"query":"{ serviceStatus { version } }","CANARY":"CANARY","credentials":"CANARY","headers":{"Authorization":"CANARY"}}`)},
		{name: "a member of the wrong type", send: post(`{"query":["CANARY"]}`)},
		{name: "unknown extensions", send: post(`{"query":"{ serviceStatus { version } }","extensions":{"CANARY":"CANARY","credentials":"CANARY"}}`)},
		{name: "a persisted document's hash", send: post(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"CANARY"}}}`)},
		{name: "a persisted document's version", send: post(`{"extensions":{"persistedQuery":{"version":"CANARY","sha256Hash":"a"}}}`)},
		{name: "a document's id", send: post(`{"documentId":"CANARY"}`)},
		{name: "an invalid document's id", send: post(`{"documentId":"CANARY:CANARY CANARY"}`)},
		{name: "the name of an operation that is not in the document", echoed: true, send: post(`{"query":"{ __typename }","operationName":"CANARY"}`)},
		{name: "the name of an operation in the document", named: true, send: post(`{"query":"query CANARY { tokenPrices(tokenIds: [\"1\"]) { price } market { slug } }","operationName":"CANARY"}`)},

		{name: "a comment", send: post(ask("# CANARY\n" + everything))},
		{name: "a syntax error", echoed: true, send: post(ask(`{ a(b: CANARY`))},
		{name: "a string without an end", echoed: true, send: post(ask(`{ a(b: "CANARY`))},
		{name: "an unknown field", echoed: true, send: post(ask(`{ CANARY }`))},
		{name: "an alias", echoed: true, send: post(ask(`{ CANARY: tokenPrices(tokenIds: ["1"]) { CANARY: price } CANARYx: market { slug } user(address: "` + addressOfAny + `") { CANARY: balance { cashBalance } } }`))},
		{name: "a fragment's name", send: post(ask(`{ ...CANARY } fragment CANARY on Query { market { slug } }`))},
		{name: "an unknown fragment", echoed: true, send: post(ask(`{ ...CANARY }`))},
		{name: "an unknown directive", echoed: true, send: post(ask(`{ __typename @CANARY }`))},
		{name: "an unknown argument", echoed: true, send: post(ask(`{ market(CANARY: "CANARY") { slug } }`))},
		{name: "arguments of the wrong type", echoed: true, send: post(ask(`{ searchMarkets(first: "CANARY", sort: CANARY) { totalCount } }`))},
		{name: "a cursor in the document", send: post(ask(`{ searchMarkets(after: "CANARY") { totalCount } }`))},
		{name: "an address in the document", send: post(ask(`{ user(address: "CANARY") { address } }`))},
		{name: "a Decimal in the document", send: post(ask(`{ token(tokenId: "1") { fillEstimate(side: BUY, size: "CANARY") { cost } } }`))},
		{name: "a global id in the document", send: post(ask(`{ node(id: "CANARY") { id } }`))},
		{name: "a default of a variable", send: post(ask(`query($a: Address = "CANARY") { user(address: $a) { address } }`))},
		{name: "a search text", parameter: "q", send: post(ask(`{ searchMarkets(query: "CANARY") { totalCount } }`))},

		{name: "an undeclared variable", send: post(ask(`{ serviceStatus { version } }`, vars{"CANARY": "CANARY"}))},
		{name: "a token's id in a variable", echoed: true, parameter: "tokenId", send: post(ask(`query($v: String!) { token(tokenId: $v) { tokenId price { price } orderbook { spread } history { from } } }`, vars{"v": "CANARY"}))},
		{name: "an invalid token's id", send: post(ask(`query($v: String!) { token(tokenId: $v) { tokenId } }`, vars{"v": "CANARY,CANARY"}))},
		{name: "a slug in a variable", parameter: "slug", send: post(ask(`query($v: String!) { market(slug: $v) { question } }`, vars{"v": "CANARY"}))},
		{name: "a cursor in a variable", send: post(ask(`query($v: String) { searchMarkets(after: $v) { totalCount } }`, vars{"v": "CANARY"}))},
		{name: "an address in a variable", send: post(ask(`query($v: Address!) { user(address: $v) { address } }`, vars{"v": "CANARY"}))},
		{name: "a Decimal in a variable", send: post(ask(`query($v: Decimal) { token(tokenId: "1") { fillEstimate(side: BUY, size: $v) { cost } } }`, vars{"v": "CANARY"}))},
		{name: "a Date in a variable", send: post(ask(`query($v: Date) { token(tokenId: "1") { history(from: $v) { from } } }`, vars{"v": "CANARY"}))},
		{name: "an Int in a variable", send: post(ask(`query($v: Int) { searchMarkets(first: $v) { totalCount } }`, vars{"v": "CANARY"}))},
		{name: "an enum in a variable", echoed: true, send: post(ask(`query($v: MarketSort) { searchMarkets(sort: $v) { totalCount } }`, vars{"v": "CANARY"}))},
		{name: "an unknown member of an input object in a variable", echoed: true, send: post(ask(`query($v: MarketSearchFilter) { searchMarkets(filter: $v) { totalCount } }`, vars{"v": vars{"CANARY": "a"}}))},

		{name: "a subscription over SSE", send: post(ask(`subscription($v: Address!) { balanceChanged(address: $v) { reason } }`, vars{"v": "CANARY"}), "Accept", events)},
		{name: "a query over SSE", send: post(ask(everything), "Accept", events, "Authorization", "Bearer CANARY", "Cookie", "a=CANARY")},
		{name: "the id of the last event", send: post(ask(`{ serviceStatus { version } }`), "Accept", events, "Last-Event-Id", "CANARY")},

		{name: "headers of a WebSocket", send: speak(http.Header{"Cookie": {"a=CANARY"}, "X-Canary": {"CANARY"}, "Origin": {"https://CANARY.example"}})},
		{name: "a bearer token of a WebSocket", send: speak(http.Header{"Authorization": {"Bearer CANARY"}})},
		{name: "unknown members of connection_init", send: speak(nil, `{"type":"connection_init","payload":{"CANARY":"CANARY","token":"CANARY","cookie":"CANARY"}}`, subscribe(ask(`{ tokenPrices(tokenIds: ["1"]) { price } }`)))},
		{name: "a bearer token in connection_init", send: speak(nil, `{"type":"connection_init","payload":{"authorization":"Bearer CANARY"}}`)},
		{name: "invalid credentials in connection_init", send: speak(nil, `{"type":"connection_init","payload":{"x-venue-credentials":"CANARY"}}`)},
		{name: "a list as payload of connection_init", send: speak(nil, `{"type":"connection_init","payload":["CANARY"]}`)},
		{name: "a message of an unknown type", send: speak(nil, hello, `{"type":"CANARY"}`)},
		{name: "a message that is not JSON", send: speak(nil, hello, `CANARY`)},
		{name: "an operation's id", echoed: true, send: speak(nil, hello, `{"type":"subscribe","id":"CANARY","payload":`+ask(`subscription { balanceChanged(address: "`+addressOfAny+`") { reason } }`)+`}`)},
		{name: "two operations with the same id", echoed: true, send: speak(nil, hello, `{"type":"subscribe","id":"CANARY","payload":`+ask(`subscription { streamStatusChanged { state } }`)+`}`, `{"type":"subscribe","id":"CANARY","payload":`+ask(typename)+`}`)},
		{name: "a ping", echoed: true, send: speak(nil, hello, `{"type":"ping","payload":{"a":"CANARY"}}`)},
		{name: "a pong", send: speak(nil, hello, `{"type":"pong","payload":{"a":"CANARY"}}`)},
		{name: "a variable over a WebSocket", send: speak(nil, hello, subscribe(ask(`subscription($v: Address!) { balanceChanged(address: $v) { reason } }`, vars{"v": "CANARY"})))},
		{name: "extensions over a WebSocket", send: speak(nil, hello, subscribe(`{"query":"`+typename+`","extensions":{"a":"CANARY"},"CANARY":"CANARY"}`))},
		{name: "a document over a WebSocket", echoed: true, send: speak(nil, hello, subscribe(ask(`{ CANARY }`)))},
	}
}

// TestCanary checks that a secret in a request appears only where the fields of canaryPlace allow it. The test searches the
// response, the log, the metrics and the requests to the venue.
func TestCanary(t *testing.T) {
	for _, how := range []string{"well", "failed", "redirected"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			venue := newEcho(t)
			s := start(t, "--venue-url="+venue.URL, "--origins=https://app.example.com")
			for _, place := range canaryPlaces() {
				t.Run(place.name, func(t *testing.T) {
					venue.setResponse(how)
					secret := newCanary()
					answer := place.send(t, s, secret)
					s.expireCaches()
					if form := findSecret(answer, secret); form != "" && !(place.echoed && form == secret) {
						t.Errorf("%s is in the response %.1000s", form, answer)
					}
					if len(answer) > 16<<10 {
						t.Errorf("the response has %d bytes, want at most 16 KiB", len(answer))
					}
					asked := venue.search(t, secret, func(r *http.Request) *[]string {
						if place.parameter == "tokenId" {
							takeFrom(r.Form, "tokenIds")
						}
						return takeFrom(r.Form, place.parameter)
					})
					if place.parameter != "" && !asked {
						t.Errorf("no request to the venue had the parameter %s", place.parameter)
					}
					if place.name != "a request id" && !place.named { // the log contains request ids and operation names on purpose
						s.search(t, secret)
					}
				})
			}
		})
	}
}

// TestCanaryOfTheStream checks that a secret in the credentials of a subscription is not in the first event, the log or the
// metrics. The service sends the credentials over the venue's stream, and again after it has reconnected.
func TestCanaryOfTheStream(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	for _, key := range []string{"demo-50", "no such key"} {
		secret := newCanary()
		sub := s.dial(t, credentials(key, "note", secret)).subscribe(t, subBalance, vars{"a": addressOf50})
		ev := sub.next(t)
		if form := findSecret(fmt.Sprintf("%+v", ev), secret); form != "" || (key == "demo-50") != (ev.errors == nil) {
			t.Errorf("with the key %q, the first event is %+v and contains the secret as %q", key, ev, form)
		}
		s.venue.Restart(int(websocket.StatusServiceRestart))
		eventually(t, "the stream was lost", func() bool { return s.Venue.Live.Status().Reconnects > 0 })
		s.waitForStream(t)
		s.search(t, secret)
	}
}
