package feed

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
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
	// WarmAsks within WarmWithin make the feed watch a topic by itself, until nobody has asked for WarmFor: 3, 10 s, 30 s.
	WarmAsks            int
	WarmWithin, WarmFor time.Duration
}

// The fixed times of the protocol.
const (
	// snapshotWithin is how long a snapshot may take before it is asked for again.
	snapshotWithin = 2 * time.Second
	// ackWithin is how long the confirmation of a market's subscription may take before the subscription is sent again; it
	// doubles up to maxAckWithin while the venue confirms none.
	ackWithin    = 2 * time.Second
	maxAckWithin = 2 * time.Minute
	// failedResyncs in a row make the feed drop the connection; the number doubles each time that this did not help, at most
	// maxPatience times.
	failedResyncs = 3
	maxPatience   = 6
	// maxBuffered bounds the messages that wait for a snapshot.
	maxBuffered = 1000
)

// Feed keeps live state. It is safe for concurrent use. Close it to stop its timers and reads.
type Feed struct {
	cfg      Config
	upstream Upstream
	counts   counts
	demand   *demand
	reads    *reads
	shares   shares

	// mu protects topics, public and closed. The demand's lock is taken inside it, a topic's inside both and a reader's inside
	// that, never the other way round. The upstream is called under it and under topics' locks, the sink under topics'.
	mu     sync.Mutex
	topics map[market.Topic]*topic
	public int // topics that are not users'
	closed bool
}

// counts are the feed's counters.
type counts struct {
	gaps, resyncs, spliced, conflated, dropped, reconnects, unacknowledged atomic.Uint64
}

// Stats are counters since the start, and what is watched now.
type Stats struct {
	// Gaps counts breaks in a topic's numbers, Resyncs the snapshots that replaced a state after one or after an outage.
	Gaps, Resyncs uint64
	// Spliced counts the states that were read over REST since the stream did not send them.
	Spliced uint64
	// Conflated counts signals that fell together in a slow watch, Dropped what was lost by watches that ended for it.
	Conflated, Dropped uint64
	// Reconnects counts connections that were dropped because a topic could not be resynced.
	Reconnects uint64
	// Unacknowledged counts subscriptions of markets that the venue did not confirm in time and that were sent again.
	Unacknowledged uint64
	// Topics and Tokens are open now; Resyncing topics among them wait for a snapshot.
	Topics, Tokens, Resyncing int
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
	cfg.WarmAsks = cmp.Or(cfg.WarmAsks, 3)
	cfg.WarmWithin = cmp.Or(cfg.WarmWithin, 10*time.Second)
	cfg.WarmFor = cmp.Or(cfg.WarmFor, 30*time.Second)
	f := &Feed{cfg: cfg, topics: make(map[market.Topic]*topic), reads: newReads(), shares: shares{held: make(map[string]int)}}
	f.demand = newDemand(f)
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
	f.demand.close()
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
	if !f.sure(r, t, user) {
		if !lends(key) && !f.ample() {
			return nil, market.Errorf(market.CodeRateLimited, "the caller watches as many topics as its share of the stream allows")
		}
		room = func() bool { return f.dropIdle(false) } // it takes what is free
	}
	if t == nil {
		err := f.upstream.Watch(key, c)
		for market.CodeOf(err) == market.CodeRateLimited && room() {
			err = f.upstream.Watch(key, c)
		}
		if err != nil {
			return nil, err
		}
		t = f.add(key)
	}
	return t.join(r, r), nil
}

