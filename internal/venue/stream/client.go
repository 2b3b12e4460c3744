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
	"oddsgraph/internal/market/messages"
)

// Handler receives the messages and events of the stream. Calls for one topic have the order of the frames; those for topics of
// different connections may be concurrent. The methods must not block, because the venue closes connections that are read too slowly.
type Handler interface {
	// Up reports that the client has subscribed to the topics, perhaps again. The venue then sends a snapshot of each, which replaces
	// its state.
	Up(topics []messages.Topic)
	// Acknowledged reports that the venue has confirmed the subscriptions. From then on, it sends all changes of the topics.
	Acknowledged(topics []messages.Topic)
	// Down reports that the topics get no messages until the next Up. err is the cause, for logs. topics may include a topic that was
	// just unwatched and watched again.
	Down(topics []messages.Topic, err error)
	// Message delivers one message of a topic that is up. The handler may retain the message, but must not change it.
	Message(m *messages.Message)
	// Heartbeat delivers the venue's current sequence numbers for topics of one connection, after all messages that arrived earlier.
	Heartbeat(epoch string, seqs map[messages.Topic]uint64)
	// Refused reports that the venue has rejected a topic or its credentials. The topic is no longer watched. err is a *market.Error
	// with the code NOT_FOUND, UNAUTHENTICATED, FORBIDDEN, UNSUPPORTED, or RATE_LIMITED if the venue accepts no more topics.
	Refused(t messages.Topic, err error)
}

// Observer receives the client's metrics. Its methods are called concurrently and must not block. All arguments are from small fixed
// sets.
type Observer interface {
	// Frame reports the type of a frame that has arrived, or of each element if the frame is a list. It is "unknown" for an unknown
	// type, and "garbage" for a frame that is not JSON.
	Frame(kind string)
	// Drift reports a deviation of a frame from the venue's documentation.
	Drift(what string)
	// Reconnect reports that a connection was lost or could not be opened. reason is one of Reasons.
	Reconnect(reason string)
}

// Reasons are the reasons for which a connection is lost or cannot be opened.
var Reasons = []string{"dial", "closed", "limited", "slow", "restart", "credentials", "silence", "pong", "write", "garbage", "frozen"}

// DefaultTopicsPerConnection is the default of Config.TopicsPerConnection.
const DefaultTopicsPerConnection = 200

// AssumedDepth is the number of levels on each side of a book if the venue's hello does not contain it.
const AssumedDepth = 200

// The other defaults of Config.
const (
	defaultConnections = 10
	defaultLimitedWait = time.Minute
	defaultDialWithin  = 10 * time.Second
)

const (
	// assumedHeartbeat replaces the heartbeat interval that the venue's hello does not contain.
	assumedHeartbeat = 15 * time.Second
	// pingEvery is the time between pings if Protocol.PingEvery is 0. If no frame arrives within pongWithin after a ping, the
	// connection is closed.
	pingEvery  = 20 * time.Second
	pongWithin = 10 * time.Second
	// After a connection has been open for stableAfter, its next failure counts as the first.
	stableAfter = time.Minute
	// If the venue sends no hello within helloWithin, the client assumes default limits. writeWithin is the timeout of a write.
	helloWithin = 2 * time.Second
	writeWithin = 10 * time.Second
	// idleFor is the time after which the client closes a public connection without topics. The last public connection stays open.
	idleFor = 30 * time.Second
	// maxIdentities is the maximum number of user topics. Each user topic has its own connection, because some frames do not name
	// their account.
	maxIdentities = 1000
	maxFrameBytes = 4 << 20
)

// Config configures a Client. The zero value of a field means its default.
type Config struct {
	// URL has the scheme ws or wss. Its user info and query may contain secrets and are never logged.
	URL string
	// Protocol is the protocol of the venue's stream. It has no default.
	Protocol *Protocol
	// Dial opens connections. The default opens WebSocket connections.
	Dial Dialer
	// TopicsPerConnection is the maximum number of subjects (see Protocol.Subject) on a public connection. The venue's hello may
	// reduce it. Connections is the maximum number of public connections.
	TopicsPerConnection, Connections int
	// Backoff is the wait before the next connection after a failure, and before a postponed request is repeated, by default 1 s to
	// 30 s.
	Backoff market.Backoff
	// Venue is the name of a further venue in the ids of the client's topics, the Handler's messages and the markets of Market; see
	// market.Names. No codec sees this name.
	Venue string
	// NoCredentials makes Watch fail with UNSUPPORTED for topics of accounts, which need credentials.
	NoCredentials bool
	// LimitedWait is the wait after the venue has closed a connection because the client sent too many frames. DialWithin is the
	// timeout of opening a connection.
	LimitedWait, DialWithin time.Duration
	// Market returns a market that the service has read before, or nil, for codecs that need the tokens of a market. It is called
	// concurrently and must not block. Market may be nil.
	Market func(id string) *market.Market
	// Rand returns random numbers in [0, 1) for jitter. It is called concurrently.
	Rand     func() float64
	Log      *slog.Logger
	Observer Observer
}

