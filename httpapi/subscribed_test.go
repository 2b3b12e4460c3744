package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi/content"
)

// readers are clients with event streams.
type readers struct {
	api     *API
	tapes   []*tape
	running sync.WaitGroup
	leave   context.CancelFunc
	ctx     context.Context
}

func newReaders(t *testing.T) *readers {
	cfg := testConfig(t)
	cfg.Client = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("From")) }
	cfg.Compiler = streamCompiler(t, make(chan int), func(int) string { return "1" })
	cfg.Operations, cfg.Queue = 1024, 1024
	r := &readers{api: New(cfg)}
	r.ctx, r.leave = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.leave()
		r.running.Wait()
		r.api.Drain(context.Background())
	})
	return r
}

// subscribe starts a subscription for the client with the address from. The headers are alternating names and values.
func (r *readers) subscribe(from, document string, header ...string) *tape {
	w := &tape{ResponseRecorder: httptest.NewRecorder()}
	r.tapes = append(r.tapes, w)
	request := postRequest(r.ctx, `{"query":"`+document+`"}`, append(header, "Accept", content.Events, "From", from)...)
	r.running.Go(func() { r.api.ServeHTTP(w, request) })
	return w
}

// refused returns how many subscriptions were refused, and the last refusal.
func (r *readers) refused() (n int, last string) {
	for _, w := range r.tapes {
		w.mu.Lock()
		if text := strings.Join(w.writes, ""); strings.Contains(text, `"errors"`) {
			n, last = n+1, text
		}
		w.mu.Unlock()
	}
	return n, last
}

// longDocument returns a document with more than 50 KiB. Its text contains the number n.
func longDocument(n int) string {
	var b strings.Builder
	for i := range 190 {
		fmt.Fprintf(&b, "a%d: state ", i)
	}
	return fmt.Sprintf("subscription { streamStatusChanged { %s } } #%d %s", b.String(), n, strings.Repeat(".", 50<<10))
}

// TestDocumentsOfSubscriptionsAreBounded checks that the documents of one client's subscriptions take at most three quarters of
// MaxSubscribedBytes. Another client must still be accepted.
func TestDocumentsOfSubscriptionsAreBounded(t *testing.T) {
	r := newReaders(t)
	held, documents := r.api.transports.subscriptions.held, r.api.transports.engine.documents
	const n = 150
	for i := range n {
		r.subscribe("192.0.2.1", longDocument(i))
	}
	eventually(t, func() bool {
		refused, _ := r.refused()
		return refused+r.api.Stats().Groups.Members == n
	})
	refused, last := r.refused()
	each := sizeOf(documents.load(longDocument(0), false))
	if most := MaxSubscribedBytes * 3 / 4; held.Held() > most || held.Held() < most-2*each || refused < n-most/each || !strings.Contains(last, "RATE_LIMITED") {
		t.Errorf("subscriptions of %d bytes each hold %d bytes, want just below %d; %d subscriptions were refused, the last with %s", each, held.Held(), most, refused, last)
	}
	if got := r.api.Stats().Refused; got != uint64(refused) {
		t.Errorf("the statistics count %d refusals, want %d", got, refused)
	}
	r.subscribe("192.0.2.2", longDocument(n))
	eventually(t, func() bool { return r.api.Stats().Groups.Members == n-refused+1 })
	r.leave()
	eventually(t, func() bool {
		documents.mu.Lock()
		defer documents.mu.Unlock()
		return held.Held() == 0 && len(documents.used) == 0
	})
}

// TestADocumentOfManySubscribersIsCountedOnce checks that many subscriptions with the same document share one copy, even if the
// document cache is full.
func TestADocumentOfManySubscribersIsCountedOnce(t *testing.T) {
	r := newReaders(t)
	documents := r.api.transports.engine.documents
	documents.mu.Lock()
	documents.bytes = MaxDocumentBytes // the cache is full
	documents.mu.Unlock()
	r.subscribe("198.51.100.200", longDocument(0))
	eventually(t, func() bool { return r.api.Stats().Groups.Members == 1 })
	one := r.api.transports.subscriptions.held.Held()
	for i := range 199 {
		r.subscribe(fmt.Sprintf("198.51.100.%d", i), longDocument(0))
	}
	eventually(t, func() bool { return r.api.Stats().Groups.Members == 200 })
	documents.mu.Lock()
	cached, used := documents.cache.Len(), len(documents.used)
	documents.mu.Unlock()
	if r.api.transports.subscriptions.held.Held() != one || cached != 0 || used != 1 {
		t.Errorf("200 subscriptions hold %d bytes, want %d as for one; %d documents are cached and %d are used, want 0 and 1", r.api.transports.subscriptions.held.Held(), one, cached, used)
	}
	r.leave()
	eventually(t, func() bool { return r.api.transports.subscriptions.held.Held() == 0 })
}

// TestSubscribersOfOneAccountShare checks that equal subscriptions with the same credentials share an execution. Subscriptions with
// different credentials must not.
func TestSubscribersOfOneAccountShare(t *testing.T) {
	r := newReaders(t)
	for _, credentials := range []string{credentialsOf("alice"), credentialsOf("alice"), credentialsOf("bob"), ""} {
		var header []string
		if credentials != "" {
			header = []string{CredentialsHeader, credentials}
		}
		r.subscribe("192.0.2.1", "subscription { streamStatusChanged { state } }", header...)
	}
	eventually(t, func() bool { return r.api.Stats().Groups.Members == 4 })
	if got := r.api.Stats().Groups; got.Groups != 3 {
		t.Errorf("%d groups execute the subscriptions of three callers, want 3", got.Groups)
	}
}
