package e2e

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// fewestAnswers is how many answers a bystander gets before an attack. The bystander must get at least as many during the
	// attack.
	fewestAnswers = 50
	// maxSlowdown limits how much slower a bystander may be served. A bystander that got n answers a second before the attack must
	// get at least n/maxSlowdown answers a second during the attack.
	maxSlowdown = 20
)

// bystander is a client that has nothing to do with the attack. It repeats a cached query, and each query must succeed.
type bystander struct {
	p *target
	// before and during hold the duration of each query.
	before, during []time.Duration
	// beforeTotal and duringTotal are the total times, including the pauses between queries.
	beforeTotal, duringTotal time.Duration

	mu   sync.Mutex
	over chan struct{}
	// stop ends the queries. It may be called more than once.
	stop func()
	done sync.WaitGroup
}

// startBystander measures queries before the attack. It then repeats the query in the background until end is called.
func (p *target) startBystander(t *testing.T) *bystander {
	b := &bystander{p: p, over: make(chan struct{})}
	b.stop = sync.OnceFunc(func() { close(b.over) })
	t.Cleanup(func() { // in case the test fails before it calls end
		b.stop()
		b.done.Wait()
	})
	began := time.Now()
	for range fewestAnswers {
		b.before = append(b.before, b.ask(t))
	}
	b.beforeTotal = time.Since(began)
	b.done.Go(func() {
		began := time.Now()
		defer func() { b.duringTotal = time.Since(began) }()
		for {
			took := b.ask(t)
			b.mu.Lock()
			b.during = append(b.during, took)
			b.mu.Unlock()
			select {
			case <-b.over:
				return
			default:
			}
		}
	})
	return b
}

// ask sends the query once, then pauses for 20 ms. It returns how long the query took without the pause.
func (b *bystander) ask(t *testing.T) (took time.Duration) {
	r := b.p.request(t, b.p.normal, anonymous)
	r.Header.Set("X-Forwarded-For", "10.20.0.9")
	r.Header.Set("Accept", "application/graphql-response+json")
	began := time.Now()
	if got := b.p.do(t, r); got.status != http.StatusOK || got.body != b.p.answer {
		t.Errorf("the bystander is answered with status %d and the body %.300s", got.status, got.body)
	}
	took = time.Since(began)
	time.Sleep(20 * time.Millisecond)
	return took
}

// end waits until the bystander has got fewestAnswers answers during the attack, but no longer than patience. Then end stops the
// bystander, and checks the number and the rate of these answers. It also checks that the program used at most mostResident bytes.
// end returns the sorted durations of the queries during the attack.
func (b *bystander) end(t *testing.T) []time.Duration {
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		b.mu.Lock()
		n := len(b.during)
		b.mu.Unlock()
		if n >= fewestAnswers {
			break
		}
	}
	b.stop()
	b.done.Wait()
	slices.Sort(b.before)
	slices.Sort(b.during)
	n, most := len(b.during), memory(t, b.p.process, "VmHWM")
	before, during := float64(len(b.before))/b.beforeTotal.Seconds(), float64(n)/b.duringTotal.Seconds()
	t.Logf("the bystander's queries during the attack: p50 %v, p90 %v, p99 %v, max %v, %d answers, %.0f answers a second; before the attack: p50 %v, p90 %v, max %v, %.0f answers a second; the program used at most %d MiB",
		b.during[n/2], b.during[n*9/10], b.during[n*99/100], b.during[n-1], n, during,
		b.before[fewestAnswers/2], b.before[fewestAnswers*9/10], b.before[fewestAnswers-1], before, most>>20)
	if n < fewestAnswers || during*maxSlowdown < before {
		t.Errorf("during the attack, the bystander got %d answers, %.1f a second; before the attack, it got %.1f answers a second", n, during, before)
	}
	if most > mostResident {
		t.Errorf("the program used %d MiB, want at most %d MiB", most>>20, uint64(mostResident)>>20)
	}
	return b.during
}
