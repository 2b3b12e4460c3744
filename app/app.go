package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/ratelimit/spent"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// App is the whole service. It is bound to its ports before it serves.
type App struct {
	*Server
	log       *slog.Logger
	Demo      *demoVenue // nil with a venue of its own
	Client    *venue.Client
	budget    *ratelimit.Budget // nil where the venue takes any number of requests
	record    *spent.Record     // nil where calls are not recorded
	Cache     *cache.Cache
	Live      *live
	API       *httpapi.API
	Files     files
	Metrics   *telemetry.Metrics // nil where nothing is measured
	events    *telemetry.Operations
	Tracer    *telemetry.Tracer // nil where nothing is traced
	Admin     *Server           // nil where there is none
	reach     reach
	readiness readiness
	clock     market.Clock
	started   time.Time
	// draining tells that the service was told to stop; delay is how long requests are accepted from then on.
	draining atomic.Bool
	delay    time.Duration
	Pause    func(time.Duration)
}

// Wiring is how the parts are made that talk to the venue.
type Wiring struct {
	Client venue.Config
	Reads  cache.Config
	Stream stream.Config
	// cold is for how long calls of a process before may count.
	Cold time.Duration
	// linger is how long a topic of the stream stays open without a watch; zero is the feed's own time.
	Linger time.Duration
}

// Open wires the service and binds its ports. rig is for tests, which change the wiring.
func Open(cfg *config.Config, log *slog.Logger, clock market.Clock, rig ...func(*Wiring)) (_ *App, err error) {
	s := &App{log: log, clock: clock, started: clock.Now(), delay: cfg.DrainDelay, Pause: time.Sleep}
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
	if s.Tracer, err = telemetry.OpenTracer(BuildVersion(), log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.SendTraces(0)
		}
	}()
	venueURL := cfg.Venue.URL
	if venueURL == "" {
		if s.Demo, err = openDemo(cfg.Demo, log, clock); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = s.Demo.Close()
			}
		}()
		venueURL = s.Demo.URL()
	}
	limits := cfg.Venue
	if s.Demo != nil {
		limits.PublicPerMinute, limits.KeyPerMinute = cfg.Demo.PublicPerMinute, cfg.Demo.KeyPerMinute
	}
	s.record = s.newRecord(cfg, clock)
	s.budget = newBudget(limits, clock, s.record)
	streamURL := cfg.StreamURL
	if s.Demo != nil && cfg.Demo.Stream {
		streamURL = "ws://" + s.Demo.Addr().String() + demo.StreamPath
	}
	w := Wiring{s.venueConfig(cfg, venueURL, clock), s.cacheConfig(cfg, clock), stream.Config{
		URL: streamURL, Log: log, TopicsPerConnection: stream.DefaultTopicsPerConnection, Connections: stream.DefaultConnections,
	}, s.coldStart(cfg), 0}
	for _, change := range rig {
		change(&w)
	}
	if s.Client, err = venue.New(w.Client); err != nil {
		return nil, err
	}
	s.Cache = cache.New(s.Client, w.Reads)
	if s.Live, err = openLive(w.Stream, w.Linger, s.Cache, s.Metrics, log, clock); err != nil {
		return nil, err
	}
	s.Cache.SetWatcher(s.Live.Feed)
	s.Cache.SetStreamer(s.Live.Feed)
	root := &resolvers.Resolver{Status: s.Status, Clock: clock, Feed: s.Live.Feed, Sources: Sources(s.Cache, cfg.Limit.Calls), Scope: s.Cache.Scope, Timeout: cfg.RequestTimeout}
	if s.API, err = s.frontDoor(cfg, proxies, root, clock); err != nil {
		s.Cache.Close()
		return nil, err
	}
	s.registerMetrics(clock)
	if s.Server, err = listen("--listen (ODDSGRAPH_LISTEN)", cfg.Listen, connectionLimits(cfg, proxies), telemetry.Requests(log, cfg.Log.SampleAbove, ofHosts(cfg, s.API)), log, cfg.ShutdownTimeout); err == nil {
		s.Server.executing = func() int { return s.API.Stats().Executing }
		s.registerConnections()
		s.HTTP.MaxHeaderBytes, s.HTTP.ReadTimeout = int(cfg.MaxHeaders), cfg.BodyTimeout
		if s.Admin, err = s.openAdmin(cfg.AdminListen); err != nil {
			_ = s.Close()
		}
	}
	if err != nil {
		s.drain(0)
		s.Cache.Close()
		return nil, err
	}
	s.startBudget(w.Cold, clock)
	return s, nil
}

