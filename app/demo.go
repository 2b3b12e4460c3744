package app

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/app/hosts"
	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/control"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/demo/kalshi"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/market"
)

// engine is an embedded venue. Run changes its prices and markets until the context ends. Close ends its streams.
type engine interface {
	control.Venue
	// ID returns the venue's identifier for one of the engine.
	ID(demoID string) string
	Run(context.Context) error
	Close()
}

type demoVenue struct {
	*Server
	Venue      *demo.Venue       // contains the markets
	Polymarket *polymarket.Venue // serves the markets if --demo-driver is polymarket, else nil
	Kalshi     *kalshi.Venue     // serves the markets if --demo-driver is kalshi, else nil
	Faults     *faults.Proxy     // stands in front of the venue
	engine     engine
	handler    *control.Server // serves engine, or stands in front of a real venue
	// path is the path of the REST API; streamPath is the path of the stream.
	path, streamPath string
	keyID            string // id of an API key for the stream; empty if the stream needs no key
	key              []byte // private key of the API key as PEM text
	still            bool
	newRules         func() error // called rulesChange after the start; nil without demo questions
}

// marketEvery is the time between two changes of the demo venue's markets. A change opens, closes or resolves a market.
const marketEvery = 25 * time.Second

// openDemo opens the demo venue, as of the time opened. If a venue is configured, it opens the proxy of the demo venue in front of this
// venue instead.
func openDemo(all *config.Config, opened time.Time, log *slog.Logger, clock market.Clock) (*demoVenue, error) {
	cfg := all.Demo
	d := &demoVenue{still: cfg.Still}
	settings := demo.Config{
		Markets: cfg.Markets, Seed: uint64(cfg.Seed), Clock: clock, Latency: cfg.Latency,
		Strict: cfg.Strict, Without: cfg.Without, PublicPerMinute: cfg.PublicPerMinute, KeyPerMinute: cfg.KeyPerMinute,
		MarketEvery: marketEvery, Opened: opened, Other: cfg.Other,
	}
	if all.Venue.URL != "" {
		to, err := url.Parse(all.Venue.URL)
		if err != nil {
			return nil, err
		}
		d.handler = control.Before(to, cfg.Control)
	} else if err := d.open(cfg, settings); err != nil {
		return nil, err
	}
	d.Faults = d.handler.Faults
	if cfg.Lag > 0 {
		if err := d.Faults.Set([]faults.Fault{{Kind: faults.Stale, DelayMs: int(cfg.Lag.Milliseconds())}}); err != nil {
			return nil, err
		}
	}
	h := hosts.Guard(nil, hosts.Refuse("the demo venue serves this host only: use localhost or its IP address"), hosts.OnLoopback, d.handler)
	l, err := listen("--demo-listen (ODDSGRAPH_DEMO_LISTEN)", cfg.Listen, quota.ConnectionLimits{}, h, log, 0)
	if err != nil {
		return nil, err
	}
	d.Server = l
	return d, nil
}

func (d *demoVenue) open(cfg config.Demo, settings demo.Config) error {
	if cfg.Driver != "generic" && (cfg.Strict || len(cfg.Without) > 0 || cfg.PublicPerMinute > 0 || cfg.KeyPerMinute > 0) {
		return errors.New("--demo-strict, --demo-without, --demo-public-per-minute and --demo-key-per-minute need --demo-driver=generic")
	}
	switch cfg.Driver {
	case "polymarket":
		d.Polymarket = polymarket.New(settings)
		d.Venue, d.engine, d.streamPath = d.Polymarket.Engine(), d.Polymarket, polymarket.StreamPath
	case "kalshi":
		private, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return fmt.Errorf("no key for the demo venue: %w", err)
		}
		d.keyID, d.key = "demo", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
		d.Kalshi = kalshi.New(kalshi.Config{Demo: settings, Keys: map[string]*rsa.PublicKey{d.keyID: &private.PublicKey}})
		d.Venue, d.engine, d.path, d.streamPath = d.Kalshi.Engine(), d.Kalshi, kalshi.Path, kalshi.StreamPath
	default:
		d.Venue = demo.New(settings)
		d.engine, d.streamPath = d.Venue, demo.StreamPath
	}
	d.handler = control.New(d.engine, cfg.Control)
	return nil
}

func (d *demoVenue) onLoopback() bool {
	address, ok := d.Addr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// hasPrivateDemo reports whether the service uses the embedded venue, and no other machine can reach the venue or the service.
func (s *App) hasPrivateDemo(cfg *config.Config) bool {
	host, _, _ := net.SplitHostPort(cfg.Listen)
	return s.Demo != nil && s.Demo.onLoopback() && loopback(host)
}

// demoTokens returns the demo accounts. The bearer token of an account equals the account's API key.
func demoTokens() (*auth.Store, error) {
	var fixed []auth.FixedAccount
	for _, a := range demo.Accounts() {
		address, err := market.ParseAddress(a.Address)
		if err != nil {
			return nil, fmt.Errorf("account %s of the demo venue: %w", a.Key, err)
		}
		credentials, err := market.ParseCredentials([]byte(a.Credentials))
		if err != nil {
			return nil, fmt.Errorf("account %s of the demo venue: %w", a.Key, err)
		}
		fixed = append(fixed, auth.FixedAccount{Name: a.Key, Token: a.Key, Address: address, Credentials: credentials.ForAccount(address)})
	}
	return auth.Fixed(fixed...), nil
}

// serve serves the demo venue until ctx ends. If d.still is false, the venue's prices and markets change meanwhile.
func (d *demoVenue) serve(ctx context.Context) error {
	if d.engine == nil {
		return d.Server.serve(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := d.Server.serve(ctx)
		d.engine.Close() // closes hijacked connections, because the HTTP server does not close them
		return err
	})
	if !d.still {
		g.Go(func() error {
			if err := d.engine.Run(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	if !d.still && d.newRules != nil {
		g.Go(func() error {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(rulesChange):
				return d.newRules()
			}
		})
	}
	return g.Wait()
}
