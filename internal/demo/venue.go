// Package demo is a prediction-market venue in memory. A [Venue] is an [http.Handler] that serves the venue's whole REST API, and
// its stream over WebSocket at [StreamPath]. REST and the stream show the same state.
//
// A venue needs no configuration. [New] builds the markets, events, order books and accounts from a seed. [Venue.Run] or
// [Venue.Step] moves prices and books, and lets the three demo accounts trade. [Venue.Close] ends the streams.
//
// With the same seed, the same clock and the same number of steps, two venues give the same answers, with two exceptions: the
// stream's epoch, and wallets that belong to no demo account. Such a wallet trades only while a client is subscribed to it.
//
// The stream and REST have the same sequence numbers: equal numbers mean equal states. The venue puts each change into the bounded
// queues of the stream's clients before REST can return the change. A slow client delays no other client.
//
// [Config] sets rate limits and latency. Faults are the business of the package faults, a proxy in front of the venue. Some exported
// methods return the venue's state without HTTP, so that tests can compare this state with the answers.
//
// Prices are integers in ten-thousandths, sizes in hundredths of a share and money in millionths. Products of size and price, and
// all sums of a wallet, are therefore exact.
package demo

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"oddsgraph/internal/demo/server"
)

// Currency is the unit of the venue's money.
const Currency = "USD"

// Clock returns the time. Tests set the time.
type Clock interface {
	Now() time.Time
}

// WallClock is the Clock of the computer.
type WallClock struct{}

func (WallClock) Now() time.Time { return time.Now() }

// Config configures a venue. The zero value is a venue with 1,200 markets on the wall clock, without limits or latency.
type Config struct {
	// Markets is the number of markets; 1,200 if it is not positive. A market has about 2.35 tokens on average.
	Markets int
	// Seed is the seed of names, identifiers, prices, accounts and random changes.
	Seed uint64
	// Clock is the source of the time. Nil means the wall clock.
	Clock Clock
	// Latency is the delay of each REST answer. The delay ends early if the request's context ends.
	Latency time.Duration
	// KeyPerMinute limits the requests of each API key to user endpoints. PublicPerMinute limits all other REST requests of each
	// client address. The limits apply to any 60 seconds of the Clock. 0 means no limit.
	PublicPerMinute, KeyPerMinute int
	// Strict limits the venue to its documented features. It refuses unknown parameters and sends no additional members. It
	// accepts credentials only in the query, and compares them byte by byte.
	Strict bool
	// Without lists the endpoints that answer 404, by their names from [Endpoints].
	Without []string
	// Heartbeat is the time between heartbeats of a stream; 15 seconds if it is not positive.
	Heartbeat time.Duration
	// MarketEvery is the average time between automatic changes of markets while [Venue.Run] runs. A change opens, closes, resolves
	// or rewords a market, or changes its tick size. 0 means no such changes.
	MarketEvery time.Duration
	// Quiet moves the market only once a minute while [Venue.Run] runs.
	Quiet bool
	// Other is 0 for the first venue. Venues with the same Seed and different numbers have the same events, markets and identifiers.
	// The prices of each market follow those of the first venue with an offset and a delay, so that their books cross now and then.
	Other uint64
	// Opened is the time from which the venue derives its markets and accounts. Zero means the time of New. Venues have the same events
	// only if they have the same time.
	Opened time.Time
	// Watch is notified of the changes of the markets. Nil notifies nobody.
	Watch Watcher
}

// Venue is a prediction-market venue. It is an [http.Handler] and safe for concurrent use.
type Venue struct {
	config  Config
	opened  millis
	listing *universe
	index   *searchIndex
	pools   *pools
	counts  server.Counts
	limits  struct{ public, key server.Limiter }
	derived walletCache
	stream  streams

	// mu guards instruments, markets, wallets, topics and the fields below. It is held while greet and heartbeat of a stream run.
	mu           sync.RWMutex
	epoch        string
	random       rng
	dice         dice
	steps        uint64
	moves        []move    // moves of the last step
	halted       []*market // automatically closed markets, which may open again
	refined      []*market // markets with an automatically reduced tick size
	settledCount int       // number of automatically resolved markets
	accounts     map[string]*wallet
	guests       int // number of derived wallets that have traded
}

// dice has a separate random generator for each purpose, so that draws for one purpose do not affect another purpose.
type dice struct{ tape, orders, guests, life rng }

