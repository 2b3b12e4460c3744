//go:build unix

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi"
)

// bodyAttacks returns attacks with malformed or oversized request bodies.
func bodyAttacks() []attack {
	const typename = `{"query":"{ __typename }"}`
	large := `{"query":"` + strings.Repeat(" ", 10<<20) + `{ __typename }"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(large))
	_ = z.Close()
	var out []attack
	add := func(name, body string, status int, code, message string, header ...string) {
		out = append(out, attack{name: "body: " + name, run: func(t *testing.T, p *target) { p.post(t, body, header...).want(t, status, code, message) }})
	}
	const notJSON = "not a JSON object"
	add("an empty body", ``, 400, badInputCode, notJSON)
	add("a list", `[`+typename+`]`, 400, badInputCode, notJSON)
	add("a list of 9,001 requests", `[`+strings.Repeat(typename+",", 9_000)+typename+`]`, 400, badInputCode, notJSON)
	add("invalid UTF-8", "{\"query\":\"{ __typename } # \xff\"}", 400, badInputCode, "UTF-8")
	add("invalid UTF-8 in the variables", "{\"query\":\"{ __typename }\",\"variables\":{\"a\":\"\xc0\xaf\"}}", 400, badInputCode, "UTF-8")
	add("half a surrogate", `{"query":"{ token(tokenId: \"\ud800\") { tokenId } }"}`, 200, "", "")
	add("a query twice", `{"query":"{ a }","query":"{ __typename }"}`, 400, badInputCode, "twice")
	add("a variable 20,000 times", `{"query":"{ __typename }","variables":{`+strings.Repeat(`"a":1,`, 20_000)+`"a":2}}`, 400, badInputCode, "")
	add("variables 5,000 deep", `{"query":"{ __typename }","variables":{"a":`+wrapText(5000, "[", "1", "]")+`}}`, 400, badInputCode, "deep")
	add("extensions 9,000 deep", `{"query":"{ __typename }","extensions":{"a":`+wrapText(9000, "[", "1", "]")+`}}`, 200, "", "")
	add("extensions that are a list", `{"query":"{ __typename }","extensions":[]}`, 400, badInputCode, "extensions is not an object")
	add("a number of 100,000 digits", `{"query":"query($n:Int){ searchMarkets(first: $n) { totalCount } }","variables":{"n":`+strings.Repeat("9", 100_000)+`}}`, 400, validationCode, "no Int")
	add("a number with a huge exponent", `{"query":"query($n:Int){ searchMarkets(first: $n) { totalCount } }","variables":{"n":1e999999999}}`, 400, validationCode, "no Int")
	add("an operation's name of 200 KB", `{"query":"query A { __typename }","operationName":"`+strings.Repeat("A", 200_000)+`"}`, 400, validationCode, "not found")
	add("15,000 unknown members", `{"query":"{ __typename }",`+repeatNumbered(15_000, `"a#":1,`)+`"z":1}`, 200, "", "")
	add("a documentId of 200 KB", `{"documentId":"`+strings.Repeat("a", 200_000)+`"}`, 400, badInputCode, "")
	add("a wrong hash", `{"query":"{ __typename }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+hashOf("x")+`"}}}`, 400, badInputCode, "provided sha does not match query")
	add("a hash without a document", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+hashOf("x")+`"}}}`, 400, "PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
	const sendJSON = "Content-Type: application/json"
	add("a form", `query={__typename}`, 415, badInputCode, sendJSON, "Content-Type", "application/x-www-form-urlencoded")
	add("a multipart form", "--b\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n"+typename+"\r\n--b--\r\n", 415, badInputCode, sendJSON, "Content-Type", "multipart/form-data; boundary=b")
	add("plain text", typename, 415, badInputCode, sendJSON, "Content-Type", "text/plain")
	add("application/graphql", `{ __typename }`, 415, badInputCode, sendJSON, "Content-Type", "application/graphql")
	add("UTF-16", typename, 415, badInputCode, "UTF-8", "Content-Type", "application/json; charset=utf-16")
	add("a Content-Type of 60 KB", typename, 415, badInputCode, sendJSON, "Content-Type", "application/json;"+strings.Repeat("a", 60_000))
	add("a Content-Type with 5,000 parameters", typename, 200, "", "", "Content-Type", "application/json"+repeatNumbered(5000, ";a#=1"))
	add("gzip", zipped.String(), 415, badInputCode, "Content-Encoding", "Content-Encoding", "gzip")
	add("gzip twice", zipped.String(), 415, badInputCode, "Content-Encoding", "Content-Encoding", "gzip, gzip")
	add("a body of 10 MB", large, 413, badInputCode, "larger than 262144 bytes")
	out = append(out,
		attack{name: "body: eight times 10 MB at once", run: func(t *testing.T, p *target) {
			var g sync.WaitGroup
			for i := range 8 {
				g.Go(func() {
					r := p.request(t, large, anonymous)
					if i%2 == 1 { // every second request has no Content-Length
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader(large)), -1
					}
					resp, err := p.client.Do(r)
					if err != nil {
						return // the service closed the connection during the upload
					}
					defer resp.Body.Close()
					if resp.StatusCode != http.StatusRequestEntityTooLarge {
						t.Errorf("got status %d, want 413", resp.StatusCode)
					}
				})
			}
			g.Wait()
		}},
		attack{name: "body: 3,000 persisted documents", run: func(t *testing.T, p *target) {
			var g sync.WaitGroup
			for worker := range 4 {
				g.Go(func() {
					for i := range 750 {
						query := fmt.Sprintf(`{ a%dx%d: __typename }`, worker, i)
						got := p.post(t, `{"query":"`+query+`","extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+hashOf(query)+`"}}}`)
						if got.status != http.StatusOK {
							t.Errorf("got status %d, want 200: %s", got.status, got.body)
							return
						}
					}
				})
			}
			g.Wait()
		}},
	)
	return out
}

