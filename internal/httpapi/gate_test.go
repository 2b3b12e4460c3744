package httpapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2, 2, time.Second)
		enter := func(ctx context.Context) (func(), error) { return g.enter(ctx) }
		leave1, err1 := enter(t.Context())
		leave2, err2 := enter(t.Context())
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		type result struct {
			leave func()
			err   error
		}
		results := make(chan result, 2)
		for range 2 {
			go func() {
				leave, err := enter(t.Context())
				results <- result{leave, err}
			}()
		}
		synctest.Wait()
		var full *refusal
		if _, err := enter(t.Context()); !errors.As(err, &full) || full.status != 503 {
			t.Errorf("beyond the queue: %v", err)
		}
		leave1()
		synctest.Wait()
		first := <-results
		if first.err != nil {
			t.Fatal(first.err)
		}
		time.Sleep(time.Second) // of the bubble: the other's patience ends
		if late := <-results; !errors.As(late.err, &full) {
			t.Errorf("after its patience: %v", late.err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		go func() {
			_, err := enter(ctx)
			results <- result{err: err}
		}()
		synctest.Wait()
		cancel(gone)
		if r := <-results; !errors.Is(r.err, gone) {
			t.Errorf("whose client has gone: %v", r.err)
		}
		first.leave()
		leave2()
		if g.waiting.Load() != 0 || len(g.slots) != 0 {
			t.Errorf("%d wait, %d are inside", g.waiting.Load(), len(g.slots))
		}
	})
}