// New returns a venue. Call [Venue.Run] or [Venue.Step] to let its prices move.
func New(config Config) *Venue {
	if config.Markets <= 0 {
		config.Markets = 1200
	}
	if config.Clock == nil {
		config.Clock = WallClock{}
	}
	if config.Heartbeat <= 0 {
		config.Heartbeat = heartbeat
	}
	v := &Venue{
		config: config,
		epoch:  newEpoch(),
		opened: millisOf(cmp.Or(config.Opened, config.Clock.Now())),
		random: rng(hash(config.Seed, 1)),
		dice: dice{
			tape: rng(hash(config.Seed, 2)), orders: rng(hash(config.Seed, 3)),
			guests: rng(hash(config.Seed, 4)), life: rng(hash(config.Seed, 5)),
		},
	}
	v.limits.public.Span, v.limits.key.Span = time.Minute, time.Minute
	v.stream = newStreams(config.Heartbeat, &v.counts)
	v.listing = newUniverse(config, v.opened)
	v.index = newSearchIndex(v.listing)
	v.pools = newPools(v.listing)
	v.accounts = make(map[string]*wallet, len(accounts))
	for _, a := range accounts {
		w := v.newWallet(a.address, a.positions, true)
		w.usualOrders = len(w.orders)
		v.accounts[a.address] = w
	}
	return v
}

func (v *Venue) now() millis { return millisOf(v.config.Clock.Now()) }

// Epoch returns the name of the present epoch. Sequence numbers of different epochs can't be compared.
func (v *Venue) Epoch() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.epoch
}

func newEpoch() string { return strconv.FormatUint(rand.Uint64(), 36) }

// ServeHTTP answers a request to the venue.
func (v *Venue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == StreamPath {
		v.serveStream(w, r)
		return
	}
	a, c := newAnswer(), newCall(r)
	i := slices.IndexFunc(endpoints, func(e endpoint) bool { return e.path == r.URL.Path })
	switch {
	case i < 0:
		c.err = errPath
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		a.header.Set("Allow", "GET, HEAD")
		c.err = errMethod
	default:
		v.counts.Add(server.Requests, endpoints[i].path, 1)
		v.counts.Add(server.Keys, endpoints[i].path, c.keyCount())
		if endpoints[i].user {
			c.account = v.accountOf(c)
		}
		v.admit(&endpoints[i], c)
	}
	if v.limit(c, a) {
		if c.err == nil && endpoints[i].user {
			c.authorize()
		}
		if c.err == nil {
			a.body = endpoints[i].answer(v, c, nil)
		}
		if c.err != nil {
			a.fail(c.err)
		} else if v.config.Strict {
			endpoints[i].strict.shape(a)
		}
	}
	v.counts.Add(server.Statuses, strconv.Itoa(a.status), 1)
	if server.Pause(r.Context(), v.config.Latency) {
		a.send(w)
	}
}

// Dialect is what the venues of other dialects have in common. They embed it, watch its engine and translate what they see. Its ID and
// DemoID translate identifiers of tokens, markets and events. If the dialect has several markets for one of the engine, ID returns that
// of the first.
type Dialect struct {
	Clock   Clock
	Created time.Time
	Counts  server.Counts
	server.API
	server.Sockets
	server.IDs
	engine *Venue
}

// Open makes the engine. Of the configuration, it uses what concerns the markets, and the latency.
func (d *Dialect) Open(config Config, watch Watcher) {
	d.Clock = cmp.Or[Clock](config.Clock, WallClock{})
	d.Created = cmp.Or(config.Opened, d.Clock.Now())
	d.API.Latency, d.API.Counts = config.Latency, &d.Counts
	d.Sockets.Limits, d.Sockets.Counts = server.StandardLimits, &d.Counts
	d.engine = New(Config{
		Markets: config.Markets, Seed: config.Seed, Clock: config.Clock, MarketEvery: config.MarketEvery, Quiet: config.Quiet, Other: config.Other,
		Opened: d.Created, Watch: watch,
	})
}

// Each calls f for each market of the dialect: once for a binary market, or for each outcome of any other market.
func (d *Dialect) Each(f func(m Market, outcome int)) {
	for _, m := range d.engine.Markets() {
		for i := range m.TokenIDs {
			if i == 0 || !m.Binary {
				f(m, i)
			}
		}
	}
}

// Run moves the market until the context ends, see [Venue.Run].
func (d *Dialect) Run(ctx context.Context) error { return d.engine.Run(ctx) }

// Engine returns the venue with the markets. Its markets and tokens have other identifiers, see ID and DemoID.
func (d *Dialect) Engine() *Venue { return d.engine }

// Stats returns the counts. The names of requests are patterns of paths.
func (d *Dialect) Stats() Stats { return d.Counts.Stats(&d.Sockets) }

// Reset zeroes the counts.
func (d *Dialect) Reset() { d.Counts.Reset() }
