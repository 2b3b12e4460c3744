package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/app/hosts"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
)

// demoVenue is the embedded venue with its HTTP server.
type demoVenue struct {
	*Server
	Venue *demo.Venue
	still bool
}

// marketEvery is the time between two changes of the demo venue's markets. A change opens, closes or resolves a market.
const marketEvery = 25 * time.Second

func openDemo(cfg config.Demo, log *slog.Logger, clock market.Clock) (*demoVenue, error) {
	v := demo.New(demo.Config{
		Markets: cfg.Markets, Seed: uint64(cfg.Seed), Clock: clock, Latency: cfg.Latency, Control: cfg.Control,
		Strict: cfg.Strict, Lag: cfg.Lag, Without: cfg.Without, PublicPerMinute: cfg.PublicPerMinute, KeyPerMinute: cfg.KeyPerMinute,
		MarketEvery: marketEvery, Log: log,
	})
	h := hosts.Guard(nil, "the demo venue serves this host only: use localhost or its IP address", hosts.OnLoopback, v)
	l, err := listen("--demo-listen (ODDSGRAPH_DEMO_LISTEN)", cfg.Listen, quota.ConnectionLimits{}, h, log, 0)
	if err != nil {
		return nil, err
	}
	return &demoVenue{l, v, cfg.Still}, nil
}

// onLoopback reports whether only this machine can reach the venue.
func (d *demoVenue) onLoopback() bool {
	address, ok := d.Addr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// serve serves the demo venue and changes its prices until ctx ends.
func (d *demoVenue) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := d.serveUntilCancelled(ctx)
		d.Venue.Close() // hijacked connections, which the HTTP server does not close
		return err
	})
	if !d.still {
		g.Go(func() error {
			if err := d.Venue.Run(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}
