package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/app"
	"oddsgraph/graph"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/web"
)

// get sends a GET request for a path of the service.
func (s *service) get(t *testing.T, path string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.do(t, r)
}

func TestPages(t *testing.T) {
	s := start(t)
	if got := s.get(t, httpapi.PathSchema); got.status != http.StatusOK || got.body != graph.SDL() || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("schema: got status %d, header %v and %d bytes, want the schema as plain text", got.status, got.header, len(got.body))
	}
	if got := s.get(t, "/"); got.status != http.StatusOK || !strings.Contains(got.body, "oddsgraph</title>") {
		t.Errorf("page: got status %d and header %v, want the page of oddsgraph", got.status, got.header)
	}
}

func TestCommandsThatOnlyPrint(t *testing.T) {
	for command, want := range map[string]string{"schema": graph.SDL(), "version": app.BuildVersion() + "\n", "licenses": thirdParty() + web.Licenses()} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{command}, nil, &out, io.Discard); err != nil || out.String() != want {
			t.Errorf("command %s: got error %v and output %q, want %q", command, err, out.String(), want)
		}
	}
	var out bytes.Buffer
	const want = "  ): [Token] @semanticNonNull(levels: [0,1])\n"
	if err := run(t.Context(), []string{"schema", "--semantic"}, nil, &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("schema --semantic: got error %v, want output with %q", err, want)
	}
	out.Reset()
	if err := run(t.Context(), []string{"serve", "--help"}, nil, &out, io.Discard); err != nil || !strings.Contains(out.String(), "--venue-url") {
		t.Errorf("serve --help: got error %v and output %q", err, out.String())
	}
	if err := run(t.Context(), []string{"--listen=nowhere", "--demo-markets=0"}, nil, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "listen") || !strings.Contains(err.Error(), "demo-markets") {
		t.Errorf("got the error %v, want an error about both --listen and --demo-markets", err)
	}
}

// TestRunServesUntilCancelled checks that the command "serve" and the command "venue" respond to requests until their context is
// cancelled.
func TestRunServesUntilCancelled(t *testing.T) {
	for _, test := range []struct{ command, line, driver, path string }{
		{"serve", "oddsgraph is ready", "generic", "/healthz"},
		{"venue", "demo venue", "generic", "/api/exchange/market-search"},
		{"venue", "demo venue", "polymarket", "/markets/keyset"},
		{"venue", "demo venue", "kalshi", "/trade-api/v2/markets"},
	} {
		t.Run(test.command+" "+test.driver, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			reader, writer := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- run(ctx, []string{test.command, "--demo-driver=" + test.driver, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0", "--log-format=json", "--demo-markets=20"}, nil, io.Discard, writer)
				_ = writer.Close()
			}()
			lines := json.NewDecoder(reader)
			var address string
			for address == "" {
				var entry struct{ Msg, URL string }
				if err := lines.Decode(&entry); err != nil {
					t.Fatal(err)
				}
				if entry.Msg == test.line {
					address = entry.URL
				}
			}
			go func() { _, _ = io.Copy(io.Discard, io.MultiReader(lines.Buffered(), reader)) }()
			if err := app.Healthcheck(t.Context(), address+test.path); err != nil {
				t.Error(err)
			}
			if err := app.Healthcheck(t.Context(), address+"/nothing"); err == nil || !strings.Contains(err.Error(), "404") {
				t.Errorf("the health check of a page that does not exist got the error %v, want 404", err)
			}
			http.DefaultClient.CloseIdleConnections()
			stop()
			if err := <-done; err != nil {
				t.Errorf("the command ended with the error: %v", err)
			}
		})
	}
}

// TestPolymarketDemoRefusesGenericSettings checks that the demo venue of Polymarket refuses settings that only the generic demo
// venue supports.
func TestPolymarketDemoRefusesGenericSettings(t *testing.T) {
	for _, flag := range []string{"--demo-strict", "--demo-without=prices", "--demo-public-per-minute=5", "--demo-key-per-minute=5"} {
		err := run(t.Context(), []string{"venue", "--demo-driver=polymarket", "--demo-listen=127.0.0.1:0", "--demo-markets=20", flag}, nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "--demo-driver=generic") {
			t.Errorf("%s: got the error %v, want an error with --demo-driver=generic", flag, err)
		}
	}
}

