package feed

import (
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// phase is where a topic is between asking for a snapshot and following its changes.
type phase uint8

const (
	// down: no connection carries the topic.
	down phase = iota
	// opening: subscribed, and waiting for the first snapshot of this connection.
	opening
	// resyncing: something was missed, and a snapshot was asked for.
	resyncing
	// following: a snapshot and all changes since are applied.
	following
)

// topic is one subscription upstream and its watches.
type topic struct {
	feed *Feed
	key  market.Topic

	// mu protects all below. The sink is called under it, so that it sees the states in order.
	mu      sync.Mutex
	watches map[*Watch]struct{}
	state   State
	phase   phase
	session *market.Session
	// buffered are the changes that arrived while a snapshot was awaited.
	buffered []*market.Message
	// failures are the times of resyncs that brought nothing.
	failures []time.Time
	// broken tells that the next snapshot replaces a state that may have missed something.
	broken bool
	waiter *time.Timer
	linger *time.Timer
	ended  bool
}

func newTopic(f *Feed, key market.Topic) *topic {
	return &topic{feed: f, key: key, watches: make(map[*Watch]struct{})}
}

func (t *topic) join(r *Reader) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.linger != nil {
		t.linger.Stop()
		t.linger = nil
	}
	w := &Watch{topic: t, reader: r}
	t.watches[w] = struct{}{}
	if t.state.Known {
		w.notify()
	}
	return w
}

func (t *topic) leave(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	delete(t.watches, w)
	if len(t.watches) == 0 && !t.ended && t.linger == nil {
		t.linger = time.AfterFunc(t.feed.cfg.Linger, func() { t.feed.release(t) })
	}
}

// idle ends a topic that has no watches. It reports whether it has none.
func (t *topic) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.watches) > 0 {
		return false
	}
	t.stop()
	return true
}

// end ends the topic and its watches.
func (t *topic) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	for w := range t.watches {
		w.fail(err)
	}
}

// stop ends what runs beside the topic and lets go of its values. The lock is held.
func (t *topic) stop() {
	if t.ended {
		return
	}
	t.ended = true
	t.stale()
	for _, timer := range []*time.Timer{t.waiter, t.linger} {
		if timer != nil {
			timer.Stop()
		}
	}
}

func (t *topic) resyncing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == resyncing
}

// up begins a new session: a snapshot follows, and takes the place of what was known.
func (t *topic) up(epoch string, s *market.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.stale()
	t.broken = t.state.Known
	t.phase, t.session, t.buffered, t.failures = opening, s, nil, nil
	t.state.Epoch = epoch
	t.publish()
	if t.key.Channel == market.ChannelMarket {
		t.follow() // its changes come without a snapshot
		return
	}
	t.await()
}

// down ends the session: nothing is live until the next one.
func (t *topic) down() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	t.session.End(t.feed.cfg.Clock.Now())
	t.stale()
	t.phase, t.buffered = down, nil
	t.publish()
}

// stale lets go of the session, so that what was streamed in it is no longer fresh. The lock is held.
func (t *topic) stale() {
	t.state.Live, t.state.Meta.Stale = false, true
	if t.waiter != nil {
		t.waiter.Stop()
	}
	if t.state.Known {
		t.feed.cfg.Sink.StreamStale(t.key)
	}
}

// message takes one message of the topic.
func (t *topic) message(m *market.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	if m.Kind == market.MessagePrice {
		t.price(m)
		return
	}
	if m.Kind == market.MessageBookSnapshot || m.Kind == market.MessageTradesSnapshot || m.Kind == market.MessageUserSnapshot {
		t.snapshot(m)
		return
	}
	switch {
	case t.phase != following:
		if len(t.buffered) < maxBuffered {
			t.buffered = append(t.buffered, m)
		}
	case m.Seq != 0 && m.Epoch == t.state.Epoch && m.Seq <= t.state.Seq:
		// seen before
	case t.follows(m):
		t.change(m)
	default:
		t.gap()
	}
}

// follows reports whether a change is the next one after the state.
func (t *topic) follows(m *market.Message) bool {
	if m.Seq == 0 {
		return true
	}
	if t.key.Channel == market.ChannelMarket && t.state.Seq == 0 {
		return true // the first change tells where the counting stands
	}
	return m.Epoch == t.state.Epoch && m.Seq == t.state.Seq+1 && (m.PrevSeq == 0 || m.PrevSeq == t.state.Seq)
}

// snapshot replaces the state, and applies what has arrived since the snapshot was made.
func (t *topic) snapshot(m *market.Message) {
	if t.old(m) {
		return
	}
	if m.Kind == market.MessageBookSnapshot && crossed(m.Book) {
		t.gap()
		return
	}
	if t.phase == following && t.state.Known {
		t.broken = m.Seq != 0 // an unnumbered venue sends whole books as changes
	}
	buffered := t.buffered
	t.replace(m)
	t.follow()
	for _, later := range buffered {
		if later.Seq != 0 && later.Epoch == t.state.Epoch && later.Seq <= t.state.Seq {
			continue
		}
		if !t.follows(later) {
			t.gap()
			return
		}
		t.apply(later)
	}
	if t.key.Channel == market.ChannelOrderbook && crossed(t.state.Book) {
		t.gap()
		return
	}
	t.deliver()
}

// old reports whether a whole state is no newer than the one that is known. While a snapshot is awaited, one with the
// number of the known state is what was asked for.
func (t *topic) old(m *market.Message) bool {
	if m.Seq == 0 || !t.state.Known || m.Epoch != t.state.Epoch {
		return false
	}
	return m.Seq < t.state.Seq || m.Seq == t.state.Seq && t.phase == following
}

