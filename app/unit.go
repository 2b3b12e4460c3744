package app

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/resolvers"
)

// unit is a venue that the service reads, with all that belongs to it: the driver, the rate limit, the cache, the feed, the stream,
// what the replicas share of it, and its state. openUnit opens the parts, start runs them, and end closes them.
type unit struct {
	process
	cfg *config.Config
	// name is the name of a further venue in ids, and empty for the first venue. names are those of all further venues of the process.
	name   string
	names  market.Names
	demo   *demoVenue // nil without an embedded venue
	Client venue.Driver
	// Reader is what Cache reads: Client, without the accounts of a further venue that needs credentials.
	Reader venue.Reader
	Cache  *cache.Cache
	Live   *live
	budget *ratelimit.Budget // nil if no rate limit of the venue is known
	fleet  *fleet.Fleet      // the replicas that share Redis; nil without Redis
	// replicas is the maximum number of replicas. It is 0 without Redis.
	replicas int
	health   health
	// asked has a value if Ready needs an answer of the venue.
	asked chan struct{}
	// constant is the part of status that never changes.
	constant model.ServiceStatus
	stop     context.CancelFunc // ends what start has started
	calls    sync.WaitGroup     // the first call and the probe
	opened   closers
}

// venues returns the configurations of all venues, the first one first.
func venues(cfg *config.Config) []*config.Config { return append([]*config.Config{cfg}, cfg.More...) }

// title returns the name of a venue for clients and operators.
func title(cfg *config.Config) string { return cmp.Or(cfg.Venue.Name, cfg.Venue.Driver) }

// titles returns the names of all venues if there are several, or nil.
func titles(cfg *config.Config) (all []string) {
	for _, c := range venues(cfg) {
		all = append(all, title(c))
	}
	if len(all) == 1 {
		return nil
	}
	return all
}

// furtherNames returns the names of all further venues.
func furtherNames(cfg *config.Config) (names market.Names) {
	for _, c := range cfg.More {
		names = append(names, c.Venue.Name)
	}
	return names
}

// openUnits opens all venues. front is Wiring.Front of the first venue.
func (s *App) openUnits(cfg *config.Config, options []func(*Wiring)) (front func(*httpapi.Config), err error) {
	names, opened := furtherNames(cfg), s.clock.Now()
	for i, c := range venues(cfg) {
		u := &unit{process: s.process, cfg: c, names: names, asked: make(chan struct{}, 1)}
		if i > 0 {
			u.name = names[i-1]
		}
		if len(names) > 0 {
			u.log = u.log.With("venue", title(c))
		}
		if u.Metrics != nil {
			u.Metrics = u.Metrics.ForVenue(title(c))
		}
		s.opened = append(s.opened, u.closeDemo, func() { u.opened.close() })
		w, err := u.openWith(opened, options)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			s.More = append(s.More, u)
			continue
		}
		s.Venue, s.Demo, front = u, u.demo, w.Front
	}
	return front, nil
}

// openWith opens the embedded venue, if there is one, and then the unit with the wiring that the options have changed. opened is the
// time at which all embedded venues open.
func (u *unit) openWith(opened time.Time, options []func(*Wiring)) (w Wiring, err error) {
	if embedded(u.cfg) {
		if u.demo, err = openDemo(u.cfg, opened, u.log, u.clock); err != nil {
			return w, err
		}
	}
	if w, err = u.wiring(options); err != nil {
		return w, err
	}
	return w, u.open(w)
}

func (u *unit) closeDemo() {
	if u.demo != nil {
		_ = u.demo.Close()
	}
}

// units returns all venues, the first one first.
func (s *App) units() []*unit { return append([]*unit{s.Venue}, s.More...) }

