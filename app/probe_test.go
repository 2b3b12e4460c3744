package app

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/stream"
)

// slowProber is a driver whose probe takes a second to end after it was cancelled.
type slowProber struct {
	venue.Driver
	ended bool
}

func (*slowProber) Undecided() bool  { return true }
func (*slowProber) Settings() string { return "" }
func (p *slowProber) Probe(ctx context.Context, _ upstream.Admit) error {
	<-ctx.Done()
	time.Sleep(time.Second)
	p.ended = true
	return ctx.Err()
}

// TestEndWaitsForTheProbe checks that end cancels the probe, and returns when the probe has ended.
func TestEndWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := process{clock: market.SystemClock{}, log: slog.New(slog.DiscardHandler)}
		driver := &slowProber{}
		u := &unit{process: p, Client: driver, asked: make(chan struct{}, 1)}
		if err := u.openLive(stream.Config{}, 0); err != nil {
			t.Fatal(err)
		}
		u.health.answered = make(chan struct{})
		close(u.health.answered)
		g, ctx := errgroup.WithContext(t.Context())
		u.start(ctx, g)
		synctest.Wait()
		u.end()
		if !driver.ended {
			t.Error("end returned before the probe")
		}
		_ = g.Wait()
	})
}
