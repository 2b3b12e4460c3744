package feed

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// Upstream is the client of the venue's stream. Its methods do not wait for the network.
type Upstream interface {
	// Watch subscribes to a topic until Unwatch is called. A second Watch of a topic sends the subscription again. Watch fails if
	// no connection has room for the topic.
	Watch(t messages.Topic, c *market.Credentials) error
	Unwatch(t messages.Topic)
	// Resync requests a snapshot of a topic.
	Resync(t messages.Topic)
	// Reconnect closes the connection of a topic. The client then opens a new connection.
	Reconnect(t messages.Topic)
}

// Sink stores live values for queries. Its methods must not wait.
type Sink interface {
	// StreamPrice, StreamSpread and StreamBook store a value that stays fresh until its session ends.
	StreamPrice(s *market.Session, p *market.Price, m market.Meta)
	StreamSpread(s *market.Session, sp *market.Spread, m market.Meta)
	StreamBook(s *market.Session, b *market.Book, m market.Meta)
	// StreamStale marks the streamed values of a topic as stale after a gap.
	StreamStale(t messages.Topic)
	// StreamMarket reports that a market has changed, so that earlier reads of the market are invalid. change is nil if the
	// stream does not say what changed.
	StreamMarket(s *market.Session, marketID string, change *market.MarketChange)
	// StreamAccount stores an account, which stays fresh until its session ends. A list or balance that is nil is unknown and not
	// stored.
	StreamAccount(s *market.Session, t messages.Topic, orders []market.Order, positions []market.Position, b *market.Balance, m market.Meta)
}

// Config configures a feed. A zero field means its default.
type Config struct {
	Sink Sink
	// Origin reads states that the stream does not send. If it is nil, these states are not read.
	Origin Origin
	Clock  market.Clock
	Log    *slog.Logger
	// Lag observes the delay of each change of a live topic, from the venue's timestamp to the arrival. The delay is negative if
	// the venue's clock is ahead. Lag must not wait. It may be nil.
	Lag func(time.Duration)
	// Topics is the number of public topics that Upstream has room for. The default is 2,000.
	Topics int
	// Linger is how long a topic stays open after its last watch was closed. The default is 5 s.
	Linger time.Duration
	// Queue is the number of trades or changes that may wait for one watch. The default is 1,000.
	Queue int
}

// The timeouts and bounds of the stream's protocol.
const (
	// snapshotTimeout is the time after which the feed requests a missing snapshot again.
	snapshotTimeout = 2 * time.Second
	// ackTimeout is the time after which the feed sends an unconfirmed subscription of a market again. The timeout doubles with
	// each attempt, up to maxAckTimeout.
	ackTimeout    = 2 * time.Second
	maxAckTimeout = 2 * time.Minute
	// After maxFailedResyncs failed resyncs in a row, the feed drops the connection. The number doubles each time a new connection
	// does not help, at most maxDoublings times.
	maxFailedResyncs = 3
	maxDoublings     = 6
	// maxBuffered bounds the messages of a topic that wait for a snapshot.
	maxBuffered = 1000
)

// Feed maintains the live state of topics. It is safe for concurrent use. Close stops its timers and reads.
type Feed struct {
	cfg      Config
	upstream Upstream
	counts   counts
	auto     *autoWatcher
	reads    *readQueue
	shares   shares

	// mu protects topics, public and closed. Locks are taken in this order: the lock of the feed, of the autoWatcher, of a topic,
	// of a reader. The feed calls Upstream while it holds mu or a topic's lock, and Sink while it holds a topic's lock.
	mu     sync.Mutex
	topics map[messages.Topic]*topic
	public int // number of topics that are not accounts
	closed bool
}

