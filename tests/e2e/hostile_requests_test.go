//go:build unix

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"oddsgraph/graph/model"
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

// valueAttacks returns attacks with hostile values of arguments and variables.
func valueAttacks() []attack {
	var out []attack
	add := func(name, query string, variables any, status int, code, message string) {
		out = append(out, attack{name: "value: " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			p.post(t, asJSON(vars{"query": query, "variables": variables})).want(t, status, code, message)
			if asked := p.venue.take(); code != "" && len(asked) > 0 {
				t.Errorf("the attack caused the call %s to the venue", asked[0].URL)
			}
		}})
	}
	const fill = `query($size:Decimal){token(tokenId:"1"){fillEstimate(side:BUY,size:$size){cost}}}`
	for _, size := range []string{"1e99999", "-1e99999", "1e-99999", "1e2147483648", "1e9223372036854775808", "NaN", "-0", "Infinity", "0x1p9999", strings.Repeat("9", 65), "0.0" + strings.Repeat("0", 64), strings.Repeat("9", 60_000), "١", "1_000"} {
		add(fmt.Sprintf("a Decimal %.24s of %d bytes", size, len(size)), fill, vars{"size": size}, http.StatusOK, badInputCode, "")
	}
	out = append(out, attack{name: "value: Decimals as numbers", run: func(t *testing.T, p *target) {
		for _, size := range []string{"1e99999", "-0", "1e-99999", strings.Repeat("9", 65)} {
			p.post(t, asJSON(vars{"query": fill, "variables": vars{"size": json.Number(size)}})).want(t, http.StatusOK, badInputCode, "")
			p.post(t, asJSON(vars{"query": strings.NewReplacer("query($size:Decimal)", "", "$size", size).Replace(fill)})).want(t, http.StatusOK, badInputCode, "")
		}
	}})
	for _, date := range []string{"99999-01-01", "0000-00-00", "2026-13-01", "2026-02-30", "-2026-01-01", "2026-01-01T00:00:00Z", strings.Repeat("9", 1000)} {
		add("a Date "+date[:min(len(date), 24)], `query($d:Date){token(tokenId:"1"){history(from:$d){from}}}`, vars{"d": date}, http.StatusOK, badInputCode, "Date")
	}
	for _, dateTime := range []string{"10000-01-01T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01", "9e99", "2026-01-01T00:00:00+99:99"} {
		add("a DateTime "+dateTime, `query($d:DateTime){searchMarkets(filter:{endsAfter:$d}){totalCount}}`, vars{"d": dateTime}, http.StatusOK, badInputCode, "DateTime")
	}
	for _, n := range []int64{1 << 31, -1 << 53} {
		add(fmt.Sprintf("the integer %d", n), `query($n:Int){searchMarkets(first:$n){totalCount}}`, vars{"n": n}, http.StatusBadRequest, "GRAPHQL_VALIDATION_FAILED", "32 bits")
	}
	add("1,001 ids", `query($i:[String!]!){tokens(tokenIds:$i){tokenId}}`, vars{"i": distinctIDs(1001)}, http.StatusBadRequest, badInputCode, "1000")
	add("variables of 200 KB", `query($i:String!){token(tokenId:$i){tokenId}}`, vars{"i": strings.Repeat("a", 200_000)}, http.StatusBadRequest, badInputCode, "131072")
	add("variables that nobody declared", `{__typename}`, vars{"a": strings.Repeat("a", 100_000)}, http.StatusOK, "", "")
	for name, text := range map[string]string{"a regular expression": `(((((a+)+)+)+)+)+$` + strings.Repeat("a", 500), "wildcards": strings.Repeat("%_*?", 200), "SQL": `'; DROP TABLE markets; --`, "spaces": strings.Repeat(" ", 999)} {
		out = append(out, attack{name: "value: a search for " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			got := p.post(t, asJSON(vars{"query": `query($q:String!){searchMarkets(query:$q){totalCount}}`, "variables": vars{"q": text}}))
			if got.status != http.StatusOK {
				t.Errorf("got status %d, want 200: %s", got.status, got.body)
			}
			for _, r := range p.venue.take() {
				if what := unexpectedPart(r); what != "" || r.URL.Query().Get("q") != text && strings.TrimSpace(text) != "" {
					t.Errorf("the venue received the call %s, which has an unexpected part: %s", r.URL, what)
				}
			}
		}})
	}
	for name, cursor := range map[string]string{
		"that is a space": " ", "with a path": "../../etc/passwd", "with a parameter": "x&limit=100000",
		"that overflows": "/////////////////////w==",
	} {
		out = append(out, attack{name: "value: a cursor " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			got := p.post(t, asJSON(vars{"query": `query($a:String){searchMarkets(after:$a){totalCount}}`, "variables": vars{"a": cursor}}))
			got.want(t, http.StatusOK, badInputCode, "after is not a cursor of this list")
			if asked := p.venue.take(); len(asked) > 0 {
				t.Errorf("the attack caused the call %s to the venue", asked[0].URL)
			}
		}})
	}
	for _, evil := range []string{
		"1,2", "1/2", "1?credentials=x", "1&limit=9", "1%00", "1\x00", "1\n", "1\r\nX-Evil: 1", "..", "../user/balance", "..%2F..%2Fuser", "%2e%2e%2f", "1#x", "1;x=1", "1+1", "1 1", "a=b", `"`, "'", "{}", "\\",
		"\u2028", "\u202e1", "１", "e\u0301", "😀", "\ufeff1", "\ufffd", "*", strings.Repeat("9", 256), strings.Repeat("9", 257), strings.Repeat("😀", 64), "",
	} {
		out = append(out, attack{name: fmt.Sprintf("id: %.30q of %d bytes", evil, len(evil)), run: func(t *testing.T, p *target) { p.inject(t, evil) }})
	}
	return out
}

