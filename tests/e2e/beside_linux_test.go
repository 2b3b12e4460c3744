package e2e

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fewestAnswers is how many answers a bystander must get during an attack.
const fewestAnswers = 50

// bystander is a client that has nothing to do with the attack. It repeats a cached query, and each query must succeed.
type bystander struct {
	p       *target
	answers atomic.Int64
	// stop ends the queries. It may be called more than once.
	stop func()
	done sync.WaitGroup
}

// startBystander repeats the query in the background until end is called.
func (p *target) startBystander(t *testing.T) *bystander {
	b := &bystander{p: p}
	over := make(chan struct{})
	b.stop = sync.OnceFunc(func() { close(over) })
	t.Cleanup(func() { // in case the test fails before it calls end
		b.stop()
		b.done.Wait()
	})
	b.done.Go(func() {
		for {
			b.ask(t)
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return b
}

func (b *bystander) ask(t *testing.T) {
	r := b.p.request(t, b.p.normal, anonymous)
	r.Header.Set("X-Forwarded-For", "10.20.0.9")
	r.Header.Set("Accept", "application/graphql-response+json")
	if got := b.p.do(t, r); got.status != http.StatusOK || got.body != b.p.answer {
		t.Errorf("the bystander is answered with status %d and the body %.300s", got.status, got.body)
	}
	b.answers.Add(1)
}

// end waits until the bystander has got fewestAnswers answers and stops it. It also checks that the program used at most
// mostResident bytes.
func (b *bystander) end(t *testing.T) {
	eventually(t, "the bystander is answered", func() bool { return b.answers.Load() >= fewestAnswers })
	b.stop()
	b.done.Wait()
	most := memory(t, b.p.process, "VmHWM")
	t.Logf("the bystander got %d answers; the program used at most %d MiB", b.answers.Load(), most>>20)
	if most > mostResident {
		t.Errorf("the program used %d MiB, want at most %d MiB", most>>20, uint64(mostResident)>>20)
	}
}
