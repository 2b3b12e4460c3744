package httpapi

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"oddsgraph/graph"
	"oddsgraph/graph/model"
	"oddsgraph/httpapi/content"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// answer is the body of a response.
type answer struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Extensions struct {
			Code         string
			RequestID    string
			RetryAfterMs int64
		}
	}
	Extensions map[string]json.RawMessage
}

func answerOf(t testing.TB, w *httptest.ResponseRecorder) (a answer) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return a
}

func TestStatuses(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxBody = 2048
	h := New(cfg)
	large := `{"query":"{ __typename }","x":"` + strings.Repeat("x", 2048) + `"}`
	const json, q = "Content-Type: application/json", "?query=%7B__typename%7D"
	for _, test := range []struct {
		name         string
		method       string
		target, body string
		header       []string
		modern       int // the status with application/graphql-response+json
		legacy       int // the status with application/json
		code         string
	}{
		{"a query", "POST", "", `{"query":"{ __typename }"}`, []string{json}, 200, 200, ""},
		{"a query with charset UTF-8", "POST", "", `{"query":"{ __typename }"}`, []string{json + "; charset=utf-8"}, 200, 200, ""},
		{"a query by GET", "GET", q, "", nil, 200, 200, ""},
		{"a query by HEAD", "HEAD", q, "", nil, 200, 200, ""},
		{"an error of a field", "POST", "", `{"query":"{ market { id } }"}`, []string{json}, 200, 200, "BAD_USER_INPUT"},
		{"a syntax error", "POST", "", `{"query":"{"}`, []string{json}, 400, 200, "GRAPHQL_PARSE_FAILED"},
		{"an invalid document", "POST", "", `{"query":"{ nope }"}`, []string{json}, 400, 200, "GRAPHQL_VALIDATION_FAILED"},
		{"an invalid document by GET", "GET", "?query={nope}", "", nil, 400, 200, "GRAPHQL_VALIDATION_FAILED"},
		{"a bad variable", "POST", "", `{"query":"query($a: Int!) { searchMarkets(first: $a) { totalCount } }"}`, []string{json}, 400, 200, "GRAPHQL_VALIDATION_FAILED"},
		{"two operations without operationName", "POST", "", `{"query":"query A { __typename } query B { __typename }"}`, []string{json}, 400, 200, "GRAPHQL_VALIDATION_FAILED"},
		{"a query that is too deep", "POST", "", `{"query":"` + strings.Repeat("{a", 30) + strings.Repeat("}", 30) + `"}`, []string{json}, 400, 200, "BAD_USER_INPUT"},
		{"a query that costs too much", "POST", "", `{"query":"{ searchMarkets(first: 100) { nodes { tokens { orderbook { bids { price } } } } } }"}`, []string{json}, 400, 200, "BAD_USER_INPUT"},
		{"deep variables", "POST", "", `{"query":"query($a: String) { searchMarkets(query: $a) { totalCount } }","variables":{"b":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}}`, []string{json}, 400, 200, "BAD_USER_INPUT"},
		{"an unknown document", "GET", "?documentId=sha256:" + strings.Repeat("0", 64), "", nil, 400, 200, "PERSISTED_QUERY_NOT_FOUND"},
		{"a subscription", "POST", "", `{"query":"subscription { streamStatusChanged { state } }"}`, []string{json}, 400, 400, "BAD_USER_INPUT"},
		{"a mutation by GET", "GET", "?query=mutation%7Ba%7D", "", nil, 400, 200, "GRAPHQL_VALIDATION_FAILED"}, // the schema has no mutations
		{"no JSON", "POST", "", `{`, []string{json}, 400, 400, "BAD_USER_INPUT"},
		{"no body", "POST", "", ``, []string{json}, 400, 400, "BAD_USER_INPUT"},
		{"a batch", "POST", "", `[{"query":"{ __typename }"}]`, []string{json}, 400, 400, "BAD_USER_INPUT"},
		{"no query", "POST", "", `{"qeury":"{ __typename }"}`, []string{json}, 400, 400, "BAD_USER_INPUT"},
		{"no query by GET", "GET", "", ``, nil, 400, 400, "BAD_USER_INPUT"},
		{"a query in the URL of a POST", "POST", q, `{}`, []string{json}, 400, 400, "BAD_USER_INPUT"},
		{"no Content-Type", "POST", "", `{"query":"{ __typename }"}`, nil, 415, 415, "BAD_USER_INPUT"},
		{"a body of plain text", "POST", "", `{"query":"{ __typename }"}`, []string{"Content-Type: text/plain"}, 415, 415, "BAD_USER_INPUT"},
		{"a form", "POST", "", `query=%7B__typename%7D`, []string{"Content-Type: application/x-www-form-urlencoded"}, 415, 415, "BAD_USER_INPUT"},
		{"a multipart form", "POST", "", "--a\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n{\"query\":\"{ __typename }\"}\r\n--a--", []string{"Content-Type: multipart/form-data; boundary=a"}, 415, 415, "BAD_USER_INPUT"},
		{"a body of type application/graphql", "POST", "", `{ __typename }`, []string{"Content-Type: application/graphql"}, 415, 415, "BAD_USER_INPUT"},
		{"another charset", "POST", "", `{"query":"{ __typename }"}`, []string{json + "; charset=utf-16"}, 415, 415, "BAD_USER_INPUT"},
		{"a compressed body", "POST", "", `{"query":"{ __typename }"}`, []string{json, "Content-Encoding: gzip"}, 415, 415, "BAD_USER_INPUT"},
		{"a large body", "POST", "", large, []string{json}, 413, 413, "BAD_USER_INPUT"},
		{"PUT", "PUT", "", `{"query":"{ __typename }"}`, []string{json}, 405, 405, "BAD_USER_INPUT"},
		{"DELETE", "DELETE", "", ``, nil, 405, 405, "BAD_USER_INPUT"},
		{"QUERY", "QUERY", "", `{"query":"{ __typename }"}`, []string{json}, 405, 405, "BAD_USER_INPUT"},
		{"a document id in the path and a query", "GET", "/abc" + q, ``, nil, 400, 400, "BAD_USER_INPUT"},
	} {
		for media, want := range map[string]int{content.Response: test.modern, content.JSON: test.legacy} {
			header := []string{"Accept", media}
			for _, line := range test.header {
				name, value, _ := strings.Cut(line, ": ")
				header = append(header, name, value)
			}
			w := send(t, h, test.method, PathGraphQL+test.target, test.body, header...)
			if got := w.Header().Get("Content-Type"); w.Code != want || got != media+"; charset=utf-8" {
				t.Errorf("%s, %s: got the status %d, the type %s and the body %s; want the status %d", test.name, media, w.Code, got, w.Body, want)
			}
			if allow := w.Header().Get("Allow"); (allow == "GET, HEAD, POST, OPTIONS") != (w.Code == 405) {
				t.Errorf("%s: the status is %d and Allow is %q", test.name, w.Code, allow)
			}
			if w.Header().Get("Vary") != "Accept, Accept-Encoding, Authorization, X-Venue-Credentials" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: the headers are %v", test.name, w.Header())
			}
			a := answerOf(t, w)
			switch {
			case test.code == "":
				if string(a.Data) != `{"__typename":"Query"}` || a.Errors != nil {
					t.Errorf("%s: the body is %s, want data without errors", test.name, w.Body)
				}
			case len(a.Errors) == 0 || a.Errors[0].Extensions.Code != test.code:
				t.Errorf("%s: the body is %s, want an error with %s", test.name, w.Body, test.code)
			case (a.Data == nil) != (test.name != "an error of a field"):
				t.Errorf("%s: the body is %s, want data only if the operation was executed", test.name, w.Body)
			}
		}
	}
}

