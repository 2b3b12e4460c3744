// Command oddsgraph serves a prediction-market venue as one GraphQL endpoint.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/graph/model"
	"oddsgraph/internal/budget"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/spent"
	"oddsgraph/internal/stream"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
	"oddsgraph/web"
)

//go:embed schema.graphqls
var sdl string

// thirdParty is the licence texts of the Go code in the program, written by scripts/licenses.
//
//go:embed THIRD_PARTY_LICENSES
var thirdParty string

// version is stamped by the build.
var version = ""

// logLines is how many bytes of the log may wait to be written.
const logLines = 4 << 20

func main() {
	paceCollector()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "oddsgraph:", err)
		os.Exit(1)
	}
}

// run does what the command line says and returns when that is done or ctx has ended.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	cfg, err := config.Parse(args, environ, stdout)
	if errors.Is(err, config.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	var level slog.LevelVar
	level.Set(cfg.Log.Level)
	lines := telemetry.NewWriter(stderr, logLines)
	defer lines.Close(5 * time.Second)
	log := telemetry.NewLogger(lines, &level, cfg.Log.Format)
	switch cfg.Command {
	case config.CommandSchema:
		_, err := io.WriteString(stdout, sdl)
		return err
	case config.CommandVersion:
		_, err := fmt.Fprintln(stdout, buildVersion())
		return err
	case config.CommandLicenses:
		_, err := io.WriteString(stdout, thirdParty+web.Licenses())
		return err
	case config.CommandHealthcheck:
		return healthcheck(ctx, cfg.HealthcheckURL())
	case config.CommandConfigCheck:
		return check(ctx, cfg, log, stdout)
	case config.CommandConfigShow:
		return cfg.Show(stdout)
	case config.CommandVenue:
		d, err := openDemo(cfg.Demo, log, market.SystemClock{})
		if err != nil {
			return err
		}
		log.Info("demo venue", "url", d.url())
		return d.serve(ctx)
	default:
		hungUp := closedTerminal()
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		s, err := open(cfg, log, market.SystemClock{})
		if err != nil {
			return err
		}
		s.measureLog(lines)
		read := func() (*config.Config, error) { return config.Parse(args, environ, io.Discard) }
		r := &reloader{read: read, cfg: cfg, level: &level, files: &s.files, log: log, hungUp: hungUp}
		return r.during(ctx, hangups, s.serve)
	}
}

// buildVersion returns the stamped version, or the commit that the binary was built from.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "development"
}

// healthcheck asks the server on this host how it does.
func healthcheck(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil
}

// server is the whole service. It is bound to its ports before it serves.
type server struct {
	*listener
	log       *slog.Logger
	demo      *demoVenue // nil with a venue of its own
	client    *venue.Client
	budget    *budget.Budget // nil where the venue takes any number of requests
	record    *spent.Record  // nil where calls are not recorded
	cache     *cache.Cache
	live      *live
	api       *httpapi.API
	files     files
	metrics   *telemetry.Metrics // nil where nothing is measured
	events    *telemetry.Operations
	tracer    *telemetry.Tracer // nil where nothing is traced
	admin     *listener         // nil where there is none
	reach     reach
	readiness readiness
	clock     market.Clock
	started   time.Time
	// draining tells that the service was told to stop; delay is how long requests are accepted from then on.
	draining atomic.Bool
	delay    time.Duration
	pause    func(time.Duration)
}

// wiring is how the parts are made that talk to the venue.
type wiring struct {
	client venue.Config
	reads  cache.Config
	stream stream.Config
	// cold is for how long calls of a process before may count.
	cold time.Duration
	// linger is how long a topic of the stream stays open without a watch; zero is the feed's own time.
	linger time.Duration
}

