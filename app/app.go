package app

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/resolvers"
)

// App is the whole service. Open binds its ports; Serve accepts connections.
type App struct {
	*Server
	log    *slog.Logger
	Demo   *demoVenue // nil without an embedded demo venue
	Client venue.Driver
	driver string // name of the driver of Client
	// currency is the unit of the venue's money; nil if the unit is unknown.
	currency *string
	// unsupported are the names of the endpoints that Client does not serve, and "cash" if Client serves balances without cash.
	unsupported    []string
	publicAccounts bool
	budget         *ratelimit.Budget // nil if no rate limit of the venue is known
	fleet          *fleet.Fleet      // the replicas that share Redis; nil without Redis
	secret         []byte            // nil without --shared-secret-file
	stream         stream.Config     // address and protocol of the venue's stream
	key            drivers.APIKey    // this service's API key at the venue; empty if there is none
	replicas       int               // maximum number of replicas
	Cache          *cache.Cache
	Live           *live
	API            *httpapi.API
	Files          files
	Metrics        *telemetry.Metrics // nil without metrics
	events         *telemetry.Operations
	Tracer         *telemetry.Tracer // nil without traces
	Admin          *Server           // nil without a private address
	reach          reach
	outage         *outage
	clocks         *clocks
	readiness      readiness
	reloads        reloads
	clock          market.Clock
	started        time.Time
	// draining is set when the shutdown begins. The service still accepts requests until drainDelay has passed after that moment.
	draining   atomic.Bool
	drainDelay time.Duration
	Pause      func(time.Duration)
	// undo are functions that close what Open has opened. They run if Open fails.
	undo []func()
}

// Open connects the layers and binds the ports. Tests pass options that change the wiring.
func Open(cfg *config.Config, log *slog.Logger, clock market.Clock, options ...func(*Wiring)) (_ *App, err error) {
	a := &App{log: log, clock: clock, started: clock.Now(), drainDelay: cfg.DrainDelay, Pause: time.Sleep}
	a.readiness.asked, a.outage = make(chan struct{}), newOutage(log)
	a.clocks = newClocks(log, comparedClocks(cfg)...)
	defer func() {
		if err != nil {
			a.release()
		}
	}()
	proxies, err := a.prepare(cfg)
	if err != nil {
		return nil, err
	}
	limits, sharing, err := a.openVenue(cfg)
	if err != nil {
		return nil, err
	}
	w := a.wiring(cfg, options)
	if !w.Unlimited {
		a.budget = newBudget(limits, clock, w.Fresh, sharing)
	}
	if a.budget != nil {
		w.Reads.Admission = a.budget
		a.logStart(w.Fresh)
	}
	if a.Client, err = drivers.Open(w.Client); err != nil {
		return nil, err
	}
	a.driver, a.unsupported = w.Client.Driver, unsupportedBy(a.Client)
	a.publicAccounts = accountsArePublic(cfg) && !slices.Contains(a.unsupported, reqctx.EndpointPositions.String())
	a.currency = currency(cfg)
	a.openCache(w)
	if a.Live, err = openLive(withProtocol(a.Client, w.Stream), w.Linger, a.Cache, a.Metrics, log, clock); err != nil {
		return nil, err
	}
	a.Cache.SetWatcher(a.Live.Feed)
	a.Cache.SetStreamer(a.Live.Feed)
	root := &resolvers.Resolver{
		Venue: a.resolved(cfg), Status: a.Status, Clock: clock, Timeout: cfg.RequestTimeout, ListOrders: resolvers.NewListOrders(clock),
	}
	if a.API, err = a.newAPI(cfg, proxies, root, w.Front); err != nil {
		return nil, err
	}
	if err = a.bind(cfg, proxies); err != nil {
		return nil, err
	}
	return a, nil
}

// resolved returns what the resolvers read.
func (s *App) resolved(cfg *config.Config) resolvers.Venue {
	return resolvers.Venue{
		Name: venueInIDs(cfg), Feed: s.Live.Feed, Sources: Sources(s.Cache, cfg.Limit.Calls), Scope: s.Cache.Scope, Can: s.Client.Can,
		CashError: cashError(s.Client), MarketID: drivers.MarketID(cfg.Venue.Driver), PublicAccounts: accountsArePublic(cfg),
	}
}

func (s *App) release() {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
}

func (s *App) prepare(cfg *config.Config) (proxies auth.Proxies, err error) {
	s.openMetrics(cfg)
	if err := validate(cfg); err != nil {
		return nil, err
	}
	if proxies, err = trustedProxies(cfg); err != nil {
		return nil, err
	}
	for _, warning := range warnings(cfg) {
		s.log.Warn(warning)
	}
	if s.Tracer, err = telemetry.OpenTracer(BuildVersion(), s.log); err != nil {
		return nil, err
	}
	s.undo = append(s.undo, func() { s.SendTraces(0) })
	return proxies, nil
}

// openVenue opens the embedded demo venue if the service uses it. It also opens the stream and Redis if they are configured. It
// returns what newBudget needs: the venue's settings with the rate limits of the venue in use, and how the replicas share them.
func (s *App) openVenue(cfg *config.Config) (limits config.Venue, sharing ratelimit.Sharing, err error) {
	limits = cfg.Venue
	if embedded(cfg) {
		if s.Demo, err = openDemo(cfg.Demo, s.log, s.clock); err != nil {
			return limits, sharing, err
		}
		s.undo = append(s.undo, func() { _ = s.Demo.Close() })
		limits.PublicPerMinute, limits.KeyPerMinute = cfg.Demo.PublicPerMinute, cfg.Demo.KeyPerMinute
	}
	if s.stream, err = streamConfig(cfg, s.Demo, s.clock); err != nil {
		return limits, sharing, err
	}
	if s.key, err = venueKey(cfg.Venue, s.Demo); err != nil {
		return limits, sharing, err
	}
	limits.KeyID = s.key.ID
	sharing, err = s.openFleet(cfg)
	return limits, sharing, err
}

func (s *App) openCache(w Wiring) {
	s.Cache = cache.New(s.Client, w.Reads)
	s.undo = append(s.undo, s.Cache.Close)
	if s.fleet != nil {
		s.fleet.OnFlush(s.Cache.FlushLocal)
	}
}

// maxHeaders bounds the headers of a request in bytes, including its URL, which may contain a document and its variables.
const maxHeaders = 64 << 10

func (s *App) bind(cfg *config.Config, proxies auth.Proxies) (err error) {
	s.undo = append(s.undo, func() { s.drain(0) })
	handler := telemetry.Requests(s.log, loggedPerSecond, guardHosts(cfg, s.withDemoControl(cfg, s.API)), "GET "+httpapi.PathHealth, "GET "+httpapi.PathReady)
	s.Server, err = listen("--listen (ODDSGRAPH_LISTEN)", cfg.Listen, connectionLimits(cfg, proxies), handler, s.log, cfg.ShutdownTimeout)
	if err != nil {
		return err
	}
	s.undo = append(s.undo, func() { _ = s.Close() })
	s.Server.executing = func() int { return s.API.Stats().Executing }
	s.HTTP.MaxHeaderBytes, s.HTTP.ReadTimeout = maxHeaders, bodyTimeout
	s.registerMetrics()
	s.Admin, err = s.openAdmin(cfg.AdminListen)
	return err
}
