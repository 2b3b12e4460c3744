package e2e

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestExpensiveDocumentsOfOneClient has one client send, on 400 connections, documents that are as expensive to validate as the limits
// allow. They take turns. The client has three quarters of the turns, and the cached query of another client is answered meanwhile.
func TestExpensiveDocumentsOfOneClient(t *testing.T) {
	p := runProgram(t)
	ask := func(body, client string) (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL()+"/graphql", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/graphql-response+json")
		r.Header.Set("X-Forwarded-For", client)
		resp, err := p.client.Do(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, nil
	}
	cached := func(n int) (p90, most time.Duration) {
		took := make([]time.Duration, n)
		for i := range took {
			start := time.Now()
			if status, err := ask(`{"query":"{ searchMarkets(first: 5) { nodes { id question } } }"}`, "198.51.100.7"); status != http.StatusOK {
				t.Fatalf("a cached query is answered with %d, %v", status, err)
			}
			took[i] = time.Since(start)
			time.Sleep(5 * time.Millisecond)
		}
		slices.Sort(took)
		return took[n*9/10], took[n-1]
	}
	alone, _ := cached(100)

	document := ""
	for i := range 10 {
		document += fmt.Sprintf("query Q%d{...F}", i)
	}
	document += `fragment F on Query{market(marketId:\"1\"){`
	for i := range 97 {
		document += fmt.Sprintf("volume%0122d ", i)
	}
	document += "}}"
	var stop atomic.Bool
	var serial, refused, late atomic.Int64
	var g sync.WaitGroup
	for range 400 {
		g.Go(func() {
			for !stop.Load() {
				switch status, _ := ask(fmt.Sprintf(`{"query":"%s#%d"}`, document, serial.Add(1)), "203.0.113.9"); status {
				case http.StatusBadRequest:
					refused.Add(1)
				case http.StatusServiceUnavailable:
					late.Add(1)
				}
			}
		})
	}
	defer g.Wait()
	defer stop.Store(true)
	for deadline := time.Now().Add(patience); p.scrape(t).samples["oddsgraph_documents_waiting"] == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no document waits for its turn")
		}
	}
	turns, waiting := 0.0, 0.0
	for range 20 {
		s := p.scrape(t)
		turns, waiting = max(turns, s.samples["oddsgraph_documents_compiling"]), max(waiting, s.samples["oddsgraph_documents_waiting"])
	}
	p90, most := cached(200)
	t.Logf("alone p90 %v; beside the attack p90 %v, max %v; %v at once, %v waited, %d were invalid, %d were turned away", alone, p90, most, turns, waiting, refused.Load(), late.Load())
	if allowed := float64(max(1, runtime.GOMAXPROCS(0)*3/4)); turns > allowed || waiting < 10 {
		t.Errorf("%v documents of one client are compiled at once, %v wait; want %v at most", turns, waiting, allowed)
	}
	if refused.Load() == 0 {
		t.Error("no document of the attack was validated")
	}
	if allowed := max(250*time.Millisecond, 20*alone); p90 > allowed { // a busy machine is slow alone, too
		t.Errorf("nine of ten cached queries took up to %v, and %v without the attack", p90, alone)
	}
}
