package app

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"oddsgraph/graph/model"
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
	Client venue.Driver
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

// openUnit opens the venue of a configuration. If it fails, it closes the parts that it has opened.
func openUnit(cfg *config.Config, p process, w Wiring) (_ *unit, err error) {
	u := &unit{process: p, asked: make(chan struct{}, 1)}
	u.health = health{process: p, answered: make(chan struct{}), outage: newOutage(p.log), clocks: newClocks(p.log, comparedClocks(cfg)...)}
	u.opened = closers{u.health.outage.close}
	defer func() {
		if err != nil {
			u.opened.close()
		}
	}()
	if embedded(cfg) {
		u.health.noteAnswer()
	}
	sharing, err := u.openFleet(cfg, &w.Reads)
	if err != nil {
		return nil, err
	}
	u.openBudget(cfg, &w, sharing)
	w.Client.Observer = &u.health
	if u.Client, err = drivers.Open(w.Client); err != nil {
		return nil, err
	}
	u.opened = append(u.opened, u.Client.Close)
	u.Cache = cache.New(u.Client, w.Reads)
	u.opened = append(u.opened, u.Cache.Close)
	if u.fleet != nil {
		u.fleet.OnFlush(u.Cache.FlushLocal)
	}
	if u.Live, err = openLive(withProtocol(cfg, u.Client, w.Stream), w.Linger, u.Cache, u.process); err != nil {
		return nil, err
	}
	u.Cache.SetWatcher(u.Live.Feed)
	u.Cache.SetStreamer(u.Live.Feed)
	u.constant = constantStatus(cfg, u.Client)
	return u, nil
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
func (u *unit) resolverVenue(cfg *config.Config) resolvers.Venue {
	return resolvers.Venue{
		Name: venueInIDs(cfg), Feed: u.Live.Feed, Sources: Sources(u.Cache, cfg.Limit.Calls), Scope: u.Cache.Scope, Can: u.Client.Can,
		CashError: cashError(u.Client), MarketID: drivers.Of(cfg.Venue.Driver).MarketID, PublicAccounts: accountsArePublic(cfg),
	}
}

// forget makes each of an account's topics close as soon as no subscription watches the topic.
func (u *unit) forget(a *auth.Account) {
	ctx := request.WithCredentials(context.Background(), a.Credentials)
	u.Live.Feed.SkipLinger(func(t messages.Topic) bool {
		return t.Channel == messages.ChannelUser && t.Scope == u.Cache.Scope(ctx, market.Address(t.ID))
	})
}

func constantStatus(cfg *config.Config, client venue.Driver) model.ServiceStatus {
	unsupported := unsupportedBy(client)
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