// keep watches a topic for nobody, to have it live for queries. It takes the room that is free, and what callers hold past
// their shares.
func (f *Feed) keep(key market.Topic) (*Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.upstream == nil {
		return nil, errClosed
	}
	t := f.topics[key]
	if t == nil {
		err := f.upstream.Watch(key, nil)
		for market.CodeOf(err) == market.CodeRateLimited && (f.dropIdle(false) || f.reclaim()) {
			err = f.upstream.Watch(key, nil)
		}
		if err != nil {
			return nil, err
		}
		t = f.add(key)
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
	if f.closed || f.upstream == nil || !f.sure(r, t, false) && !f.ample() {
		return
	}
	if t == nil {
		if !f.ample() || f.upstream.Watch(key, nil) != nil {
			return
		}
		t = f.add(key)
	}
	r.watches[t.join(nil, r)] = struct{}{}
}

// add notes a topic that was opened upstream. The lock is held.
func (f *Feed) add(key market.Topic) *topic {
	t := newTopic(f, key)
	f.topics[key] = t
	if key.Channel != market.ChannelUser {
		f.public++
	}
	return t
}

// remove forgets a topic that is closed. The lock is held.
func (f *Feed) remove(key market.Topic) {
	delete(f.topics, key)
	if key.Channel != market.ChannelUser {
		f.public--
	}
	f.upstream.Unwatch(key)
}

// makeRoom closes a topic that nobody is sure of: one that lingers, or else one that a caller holds past its share, or else
// one that is kept live for queries. User topics have room of their own. It reports whether there was one. The lock is held.
func (f *Feed) makeRoom(user bool) bool {
	if f.dropIdle(user) || !user && f.reclaim() {
		return true
	}
	for key, t := range f.topics {
		if (key.Channel == market.ChannelUser) != user {
			continue
		}
		if readers, _ := t.watchers(); readers == 0 {
			if !f.demand.yield() {
				f.forget(t, market.Errorf(market.CodeRateLimited, "subscribers need the room"))
			}
			return true
		}
	}
	return false
}

// dropIdle closes a topic that lingers. It reports whether there was one. The lock is held.
func (f *Feed) dropIdle(user bool) bool {
	for key, t := range f.topics {
		if (key.Channel == market.ChannelUser) != user {
			continue
		}
		if readers, keepers := t.watchers(); readers == 0 && keepers == 0 {
			f.drop(t)
			return true
		}
	}
	return false
}

// RecordPoll counts a caller's query for the prices or books of tokens that exist. The feed watches a token that is polled
// often. Calls with equal demand count once for each token, unless demand is 0.
func (f *Feed) RecordPoll(demand uint64, caller string, c market.Channel, tokenIDs []string) {
	f.demand.asked(demand, caller, c, tokenIDs, f.cfg.WarmAsks)
}

// AutoWatch watches tokens at once that exist and that a caller waits for, because the stream may answer before REST does.
// The same bounds hold as for tokens that are polled often.
func (f *Feed) AutoWatch(caller string, c market.Channel, tokenIDs []string) {
	f.demand.asked(0, caller, c, tokenIDs, 1)
}

// SkipLinger makes matching topics close without the linger when their last watch is closed, for example after a caller's
// credentials were revoked.
func (f *Feed) SkipLinger(match func(market.Topic) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, t := range f.topics {
		if match(key) {
			t.shorten()
		}
	}
}

// release closes a topic that nobody has watched for the linger. The topic calls it without its lock.
func (f *Feed) release(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(t)
}

// drop closes a topic that has no watches. The feed's lock is held.
func (f *Feed) drop(t *topic) {
	if f.topics[t.key] == t && t.idle() {
		f.remove(t.key)
	}
}

// forget ends a topic and its watches. The lock is held.
func (f *Feed) forget(t *topic, err error) {
	t.end(err)
	f.remove(t.key)
}

// find returns an open topic, or nil.
func (f *Feed) find(key market.Topic) *topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[key]
}

// Up implements the upstream's handler: snapshots of the topics follow.
func (f *Feed) Up(_ string, topics []market.Topic) {
	s := &session{}
	for _, key := range topics {
		if t := f.find(key); t != nil {
			t.up(s)
		}
	}
}

// Acknowledged implements the upstream's handler: the venue sends what changes in the topics from now on.
func (f *Feed) Acknowledged(topics []market.Topic) {
	for _, key := range topics {
		if t := f.find(key); t != nil {
			t.acknowledged()
		}
	}
}

// Down implements the upstream's handler: the topics are no longer live. A session that loses all of its topics ends, so
// that what was streamed in it is stale by one write.
func (f *Feed) Down(topics []market.Topic, _ error) {
	lost := make([]*topic, 0, len(topics))
	leaving := make(map[*session]int32)
	for _, key := range topics {
		if t := f.find(key); t != nil {
			lost = append(lost, t)
			if s := t.in(); s != nil {
				leaving[s]++
			}
		}
	}
	now := f.cfg.Clock.Now()
	for s, n := range leaving {
		if n >= s.topics.Load() {
			s.End(now)
		}
	}
	for _, t := range lost {
		t.down()
	}
}

// Message implements the upstream's handler.
func (f *Feed) Message(m *market.Message) {
	if t := f.find(m.Topic); t != nil {
		t.message(m)
	}
}

// Heartbeat implements the upstream's handler: it finds what was lost at the end of a topic.
func (f *Feed) Heartbeat(epoch string, seqs map[market.Topic]uint64) {
	for key, seq := range seqs {
		if t := f.find(key); t != nil {
			t.heartbeat(epoch, seq)
		}
	}
}

// Refused implements the upstream's handler: the topic ends for its watches. It may have been watched anew meanwhile, so
// it is let go of upstream too.
func (f *Feed) Refused(key market.Topic, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.topics[key]; t != nil {
		f.forget(t, err)
	}
}

// Stats returns the counters.
func (f *Feed) Stats() Stats {
	s := Stats{
		Gaps: f.counts.gaps.Load(), Resyncs: f.counts.resyncs.Load(), Spliced: f.counts.spliced.Load(),
		Conflated: f.counts.conflated.Load(), Dropped: f.counts.dropped.Load(), Reconnects: f.counts.reconnects.Load(),
		Unacknowledged: f.counts.unacknowledged.Load(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Topics = len(f.topics)
	tokens := make(map[string]struct{}, len(f.topics))
	for key, t := range f.topics {
		if key.Channel == market.ChannelPrices || key.Channel == market.ChannelOrderbook || key.Channel == market.ChannelTrades {
			tokens[key.ID] = struct{}{}
		}
		if t.resyncing() {
			s.Resyncing++
		}
	}
	s.Tokens = len(tokens)
	return s
}
