package demo

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
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
	// Lag is the time for which the venue may answer REST requests from a cache. The header Age gives the age of an answer.
	Lag time.Duration
	// Without lists the endpoints that answer 404, by their names from [Endpoints].
	Without []string
	// Heartbeat is the time between heartbeats of a stream; 15 seconds if it is not positive.
	Heartbeat time.Duration
	// MarketEvery is the average time between automatic changes of markets while [Venue.Run] runs. A change opens, closes, resolves
	// or rewords a market, or changes its tick size. 0 means no such changes.
	MarketEvery time.Duration
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
	stats   stats
	limits  struct{ public, key limiter }
	derived walletCache
	lag     lag
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
	now := config.Clock.Now()
	v := &Venue{
		config: config,
		epoch:  newEpoch(),
		opened: millisOf(now),
		random: rng(hash(config.Seed, 1)),
		dice: dice{
			tape: rng(hash(config.Seed, 2)), orders: rng(hash(config.Seed, 3)),
			guests: rng(hash(config.Seed, 4)), life: rng(hash(config.Seed, 5)),
		},
	}
	v.stream.limits = standardLimits
	v.listing = newUniverse(config.Seed, config.Markets, v.opened)
	v.index = newSearchIndex(v.listing)
	v.pools = newPools(v.listing)
	v.limits.public.perMinute, v.limits.key.perMinute = config.PublicPerMinute, config.KeyPerMinute
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
	a := newAnswer()
	defer a.release()

	i := endpointAt(r.URL.Path)
	c, err := newCall(r)
	switch {
	case i < 0:
		err = errPath
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		a.header.Set("Allow", "GET, HEAD")
		err = errMethod
	default:
		v.stats.count(i, c.keyCount())
		if endpoints[i].user {
			c.account = v.accountOf(c)
		}
		err = cmp.Or(err, v.admit(&endpoints[i], c))
	}
	if v.limit(c, a) {
		if err != nil {
			a.fail(err)
		} else {
			v.respond(&endpoints[i], c, a)
		}
	}
	v.stats.countStatus(a.status)
	if Pause(r.Context(), v.config.Latency) {
		a.send(w)
	}
}

// respond fills in the endpoint's answer to a call. With [Config.Lag] the answer may be cached.
func (v *Venue) respond(e *endpoint, c *call, a *answer) {
	if v.config.Lag > 0 {
		v.answerWithLag(e, c, a)
		return
	}
	v.answer(e, c, a)
}

// answer fills in the endpoint's present answer to a call.
func (v *Venue) answer(e *endpoint, c *call, a *answer) {
	err := (*apiError)(nil)
	if e.user {
		err = c.authorize()
	}
	if err == nil {
		a.body, err = e.answer(v, c, a.body)
	}
	if err != nil {
		a.fail(err)
	} else if v.config.Strict {
		e.strict.shape(a)
	}
}

// Pause waits for d. It returns false if the context ends before d has passed.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
