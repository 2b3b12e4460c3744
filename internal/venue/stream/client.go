package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// Handler takes what the stream brings. All calls about one topic come from one goroutine at a time, in the order of the
// wire; calls about topics of different connections come at the same time. No method may block, since a connection that
// is not read is closed by the venue.
type Handler interface {
	// Up reports that a subscription of topics has just been sent on an open connection, so their snapshots follow. A connection's
	// topics come in several calls, one a frame. epoch is the venue's at this moment and empty where it has none; the
	// one in a Message is what its numbers count in. A topic may be up again without having been down: what is known of
	// it is to be replaced by the next snapshot.
	Up(epoch string, topics []market.Topic)
	// Acknowledged reports that the venue has confirmed the subscription of topics that are up. Everything that changes from
	// now on has a frame. A venue that confirms nothing sends frames of the topic all the same.
	Acknowledged(topics []market.Topic)
	// Down tells that topics are no longer live until they are Up again. err is why, for the log. A topic that was unwatched
	// and watched again just before may be among them.
	Down(topics []market.Topic, err error)
	// Message brings one update of a topic that is up. The handler may keep it, but not change it.
	Message(m *market.Message)
	// Heartbeat brings the venue's present numbers of some topics of one connection. All messages that the venue sent
	// before it have been delivered.
	Heartbeat(epoch string, seqs map[market.Topic]uint64)
	// Refused tells that the venue does not give a topic, or not to these credentials. It is no longer watched. err is a
	// *market.Error: NOT_FOUND, UNAUTHENTICATED, FORBIDDEN, UNSUPPORTED, or RATE_LIMITED where the venue's own limit of
	// topics leaves no room.
	Refused(t market.Topic, err error)
}

// Observer is told what the client does. Its methods are called concurrently and must not block. All texts are of small
// fixed sets.
type Observer interface {
	// Frame reports a frame by its type, the elements of a list singly; "unknown" for one that is not known, "garbage" for
	// what is not JSON.
	Frame(kind string)
	// Drift reports that a frame was not quite what the contract says.
	Drift(what string)
	// Reconnect reports that a connection was lost or could not be opened, and why: "dial", "closed", "limited", "slow",
	// "restart", "credentials", "silence", "pong", "write", "garbage" or "asked".
	Reconnect(reason string)
}

// The defaults of Config.
const (
	DefaultTopicsPerConnection = 200
	DefaultConnections         = 10
	DefaultIdentities          = 1000
	DefaultDepth               = 200
	DefaultHeartbeat           = 15 * time.Second
	DefaultPingEvery           = 20 * time.Second
	DefaultPongWithin          = 10 * time.Second
	DefaultBackoffMin          = time.Second
	DefaultBackoffMax          = 30 * time.Second
	DefaultStableAfter         = time.Minute
	DefaultLimitedWait         = time.Minute
	DefaultDialWithin          = 10 * time.Second
	DefaultHelloWithin         = 2 * time.Second
	DefaultWriteWithin         = 10 * time.Second
	DefaultIdleFor             = 30 * time.Second
	DefaultFrameBytes          = 4 << 20
)

// Config says where the stream is and how the client behaves. The zero value of a field means its default.
type Config struct {
	// URL is ws or wss. Its user info and query may hold secrets: they are sent, and never logged.
	URL string
	// Dial opens connections; nil means the real ones.
	Dial Dialer
	// TopicsPerConnection and Connections bound the pool of public topics; a venue that says that it takes fewer topics a
	// connection is given fewer.
	TopicsPerConnection, Connections int
	// Identities bounds the user topics. Each has a connection of its own beside the pool, since a venue's user frames
	// may not say whom they are about.
	Identities int
	// Depth is the greatest number of levels a side that is asked for; the venue's own greatest is asked for if that is
	// less, or if Depth is 0.
	Depth int
	// Heartbeat is the venue's interval where its hello does not say; after 2.5 of them without a frame the connection is
	// given up.
	Heartbeat time.Duration
	// PingEvery is the time between pings of ours, PongWithin how long the answer may take.
	PingEvery, PongWithin time.Duration
	// BackoffMin is the bound of the first random wait before connecting again; it doubles up to BackoffMax, and starts
	// over after a connection that lasted for StableAfter.
	BackoffMin, BackoffMax, StableAfter time.Duration
	// LimitedWait is the wait after the venue has closed a connection for too many frames.
	LimitedWait time.Duration
	// DialWithin bounds the opening of a connection; HelloWithin is how long the venue's hello is waited for before its
	// limits are assumed; WriteWithin bounds the writing of one frame.
	DialWithin, HelloWithin, WriteWithin time.Duration
	// IdleFor is how long a surplus connection stays open without topics.
	IdleFor time.Duration
	// FrameBytes is the greatest size of a frame that is read.
	FrameBytes int64
	// Tokens returns the YES and NO token of a market, for venues that address frames by market; nil means that none is
	// known. It is called concurrently and must not block.
	Tokens func(marketID string) (yes, no string, ok bool)
	// Rand returns numbers from 0 to less than 1 for jitter; it is called concurrently.
	Rand     func() float64
	Log      *slog.Logger
	Observer Observer
}

