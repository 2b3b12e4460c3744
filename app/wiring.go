package app

import (
	"cmp"
	"slices"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/loaders"
)

// Wiring configures the API, and the REST client, the cache and the stream of the venue.
type Wiring struct {
	Client drivers.Config
	Reads  cache.Config
	Stream stream.Config
	// Front may change the configuration of the API. It may be nil.
	Front func(*httpapi.Config)
	// Fresh is true if no other process can have called the venue. Unlimited is true if the service keeps no rate limit.
	Fresh, Unlimited bool
	// Linger is how long a topic of the stream stays open after its last feed.Watch was closed. Zero means the default of package
	// feed.
	Linger time.Duration
}

// wiring returns the configuration of the unit's clients and of its cache. The functions in options can change it.
func (u *unit) wiring(options []func(*Wiring)) (w Wiring, err error) {
	cfg, rest := u.cfg, u.cfg.Venue.URL
	w = Wiring{Reads: cacheConfig(cfg, u.clock), Fresh: u.demo != nil}
	if len(u.names) > 0 {
		w.Reads.Venue, w.Reads.Name = title(cfg), u.name
		w.Reads.Memory /= len(u.names)
	}
	w.Stream.URL = cfg.StreamURL
	if u.demo != nil {
		rest = u.demo.URL() + u.demo.path
		if cfg.Demo.Stream {
			w.Stream.URL = "ws://" + u.demo.Addr().String() + u.demo.streamPath
		}
	}
	key, err := venueKey(cfg.Venue, u.demo)
	if err != nil {
		return w, err
	}
	w.Client = venueConfig(cfg, rest, key)
	w.Client.Clock, w.Client.Log, w.Stream.Log = u.clock, u.log, u.log
	w.Client.NoCredentials, w.Stream.NoCredentials, w.Stream.Venue = u.name != "", u.name != "", u.name
	w.Stream.Connections, w.Stream.TopicsPerConnection = spread(cfg.StreamTopics)
	if u.Tracer != nil {
		w.Reads.Observer = u.Tracer.Batch
	}
	for _, change := range options {
		change(&w)
	}
	return w, nil
}

// withProtocol returns c with the protocol of the driver's stream. If c has no URL, it also sets the driver's address, unless the
// service uses the embedded demo venue. The URL of the result is empty if there is no stream.
func withProtocol(cfg *config.Config, client venue.Driver, c stream.Config) stream.Config {
	address, protocol := client.Stream()
	c.Protocol = protocol
	switch {
	case protocol == nil:
		c.URL = ""
	case !embedded(cfg):
		c.URL = cmp.Or(c.URL, address)
	}
	return c
}

// spread divides a number of topics among as few connections as possible. perConnection is the maximum number of topics of one
// connection. Because perConnection is rounded up, connections*perConnection may be slightly greater than the number of topics.
func spread(topics int) (connections, perConnection int) {
	connections = (topics + stream.DefaultTopicsPerConnection - 1) / stream.DefaultTopicsPerConnection
	return connections, (topics + connections - 1) / connections
}

func cacheConfig(cfg *config.Config, clock market.Clock) cache.Config {
	c, out := cfg.Cache, cache.DefaultConfig()
	out.Price.Fresh, out.Book.Fresh, out.Spread.Fresh = c.Price.Fresh, c.Book.Fresh, c.Spread.Fresh
	out.Market.Fresh, out.Search.Fresh, out.History.Fresh, out.User.Fresh = c.Market.Fresh, c.Search.Fresh, c.History.Fresh, c.User.Fresh
	data, _ := cacheBytes(c, memory())
	out.Changes, out.Memory, out.Stretch, out.Clock = cfg.StreamTopics, int(data), c.Stretch, clock
	out.PublicAccounts = accountsArePublic(cfg)
	return out
}

// Sources returns the sources of the loaders. For one response the loaders make at most maxCalls calls to the venue; 0 means no
// limit.
func Sources(c *cache.Cache, maxCalls int) loaders.Sources {
	return loaders.Sources{
		MaxCalls: maxCalls,
		Prices:   c.Prices(), Spreads: c.Spreads(), Books: c.Books(), Histories: c.Histories(), Markets: c.Markets(), Events: c.Events(),
		Searches: c.Searches(), EventSearches: c.EventSearches(), Categories: c.Categories(), MarketTrades: c.MarketTrades(), Balances: c.Balances(), Positions: c.Positions(), Orders: c.Orders(), Trades: c.Trades(), Records: c.Records(),
	}
}

// venueInIDs returns the name of the venue in global ids. The name is empty for the generic driver, because many venues can have
// the API of this driver.
func venueInIDs(cfg *config.Config) string {
	if cfg.Venue.Driver == drivers.Generic {
		return ""
	}
	return cfg.Venue.Driver
}

// unsupportedBy returns the names of the endpoints that a venue does not serve, in the order of upstream.Endpoint. It appends "cash"
// if the venue serves balances without cash.
func unsupportedBy(d venue.Driver) []string {
	names := []string{}
	for e := range upstream.Endpoint(upstream.Endpoints) {
		if d.Can(e) != nil && !slices.Contains(names, e.String()) {
			names = append(names, e.String())
		}
	}
	if cashError(d) != nil {
		names = append(names, "cash")
	}
	return names
}

// cashError returns the UNSUPPORTED error of a venue that serves balances without cash, or nil.
func cashError(d venue.Driver) error {
	if d.Can(upstream.EndpointBalance) != nil {
		return nil
	}
	return d.CanReadCash()
}