// TestDriverNames checks that the command "config check" refuses unknown drivers. It must also refuse a demo venue that does not
// fit the driver.
func TestDriverNames(t *testing.T) {
	for flag, want := range map[string]string{
		"--venue-driver=unknown":   "names no driver; want one of",
		"--demo-driver=polymarket": "needs --venue-driver=polymarket",
		"--demo-driver=unknown":    "demo-driver",
	} {
		err := run(t.Context(), []string{"config", "check", flag}, nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want an error with %q", flag, err, want)
		}
	}
}

func TestPortInUse(t *testing.T) {
	s := start(t)
	for _, taken := range []string{"listen", "admin-listen", "demo-listen"} {
		var args []string
		for _, flag := range []string{"listen", "admin-listen", "demo-listen"} {
			address := "127.0.0.1:0"
			if flag == taken {
				address = s.Addr().String()
			}
			args = append(args, "--"+flag+"="+address)
		}
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), "--"+taken+" (ODDSGRAPH_") || !strings.Contains(err.Error(), "in use; give it another port") {
			t.Errorf("arguments %v: got the error %v, want an error about the port of --%s", args, err, taken)
		}
	}
}

func TestIntrospection(t *testing.T) {
	const query = `{ __schema { queryType { name } types { name } } __type(name: "Token") { name fields { name description } } }`
	s := start(t)
	data := s.ask(t, query, nil, anonymous)
	if text(data, "__schema.queryType.name") != "Query" || text(data, "__type.name") != "Token" || text(data, "__type.fields.0.description") == "" {
		t.Errorf("introspection got %s, want the types Query and Token with descriptions", asJSON(data))
	}
	s = start(t, "--introspection=false")
	data, errors := s.query(t, query, nil, anonymous)
	wantErrors(t, errors, " GRAPHQL_VALIDATION_FAILED", " GRAPHQL_VALIDATION_FAILED")
	if data != nil || !strings.Contains(errors[0].Message, "introspection is switched off") {
		t.Errorf("with --introspection=false: got data %s and errors %v", asJSON(data), errors)
	}
	wantJSON(t, "typename", s.ask(t, `{ __typename }`, nil, anonymous), `{"__typename":"Query"}`)
	if got := s.get(t, httpapi.PathSchema); got.status != http.StatusNotFound {
		t.Errorf("%s: got status %d, want 404", httpapi.PathSchema, got.status)
	}
}

// TestBadCredentialHeaders checks that the error about an invalid credentials header says what is wrong, and does not show the
// header's value.
func TestBadCredentialHeaders(t *testing.T) {
	s := start(t)
	const canary = "canary"
	for _, test := range []struct {
		name    string
		values  []string
		message string
	}{
		{"not base64", []string{"canary!!"}, "X-Venue-Credentials is not base64"},
		{"not JSON", []string{base64.StdEncoding.EncodeToString([]byte("canary"))}, "credentials are one JSON object"},
		{"twice", []string{keyOf3, keyOf3}, "X-Venue-Credentials was sent 2 times; send it once"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.request(t, `{"query":"{ serviceStatus { version } }"}`, anonymous)
			r.Header[httpapi.CredentialsHeader] = test.values
			got := s.do(t, r)
			var answer struct{ Errors []graphError }
			decode(t, got.body, &answer)
			wantErrors(t, answer.Errors, " BAD_USER_INPUT")
			if got.status != http.StatusBadRequest || !strings.HasPrefix(answer.Errors[0].Message, test.message) || strings.Contains(got.body, canary) ||
				strings.Contains(got.body, keyOf3) || strings.Contains(got.body, `"data"`) || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
				t.Errorf("got %+v, want only an error with the message %q", got, test.message)
			}
		})
	}
	// The service accepts every variant of base64.
	c := `{"apiKey":"demo-3","secret":"demo","passphrase":"demo","note":"???>>>"}`
	for name, value := range map[string]string{
		"standard": base64.StdEncoding.EncodeToString([]byte(c)), "raw": base64.RawStdEncoding.EncodeToString([]byte(c)),
		"URL": base64.URLEncoding.EncodeToString([]byte(c)), "raw URL": base64.RawURLEncoding.EncodeToString([]byte(c)), "spaces": "  " + base64.StdEncoding.EncodeToString([]byte(c)) + " ",
	} {
		data, errors := s.query(t, `{ user(address: "`+addressOf3+`") { positions { totalCount } } }`, nil, value)
		if len(errors) > 0 {
			t.Errorf("base64 variant %s: got the errors %v", name, errors)
		}
		wantJSON(t, name, data, `{"user":{"positions":{"totalCount":3}}}`)
	}
}