// change applies one change and publishes what came of it.
func (t *topic) change(m *market.Message) {
	before := t.state.Book
	t.apply(m)
	if t.key.Channel == market.ChannelOrderbook && crossed(t.state.Book) {
		t.state.Book = before
		t.gap()
		return
	}
	t.deliver()
}

// price takes a price. It is whole, so it heals a gap by itself; the gap shows as a resync.
func (t *topic) price(m *market.Message) {
	if t.old(m) {
		return
	}
	if m.Seq != 0 && t.phase == following && (m.Epoch != t.state.Epoch || m.Seq > t.state.Seq+1) {
		t.feed.counts.gaps.Add(1)
		t.broken = true
	}
	t.replace(m)
	t.follow()
	t.deliver()
}

// gap makes the topic stale and asks for a snapshot. The lock is held.
func (t *topic) gap() {
	t.feed.counts.gaps.Add(1)
	t.broken = true
	if t.key.Channel == market.ChannelMarket {
		// Its state is read over REST, so it is enough to say that something was missed.
		t.state.Seq = 0
		t.resynced()
		t.feed.cfg.Sink.StreamMarket(t.key.ID)
		t.publish()
		return
	}
	t.phase, t.buffered = resyncing, nil
	t.stale()
	t.publish()
	t.feed.upstream.Resync(t.key)
	t.await()
}

// await asks again for a snapshot that does not come. The lock is held.
func (t *topic) await() {
	if t.waiter != nil {
		t.waiter.Stop()
	}
	t.waiter = time.AfterFunc(snapshotWithin, t.overdue)
}

func (t *topic) overdue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase != opening && t.phase != resyncing {
		return
	}
	now := t.feed.cfg.Clock.Now()
	recent := t.failures[:0]
	for _, at := range t.failures {
		if now.Sub(at) < failedWithin {
			recent = append(recent, at)
		}
	}
	t.failures = append(recent, now)
	if len(t.failures) >= failedResyncs {
		t.failures = nil
		if t.key.Channel == market.ChannelPrices && t.phase == opening {
			return // a venue that sends prices only as they change; queries read it over REST meanwhile
		}
		t.feed.counts.reconnects.Add(1)
		t.feed.upstream.Reconnect(t.key)
		return
	}
	t.feed.upstream.Resync(t.key)
	t.await()
}

// heartbeat compares the venue's number with ours, so that a lost last message of a quiet topic is found.
func (t *topic) heartbeat(epoch string, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase != following || t.state.Seq == 0 {
		return
	}
	if epoch != t.state.Epoch || seq > t.state.Seq {
		t.gap()
	}
}

// follow enters the phase in which changes are applied. The lock is held.
func (t *topic) follow() {
	t.phase, t.buffered, t.failures = following, nil, nil
	if t.waiter != nil {
		t.waiter.Stop()
	}
	t.state.Live, t.state.Meta.Stale = true, false
}

// resynced counts a state that took the place of one that may have missed something. The lock is held.
func (t *topic) resynced() {
	t.broken = false
	t.state.Resyncs++
	t.feed.counts.resyncs.Add(1)
}

// replace puts a whole state in the place of the old one. The lock is held.
func (t *topic) replace(m *market.Message) {
	if t.broken {
		t.resynced()
	}
	t.number(m)
	switch m.Kind {
	case market.MessagePrice:
		t.state.Price, t.state.Spread = m.Price, m.Spread
	case market.MessageBookSnapshot:
		t.state.Book = numbered(m.Book, m)
	case market.MessageTradesSnapshot:
		t.tape(m.Trades)
	case market.MessageUserSnapshot:
		t.state.Account = &Account{Orders: openOrders(m.Orders), Positions: m.Positions, Balance: m.Balance}
	}
}

// apply makes the next state out of the present one and a change. The lock is held.
func (t *topic) apply(m *market.Message) {
	t.number(m)
	switch m.Kind {
	case market.MessageBookDelta:
		t.state.Book = numbered(applyChanges(t.state.Book, m.Changes), m)
	case market.MessageTrade:
		t.trades(m.Trades, false)
	case market.MessageMarket:
		t.feed.cfg.Sink.StreamMarket(t.key.ID)
		for w := range t.watches {
			w.queue(t.feed.cfg.Queue, Items{Changes: []market.MarketChange{*m.Market}})
		}
	case market.MessageFill:
		for w := range t.watches {
			w.queue(t.feed.cfg.Queue, Items{Trades: m.Trades})
		}
	case market.MessageOrder, market.MessagePosition, market.MessageBalance:
		t.state.Account = t.state.Account.with(m)
	}
}

// number takes over what a message says of its place and time. The lock is held.
func (t *topic) number(m *market.Message) {
	t.state.Known = true
	t.state.Epoch, t.state.Seq = m.Epoch, m.Seq
	t.state.Meta = market.Meta{AsOf: m.Time, ReceivedAt: m.ReceivedAt, Source: market.SourceStream}
}

// deliver hands the state to the sink and the watches. The lock is held.
func (t *topic) deliver() {
	sink, s := t.feed.cfg.Sink, &t.state
	switch t.key.Channel {
	case market.ChannelPrices:
		sink.StreamPrice(t.session, s.Price, s.Meta)
		if s.Spread != nil {
			sink.StreamSpread(t.session, s.Spread, s.Meta)
		}
	case market.ChannelOrderbook:
		sink.StreamBook(t.session, s.Book, s.Meta)
	case market.ChannelUser:
		if a := s.Account; a != nil {
			sink.StreamAccount(t.session, t.key, a.Orders, a.Positions, a.Balance, s.Meta)
		}
	}
	t.publish()
}

// publish signals the watches. The lock is held.
func (t *topic) publish() {
	for w := range t.watches {
		w.notify()
	}
}