func TestNotAcceptable(t *testing.T) {
	w := post(t, New(testConfig(t)), `{"query":"{ __typename }"}`, "Accept", "text/html")
	if w.Code != 406 || w.Header().Get("Content-Type") != "application/json; charset=utf-8" || len(answerOf(t, w).Errors) != 1 {
		t.Errorf("Accept: text/html: got %d %v %s, want 406 and one error as JSON", w.Code, w.Header(), w.Body)
	}
}

func TestOptions(t *testing.T) {
	w := send(t, New(testConfig(t)), "OPTIONS", PathGraphQL, "", "Accept", "text/html")
	if w.Code != 204 || w.Header().Get("Allow") != "GET, HEAD, POST, OPTIONS" || w.Header().Get("Accept-Post") != "application/json" || w.Body.Len() > 0 {
		t.Errorf("OPTIONS: got %d %v %s, want 204 and the allowed methods", w.Code, w.Header(), w.Body)
	}
}

// untouched is a body that fails the test when it is read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("a body that is known to be too large was read")
	return 0, io.EOF
}

func TestALargeBodyIsNotRead(t *testing.T) {
	cfg := testConfig(t)
	r := httptest.NewRequestWithContext(t.Context(), "POST", PathGraphQL, untouched{t})
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = cfg.MaxBody + 1
	w := httptest.NewRecorder()
	New(cfg).ServeHTTP(w, r)
	if w.Code != 413 || w.Header().Get("Connection") != "close" {
		t.Errorf("a body that is too large: got the status %d and the headers %v, want 413 and Connection: close", w.Code, w.Header())
	}
	// The service stops reading a body without a Content-Length soon after the limit.
	read := &countingReader{}
	r = httptest.NewRequestWithContext(t.Context(), "POST", PathGraphQL, read)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = -1
	w = httptest.NewRecorder()
	New(cfg).ServeHTTP(w, r)
	if w.Code != 413 || read.n > 2*cfg.MaxBody {
		t.Errorf("an endless body: got the status %d after %d bytes were read, want 413 after at most %d", w.Code, read.n, 2*cfg.MaxBody)
	}
}

