package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/validator/core"

	"oddsgraph/httpapi/admission"
	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/limits"
)

// TestUnknownDocumentsWait checks that an unknown document waits and times out while compileLimiter is full. A known document must
// not wait.
func TestUnknownDocumentsWait(t *testing.T) {
	cfg := testConfig(t)
	cfg.QueueTimeout = 10 * time.Millisecond
	api := New(cfg)
	const known, unknown = `{"query":"{ known: __typename }"}`, `{"query":"{ unknown: __typename }"}`
	if w := post(t, api, known); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	e := api.transports.engine
	free := e.compileLimiter
	e.compileLimiter = fullLimiter(e, cfg.QueueTimeout)
	if w := post(t, api, known); w.Code != http.StatusOK {
		t.Errorf("the known document: got %d %s, want 200", w.Code, w.Body)
	}
	if w := post(t, api, unknown); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "RATE_LIMITED") {
		t.Errorf("the unknown document: got %d %v %s, want 503 and RATE_LIMITED", w.Code, w.Header(), w.Body)
	}
	e.compileLimiter = free
	if w := post(t, api, unknown); w.Code != http.StatusOK {
		t.Errorf("the unknown document, when the limiter is free: got %d %s, want 200", w.Code, w.Body)
	}
}

// fullLimiter returns a limiter whose places are taken, as if the documents of other clients were compiling.
func fullLimiter(e *engine, timeout time.Duration) *admission.Limiter {
	return admission.New(e.identities.countedIn, 0, 100, timeout, errBusy)
}

// admitAtOnce admits every operation. It can replace Limiter.Begin.
func admitAtOnce(context.Context, *admission.Slot) error { return nil }

// TestWaitingDocumentsTakeNoPlace checks that a client can execute a known document while its unknown documents wait for
// compileLimiter.
func TestWaitingDocumentsTakeNoPlace(t *testing.T) {
	cfg := testConfig(t)
	cfg.Operations, cfg.Queue = 8, 8
	api := New(cfg)
	server := httptest.NewServer(api)
	defer server.Close()
	defer api.Drain(t.Context())
	const known = `{"query":"{ known: __typename }"}`
	if w := post(t, api, known); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	e := api.transports.engine
	e.compileLimiter = fullLimiter(e, time.Minute)
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer leave()
	for i := range 24 {
		body := fmt.Sprintf(`{"query":"{ a%d: __typename }"}`, i)
		waiting.Go(func() {
			accept := []string{content.JSON, content.Events}[i%2]
			api.ServeHTTP(&tape{ResponseRecorder: httptest.NewRecorder()}, postRequest(ctx, body, "Accept", accept))
		})
	}
	eventually(t, func() bool { return api.Stats().CompilingLater == 24 })
	if s := api.Stats(); s.Executing != 0 || s.Waiting != 0 {
		t.Errorf("%d operations execute and %d wait to execute, want 0 and 0", s.Executing, s.Waiting)
	}
	if w := post(t, api, known); w.Code != http.StatusOK {
		t.Errorf("the known document: got %d %s, want 200", w.Code, w.Body)
	}
	if got := converse(t, server.URL+PathGraphQL, `"id":"1"`, `{"id":"1","type":"subscribe","payload":`+known+`}`); !strings.Contains(got, `"known":"Query"`) {
		t.Errorf("the known document over a WebSocket: got %s", got)
	}
}

// TestUnknownNamesCostLittle checks that a validation stops after maxFound errors. The operations of the document spread a fragment
// with 97 long unknown names.
func TestUnknownNamesCostLittle(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	text := fields(limits.Default().Operations, "query Q%d{...F}") + `fragment F on Query{market(marketId:"1"){` + fields(97, "volume%0122d ") + "}}"
	found := 0
	for i, r := range c.rules {
		run := r.RuleFunc
		c.rules[i].RuleFunc = func(observers *core.Events, add core.AddErrFunc) {
			run(observers, func(options ...core.ErrorOption) { found++; add(options...) })
		}
	}
	doc, err := c.guard.Document(text)
	if err != nil {
		t.Fatal(err)
	}
	errs := c.validate(doc)
	if len(errs) != maxErrors+1 || errs[maxErrors].Error() != "input: there are more errors" || found > maxFound+1 {
		t.Errorf("got %d errors after %d found errors, the last is %v; want %d after at most %d, and there are more errors", len(errs), found, errs[len(errs)-1], maxErrors+1, maxFound+1)
	}
}

// TestErrorsQuoteLittle checks that an error quotes only the beginning of a long text.
func TestErrorsQuoteLittle(t *testing.T) {
	long := strings.Repeat("V", 30_000)
	for name, body := range map[string]string{
		"an enum":           `{"query":"{ searchMarkets(sort: ` + long[:100] + `) { totalCount } }"}`,
		"a string":          `{"query":"{ searchMarkets(sort: \"` + long + `\") { totalCount } }"}`,
		"a variable":        `{"query":"query ($s: MarketSort) { searchMarkets(sort: $s) { totalCount } }","variables":{"s":"` + long + `"}}`,
		"a member":          `{"query":"query ($f: MarketSearchFilter) { searchMarkets(filter: $f) { totalCount } }","variables":{"f":{"` + long + `":1}}}`,
		"an operation":      `{"query":"{ __typename }","operationName":"` + long + `"}`,
		"an id":             `{"query":"{ token(tokenId: \"` + long + `\") { tokenId } }"}`,
		"a persisted query": `{"documentId":"` + long + `"}`,
		"a decimal":         `{"query":"{ token(tokenId: \"1\") { fillEstimate(side: BUY, size: \"` + long + `\") { complete } } }"}`,
	} {
		w := post(t, New(testConfig(t)), body)
		if !strings.Contains(w.Body.String(), `"errors"`) || w.Body.Len() > 2000 {
			t.Errorf("%s: the response has %d bytes, want errors of at most 2000 bytes: %.300s", name, w.Body.Len(), w.Body)
		}
	}
}