// headerAttacks returns attacks by GET and POST with hostile headers or URLs.
func headerAttacks() []attack {
	const typename = `{"query":"{ __typename }"}`
	var out []attack
	add := func(name string, status int, code string, header ...string) {
		out = append(out, attack{name: "header: " + name, run: func(t *testing.T, p *target) {
			r := p.request(t, typename, anonymous)
			for i := 0; i+1 < len(header); i += 2 {
				r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
			}
			p.send(t, r).want(t, status, code, "")
		}})
	}
	get := func(name, query string, status int, code string, header ...string) {
		out = append(out, attack{name: "GET: " + name, run: func(t *testing.T, p *target) {
			got := p.send(t, p.newRequest(t, http.MethodGet, query, "", header...))
			if code == "" {
				if got.status != status {
					t.Errorf("got status %d, want %d: %.300s", got.status, status, got.body)
				}
				return
			}
			got.want(t, status, code, "")
		}})
	}
	add("10,000 types in Accept", 200, "", "Accept", strings.Repeat("a/b,", 10_000)+"application/json")
	add("10,000 wildcards in Accept", 200, "", "Accept", strings.Repeat("*/*,", 10_000)+"*/*")
	add("a type with 5,000 parameters in Accept", 200, "", "Accept", "application/json"+repeatNumbered(5000, ";a#=1")+",*/*")
	add("invalid qualities in Accept", 200, "", "Accept", "application/json;q=NaN,text/html;q=1e9999,*/*;q=0.5")
	add("an unsupported type in Accept", 406, badInputCode, "Accept", "image/png")
	add("10,000 content codings", 200, "", "Accept-Encoding", strings.Repeat("gzip,", 10_000)+"br")
	add("4,000 content codings with qualities", 200, "", "Accept-Encoding", strings.Repeat("gzip;q=0.0001,", 4_000)+"*;q=0,identity;q=0")
	add("6,000 hops", 200, "", "X-Forwarded-For", strings.Repeat("127.0.0.1,", 6_000)+"127.0.0.1")
	add("invalid hops", 200, "", "X-Forwarded-For", "::ffff:256.1.1.1, [::1, <script>, 127.0.0.1")
	add("a cookie of 60 KB", 200, "", "Cookie", "a="+strings.Repeat("a", 60_000))
	add("1,000 headers", 200, "", slices.Repeat([]string{"X-A", "1"}, 1_000)...)
	add("a header of 50 KB", 200, "", "X-B", strings.Repeat("b", 50_000))
	add("a header of 80 KB", 431, "", "X-A", strings.Repeat("a", 80_000))
	add("credentials of 60 KB", 400, badInputCode, httpapi.CredentialsHeader, strings.Repeat("A", 60_000))
	add("invalid credentials", 400, badInputCode, httpapi.CredentialsHeader, "\xff\xfe%%%")
	add("credentials 5,000 deep", 400, badInputCode, httpapi.CredentialsHeader, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("[", 5_000))))
	add("credentials twice", 400, badInputCode, httpapi.CredentialsHeader, keyOf3, httpapi.CredentialsHeader, keyOf50)
	add("a bearer token of 60 KB", 400, badInputCode, "Authorization", "Bearer "+strings.Repeat("a", 60_000))
	add("an unknown bearer token", 401, "UNAUTHENTICATED", "Authorization", "Bearer nobody")
	add("Basic authentication", 401, "UNAUTHENTICATED", "Authorization", "Basic YTpi")
	add("both kinds of credentials", 400, badInputCode, "Authorization", "Bearer a", httpapi.CredentialsHeader, keyOf3)
	add("a request id of 60 KB", 200, "", "X-Request-Id", strings.Repeat("a", 60_000))
	add("invalid origins", 200, "", "Origin", "javascript://%0a", "Origin", "null")
	add("an invalid Traceparent", 200, "", "Traceparent", strings.Repeat("00-", 10_000))
	add("an upgrade to h2c", 200, "", "Upgrade", "h2c", "Connection", "Upgrade, HTTP2-Settings", "HTTP2-Settings", "AAMAAABkAAQAAP__")
	add("an upgrade by POST", 405, "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	const query = httpapi.PathGraphQL + "?query={__typename}"
	get("10,000 entity tags", query, 200, "", "If-None-Match", strings.Repeat(`"a",`, 10_000)+`"b"`)
	get("10,000 ranges", query, 200, "", "Range", "bytes=0-0,"+strings.Repeat("1-1,", 10_000)+"2-2")
	get("an upgrade without a key", query, 400, "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13")
	get("an upgrade of another version", query, 400, "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	get("an invalid query string", httpapi.PathGraphQL+"?query=%zz", 400, badInputCode)
	get("a query string with invalid UTF-8", httpapi.PathGraphQL+"?query=%ff%fe", 400, badInputCode)
	get("variables with invalid UTF-8", query+"&variables=%7B%22a%22:%22%ff%22%7D", 400, badInputCode)
	get("a query twice", query+"&query={a}", 400, badInputCode)
	get("9,000 parameters", query+strings.Repeat("&a", 9_000), 200, "")
	get("20,000 parameters", query+strings.Repeat("&a", 20_000), 400, badInputCode)
	get("a URL of 60 KB", query+"&a="+strings.Repeat("a", 60_000), 200, "")
	get("a URL of 100 KB", query+"&a="+strings.Repeat("a", 100_000), 431, "")
	get("a document in the URL", httpapi.PathGraphQL+"?query="+url.QueryEscape(strings.Repeat("{", 10_000)), 200, parseErrorCode)
	get("variables 5,000 deep", query+"&variables="+url.QueryEscape(`{"a":`+wrapText(5000, "[", "1", "]")+`}`), 200, badInputCode)
	get("a path with ..", "/graphql/../../etc/passwd", 404, "")
	get("an escaped path with ..", "/graphql/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 200, badInputCode)
	get("an id of NUL bytes", "/graphql/%00%00", 200, badInputCode)
	get("an id of 60 KB", "/graphql/"+strings.Repeat("a", 60_000), 200, badInputCode)
	get("a path of slashes", strings.Repeat("/", 10_000)+"graphql", 400, badInputCode) // the router redirects to /graphql
	get("the control endpoints of the demo venue", "/__control/stats", 404, "")
	get("the profiler", "/debug/pprof/", 404, "")
	return out
}