// open wires the service and binds its ports. rig is for tests, which change the wiring.
func open(cfg *config.Config, log *slog.Logger, clock market.Clock, rig ...func(*wiring)) (_ *server, err error) {
	s := &server{log: log, clock: clock, started: clock.Now(), delay: cfg.DrainDelay, pause: time.Sleep}
	s.openMetrics(cfg)
	if err := coherent(cfg); err != nil {
		return nil, err
	}
	proxies, err := trustedProxies(cfg)
	if err != nil {
		return nil, err
	}
	for _, warning := range warnings(cfg) {
		log.Warn(warning)
	}
	if s.tracer, err = telemetry.OpenTracer(buildVersion(), log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.sendTraces(0)
		}
	}()
	venueURL := cfg.Venue.URL
	if venueURL == "" {
		if s.demo, err = openDemo(cfg.Demo, log, clock); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = s.demo.Close()
			}
		}()
		venueURL = s.demo.url()
	}
	limits := cfg.Venue
	if s.demo != nil {
		limits.PublicPerMinute, limits.KeyPerMinute = cfg.Demo.PublicPerMinute, cfg.Demo.KeyPerMinute
	}
	s.record = s.newRecord(cfg, clock)
	s.budget = newBudget(limits, clock, s.record)
	streamURL := cfg.StreamURL
	if s.demo != nil && cfg.Demo.Stream {
		streamURL = "ws://" + s.demo.Addr().String() + demo.StreamPath
	}
	w := wiring{s.venueConfig(cfg, venueURL, clock), s.cacheConfig(cfg, clock), stream.Config{
		URL: streamURL, Log: log, TopicsPerConnection: stream.DefaultTopicsPerConnection, Connections: stream.DefaultConnections,
	}, s.coldStart(cfg), 0}
	for _, change := range rig {
		change(&w)
	}
	if s.client, err = venue.New(w.client); err != nil {
		return nil, err
	}
	s.cache = cache.New(s.client, w.reads)
	if s.live, err = openLive(w.stream, w.linger, s.cache, s.metrics, log, clock); err != nil {
		return nil, err
	}
	s.cache.SetWatcher(s.live.feed)
	s.cache.SetStreamer(s.live.feed)
	root := &resolvers.Resolver{Status: s.status, Clock: clock, Feed: s.live.feed, Sources: sources(s.cache, cfg.Limit.Calls), Scope: s.cache.Scope, Timeout: cfg.RequestTimeout}
	if s.api, err = s.frontDoor(cfg, proxies, root, clock); err != nil {
		s.cache.Close()
		return nil, err
	}
	s.registerMetrics(clock)
	if s.listener, err = listen("--listen (ODDSGRAPH_LISTEN)", cfg.Listen, connectionLimits(cfg, proxies), telemetry.Requests(log, cfg.Log.SampleAbove, ofHosts(cfg, s.api)), log, cfg.ShutdownTimeout); err == nil {
		s.listener.executing = func() int { return s.api.Stats().Executing }
		s.registerConnections()
		s.http.MaxHeaderBytes, s.http.ReadTimeout = int(cfg.MaxHeaders), cfg.BodyTimeout
		if s.admin, err = s.openAdmin(cfg.AdminListen); err != nil {
			_ = s.Close()
		}
	}
	if err != nil {
		s.drain(0)
		s.cache.Close()
		return nil, err
	}
	s.startBudget(w.cold, clock)
	return s, nil
}

