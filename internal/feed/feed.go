package feed

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// Upstream is the venue's stream. None of its methods waits for the network.
type Upstream interface {
	// Watch asks for a topic until Unwatch; an error means that there is no room for it. Watching a topic again subscribes to
	// it again.
	Watch(t market.Topic, c *market.Credentials) error
	Unwatch(t market.Topic)
	// Resync asks for a snapshot of a topic.
	Resync(t market.Topic)
	// Reconnect drops the connection that carries a topic.
	Reconnect(t market.Topic)
}

// Sink takes what is live, for queries. Its methods must not wait.
type Sink interface {
	// StreamPrice, StreamSpread and StreamBook store a value that stays fresh until its session ends.
	StreamPrice(s *market.Session, p *market.Price, m market.Meta)
	StreamSpread(s *market.Session, sp *market.Spread, m market.Meta)
	StreamBook(s *market.Session, b *market.Book, m market.Meta)
	// StreamStale makes what was streamed of a topic stale, after a gap in it.
	StreamStale(t market.Topic)
	// StreamMarket announces that a market has changed, so that what was read of it is to be read again. change is nil where the
	// stream does not say what has changed.
	StreamMarket(s *market.Session, marketID string, change *market.MarketChange)
	// StreamAccount stores an account as its reader sees it, fresh until its session ends. Parts may be nil where they are
	// not known.
	StreamAccount(s *market.Session, t market.Topic, orders []market.Order, positions []market.Position, b *market.Balance, m market.Meta)
}

// Config is how the feed behaves. The zero value of a field takes its default.
type Config struct {
	Sink Sink
	// Origin is where states are read that the stream does not send; nil where they can't be.
	Origin Origin
	Clock  market.Clock
	Log    *slog.Logger
	// Lag is told how long each change of a live topic was under way, from the venue's time of it to its arrival, which their
	// clocks may make negative. It must not wait; nil tells nobody.
	Lag func(time.Duration)
	// Topics is the greatest number of topics that Upstream has room for; 2,000 by default.
	Topics int
	// Linger is how long a topic stays open when its last watch has gone; 5 s by default.
	Linger time.Duration
	// Queue is the greatest number of trades or changes that wait for a watch; 1,000 by default.
	Queue int
}

// The fixed times of the protocol.
const (
	// snapshotWithin is how long a snapshot may take before it is asked for again.
	snapshotTimeout = 2 * time.Second
	// ackWithin is how long the confirmation of a market's subscription may take before the subscription is sent again; it
	// doubles up to maxAckWithin while the venue confirms none.
	ackTimeout    = 2 * time.Second
	maxAckTimeout = 2 * time.Minute
	// failedResyncs in a row make the feed drop the connection; the number doubles each time that this did not help, at most
	// maxPatience times.
	maxFailedResyncs = 3
	maxDoublings     = 6
	// maxBuffered bounds the messages that wait for a snapshot.
	maxBuffered = 1000
)

// Feed keeps live state. It is safe for concurrent use. Close it to stop its timers and reads.
type Feed struct {
	cfg      Config
	upstream Upstream
	counts   counts
	auto     *autoWatcher
	reads    *readQueue
	shares   shares

	// mu protects topics, public and closed. The demand's lock is taken inside it, a topic's inside both and a reader's inside
	// that, never the other way round. The upstream is called under it and under topics' locks, the sink under topics'.
	mu     sync.Mutex
	topics map[market.Topic]*topic
	public int // topics that are not users'
	closed bool
}

// New returns a feed without an upstream: it refuses every watch until Connect.
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
	f := &Feed{cfg: cfg, topics: make(map[market.Topic]*topic), reads: newReadQueue(), shares: shares{counts: make(map[string]int)}}
	f.auto = newAutoWatcher(f)
	return f
}

// Connect gives the feed its upstream, whose handler it is. Call it once, before the feed is used.
func (f *Feed) Connect(u Upstream) { f.upstream = u }

// Close ends all watches, timers and reads, and waits for the reads.
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

// watch follows a topic for a reader.
func (f *Feed) watch(key market.Topic, c *market.Credentials, r *Reader) (*Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if f.upstream == nil {
		return nil, market.Errorf(market.CodeUnsupported, "live data needs the venue's stream, which is not configured")
	}
	t, user := f.topics[key], key.Channel == market.ChannelUser
	room := func() bool { return f.makeRoom(user) }
	if !f.withinShare(r, t, user) {
		if !reclaimable(key) && !f.halfFree() {
			return nil, market.Errorf(market.CodeRateLimited, "the caller watches as many topics as its share of the stream allows")
		}
		room = func() bool { return f.closeLingering(false) } // it takes what is free
	}
	t, err := f.open(key, c, room)
	if err != nil {
		return nil, err
	}
	return t.join(r, r), nil
}

// open returns the open topic, or opens it. While the upstream is full, makeRoom closes another topic; it reports false if none
// may be closed. The lock is held.
func (f *Feed) open(key market.Topic, c *market.Credentials, makeRoom func() bool) (*topic, error) {
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
	if key.Channel != market.ChannelUser {
		f.public++
	}
	return t, nil
}

// keep watches a topic for nobody, to have it live for queries. It takes the room that is free, and what callers hold past
// their shares.
func (f *Feed) watchForQueries(key market.Topic) (*Watch, error) {
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

// KeepLive keeps a public topic live for queries while less than half of the room is taken. The reader is not signalled when
// the topic changes.
func (r *Reader) KeepLive(key market.Topic) {
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

// remove forgets a topic that is closed. The lock is held.
func (f *Feed) remove(key market.Topic) {
	delete(f.topics, key)
	if key.Channel != market.ChannelUser {
		f.public--
	}
	f.upstream.Unwatch(key)
}

// RecordPoll counts a caller's query for the prices or books of tokens that exist. The feed watches a token that is polled
// often. Calls with equal demand count once for each token, unless demand is 0.
func (f *Feed) RecordPoll(demand uint64, caller string, c market.Channel, tokenIDs []string) {
	f.auto.recordPolls(demand, caller, c, tokenIDs, pollsToWatch)
}

// AutoWatch watches tokens at once that exist and that a caller waits for, because the stream may answer before REST does.
// The same bounds hold as for tokens that are polled often.
func (f *Feed) AutoWatch(caller string, c market.Channel, tokenIDs []string) {
	f.auto.recordPolls(0, caller, c, tokenIDs, 1)
}

// SkipLinger makes matching topics close without the linger when their last watch is closed, for example after a caller's
// credentials were revoked.
func (f *Feed) SkipLinger(match func(market.Topic) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, t := range f.topics {
		if match(key) {
			t.skipLinger()
		}
	}
}

// release closes a topic that nobody has watched for the linger. The topic calls it without its lock.
func (f *Feed) lingerOver(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeIdle(t)
}

// drop closes a topic that has no watches. The feed's lock is held.
func (f *Feed) closeIdle(t *topic) {
	if f.topics[t.key] == t && t.stopIfIdle() {
		f.remove(t.key)
	}
}

// forget ends a topic and its watches. The lock is held.
func (f *Feed) fail(t *topic, err error) {
	t.end(err)
	f.remove(t.key)
}

// find returns an open topic, or nil.
func (f *Feed) find(key market.Topic) *topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[key]
}