// countingReader is an endless body.
type countingReader struct{ n int64 }

func (c *countingReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	c.n += int64(len(b))
	return len(b), nil
}

// withStatusResolver returns cfg with another resolver of serviceStatus.
func withStatusResolver(t testing.TB, cfg Config, status func(context.Context) model.ServiceStatus) Config {
	t.Helper()
	cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{Clock: market.SystemClock{}, Status: status}})
	return cfg
}

func TestTimeoutOfARequest(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timeout = time.Millisecond
	cfg.Sources.Prices = hanging{}
	if w := post(t, New(cfg), `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`); w.Code != 200 && w.Code != 504 { // 504 if the deadline passed before the first fetch
		t.Errorf("a request that exceeds Config.Timeout: got %d %s, want the status 200 or 504", w.Code, w.Body)
	}
}

// TestCostOnRequest checks that a response contains the cost only if the request has CostHeader. Caches must not store such a
// response.
func TestCostOnRequest(t *testing.T) {
	h := New(testConfig(t))
	const query = `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`
	if a := answerOf(t, post(t, h, query)); a.Extensions != nil {
		t.Errorf("without CostHeader: got the extensions %s, want none", a.Extensions)
	}
	var cost struct{ Points, UpstreamCalls int }
	w := post(t, h, query, CostHeader, "1")
	if err := json.Unmarshal(answerOf(t, w).Extensions["cost"], &cost); err != nil || cost.UpstreamCalls != 0 || cost.Points != 42 {
		t.Errorf("with CostHeader: got the cost %+v (error %v), want 42 points and no calls: %s", cost, err, w.Body)
	}
	w = send(t, h, "GET", PathGraphQL+"?query={tokenPrices(tokenIds:[%221%22]){price}}", "", CostHeader, "1")
	if w.Header().Get("Cache-Control") != noStore {
		t.Errorf("a response with its cost has the headers %v, want Cache-Control: no-store", w.Header())
	}
}