// State is what can be said of the connections that carry public topics.
type State string

// The states, from best to worst.
const (
	// StateLive means that every connection is open.
	StateLive State = "LIVE"
	// StateConnecting means that a connection is being opened for the first time.
	StateConnecting State = "CONNECTING"
	// StateDisconnected means that a connection was lost or could not be opened, and until it is open again.
	StateDisconnected State = "DISCONNECTED"
)

// Stats is what the client has done and does.
type Stats struct {
	// State is the worst of the pool's connections; those of user topics do not count. Since is when it was entered.
	State State
	Since time.Time
	// LastMessageAt is when the last readable frame of any kind came; zero before the first.
	LastMessageAt time.Time
	// Connections are open now, those of user topics included.
	Connections int
	// Topics are watched now, Identities are the user topics among them.
	Topics, Identities int
	// Reconnects counts lost connections that were opened again.
	Reconnects uint64
	// Resyncs counts the snapshots that were asked for, Refused the topics that the venue did not give.
	Resyncs, Refused uint64
}

// counters are what Stats counts, apart from what the pool knows.
type counters struct {
	reconnects, resyncs, refused atomic.Uint64
	// last is when the last frame came, in nanoseconds since 1970.
	last atomic.Int64
}

// Client keeps topics subscribed. It is safe for concurrent use.
type Client struct {
	cfg     Config
	handler Handler
	log     *slog.Logger
	count   counters

	// mu protects all below, and the fields of connections that say so. The Handler is never called under it.
	mu   sync.Mutex
	pool pool
	// ctx is Run's; nil before Run.
	ctx     context.Context
	stopped bool
	state   State
	since   time.Time
	changed chan struct{}

	wg sync.WaitGroup
}