// inject sends a hostile id in every argument that accepts an id. If the id reaches the venue, it must be unchanged and not split.
func (p *target) inject(t *testing.T, evil string) {
	const query = `query($v:String!,$n:ID!,$m:ID!,$o:ID!){
		token(tokenId:$v){price{price} spread{spread} orderbook{spread} history{from} market{slug}} tokens(tokenIds:[$v]){price{price}} tokenPrices(tokenIds:[$v]){price} spreads(tokenIds:[$v]){spread}
		a:market(marketId:$v){slug} b:market(slug:$v){slug} markets(marketIds:[$v]){slug} c:event(eventId:$v){slug} d:event(slug:$v){slug}
		searchMarkets(query:$v,filter:{category:$v,tag:$v}){totalCount} e:searchMarkets(after:$v){totalCount}
		node(id:$n){id} f:node(id:$m){id} g:node(id:$o){id} nodes(ids:[$n,$m,$o]){id}
	}`
	p.venue.take()
	body := asJSON(vars{"query": query, "variables": vars{"v": evil, "n": model.EncodeID(model.KindMarket, evil), "m": model.EncodeID(model.KindToken, evil), "o": model.EncodeID(model.KindEvent, evil)}})
	got := p.post(t, body)
	user := p.request(t, asJSON(vars{"query": `query($v:String!,$a:Address!){user(address:$a){trades(marketId:$v){totalCount} t:trades(after:$v){totalCount} orders(marketIds:[$v]){totalCount}} u:user(address:"0x` + strings.Repeat("0", 40) + `"){address}}`,
		"variables": vars{"v": evil, "a": addressOf50}}), keyOf50)
	if got.status != http.StatusOK || p.send(t, user).status != http.StatusOK {
		t.Errorf("the public query got status %d, or the query of the account failed: %.300s", got.status, got.body)
	}
	// The service must refuse a hostile id in place of an address.
	p.post(t, asJSON(vars{"query": `query($a:Address!){user(address:$a){address}}`, "variables": vars{"a": evil}})).want(t, http.StatusOK, badInputCode, "0x and 40 hex digits")
	for _, r := range p.venue.take() {
		if what := unexpectedPart(r); what != "" {
			t.Errorf("the venue received the call %s, which has an unexpected part: %s", r.URL, what)
		}
		q := r.URL.Query()
		for _, name := range []string{"tokenId", "tokenIds", "id", "ids", "slug", "eventId", "eventSlug", "q", "category", "tag", "marketId"} {
			for _, v := range q[name] {
				if v != evil && !(name == "tokenIds" || name == "ids") || strings.ContainsAny(v, ",") && name != "q" && name != "category" && name != "tag" && name != "slug" {
					t.Errorf("the venue received the parameter %s with the value %q, want %q", name, v, evil)
				}
			}
		}
		if strings.ContainsAny(r.URL.RawQuery, "\r\n\x00") || len(r.Header["X-Evil"]) > 0 {
			t.Errorf("the venue received a call with an injected control character or header: %q", r.URL)
		}
	}
}