// Serve serves until ctx ends. It stops from the front to the back: first it is no longer ready, then it accepts no more
// requests, then there are no more reads that they waited for, nor the venue that answered those. Operators can look on until
// the end.
func (s *App) Serve(ctx context.Context) error {
	venueCtx, stopVenue := context.WithCancel(context.WithoutCancel(ctx))
	defer stopVenue()
	g, ctx := errgroup.WithContext(ctx)
	if s.Demo != nil {
		s.log.Info("no venue is configured: serving the demo venue", "venue", s.Demo.URL())
		g.Go(func() error { return s.Demo.serve(venueCtx) })
	}
	liveCtx, stopLive := context.WithCancel(venueCtx)
	defer stopLive()
	g.Go(func() error { return s.Live.run(liveCtx) })
	g.Go(func() error { s.Files.watch(liveCtx); return nil })
	adminCtx, stopAdmin := context.WithCancel(venueCtx)
	defer stopAdmin()
	ready := []any{"url", s.URL(), "version", BuildVersion()}
	if s.Admin != nil {
		g.Go(func() error { return s.Admin.serveCut(adminCtx) })
		ready = append(ready, "admin", s.Admin.URL())
	}
	s.log.Info("oddsgraph is ready", ready...)
	front, closeFront := context.WithCancel(venueCtx)
	g.Go(func() error {
		defer closeFront()
		<-ctx.Done()
		s.draining.Store(true)
		s.Pause(s.delay)
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
		err := s.Server.serve(front)
		drain()
		<-drained
		s.Live.Feed.Close()
		stopLive()
		s.Cache.Close()
		if s.budget != nil {
			s.budget.Close()
		}
		if s.record != nil {
			s.record.Close()
		}
		s.Client.Close()
		stopVenue()
		s.SendTraces(max(s.shutdown-time.Since(began), time.Second))
		return err
	})
	return g.Wait()
}

// drain ends what clients keep open.
func (s *App) drain(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.API.Drain(ctx)
}

// cacheConfig says how the cache behaves.
func (s *App) cacheConfig(cfg *config.Config, clock market.Clock) cache.Config {
	kind := func(e config.Expiry) cache.Kind {
		return cache.Kind{TTL: cache.TTL{Fresh: e.Fresh, Stale: e.Stale}, Size: e.Size}
	}
	c := cfg.Cache
	out := cache.Config{
		Price: kind(c.Price), Book: kind(c.Book), Spread: kind(c.Spread), Market: kind(c.Market), Search: kind(c.Search), History: kind(c.History),
		User:     cache.Kind{TTL: cache.TTL{Fresh: c.User.Fresh}, Size: c.User.Size},
		NotFound: c.NotFound.Fresh, NotFoundSize: c.NotFound.Size, Memory: int(c.Memory),
		Batch: cfg.Venue.Batch, InFlight: cfg.Venue.InFlight, Stretch: c.Stretch, Clock: clock,
		Cost: func(e market.Endpoint, keys, bytes int) int { return s.Client.Cost(e, keys, bytes) },
	}
	if s.budget != nil {
		out.Admission = s.budget
	}
	if s.Tracer != nil {
		out.Observer = s.Tracer.Batch
	}
	return out
}

// Sources returns what responses read. One response makes at most maxCalls upstream calls; 0 means any number.
func Sources(c *cache.Cache, maxCalls int) loaders.Sources {
	return loaders.Sources{
		MaxCalls: maxCalls,
		Prices:   c.Prices(), Spreads: c.Spreads(), Books: c.Books(), Histories: c.Histories(), Markets: c.Markets(), Events: c.Events(),
		Searches: c.Searches(), Balances: c.Balances(), Positions: c.Positions(), Orders: c.Orders(), Trades: c.Trades(), Records: c.Records(),
	}
}

// Status is what serviceStatus shows.
func (s *App) Status(context.Context) model.ServiceStatus {
	status := model.ServiceStatus{Version: BuildVersion(), Demo: s.Demo != nil, UpstreamReachable: s.reach.ok(), Stream: s.Live.Status()}
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
