package feed

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// Upstream is the client of the venue's stream. Its methods do not wait for the network.
type Upstream interface {
	// Watch subscribes to a topic until Unwatch is called. A second Watch of the same topic sends the subscription again. If no
	// connection can take another topic, Watch fails with RATE_LIMITED.
	Watch(t messages.Topic, c *market.Credentials) error
	Unwatch(t messages.Topic)
	// Resync requests a new snapshot of a topic.
	Resync(t messages.Topic)
}

// Sink stores live values for queries. Its methods must not wait.
type Sink interface {
	// StreamPrice, StreamSpread and StreamBook store a value that stays fresh until the session s ends.
	StreamPrice(s *reads.Session, p *market.Price, m reads.Meta)
	StreamSpread(s *reads.Session, sp *market.Spread, m reads.Meta)
	StreamBook(s *reads.Session, b *market.Book, m reads.Meta)
	// StreamStale marks the values of a topic as stale, for example after a lost message.
	StreamStale(t messages.Topic)
	// StreamMarket reports that a market has changed and that earlier reads of the market are therefore out of date. change is nil if
	// the feed does not know what changed.
	StreamMarket(marketID string, change *market.MarketChange)
	// StreamAccount stores an account that stays fresh until the session s ends. A nil list or balance is unknown, and StreamAccount
	// does not store it.
	StreamAccount(s *reads.Session, t messages.Topic, orders []market.Order, positions []market.Position, b *market.Balance, m reads.Meta)
	// StreamUnread reports a change of an account's list whose rows the feed does not know, so that earlier reads of the list are out
	// of date. kind is KindOrder, KindPosition or KindBalance.
	StreamUnread(t messages.Topic, kind messages.Kind)
}

// Config configures a feed.
type Config struct {
	Sink Sink
	// Snapshots contains the channels whose subscriptions begin with a snapshot. Books always do.
	Snapshots []messages.Channel
	Clock     market.Clock
	Log       *slog.Logger
	// Lag observes the time between the venue's timestamp of a change and the arrival of the change. The time is negative if the
	// venue's clock is ahead. Lag must not wait. Lag may be nil.
	Lag func(time.Duration)
	// Topics is the number of public topics that Upstream can watch at the same time. The default is 2,000.
	Topics int
	// Linger is the time that a topic stays open after its last watch was closed. The default is 5 s.
	Linger time.Duration
}

// The timeouts and bounds of the stream's protocol.
const (
	// promptAttempts is the number of attempts to get a snapshot before the time between two attempts grows.
	promptAttempts = 3
	// maxBuffered bounds the messages that a topic buffers while it waits for a snapshot.
	maxBuffered = 1000
	// maxQueued bounds the trades and market changes that wait in the queue of one watch.
	maxQueued = 1000
)

// Feed maintains the live state of topics. It is safe for concurrent use. Close a feed after use.
type Feed struct {
	cfg      Config
	upstream Upstream
	counts   counts
	auto     *autoWatcher
	shares   shares

	// mu protects topics, public and closed. The lock order is autoWatcher.mu, Feed.mu, topic.mu, Reader.mu, shares.mu. Calls to
	// Upstream are made with Feed.mu or topic.mu held. Calls to Sink are made with topic.mu held.
	mu     sync.Mutex
	topics map[messages.Topic]*topic
	public int // number of topics that are not accounts
	firm   int // number of public topics that are not reclaimable
	closed bool
}

// New returns a feed without an upstream. Every watch fails until Connect is called.
func New(cfg Config) *Feed {
	cfg.Clock = cmp.Or[market.Clock](cfg.Clock, market.SystemClock{})
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Topics = cmp.Or(cfg.Topics, 2000)
	cfg.Linger = cmp.Or(cfg.Linger, 5*time.Second)
	f := &Feed{cfg: cfg, topics: make(map[messages.Topic]*topic), shares: shares{counts: make(map[string]int)}}
	f.auto = newAutoWatcher(f)
	return f
}

// Connect sets the upstream, which must pass its events to the feed's methods. Call Connect once, before the feed is used.
func (f *Feed) Connect(u Upstream) { f.upstream = u }