// TestMalformedRequests checks what the errors about malformed requests say. httpapi.TestStatuses checks their statuses.
func TestMalformedRequests(t *testing.T) {
	s := start(t)
	for _, test := range []struct{ method, body, message string }{
		{"POST", `{}`, "the request has no query"},
		{"GET", "", "the request has no query"},
		{"PUT", "", "send the query by POST or GET"},
		{"DELETE", "", "send the query by POST or GET"},
		{"POST", `{"query":"query A { __typename } query B { __typename }"}`, "say which one in operationName"},
		{"POST", `{"query":"query A { __typename } query B { __typename }","operationName":"C"}`, "operation C not found"},
	} {
		if got := s.do(t, s.newRequest(t, test.method, httpapi.PathGraphQL, test.body)); !strings.Contains(got.body, test.message) {
			t.Errorf("%s with the body %q: got %+v, want the message %q", test.method, test.body, got, test.message)
		}
	}
}

func TestQueriesByGET(t *testing.T) {
	s := start(t)
	ids := s.openTokens(2)
	got := s.getQuery(t, "", "query", `query A { __typename } query B($ids: [String!]!) { tokens(tokenIds: $ids) { tokenId price { price } } }`,
		"variables", asJSON(vars{"ids": ids}), "operationName", "B")
	var answer struct{ Data any }
	decode(t, got.body, &answer)
	if shown := pluck(answer.Data, "tokens", "tokenId"); got.status != http.StatusOK || !slices.Equal(shown, ids) || text(answer.Data, "tokens.1.price.price") == "" {
		t.Errorf("got %+v, want the tokens %q with prices", got, ids)
	}
}

// TestRequestIDs checks that the id of a request is in the response and in the log. The service must replace a missing or invalid
// id.
func TestRequestIDs(t *testing.T) {
	s := start(t)
	s.setFaults(t, faults.Fault{Kind: faults.Status})
	for given, kept := range map[string]bool{"": false, "mine-1.2_3": true, strings.Repeat("a", 65): false, "a b": false} {
		r := s.request(t, `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`, anonymous)
		if given != "" {
			r.Header.Set("X-Request-Id", given)
		}
		id := s.do(t, r).header.Get("X-Request-Id")
		if (id == given) != kept || id == "" {
			t.Errorf("sent the request id %q, got the id %q", given, id)
		}
		if n := strings.Count(s.log.String(), "request_id="+id); n != 2 { // one line for the failed field, one for the request
			t.Errorf("the request id %q is %d times in the log, want 2", id, n)
		}
	}
}

// TestRefusedCredentialsOnAnOpenSocket checks that the service stops calling the venue for a socket after the venue has refused the
// socket's credentials five times. Later operations on the socket must get RATE_LIMITED.
func TestRefusedCredentialsOnAnOpenSocket(t *testing.T) {
	s := start(t)
	k := s.dial(t, credentials("no such key"))
	codes := map[string]int{}
	asked := s.callsDuring(func() {
		for n := range 9 {
			// Each operation reads a different address, so that no response comes from the cache.
			sub := k.subscribe(t, fmt.Sprintf(`{ user(address: "0x%040d") { positions { totalCount } } }`, n+1), nil)
			ev := sub.next(t)
			for _, err := range ev.errors {
				codes[err.Extensions.Code]++
			}
		}
	})
	if codes["UNAUTHENTICATED"] != 5 || codes["RATE_LIMITED"] != 4 {
		t.Errorf("got the error codes %v, want UNAUTHENTICATED five times and RATE_LIMITED four times", codes)
	}
	if got := asked["positions"][0]; got != 5 {
		t.Errorf("the venue received %d calls for positions, want 5", got)
	}
}