// TestTooManyCalls checks the error for a query that needs too many calls to the venue. When the prices are cached, such a query
// must succeed.
func TestTooManyCalls(t *testing.T) {
	for name, keep := range map[string]int64{"cached": 1 << 20, "not cached": 0} {
		t.Run(name, func(t *testing.T) {
			var rules []string
			prices := &shelf{held: []string{"1"}}
			cfg := testConfig(t)
			cfg.Sources, cfg.ResponseBytes, cfg.Clock = loaders.Sources{Prices: prices, MaxCalls: 2}, keep, market.SystemClock{}
			cfg.Observer = onEnd(func(j *request.Log) { rules = append(rules, j.Outcome+" "+j.Rule) })
			h := New(cfg)
			w := post(t, h, `{"query":"{ tokenPrices(tokenIds: [\"1\", \"2\", \"3\"]) { price } }"}`, CostHeader, "1")
			if !strings.Contains(w.Body.String(), `"extensions":{"cost":{"points":126,"upstreamCalls":2}}`) {
				t.Errorf("with CostHeader: got %s, want 126 points and 2 calls", w.Body)
			}
			w = post(t, h, `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } spreads(tokenIds: []) { id } token(tokenId: \"1\") { a: price { price } } tokens(tokenIds: [\"4\", \"5\", \"6\"]) { b: price { price } } }"}`)
			want := `{"errors":[{"message":"the operation needs at least 3 calls to the venue; at most 2 are accepted. 3 of them are for the kind price: request fewer items at once",` +
				`"path":["tokens",0,"b"],"locations":[{"line":1,"column":150}],"extensions":{"code":"BAD_USER_INPUT"}}]}`
			if w.Code != http.StatusBadRequest || w.Body.String() != want {
				t.Errorf("a query with too many calls: got %d %s, want 400 and %s", w.Code, w.Body, want)
			}
			if got, want := fmt.Sprint(prices.fetched, rules), "[2 3] [ok  BAD_USER_INPUT calls]"; got != want {
				t.Errorf("the fetched keys and the outcomes are %s, want %s", got, want)
			}
			const more = `{"query":"{ tokenPrices(tokenIds: [\"7\", \"8\", \"9\"]) { price } }"}`
			if w = post(t, h, more); w.Code != http.StatusBadRequest {
				t.Errorf("another query with too many calls: got %d %s, want 400", w.Code, w.Body)
			}
			prices.held = []string{"1", "7", "8", "9"} // these prices are cached now, so they need no calls
			if w = post(t, h, more); w.Code != http.StatusOK {
				t.Errorf("when the prices are cached: got %d %s, want 200", w.Code, w.Body)
			}
		})
	}
}

// TestDeferIsUnknown checks that @defer is invalid, because no transport can send a response in several parts.
func TestDeferIsUnknown(t *testing.T) {
	h := New(benchConfig(t))
	if w := post(t, h, `{"query":"{ __schema { directives { name } } }"}`); !strings.Contains(w.Body.String(), `"skip"`) || strings.Contains(w.Body.String(), `"defer"`) {
		t.Errorf("introspection: %s", w.Body)
	}
	for _, query := range []string{
		`{ token(tokenId: \"1\") { tokenId ... @defer { price { price } } } }`,
		`{ token(tokenId: \"1\") { tokenId ...F @defer(label: \"l\") } } fragment F on Token { price { price } }`,
	} {
		w := post(t, h, `{"query":"`+query+`"}`)
		if !strings.Contains(w.Body.String(), `Unknown directive \"@defer\".`) || !strings.Contains(w.Body.String(), `"code":"GRAPHQL_VALIDATION_FAILED"`) {
			t.Errorf("the response to %s is %s, want an error about @defer", query, w.Body)
		}
	}
}

