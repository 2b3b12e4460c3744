package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

// heldPrices is a source that has no prices in memory until the first call of Fetch has returned. Fetch waits until released is
// closed.
type heldPrices struct {
	*changeablePrices
	released chan struct{}
	fetches  atomic.Int64
}

// Lookup implements reads.Source.
func (s *heldPrices) Lookup(ctx context.Context, keys []string, into []reads.Result[*market.Price], missing []int) []int {
	if s.fetches.Load() > 0 {
		return s.changeablePrices.Lookup(ctx, keys, into, missing)
	}
	return s.changeablePrices.missing.Lookup(ctx, keys, into, missing)
}

func (s *heldPrices) Fetch(ctx context.Context, keys []string) []reads.Result[*market.Price] {
	<-s.released
	s.fetches.Add(1)
	results := make([]reads.Result[*market.Price], len(keys))
	s.changeablePrices.Lookup(ctx, keys, results, nil)
	return results
}

// TestLeavingASharedExecution checks that the second client of a shared execution gets the whole response if the first client
// leaves. There must be no second execution.
func TestLeavingASharedExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, prices := cachingConfig(t)
		source := &heldPrices{changeablePrices: prices, released: make(chan struct{})}
		cfg.Sources = loaders.Sources{Prices: source}
		var mu sync.Mutex
		responses := map[string]int{}
		cfg.Observer = onEnd(func(log *request.Log) {
			mu.Lock()
			defer mu.Unlock()
			responses[log.Response]++
		})
		h := New(cfg)
		defer h.Drain(t.Context())
		var clients sync.WaitGroup
		start := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			clients.Go(func() { h.ServeHTTP(w, postRequest(ctx, manyPrices)) })
			synctest.Wait() // until the client waits for the response
			return w
		}
		first, leave := context.WithCancel(t.Context())
		start(first)
		second := start(t.Context())
		leave()
		synctest.Wait() // until the service has ended the first request
		close(source.released)
		clients.Wait()
		if body := second.Body.String(); second.Code != http.StatusOK || strings.Contains(body, "errors") || strings.Count(body, `"0.5"`) != 4000 {
			t.Errorf("the second client got the status %d and the body %.200s, want 200 and 4000 prices", second.Code, body)
		}
		if n := source.fetches.Load(); n != 1 || responses[verdictMiss] != 1 || responses[verdictShared] != 1 {
			t.Errorf("there were %d fetches and the responses were %v, want 1 fetch, one miss and one shared response", n, responses)
		}
		if held := h.Stats().Output; held != 0 {
			t.Errorf("%d bytes of output are still reserved, want 0", held)
		}
	})
}