// serve serves until ctx ends. It stops from the front to the back: first it is no longer ready, then it accepts no more
// requests, then there are no more reads that they waited for, nor the venue that answered those. Operators can look on until
// the end.
func (s *server) serve(ctx context.Context) error {
	venueCtx, stopVenue := context.WithCancel(context.WithoutCancel(ctx))
	defer stopVenue()
	g, ctx := errgroup.WithContext(ctx)
	if s.demo != nil {
		s.log.Info("no venue is configured: serving the demo venue", "venue", s.demo.url())
		g.Go(func() error { return s.demo.serve(venueCtx) })
	}
	liveCtx, stopLive := context.WithCancel(venueCtx)
	defer stopLive()
	g.Go(func() error { return s.live.run(liveCtx) })
	g.Go(func() error { s.files.watch(liveCtx); return nil })
	adminCtx, stopAdmin := context.WithCancel(venueCtx)
	defer stopAdmin()
	ready := []any{"url", s.url(), "version", buildVersion()}
	if s.admin != nil {
		g.Go(func() error { return s.admin.serveCut(adminCtx) })
		ready = append(ready, "admin", s.admin.url())
	}
	s.log.Info("oddsgraph is ready", ready...)
	front, closeFront := context.WithCancel(venueCtx)
	g.Go(func() error {
		defer closeFront()
		<-ctx.Done()
		s.draining.Store(true)
		s.pause(s.delay)
		return nil
	})
	g.Go(func() error {
		// Subscriptions last as long as their clients like, so they are ended while requests are waited for.
		drained := make(chan struct{})
		var began time.Time
		drain := sync.OnceFunc(func() {
			defer close(drained)
			began = time.Now()
			s.drain(s.shutdown)
		})
		context.AfterFunc(front, drain)
		err := s.listener.serve(front)
		drain()
		<-drained
		s.live.feed.Close()
		stopLive()
		s.cache.Close()
		if s.budget != nil {
			s.budget.Close()
		}
		if s.record != nil {
			s.record.Close()
		}
		s.client.Close()
		stopVenue()
		s.sendTraces(max(s.shutdown-time.Since(began), time.Second))
		return err
	})
	return g.Wait()
}

// drain ends what clients keep open.
func (s *server) drain(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.api.Drain(ctx)
}

// cacheConfig says how the cache behaves.
func (s *server) cacheConfig(cfg *config.Config, clock market.Clock) cache.Config {
	kind := func(e config.Expiry) cache.Kind {
		return cache.Kind{TTL: cache.TTL{Fresh: e.Fresh, Stale: e.Stale}, Size: e.Size}
	}
	c := cfg.Cache
	out := cache.Config{
		Price: kind(c.Price), Book: kind(c.Book), Spread: kind(c.Spread), Market: kind(c.Market), Search: kind(c.Search), History: kind(c.History),
		User:     cache.Kind{TTL: cache.TTL{Fresh: c.User.Fresh}, Size: c.User.Size},
		NotFound: c.NotFound.Fresh, NotFoundSize: c.NotFound.Size, Memory: int(c.Memory),
		Batch: cfg.Venue.Batch, InFlight: cfg.Venue.InFlight, Stretch: c.Stretch, Clock: clock,
		Cost: func(e market.Endpoint, keys, bytes int) int { return s.client.Cost(e, keys, bytes) },
	}
	if s.budget != nil {
		out.Admission = s.budget
	}
	if s.tracer != nil {
		out.Observer = s.tracer.Batch
	}
	return out
}

// sources returns what responses read. One response makes at most maxCalls upstream calls; 0 means any number.
func sources(c *cache.Cache, maxCalls int) loaders.Sources {
	return loaders.Sources{
		MaxCalls: maxCalls,
		Prices:   c.Prices(), Spreads: c.Spreads(), Books: c.Books(), Histories: c.Histories(), Markets: c.Markets(), Events: c.Events(),
		Searches: c.Searches(), Balances: c.Balances(), Positions: c.Positions(), Orders: c.Orders(), Trades: c.Trades(), Records: c.Records(),
	}
}

// status is what serviceStatus shows.
func (s *server) status(context.Context) model.ServiceStatus {
	status := model.ServiceStatus{Version: buildVersion(), Demo: s.demo != nil, UpstreamReachable: s.reach.ok(), Stream: s.live.status()}
	if s.budget != nil {
		if until := s.budget.Status().ThrottledUntil; !until.IsZero() {
			status.ThrottledUntil = &until
		}
	}
	if status.Stream.Since.IsZero() {
		status.Stream.Since = s.started
	}
	return status
}