// New returns a client that hands what it hears to h. It does not connect before Run.
func New(cfg Config, h Handler) (*Client, error) {
	if err := checkURL(cfg.URL); err != nil {
		return nil, err
	}
	if h == nil {
		return nil, errors.New("stream: there is no handler")
	}
	for _, n := range []int64{
		int64(cfg.TopicsPerConnection), int64(cfg.Connections), int64(cfg.Identities), int64(cfg.Depth), cfg.FrameBytes,
		int64(cfg.Heartbeat), int64(cfg.PingEvery), int64(cfg.PongWithin), int64(cfg.BackoffMin), int64(cfg.BackoffMax),
		int64(cfg.StableAfter), int64(cfg.LimitedWait), int64(cfg.DialWithin), int64(cfg.HelloWithin), int64(cfg.WriteWithin), int64(cfg.IdleFor),
	} {
		if n < 0 {
			return nil, errors.New("stream: times and limits must be positive")
		}
	}
	cfg.TopicsPerConnection = cmp.Or(cfg.TopicsPerConnection, DefaultTopicsPerConnection)
	cfg.Connections = cmp.Or(cfg.Connections, DefaultConnections)
	cfg.Identities = cmp.Or(cfg.Identities, DefaultIdentities)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, DefaultHeartbeat)
	cfg.PingEvery = cmp.Or(cfg.PingEvery, DefaultPingEvery)
	cfg.PongWithin = cmp.Or(cfg.PongWithin, DefaultPongWithin)
	cfg.BackoffMin = cmp.Or(cfg.BackoffMin, DefaultBackoffMin)
	cfg.BackoffMax = max(cmp.Or(cfg.BackoffMax, DefaultBackoffMax), cfg.BackoffMin)
	cfg.StableAfter = cmp.Or(cfg.StableAfter, DefaultStableAfter)
	cfg.LimitedWait = cmp.Or(cfg.LimitedWait, DefaultLimitedWait)
	cfg.DialWithin = cmp.Or(cfg.DialWithin, DefaultDialWithin)
	cfg.HelloWithin = cmp.Or(cfg.HelloWithin, DefaultHelloWithin)
	cfg.WriteWithin = cmp.Or(cfg.WriteWithin, DefaultWriteWithin)
	cfg.IdleFor = cmp.Or(cfg.IdleFor, DefaultIdleFor)
	cfg.FrameBytes = cmp.Or(cfg.FrameBytes, DefaultFrameBytes)
	if cfg.Dial == nil {
		cfg.Dial = &dialer{frameBytes: cfg.FrameBytes}
	}
	if cfg.Tokens == nil {
		cfg.Tokens = func(string) (string, string, bool) { return "", "", false }
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer == nil {
		cfg.Observer = ignore{}
	}
	c := &Client{
		cfg:     cfg,
		handler: h,
		log:     cfg.Log.With("stream", redactURL(cfg.URL)),
		state:   StateConnecting,
		since:   time.Now(),
		changed: make(chan struct{}),
	}
	c.pool = newPool(cfg.TopicsPerConnection)
	return c, nil
}

// checkURL never quotes its input, which may hold a secret.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("stream: the URL cannot be parsed")
	case u.Scheme != "ws" && u.Scheme != "wss":
		return errors.New("stream: the URL must be ws or wss")
	case u.Hostname() == "":
		return errors.New("stream: the URL has no host")
	}
	return nil
}

// redactURL returns scheme, host and path of a URL that checkURL has passed.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Run connects and keeps connected until ctx ends, and returns nil when all of the client's goroutines have. It can be
// called once.
func (c *Client) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.ctx != nil {
		c.mu.Unlock()
		return errors.New("stream: Run was called before")
	}
	if len(c.pool.public) == 0 {
		c.add(market.Topic{})
	}
	c.ctx = ctx
	for _, k := range c.pool.public {
		c.start(k)
	}
	for _, k := range c.pool.users {
		c.start(k)
	}
	c.mu.Unlock()

	<-ctx.Done()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.wg.Wait()
	return nil
}

// start runs a connection if the client runs. The lock is held.
func (c *Client) start(k *connection) {
	if c.ctx == nil || c.stopped {
		return
	}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		k.run(c.ctx)
	}()
}

// Changed returns a channel that is closed at the next change of Stats().State. Ask for it before Stats, so that no
// change falls between.
func (c *Client) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Stats returns the present figures.
func (c *Client) Stats() Stats {
	s := Stats{
		Reconnects: c.count.reconnects.Load(),
		Resyncs:    c.count.resyncs.Load(),
		Refused:    c.count.refused.Load(),
	}
	if last := c.count.last.Load(); last != 0 {
		s.LastMessageAt = time.Unix(0, last)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.State, s.Since = c.state, c.since
	s.Topics, s.Identities, s.Connections = c.pool.wanted, c.pool.identities, c.pool.open()
	return s
}

// setState takes over a connection's state and works out the pool's.
func (c *Client) setState(k *connection, state State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.state = state
	c.judge()
}

// judge works out the state of the pool. The lock is held.
func (c *Client) judge() {
	worst := StateLive
	if len(c.pool.public) == 0 {
		worst = StateDisconnected
	}
	for _, k := range c.pool.public {
		if k.state == StateDisconnected || k.state == StateConnecting && worst == StateLive {
			worst = k.state
		}
	}
	if worst == c.state {
		return
	}
	c.state, c.since = worst, time.Now()
	close(c.changed)
	c.changed = make(chan struct{})
}

type ignore struct{}

func (ignore) Frame(string)     {}
func (ignore) Drift(string)     {}
func (ignore) Reconnect(string) {}
