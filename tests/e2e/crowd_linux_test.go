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
// processors. Nine of ten cached queries of another client must take no longer than the median of these documents.
func TestExpensiveDocumentsOfOneClient(t *testing.T) {
	t.Setenv("GOMEMLIMIT", shippedMemory)
	venue := newWitness(t)
	p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.begin(t)
	other := p.startBystander(t)
	document := expensiveDocument()
	var stop atomic.Bool
	var serial, refused, late atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var g sync.WaitGroup
	for range 400 {
		g.Go(func() {
			for !stop.Load() {
				r := p.request(t, fmt.Sprintf(`{"query":"%s#%d"}`, document, serial.Add(1)), anonymous)
				r.Header.Set("Accept", "application/graphql-response+json")
				r.Header.Set("X-Forwarded-For", careless)
				began := time.Now()
				switch got := p.do(t, r); got.status {
				case http.StatusBadRequest:
					refused.Add(1)
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				case http.StatusServiceUnavailable:
					late.Add(1)
					time.Sleep(100 * time.Millisecond) // the refusal asks clients to wait a second, but this client retries sooner
				default:
					t.Errorf("a document is answered with %d %.300s", got.status, got.body)
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
		if held := s.samples["oddsgraph_operations_in_flight"]; held > 16 {
			t.Errorf("%v operations are executed while their documents wait", held)
		}
	}
	for deadline := time.Now().Add(patience); refused.Load() < 100 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	during := other.end(t)
	stop.Store(true)
	g.Wait()
	slices.Sort(took)
	if len(took) == 0 {
		t.Fatal("no document of the attack was validated")
	}
	p90, median := during[len(during)*9/10], took[len(took)/2]
	t.Logf("%v at once, %v waited, %d were invalid after %v in the median, %d were turned away", turns, waiting, refused.Load(), median, late.Load())
	if allowed := float64(max(1, runtime.GOMAXPROCS(0)*3/4)); turns > allowed || waiting < 10 {
		t.Errorf("%v documents of one client are compiled at once, %v wait; want %v at most", turns, waiting, allowed)
	}
	if p90 > median {
		t.Errorf("nine of ten cached queries took up to %v, longer than %v for a document", p90, median)
	}
}