// New returns a feed without an upstream. Every watch fails until Connect is called.
func New(cfg Config) *Feed {
	if cfg.Clock == nil {
		cfg.Clock = market.SystemClock{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Topics = cmp.Or(cfg.Topics, 2000)
	cfg.Linger = cmp.Or(cfg.Linger, 5*time.Second)
	cfg.Queue = cmp.Or(cfg.Queue, 1000)
	f := &Feed{cfg: cfg, topics: make(map[messages.Topic]*topic), reads: newReadQueue(), shares: shares{counts: make(map[string]int)}}
	f.auto = newAutoWatcher(f)
	return f
}

// Connect sets the upstream. The feed is the upstream's handler. Call Connect once, before the feed is used.
func (f *Feed) Connect(u Upstream) { f.upstream = u }

// Close ends all watches, timers and reads, and waits for the reads to return.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	topics := make([]*topic, 0, len(f.topics))
	for _, t := range f.topics {
		topics = append(topics, t)
	}
	f.mu.Unlock()
	f.auto.close()
	for _, t := range topics {
		t.end(errClosed)
	}
	f.reads.close()
}

var errClosed error = market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down")

// watch adds a watch of a topic for a reader.
func (f *Feed) watch(key messages.Topic, c *market.Credentials, r *Reader) (*Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if f.upstream == nil {
		return nil, market.Errorf(market.CodeUnsupported, "live data needs the venue's stream, which is not configured")
	}
	t, user := f.topics[key], key.Channel == messages.ChannelUser
	room := func() bool { return f.makeRoom(user) }
	if !f.withinShare(r, t, user) {
		if !reclaimable(key) && !f.halfFree() {
			return nil, market.Errorf(market.CodeRateLimited, "the caller watches as many topics as its share of the stream allows")
		}
		room = func() bool { return f.closeLingering(false) } // close only topics without watches
	}
	t, err := f.open(key, c, room)
	if err != nil {
		return nil, err
	}
	return t.join(r, r), nil
}

// open returns a topic and opens it if necessary. While the upstream has no room, open calls makeRoom and tries again. makeRoom
// closes another topic or returns false. The caller holds the lock.
func (f *Feed) open(key messages.Topic, c *market.Credentials, makeRoom func() bool) (*topic, error) {
	if t := f.topics[key]; t != nil {
		return t, nil
	}
	err := f.upstream.Watch(key, c)
	for market.CodeOf(err) == market.CodeRateLimited && makeRoom() {
		err = f.upstream.Watch(key, c)
	}
	if err != nil {
		return nil, err
	}
	t := newTopic(f, key)
	f.topics[key] = t
	if key.Channel != messages.ChannelUser {
		f.public++
	}
	return t, nil
}

// watchForQueries watches a topic without a reader, so that queries find its live value. If there is no room, it closes a topic
// without watches, or a topic that a caller watches beyond its share.
func (f *Feed) watchForQueries(key messages.Topic) (*Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.upstream == nil {
		return nil, errClosed
	}
	t, err := f.open(key, nil, func() bool { return f.closeLingering(false) || f.reclaim() })
	if err != nil {
		return nil, err
	}
	return t.join(nil, nil), nil
}

// KeepLive watches a public topic for queries until the reader is closed. If at least half of the room is used, KeepLive watches
// only a topic that is already open, and only if the caller's share allows the watch. The reader is not signalled when the topic
// changes.
func (r *Reader) KeepLive(key messages.Topic) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topics[key]
	if f.closed || f.upstream == nil || !f.halfFree() && (t == nil || !f.withinShare(r, t, false)) {
		return
	}
	if t, err := f.open(key, nil, func() bool { return false }); err == nil {
		r.watches[t.join(nil, r)] = struct{}{}
	}
}

// remove removes a stopped topic and unsubscribes from it. The caller holds the lock.
func (f *Feed) remove(key messages.Topic) {
	delete(f.topics, key)
	if key.Channel != messages.ChannelUser {
		f.public--
	}
	f.upstream.Unwatch(key)
}

// RecordPoll counts a caller's query for the prices or books of existing tokens. The feed watches tokens that are polled often.
// Several calls with the same poll number count as one poll of each token. Calls with the number 0 are always counted.
func (f *Feed) RecordPoll(poll uint64, caller string, c messages.Channel, tokenIDs []string) {
	f.auto.recordPolls(poll, caller, c, tokenIDs, pollsToWatch)
}

// AutoWatch watches existing tokens for which a caller waits, because the stream may send their values before the REST response
// arrives. The bounds of auto-watches apply.
func (f *Feed) AutoWatch(caller string, c messages.Channel, tokenIDs []string) {
	f.auto.recordPolls(0, caller, c, tokenIDs, 1)
}

// SkipLinger closes matching topics as soon as they have no watches, instead of after Config.Linger. It is used after an account's
// credentials were revoked.
func (f *Feed) SkipLinger(match func(messages.Topic) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, t := range f.topics {
		if match(key) {
			t.skipLinger()
		}
	}
}

// lingerOver closes a topic without watches at the end of its linger. The caller must not hold the topic's lock.
func (f *Feed) lingerOver(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeIdle(t)
}

// closeIdle closes a topic if it has no watches. The caller holds the feed's lock.
func (f *Feed) closeIdle(t *topic) {
	if f.topics[t.key] == t && t.stopIfIdle() {
		f.remove(t.key)
	}
}

// fail ends the watches of a topic with an error and closes the topic. The caller holds the lock.
func (f *Feed) fail(t *topic, err error) {
	t.end(err)
	f.remove(t.key)
}

// find returns an open topic, or nil.
func (f *Feed) find(key messages.Topic) *topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[key]
}
