package httpapi

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi/content"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// hanging is a source of prices whose Fetch waits until its context ends.
type hanging struct {
	missing[string, market.Price]
}

func (hanging) Fetch(ctx context.Context, keys []string) []reads.Result[*market.Price] {
	<-ctx.Done()
	out := make([]reads.Result[*market.Price], len(keys))
	for i := range out {
		out[i].Err = ctx.Err()
	}
	return out
}

// TestMemoryOfWaitingQueriesIsBounded starts many queries of one client over event streams, which all wait for the venue. Their
// variables may take at most three quarters of MaxSubscribedBytes, and further queries must be refused. The admitted queries must
// release this memory when they end.
func TestMemoryOfWaitingQueriesIsBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.Operations, cfg.Queue, cfg.Sources.Prices = 1024, 1024, hanging{}
	api := New(cfg)
	defer api.Drain(context.Background())
	var ids []string
	for i := range 400 {
		ids = append(ids, fmt.Sprintf(`"%0250d"`, i))
	}
	body := `{"query":"query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } }","variables":{"ids":[` + strings.Join(ids, ",") + `]}}`
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer leave()
	const n = 120
	tapes := make([]*tape, n)
	for i := range n {
		tapes[i] = &tape{ResponseRecorder: httptest.NewRecorder()}
		waiting.Go(func() { api.ServeHTTP(tapes[i], postRequest(ctx, body, "Accept", content.Events)) })
	}
	refused := func() (n int) {
		for _, w := range tapes {
			w.mu.Lock()
			if strings.Contains(strings.Join(w.writes, ""), "RATE_LIMITED") {
				n++
			}
			w.mu.Unlock()
		}
		return n
	}
	// A query releases the memory of its body shortly after it begins to execute.
	eventually(t, func() bool { return refused()+api.Stats().Executing == n && api.transports.incoming.Held() == 0 })
	held := api.transports.subscriptions.held
	if got, size := refused(), held.Held(); got < n-MaxSubscribedBytes*3/4/(len(body)) || size < MaxSubscribedBytes/2 || size > MaxSubscribedBytes*3/4 {
		t.Errorf("%d of %d queries were refused and the others hold %d bytes, want %d to %d bytes", got, n, size, MaxSubscribedBytes/2, MaxSubscribedBytes*3/4)
	}
	leave()
	waiting.Wait()
	if held.Held() != 0 {
		t.Errorf("after all queries have ended, %d bytes are held, want 0", held.Held())
	}
}