// TestCompression checks concurrent responses in every content coding. Short responses must not be compressed.
func TestCompression(t *testing.T) {
	version := strings.Repeat("0123456789 abcdefghij ", 200)
	h := New(withStatusResolver(t, testConfig(t), func(context.Context) model.ServiceStatus { return model.ServiceStatus{Version: version} }))
	want := `{"data":{"serviceStatus":{"version":"` + version + `"}}}`
	decoders := map[string]func(io.Reader) (io.Reader, error){
		"":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	}
	var wg sync.WaitGroup
	for coding, decode := range decoders {
		for range 8 {
			wg.Go(func() {
				w := post(t, h, `{"query":"{ serviceStatus { version } }"}`, "Accept-Encoding", coding)
				length, coded := w.Header().Get("Content-Length"), w.Body.Len()
				r, err := decode(w.Body)
				if err != nil {
					t.Errorf("%s: %v", coding, err)
					return
				}
				got, err := io.ReadAll(r)
				if err != nil || string(got) != want || w.Header().Get("Content-Encoding") != coding || length != fmt.Sprint(coded) || coding != "" && coded > len(want)/4 {
					t.Errorf("coding %q: got the error %v and %d bytes that decode to %d bytes, want %d bytes; the headers are %v", coding, err, coded, len(got), len(want), w.Header())
				}
			})
		}
	}
	wg.Wait()
	if w := post(t, h, `{"query":"{ __typename }"}`, "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a short response is compressed")
	}
	if w := post(t, h, `{"query":"{"}`, "Accept-Encoding", "zstd"); w.Header().Get("Content-Encoding") != "" || w.Header().Get("Cache-Control") != noStore {
		t.Errorf("a response with an error: got the headers %v, want no Content-Encoding and no-store", w.Header())
	}
}

// stuck is a ResponseWriter for a client that does not read. Write blocks until the test closes the channel read.
type stuck struct {
	*httptest.ResponseRecorder
	writing, read chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	close(s.writing)
	<-s.read
	return len(b), nil
}

// TestAClientThatDoesNotRead checks that other clients get responses while one client does not read its response.
func TestAClientThatDoesNotRead(t *testing.T) {
	cfg := testConfig(t)
	cfg.Operations, cfg.Queue = 1, 0
	h := New(cfg)
	w := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	r := httptest.NewRequestWithContext(t.Context(), "GET", PathGraphQL+"?query={__typename}", nil)
	var wg sync.WaitGroup
	wg.Go(func() { h.ServeHTTP(w, r) })
	<-w.writing
	if w := post(t, h, `{"query":"{ __typename }"}`); w.Code != 200 {
		t.Errorf("the other client: got %d %s, want 200", w.Code, w.Body)
	}
	close(w.read)
	wg.Wait()
}

func TestOutcomes(t *testing.T) {
	var got []string
	cfg := testConfig(t)
	cfg.Observer = onEnd(func(j *request.Log) { got = append(got, j.Type()+" "+j.Outcome) })
	h := New(cfg)
	post(t, h, `{"query":"{ __typename }"}`)
	post(t, h, `{"query":"{ market { id } }"}`)
	post(t, h, `{"query":"{"}`)
	post(t, h, `{"query":"subscription { streamStatusChanged { state } }"}`)
	post(t, h, `{`)
	send(t, h, "PUT", PathGraphQL, "")
	if want := "query ok|query BAD_USER_INPUT|unknown GRAPHQL_PARSE_FAILED|subscription BAD_USER_INPUT|unknown BAD_USER_INPUT|unknown BAD_USER_INPUT"; strings.Join(got, "|") != want {
		t.Errorf("the outcomes are %q, want %q", strings.Join(got, "|"), want)
	}
}
