package e2e

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// expensiveDocument returns a document, escaped for JSON, that is as expensive to validate as the limits allow.
func expensiveDocument() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "query Q%d{...F}", i)
	}
	b.WriteString(`fragment F on Query{market(marketId:\"1\"){`)
	for i := range 97 {
		fmt.Fprintf(&b, "volume%0122d ", i)
	}
	return b.String() + "}}"
}

// TestExpensiveDocumentsOfOneClient checks that the program compiles the documents of one client on at most three quarters of the
// processors, and answers the cached queries of another client meanwhile.
func TestExpensiveDocumentsOfOneClient(t *testing.T) {
	t.Setenv("GOMEMLIMIT", shippedMemory)
	venue := newWitness(t)
	p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.begin(t)
	other := p.startBystander(t)
	document := expensiveDocument()
	var stop atomic.Bool
	var serial, refused, unavailable atomic.Int64
	var g sync.WaitGroup
	for range 400 {
		g.Go(func() {
			for !stop.Load() {
				r := p.request(t, fmt.Sprintf(`{"query":"%s#%d"}`, document, serial.Add(1)), anonymous)
				r.Header.Set("Accept", "application/graphql-response+json")
				r.Header.Set("X-Forwarded-For", carelessClient)
				switch got := p.do(t, r); got.status {
				case http.StatusBadRequest:
					refused.Add(1)
				case http.StatusServiceUnavailable:
					unavailable.Add(1)
					time.Sleep(100 * time.Millisecond) // the refusal asks clients to wait a second, but this client retries sooner
				default:
					t.Errorf("a document is answered with status %d and the body %.300s", got.status, got.body)
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
	compiling, waiting := 0.0, 0.0
	for range 20 {
		s := p.scrape(t)
		compiling, waiting = max(compiling, s.samples["oddsgraph_documents_compiling"]), max(waiting, s.samples["oddsgraph_documents_waiting"])
		if inFlight := s.samples["oddsgraph_operations_in_flight"]; inFlight > 16 {
			t.Errorf("%v operations are in flight while documents wait, want at most 16", inFlight)
		}
	}
	for deadline := time.Now().Add(patience); refused.Load() < 100 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	other.end(t)
	stop.Store(true)
	g.Wait()
	if refused.Load() == 0 {
		t.Fatal("no document of the attack was validated")
	}
	t.Logf("at most %v documents were compiled at once and %v waited; %d were refused as invalid; %d got status 503", compiling, waiting, refused.Load(), unavailable.Load())
	if allowed := float64(max(1, runtime.GOMAXPROCS(0)*3/4)); compiling > allowed || waiting < 10 {
		t.Errorf("%v documents of one client are compiled at once and %v wait, want at most %v and at least 10", compiling, waiting, allowed)
	}
}
