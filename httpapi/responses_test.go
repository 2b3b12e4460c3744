package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

// changeablePrices is a source whose prices stay valid until the test calls change. asked counts the calls of Lookup.
type changeablePrices struct {
	memory
	asked   atomic.Int64
	mu      sync.Mutex
	handles map[string]*reads.Handle // by token
	amount  string                   // price of all tokens
}

// Lookup implements reads.Source.
func (s *changeablePrices) Lookup(_ context.Context, keys []string, into []reads.Result[*market.Price], missing []int) []int {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if s.handles[key] == nil {
			s.handles[key] = reads.NewHandle(time.Now().Add(time.Hour))
		}
		into[i].Value = s.price(key)
		into[i].Value.Value.Price = market.MustDecimal(s.amount)
		into[i].Value.Handle = s.handles[key]
	}
	return missing
}

// change invalidates all handles and sets the price of all tokens.
func (s *changeablePrices) change(amount string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handles {
		h.Invalidate()
	}
	clear(s.handles)
	s.amount = amount
}

// cachingConfig returns the configuration of an API with a response cache, and its source of prices.
func cachingConfig(t testing.TB) (Config, *changeablePrices) {
	cfg, source := testConfig(t), &changeablePrices{handles: map[string]*reads.Handle{}, amount: "0.5"}
	cfg.Sources, cfg.ResponseBytes, cfg.Clock = loaders.Sources{Prices: source}, 1<<20, market.SystemClock{}
	return cfg, source
}

const priceBody = `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`

func TestCachedResponses(t *testing.T) {
	cfg, source := cachingConfig(t)
	outcomes := map[string]int{}
	cfg.Observer = onEnd(func(j *request.Log) { outcomes[j.Type()+" "+j.Outcome]++ })
	h := New(cfg)
	want := func(what, body, data string, executions int64) {
		t.Helper()
		before := source.asked.Load()
		w := post(t, h, body)
		if w.Code != http.StatusOK || w.Body.String() != data || source.asked.Load()-before != executions {
			t.Errorf("%s: got %d %s and %d calls of Lookup, want %s and %d", what, w.Code, w.Body, source.asked.Load()-before, data, executions)
		}
		if w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) || w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: got the headers %v", what, w.Header())
		}
	}
	half, most := `{"data":{"tokenPrices":[{"price":"0.5"}]}}`, `{"data":{"tokenPrices":[{"price":"0.9"}]}}`
	want("the first request", priceBody, half, 1)
	want("the same text", priceBody, half, 0)
	want("the same operation in other bytes", ` {"variables": {"unused": 1}, "query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`, half, 0)
	want("another document", `{"query":"{  tokenPrices(tokenIds: [\"1\"]) { price } }"}`, half, 1)
	source.change("0.9")
	want("after a change", priceBody, most, 1)
	want("the same request after the change", priceBody, most, 0)
	if outcomes["query ok"] != 6 || len(outcomes) != 1 {
		t.Errorf("the outcomes are %v, want 6 times query ok", outcomes)
	}
	asked := source.asked.Load()
	w := post(t, h, priceBody, CostHeader, "1")
	if !strings.Contains(w.Body.String(), `"extensions":{"cost"`) || source.asked.Load() == asked {
		t.Errorf("request for the cost: got %s, want an execution", w.Body)
	}
	want("after the request for the cost", priceBody, most, 0)
	if s := h.Stats().Responses; s.Hits != 4 || s.Stored != 3 {
		t.Errorf("the counters are %+v, want 4 hits and 3 stored responses", s)
	}
}