// open opens the parts of the unit.
func (u *unit) open(w Wiring) (err error) {
	cfg := u.cfg
	u.health = health{process: u.process, answered: make(chan struct{}), outage: newOutage(u.log), clocks: newClocks(u.log, comparedClocks(cfg)...)}
	u.opened = append(u.opened, u.health.outage.close)
	if embedded(cfg) {
		u.health.noteAnswer()
	}
	sharing, err := u.openFleet(cfg, &w.Reads)
	if err != nil {
		return err
	}
	u.openBudget(cfg, &w, sharing)
	w.Client.Observer = &u.health
	if u.Client, err = drivers.Open(w.Client); err != nil {
		return err
	}
	u.opened = append(u.opened, u.Client.Close)
	if u.Reader = u.Client; u.name != "" && !drivers.Of(cfg.Venue.Driver).PublicAccounts {
		u.Reader = withoutAccounts{u.Client, u.name}
	}
	u.Cache = cache.New(u.Reader, w.Reads)
	u.opened = append(u.opened, u.Cache.Close)
	if u.fleet != nil {
		u.fleet.OnFlush(u.Cache.FlushLocal)
	}
	if err = u.openLive(withProtocol(cfg, u.Client, w.Stream), w.Linger); err != nil {
		return err
	}
	u.Cache.SetWatcher(u.Live.Feed)
	u.Cache.SetStreamer(u.Live.Feed)
	u.constant = u.constantStatus()
	return nil
}

// start runs the stream in g, and also the first call and the probe. They run until ctx or end ends them.
func (u *unit) start(ctx context.Context, g *errgroup.Group) {
	ctx, u.stop = context.WithCancel(ctx)
	g.Go(func() error { return u.Live.run(ctx) })
	u.calls.Go(func() { u.firstCall(ctx) })
	u.calls.Go(func() { u.probe(ctx) })
}

// end ends what start has started, and waits for it. Then it closes the cache, the client of the venue, the rate limiter and Redis, in this order.
func (u *unit) end() {
	u.Live.end(u.stop)
	u.calls.Wait()
	u.opened.close()
}

// resolverVenue returns what the resolvers read.
func (u *unit) resolverVenue() resolvers.Venue {
	cfg := u.cfg
	return resolvers.Venue{
		Name: cmp.Or(u.name, venueInIDs(cfg)), Title: title(cfg), Currency: currency(cfg),
		Feed: u.Live.Feed, Sources: Sources(u.Cache, cfg.Limit.Calls), Scope: u.Cache.Scope, Can: u.Reader.Can,
		CashError: cashError(u.Client, u.Reader.Can), MarketID: drivers.Of(cfg.Venue.Driver).MarketID, PublicAccounts: accountsArePublic(cfg),
	}
}

// forget makes each of an account's topics close as soon as no subscription watches the topic.
func (u *unit) forget(a *auth.Account) {
	ctx := request.WithCredentials(context.Background(), a.Credentials)
	u.Live.Feed.SkipLinger(func(t messages.Topic) bool {
		return t.Channel == messages.ChannelUser && t.Scope == u.Cache.Scope(ctx, market.Address(t.ID))
	})
}

func (u *unit) constantStatus() model.ServiceStatus {
	cfg, unsupported := u.cfg, unsupportedBy(u.Client, u.Reader.Can)
	searches := drivers.Of(cfg.Venue.Driver).Searches
	return model.ServiceStatus{
		Currency: currency(cfg),
		Venue: &model.VenueStatus{
			Driver: cfg.Venue.Driver, Unsupported: unsupported,
			PublicAccounts: accountsArePublic(cfg) && !slices.Contains(unsupported, upstream.EndpointPositions.String()),
			MarketSorts:    searches.MarketSorts, EventSorts: searches.EventSorts,
			MarketFilters: searches.MarketFilters, EventFilters: searches.EventFilters,
		},
	}
}

// status returns the part of serviceStatus that belongs to the venue.
func (u *unit) status() model.ServiceStatus {
	status := u.constant
	status.UpstreamReachable, status.Stream = u.health.reach.ok(), u.Live.Status()
	if u.budget != nil {
		if until := u.budget.Status().ThrottledUntil; !until.IsZero() {
			status.ThrottledUntil = &until
		}
	}
	if status.Stream.Since.IsZero() {
		status.Stream.Since = u.started
	}
	if u.fleet != nil {
		status.Shared = u.sharedStatus()
	}
	return status
}
