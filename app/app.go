package app

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
)

// App is the whole service. Open opens its layers and binds its ports; Serve accepts connections.
type App struct {
	process
	*Server
	Admin   *Server // nil without a private address
	API     *httpapi.API
	Files   files
	Venues  []*unit
	Venue   *unit      // the first of Venues
	Demo    *demoVenue // nil without an embedded demo venue; that of Venue
	events  *telemetry.Operations
	reloads reloads
	// draining is set when the shutdown begins. The service still accepts requests until drainDelay has passed after that moment.
	draining   atomic.Bool
	drainDelay time.Duration
	Pause      func(time.Duration)
	opened     closers
}

// process is what all parts of the service use.
type process struct {
	log     *slog.Logger
	clock   market.Clock
	started time.Time
	Metrics *telemetry.Metrics // nil without metrics
	Tracer  *telemetry.Tracer  // nil without traces
}

// closers are functions that close what was opened, in the order of opening.
type closers []func()

func (c closers) close() {
	for _, f := range slices.Backward(c) {
		f()
	}
}

// Open connects the layers and binds the ports. Tests pass options that change the wiring.
func Open(cfg *config.Config, log *slog.Logger, clock market.Clock, options ...func(*Wiring)) (_ *App, err error) {
	a := &App{process: process{log: log, clock: clock, started: clock.Now()}, drainDelay: cfg.DrainDelay, Pause: time.Sleep}
	defer func() {
		if err != nil {
			a.opened.close()
		}
	}()
	proxies, err := a.prepare(cfg)
	if err != nil {
		return nil, err
	}
	front, err := a.openUnits(cfg, options)
	if err != nil {
		return nil, err
	}
	if err = a.openAPI(cfg, proxies, front); err != nil {
		return nil, err
	}
	if err = a.bind(cfg, proxies); err != nil {
		return nil, err
	}
	return a, nil
}

// prepare opens the metrics and the traces, and checks the configuration.
func (s *App) prepare(cfg *config.Config) (proxies auth.Proxies, err error) {
	if err := validate(cfg); err != nil {
		return nil, err
	}
	if cfg.AdminListen != config.Off { // with config.Off, no address serves metrics
		s.Metrics = telemetry.NewMetrics(BuildVersion())
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
	s.opened = append(s.opened, func() { s.SendTraces(0) })
	return proxies, nil
}

// maxHeaders bounds the headers of a request in bytes, including its URL, which may contain a document and its variables.
const maxHeaders = 64 << 10

func (s *App) bind(cfg *config.Config, proxies auth.Proxies) (err error) {
	s.opened = append(s.opened, func() { s.drain(0) })
	handler := telemetry.Requests(s.log, loggedPerSecond, guardHosts(cfg, s.withDemoControl(cfg, s.API)), "GET "+httpapi.PathHealth, "GET "+httpapi.PathReady)
	s.Server, err = listen("--listen (ODDSGRAPH_LISTEN)", cfg.Listen, connectionLimits(cfg, proxies), handler, s.log, cfg.ShutdownTimeout)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, func() { _ = s.Close() })
	s.Server.executing = func() int { return s.API.Stats().Executing }
	s.HTTP.MaxHeaderBytes, s.HTTP.ReadTimeout = maxHeaders, bodyTimeout
	s.registerMetrics()
	s.Admin, err = s.openAdmin(cfg.AdminListen)
	return err
}