// TestCachedResponsesEqualOthers checks that an API sends equal responses with and without a response cache.
func TestCachedResponsesEqualOthers(t *testing.T) {
	cfg, _ := cachingConfig(t)
	cached := New(cfg)
	cfg.ResponseBytes = 0
	fresh := New(cfg)
	ids := strings.Repeat(`"1",`, 99) + `"1"`
	big := `{ tokenPrices(tokenIds: [` + ids + `]) { price freshness { receivedAt } } }`
	small := `{ tokenPrices(tokenIds: ["1"]) { price } }`
	for _, query := range []string{small, big, `{ __typename }`, `{ viewer { address } }`} {
		target := PathGraphQL + "?query=" + strings.NewReplacer(" ", "%20", `"`, "%22").Replace(query)
		tag := send(t, fresh, "GET", target, "").Header().Get("ETag")
		for _, method := range []string{"GET", "HEAD", "POST"} {
			for _, header := range [][]string{
				{}, {"Accept-Encoding", "zstd"}, {"Accept-Encoding", "br"}, {"Accept-Encoding", "gzip"}, {"Accept", "application/graphql-response+json"},
				{"If-None-Match", tag}, {"If-None-Match", tag, "Accept-Encoding", "br"}, {"If-None-Match", `"x"`},
			} {
				for n := range 3 {
					ask := func(h http.Handler) *httptest.ResponseRecorder {
						if method == "POST" {
							return post(t, h, `{"query":`+string(appendJSON(nil, query))+`}`, header...)
						}
						return send(t, h, method, target, "", header...)
					}
					a, b := ask(cached), ask(fresh)
					if a.Code != b.Code || !bytes.Equal(a.Body.Bytes(), b.Body.Bytes()) || fmt.Sprint(a.Header()) != fmt.Sprint(b.Header()) {
						t.Errorf("%s %.30s %v, request %d:\nwith a cache: %d %v %.100q\nwithout a cache: %d %v %.100q", method, query, header, n, a.Code, a.Header(), a.Body, b.Code, b.Header(), b.Body)
					}
				}
			}
		}
	}
	if s := cached.Stats().Responses; s.Hits < 2*s.Misses {
		t.Errorf("got %d hits and %d misses, want at least twice as many hits", s.Hits, s.Misses)
	}
}

// TestResponsesThatAreNotCached checks that responses with serviceStatus, with an error of the venue, or with too many errors are
// not cached.
func TestResponsesThatAreNotCached(t *testing.T) {
	cfg, source := cachingConfig(t)
	states := 0
	h := New(withStatusResolver(t, cfg, func(context.Context) model.ServiceStatus {
		states++
		return model.ServiceStatus{Version: fmt.Sprint(states)}
	}))
	for _, query := range []string{
		`{ serviceStatus { version } }`, `{ ... on Query { serviceStatus { version } } }`, `query { ...f } fragment f on Query { a: serviceStatus { version } }`,
		`{ tokenPrices(tokenIds: [\"1\"]) { price } spreads(tokenIds: [\"1\"]) { spread } }`, // the source of spreads fails
		`{ tokenPrices(tokenIds: [\"1\", ` + strings.Repeat(`\"\", `, maxCachedErrors+1) + `]) { price } }`,
	} {
		a, b := post(t, h, `{"query":"`+query+`"}`), post(t, h, `{"query":"`+query+`"}`)
		if strings.Contains(query, "serviceStatus") && a.Body.String() == b.Body.String() {
			t.Errorf("%s got the response %s twice, want two executions", query, a.Body)
		}
	}
	if s := h.Stats().Responses; s.Stored != 0 || source.asked.Load() < 4 {
		t.Errorf("%d responses were stored after %d calls of Lookup, want 0 after at least 4", s.Stored, source.asked.Load())
	}
}

// TestErrorsOfTheRequestAreCached checks that the response to a query with an invalid argument is cached.
func TestErrorsOfTheRequestAreCached(t *testing.T) {
	cfg, source := cachingConfig(t)
	outcomes := map[string]int{}
	cfg.Observer = onEnd(func(j *request.Log) { outcomes[j.Outcome+" "+j.Response]++ })
	h := New(cfg)
	const body = `{"query":"{ tokenPrices(tokenIds: [\"no,id\", \"1\"]) { price } token(tokenId: \"1\") { orderbook(depth: 0) { hash } } }"}`
	want := func(price string, executions int64) {
		t.Helper()
		before := source.asked.Load()
		w := post(t, h, body)
		if n := source.asked.Load() - before; w.Code != http.StatusOK || strings.Count(w.Body.String(), "BAD_USER_INPUT") != 2 ||
			!strings.Contains(w.Body.String(), `"tokenPrices":[null,{"price":"`+price+`"}]`) || n != executions {
			t.Errorf("got %d %s and %d calls of Lookup, want two errors, the price %s and %d calls", w.Code, w.Body, n, price, executions)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("the header Cache-Control is %s, want no-store", got)
		}
	}
	want("0.5", 1)
	want("0.5", 0)
	source.change("0.9")
	want("0.9", 1)
	want("0.9", 0)
	if outcomes["BAD_USER_INPUT hit"] != 2 || outcomes["BAD_USER_INPUT miss"] != 2 {
		t.Errorf("the outcomes are %v, want 2 hits and 2 misses", outcomes)
	}
}