// State is the state of the public connections.
type State string

// The states, from best to worst.
const (
	// StateLive means that all public connections are open.
	StateLive State = "LIVE"
	// StateConnecting means that a connection is being opened for the first time.
	StateConnecting State = "CONNECTING"
	// StateDisconnected means that a connection was lost or could not be opened.
	StateDisconnected State = "DISCONNECTED"
)

// Stats contains the state and the counters of a client.
type Stats struct {
	// State is the worst state of the public connections, since the time Since.
	State State
	Since time.Time
	// LastMessageAt is the time of the last frame that was not garbage. It is zero before the first such frame.
	LastMessageAt time.Time
	// Connections is the number of open connections, including user connections.
	Connections int
	// Topics is the number of watched topics, of which Identities are user topics.
	Topics, Identities int
	// Reconnects is how often a lost connection was opened again, Resyncs how often the client has requested a snapshot, and Refused
	// how often it has called Handler.Refused.
	Reconnects, Resyncs, Refused uint64
}

type counters struct {
	reconnects, resyncs, refused atomic.Uint64
	// epochs is the number of sockets so far, and the Epoch of messages.Internal on the newest socket.
	epochs atomic.Uint64
	// last is the time of the last frame that was not garbage, in nanoseconds since 1970.
	last atomic.Int64
}

// Client keeps the subscriptions of topics over all reconnects. It is safe for concurrent use.
type Client struct {
	cfg     Config
	path    string // the escaped path of cfg.URL
	handler Handler
	log     *slog.Logger
	count   counters

	// mu guards the fields from pool to since, and some fields of connection. It must not be held during calls of the Handler.
	// start, updateState, assign, hasRoom, add, addWatched, unwatch and release are called with it held, and so are changeLoad,
	// carries and markDirty of a connection.
	mu   sync.Mutex
	pool pool
	// ctx is the context of Run. It is nil before Run is called.
	ctx     context.Context
	stopped bool
	state   State
	since   time.Time

	wg sync.WaitGroup
}

// New returns a client for the handler h. Run opens the connections.
func New(cfg Config, h Handler) (*Client, error) {
	// The errors do not quote the URL, which may contain secrets.
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, errors.New("stream: the URL cannot be parsed")
	case u.Scheme != "ws" && u.Scheme != "wss":
		return nil, errors.New("stream: the URL must be ws or wss")
	case u.Hostname() == "":
		return nil, errors.New("stream: the URL has no host")
	}
	cfg.TopicsPerConnection = cmp.Or(cfg.TopicsPerConnection, DefaultTopicsPerConnection)
	cfg.Connections = cmp.Or(cfg.Connections, defaultConnections)
	cfg.Backoff = cmp.Or(cfg.Backoff, market.Backoff{Min: time.Second, Max: 30 * time.Second})
	cfg.LimitedWait = cmp.Or(cfg.LimitedWait, defaultLimitedWait)
	cfg.DialWithin = cmp.Or(cfg.DialWithin, defaultDialWithin)
	if cfg.Dial == nil {
		cfg.Dial = dialer{}
	}
	if cfg.Market == nil {
		cfg.Market = func(string) *market.Market { return nil }
	}
	if read := cfg.Market; cfg.Venue != "" {
		cfg.Market = func(id string) *market.Market {
			m, _ := market.CutAll(cfg.Venue, read(market.Qualify(cfg.Venue, id)))
			return m
		}
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
		path:    u.EscapedPath(),
		handler: h,
		log:     cfg.Log.With("stream", (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()),
		state:   StateConnecting,
		since:   time.Now(),
	}
	c.pool = pool{topics: make(map[messages.Topic]*entry), users: make(map[messages.Topic]*connection), perConnection: cfg.TopicsPerConnection}
	return c, nil
}

// Run opens the connections, and reopens lost ones, until ctx ends. It returns nil when all goroutines of the client have ended. A
// second call fails.
func (c *Client) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.ctx != nil {
		c.mu.Unlock()
		return errors.New("stream: Run was called before")
	}
	if len(c.pool.public) == 0 {
		c.add(messages.Topic{})
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

func (c *Client) start(k *connection) {
	if c.ctx == nil || c.stopped {
		return
	}
	c.wg.Go(func() { k.run(c.ctx) })
}

// Stats returns the current state and counters.
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
	s.Topics, s.Identities, s.Connections = c.pool.watchedCount, c.pool.identityCount, c.pool.countOpen()
	return s
}

func (c *Client) setState(k *connection, state State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.state = state
	c.updateState()
}

func (c *Client) updateState() {
	worst := StateLive
	if len(c.pool.public) == 0 {
		worst = StateDisconnected
	}
	for _, k := range c.pool.public {
		if k.state == StateDisconnected || k.state == StateConnecting && worst == StateLive {
			worst = k.state
		}
	}
	if worst != c.state {
		c.state, c.since = worst, time.Now()
	}
}

type ignore struct{}

func (ignore) Frame(string)     {}
func (ignore) Drift(string)     {}
func (ignore) Reconnect(string) {}
