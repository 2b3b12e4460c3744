package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// TestRandomCallers checks that all reads end, with the right values or with errors, while callers, the venue and the admission act
// at random.
func TestRandomCallers(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			v := &randomVenue{seed: seed}
			cfg := DefaultConfig()
			cfg.Admission, v.batch, cfg.InFlight = v, 5, 2
			cfg.Price = TTL{30 * time.Millisecond, 20 * time.Millisecond}
			if seed%2 == 0 {
				v.cost = func(keys int) int { return keys }
			}
			c := New(v, cfg)
			var wg sync.WaitGroup
			for caller := range 40 {
				r := rand.New(rand.NewPCG(seed, uint64(caller)))
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(60))*time.Millisecond)
						keys := make([]string, 1+r.IntN(12))
						for i := range keys {
							keys[i] = fmt.Sprintf("t%03d", r.IntN(25))
						}
						for i, got := range readAll(ctx, c.Prices(), keys...) {
							if got.Err == nil && got.Value.Value.TokenID != keys[i] {
								t.Errorf("got token %s, want %s", got.Value.Value.TokenID, keys[i])
							}
						}
						cancel()
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Minute)
			wantIdle(t, c.prices.routes[0])
			if n := v.admitted.Load(); n != 0 {
				t.Errorf("got %d admitted reservations that were not released, want 0", n)
			}
			if v.most.Load() > 2 {
				t.Errorf("got %d calls at once, want at most 2", v.most.Load())
			}
			c.Close()
		})
	}
}

// randomVenue is a venue.Reader and an Admission. Both fail at random.
type randomVenue struct {
	testVenue
	seed     uint64
	n        atomic.Uint64
	admitted atomic.Int64
	inside   atomic.Int64
	most     atomic.Int64
}

func (w *randomVenue) mood() *rand.Rand { return rand.New(rand.NewPCG(w.seed, w.n.Add(1))) }

func (w *randomVenue) Scarce(string, upstream.Endpoint) bool { return false }

func (w *randomVenue) Reserve(want upstream.CallRequest) upstream.Reservation {
	r := w.mood()
	t := &randomTicket{owner: w, decided: make(chan struct{}), gone: make(chan struct{})}
	if r.IntN(10) == 0 {
		t.err = market.Errorf(market.CodeRateLimited, "no")
		close(t.decided)
		return t
	}
	fails := r.IntN(10) == 0
	wait := time.After(time.Duration(r.IntN(30)) * time.Millisecond)
	go func() {
		defer close(t.decided)
		select {
		case <-t.gone:
			return
		case <-wait:
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if fails {
			t.err = market.Errorf(market.CodeRateLimited, "no")
		} else if !t.released {
			t.admitted = true
			w.admitted.Add(1)
		}
	}()
	return t
}

// randomTicket is a reservation of a randomVenue.
type randomTicket struct {
	admitAll
	owner              *randomVenue
	decided, gone      chan struct{}
	mu                 sync.Mutex
	err                error
	admitted, released bool
}

func (t *randomTicket) Decided() <-chan struct{} { return t.decided }

func (t *randomTicket) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Late returns an error at random while the reservation waits.
func (t *randomTicket) Late(time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.admitted || t.owner.mood().IntN(10) > 0 {
		return nil
	}
	return upstream.RateLimited(time.Millisecond)
}

func (t *randomTicket) Release(bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return
	}
	t.released = true
	close(t.gone)
	if t.admitted {
		t.owner.admitted.Add(-1)
	}
}

func (w *randomVenue) Prices(ctx context.Context, call upstream.Call, tokens []string) ([]upstream.Result[*market.Price], error) {
	r := w.mood()
	w.most.Store(max(w.most.Load(), w.inside.Add(1)))
	defer w.inside.Add(-1)
	select {
	case <-time.After(time.Duration(r.IntN(50)) * time.Millisecond):
	case <-ctx.Done():
		if r.IntN(2) == 0 {
			return nil, ctx.Err()
		}
	}
	switch r.IntN(10) {
	case 0:
		return nil, errors.New("no")
	case 1:
		panic("oh")
	}
	return w.testVenue.Prices(ctx, call, tokens)
}