// TestATextThatIsNoLongerTrusted checks that a document that is no longer trusted is rejected, even if its response is cached.
func TestATextThatIsNoLongerTrusted(t *testing.T) {
	cfg, source := cachingConfig(t)
	file := filepath.Join(t.TempDir(), "manifest.json")
	write := func(manifest string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"a": "{ tokenPrices(tokenIds: [\"1\"]) { price } }", "b": "{ __typename }"}`)
	d, err := persisted.Open(persisted.Config{Mode: persisted.ModeRequire, Manifest: file, Validate: Validator(cfg), Log: cfg.Log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Documents = d
	h := New(cfg)
	byID := `{"documentId":"a"}`
	for range 2 {
		for _, body := range []string{priceBody, byID} {
			if w := post(t, h, body); !strings.Contains(w.Body.String(), "0.5") {
				t.Errorf("%s: %s", body, w.Body)
			}
		}
	}
	if s := h.Stats().Responses; s.Hits != 3 || source.asked.Load() != 1 {
		t.Errorf("there were %d hits and %d calls of Lookup, want 3 and 1", s.Hits, source.asked.Load())
	}
	write(`{"a": "{ __typename }"}`)
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if w := post(t, h, priceBody); !strings.Contains(w.Body.String(), "FORBIDDEN") {
		t.Errorf("a document that is no longer trusted: got %s, want FORBIDDEN", w.Body)
	}
	if w := post(t, h, byID); w.Body.String() != `{"data":{"__typename":"Query"}}` {
		t.Errorf("an id that now stands for another document: got %s", w.Body)
	}
}

// TestRepeatedRequestsKeepTheirDocument checks that a persisted query stays registered while clients repeat it, even if the
// responses come from the cache.
func TestRepeatedRequestsKeepTheirDocument(t *testing.T) {
	cfg, _ := cachingConfig(t)
	d, err := persisted.Open(persisted.Config{Mode: persisted.ModeOff, AutomaticBytes: 700})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Documents = d
	h := New(cfg)
	hashed := func(query string) string {
		return fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"%x"}}}`, query, hashOf(query))
	}
	for n := range 5 {
		post(t, h, hashed("{ __typename }"))
		post(t, h, hashed(fmt.Sprintf("{ a%d: __typename }", n)))
	}
	post(t, h, hashed("{ __typename }"))
	w := post(t, h, fmt.Sprintf(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"%x"}}}`, hashOf("{ __typename }")))
	if w.Body.String() != `{"data":{"__typename":"Query"}}` {
		t.Errorf("repeated document: got %s", w.Body)
	}
}

func hashOf(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// TestEventStreamsGetCachedResponses checks that the second of two equal queries over event streams gets the cached response.
func TestEventStreamsGetCachedResponses(t *testing.T) {
	cfg, source := cachingConfig(t)
	api := New(cfg)
	defer api.Drain(t.Context())
	ask := func() string {
		w := &tape{ResponseRecorder: httptest.NewRecorder()}
		api.ServeHTTP(w, postRequest(t.Context(), priceBody, "Accept", content.Events))
		return strings.Join(w.writes, "")
	}
	first, second := ask(), ask()
	if first != second || !strings.Contains(first, `data: {"data":{"tokenPrices":[{"price":"0.5"}]}}`) || source.asked.Load() != 1 {
		t.Errorf("got the event streams\n%s\nand\n%s\nafter %d calls of Lookup, want equal streams after 1", first, second, source.asked.Load())
	}
}