// Close ends all watches and stops the timers.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	topics := slices.Collect(maps.Values(f.topics))
	f.mu.Unlock()
	f.auto.close()
	for _, t := range topics {
		t.end(errClosed)
	}
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
	makeRoom := func() bool { return f.makeRoom(user) }
	if !f.withinShare(r, t, user) {
		makeRoom = func() bool { return f.closeLingering(false) || !reclaimable(key) && f.giveUp(r.caller) } // takes nothing from other callers
		if !reclaimable(key) && f.firm >= f.cfg.Topics/2 {
			return nil, market.Errorf(market.CodeRateLimited, "the caller watches as many topics as its share of the stream allows; the operator can raise --stream-topics")
		}
	}
	t, err := f.open(key, c, makeRoom)
	if err != nil {
		return nil, err
	}
	return t.join(r, r), nil
}

// open returns the topic of a key and subscribes to the topic if it is not open yet. If the upstream cannot take another topic,
// open calls makeRoom and tries again until makeRoom returns false. makeRoom closes another topic, or returns false if it cannot.
// f.mu must be locked.
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
	t := &topic{feed: f, key: key}
	f.topics[key] = t
	f.count(key, 1)
	return t, nil
}

// hold watches a public topic for queries. If the upstream cannot take another topic, hold closes a topic without watches, but never
// a topic that a subscription uses.
func (f *Feed) hold(key messages.Topic) (*Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.upstream == nil {
		return nil, errClosed
	}
	t, err := f.open(key, nil, func() bool { return f.closeLingering(false) })
	if err != nil {
		return nil, err
	}
	return t.join(nil, nil), nil
}

// KeepLive watches a public topic until the reader is closed, so that queries find its live value. Changes of the topic do not
// signal the reader. KeepLive does nothing if the stream cannot take the topic. If Config.Topics/2 or more public topics are open,
// KeepLive opens no further topic. It can still watch an open topic if withinShare allows the watch.
func (r *Reader) KeepLive(key messages.Topic) {
	f := r.of(key)
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

// remove removes a stopped topic from the feed and unsubscribes from the topic. f.mu must be locked.
func (f *Feed) remove(key messages.Topic) {
	delete(f.topics, key)
	f.count(key, -1)
	f.upstream.Unwatch(key)
}

// count adds n to the counts of open topics to which a topic belongs. f.mu must be locked.
func (f *Feed) count(key messages.Topic, n int) {
	if key.Channel == messages.ChannelUser {
		return
	}
	f.public += n
	if !reclaimable(key) {
		f.firm += n
	}
}

// RecordPoll counts a query for the prices or books of existing tokens. The feed watches tokens that are queried often.
// Successive calls with the same pollID count once for each token. If pollID is 0, each call counts.
func (f *Feed) RecordPoll(pollID uint64, c messages.Channel, tokenIDs []string) {
	f.auto.recordPolls(pollID, c, tokenIDs, pollsToWatch)
}

// AutoWatch watches existing tokens whose REST responses a request waits for, because the stream may send their values earlier. Like
// RecordPoll, AutoWatch does not watch a token if there are too many auto-watches. See the package comment.
func (f *Feed) AutoWatch(c messages.Channel, tokenIDs []string) {
	f.auto.recordPolls(0, c, tokenIDs, 1)
}

// SkipLinger makes the open topics for which match returns true close as soon as they have no watches, instead of Config.Linger
// later. SkipLinger is called after the credentials of an account were revoked.
func (f *Feed) SkipLinger(match func(messages.Topic) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, t := range f.topics {
		if match(key) {
			t.skipLinger()
		}
	}
}

// closeAfterLinger closes a topic if it still has no watches after Config.Linger. t.mu must not be locked.
func (f *Feed) closeAfterLinger(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeIdle(t)
}

// closeIdle closes a topic if it has no watches, and reports whether it has closed the topic. f.mu must be locked.
func (f *Feed) closeIdle(t *topic) bool {
	if f.topics[t.key] != t || !t.stopIfIdle() {
		return false
	}
	f.remove(t.key)
	return true
}

// fail ends the watches of a topic with an error and closes the topic. f.mu must be locked.
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
