package feed

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// phase is where a topic is between asking for a snapshot and following its changes.
type phase uint8

const (
	// down: no connection carries the topic.
	down phase = iota
	// opening: a subscription was sent; its first snapshot, or for a market its confirmation, has not come.
	opening
	// resyncing: something was missed, and a snapshot was asked for.
	resyncing
	// following: a snapshot and all changes since are applied.
	following
)

// session is what the topics of one frame are streamed in.
type session struct {
	market.Session
	// topics counts those that still are.
	topics atomic.Int32
}

// topic is one subscription upstream and its watches.
type topic struct {
	feed *Feed
	key  market.Topic

	// mu protects all below. The sink is called under it, so that it sees the states in order.
	mu      sync.Mutex
	watches []*Watch // each knows its place
	holder  *Reader  // for whose caller the topic counts; nil for nobody
	state   State
	phase   phase
	session *session // that of the last time the topic was up; nil before the first
	// past is the epoch before the state's, whose messages may still be on their way.
	past string
	// buffered are the changes that arrived while a snapshot was awaited; cut is the last one for which there was no room.
	buffered []*market.Message
	cut      *market.Message
	// confirmed reports that the venue has confirmed a market's subscription once; unconfirmed counts the subscriptions in a
	// row that it did not confirm.
	confirmed   bool
	unconfirmed int
	// broken tells that the next snapshot replaces a state that may have missed something.
	broken bool
	// failures counts the resyncs in a row that brought nothing, reconnects how often that was too much since a snapshot
	// came last.
	failures, reconnects int
	// waiter ends the wait for a snapshot; waits tells one wait from another. overdues counts those that brought none in a
	// row, also over several sessions.
	waiter   *time.Timer
	waits    int
	overdues int
	// reading is the read of the state over REST that is under way; fetches counts those in a row that brought nothing, and
	// readAt is the earliest time of the next. base is what the state rests on where it was read so, and still matters.
	reading *read
	fetches int
	readAt  time.Time
	// buffers is since when changes are buffered; aged reports that the last read brought a state that may be from before that.
	buffers time.Time
	aged    bool
	base    *base
	linger  *time.Timer
	// brief tells that the topic does not linger.
	brief bool
	ended bool

	// recent are a token's latest prices.
	recent recent
	// told is when the sink was given an account last, untold that it has changed since, and teller is to give it then.
	told   time.Time
	untold bool
	teller *time.Timer
}

func newTopic(f *Feed, key market.Topic) *topic {
	return &topic{feed: f, key: key}
}

// join adds a watch for a reader, nil for nobody, on the account of owner.
func (t *topic) join(r, owner *Reader) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.linger != nil {
		t.linger.Stop()
		t.linger = nil
	}
	w := &Watch{topic: t, reader: r, owner: owner, place: len(t.watches)}
	t.watches = append(t.watches, w)
	if t.holder == nil {
		t.settle()
	}
	if t.state.Known || t.state.Live {
		w.notify()
	}
	return w
}

func (t *topic) leave(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.place != gone {
		last := len(t.watches) - 1
		t.watches[w.place] = t.watches[last]
		t.watches[w.place].place = w.place
		t.watches[last] = nil
		t.watches, w.place = t.watches[:last], gone
	}
	if w.owner != nil && w.owner == t.holder {
		t.settle()
	}
	if len(t.watches) == 0 && !t.ended && t.linger == nil {
		linger := t.feed.cfg.Linger
		if t.brief {
			linger = 0
		}
		t.linger = time.AfterFunc(linger, func() { t.feed.release(t) })
	}
}

// shorten takes the linger away.
func (t *topic) shorten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brief = true
	if t.linger != nil {
		t.linger.Reset(0)
	}
}

// watchers returns how many read the topic, and how many just keep it live.
func (t *topic) watchers() (readers, keepers int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.watches {
		if w.reader != nil {
			readers++
		} else {
			keepers++
		}
	}
	return readers, keepers
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
	for _, w := range t.watches {
		w.fail(err)
	}
}

// stop ends what runs beside the topic and lets go of its values. The lock is held.
func (t *topic) stop() {
	if t.ended {
		return
	}
	t.ended = true
	t.settle()
	t.stale()
	t.enter(nil)
	if t.linger != nil {
		t.linger.Stop()
	}
}

func (t *topic) resyncing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == resyncing
}

// in returns the session of a topic that is up, or nil.
func (t *topic) in() *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == down {
		return nil
	}
	return t.session
}

// enter takes the topic from its session to another, or to none where s is nil. The lock is held.
func (t *topic) enter(s *session) {
	if t.session != nil && t.phase != down {
		t.session.topics.Add(-1)
	}
	if s != nil {
		s.topics.Add(1)
	}
	t.session = s
}

// up begins a new session. A snapshot follows and replaces what was known. A market has no snapshot: it is live when the
// venue confirms the subscription.
func (t *topic) up(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.stale()
	t.enter(s)
	t.phase, t.past, t.failures = opening, "", 0
	if t.key.Channel == market.ChannelMarket {
		t.broken, t.state.Seq = t.confirmed, 0
		t.awaitConfirmation()
	} else {
		t.broken = t.state.Known
		t.await()
	}
	t.publish()
}

// awaitConfirmation sends a market's subscription again if the venue does not confirm it. Until then the market is not live,
// so its subscribers poll it. The lock is held.
func (t *topic) awaitConfirmation() {
	t.rest()
	wait := t.waits
	t.waiter = time.AfterFunc(min(ackWithin<<min(t.unconfirmed, 10), maxAckWithin), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waits != wait {
			return
		}
		t.unconfirmed++
		t.feed.counts.unacknowledged.Add(1)
		t.feed.cfg.Log.Info("the venue does not confirm a subscription: it is sent again", "topic", t.key.ID, "times", t.unconfirmed)
		if err := t.feed.upstream.Watch(t.key, nil); err != nil {
			t.feed.cfg.Log.Warn("a subscription could not be sent again", "topic", t.key.ID, "error", err)
		}
		t.awaitConfirmation()
	})
}

// acknowledged takes the venue's confirmation of the subscription. Snapshots confirm all topics but markets.
func (t *topic) acknowledged() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended && t.phase != down && t.key.Channel == market.ChannelMarket {
		t.confirm()
	}
}

// confirm makes a market live. What happened before has no frame, so whatever was read until now may be out of date. A
// confirmation after the first frame makes it so again: that frame may have belonged to the subscription before. The lock is
// held.
func (t *topic) confirm() {
	if t.broken || t.phase == following {
		t.resynced()
	}
	t.follow()
	t.confirmed, t.unconfirmed = true, 0
	t.feed.cfg.Sink.StreamMarket(&t.session.Session, t.key.ID, nil)
	t.publish()
}

// down ends the topic's part in the session: it is not live until it is up again.
func (t *topic) down() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	t.stale()
	t.session.topics.Add(-1)
	t.phase = down
	t.publish()
}

// stale takes note that the state is no longer the present one. What was buffered is forgotten. The lock is held.
func (t *topic) stale() {
	t.state.Live, t.state.Meta.Stale = false, true
	t.buffered, t.cut, t.base = nil, nil, nil
	t.buffers, t.aged = t.feed.cfg.Clock.Now(), false
	t.rest()
	t.abandon()
	t.untell()
	if !t.state.Known || t.session == nil {
		return
	}
	if _, ended := t.session.Ended(); !ended { // else all that was streamed in it is stale already
		t.feed.cfg.Sink.StreamStale(t.key)
	}
}

// message takes one message of the topic.
func (t *topic) message(m *market.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down || m.Epoch != "" && m.Epoch == t.past {
		return
	}
	t.lag(m)
	switch m.Kind {
	case market.MessagePrice:
		t.price(m)
	case market.MessageBookSnapshot, market.MessageTradesSnapshot, market.MessageUserSnapshot:
		t.snapshot(m)
	default:
		t.change(m)
	}
}

// lag tells how long a change was under way. A snapshot, and whatever comes before the first, is as old as it likes.
func (t *topic) lag(m *market.Message) {
	if t.feed.cfg.Lag == nil || t.phase != following || m.Time.IsZero() {
		return
	}
	switch m.Kind {
	case market.MessageBookSnapshot, market.MessageTradesSnapshot, market.MessageUserSnapshot:
	default:
		t.feed.cfg.Lag(m.ReceivedAt.Sub(m.Time))
	}
}

// price takes a price. It is whole, so it heals a gap by itself; the gap shows as a resync.
func (t *topic) price(m *market.Message) {
	if t.old(m) || t.late(m) {
		return
	}
	if t.phase == following && skips(&t.state, m) {
		t.feed.counts.gaps.Add(1)
		t.broken = true
	}
	next := t.state
	t.whole(&next, m)
	t.commit(next, Items{})
}

// snapshot replaces the state, and applies what has arrived since the snapshot was made.
func (t *topic) snapshot(m *market.Message) {
	if t.old(m) {
		return
	}
	next := t.state
	items := t.whole(&next, m)
	if t.crossed(&next) {
		t.failed(nil)
		return
	}
	if t.cut != nil && t.cut.Seq == 0 && t.cut.Time.After(m.Time) {
		t.failed(nil)
		return
	}
	for i, later := range t.buffered {
		if seen(&next, later) || later.Seq == 0 && !later.Time.After(m.Time) {
			continue
		}
		if !t.follows(&next, later) {
			t.failed(t.buffered[i:])
			return
		}
		items.add(apply(&next, later))
		if t.crossed(&next) {
			t.failed(nil)
			return
		}
	}
	if t.phase == following && skips(&t.state, m) {
		t.feed.counts.gaps.Add(1)
		t.broken = true
	}
	t.base = nil
	t.commit(next, items)
}

// failed takes note of a snapshot that leads nowhere. The lock is held.
func (t *topic) failed(buffered []*market.Message) {
	if t.phase != following {
		t.fruitless()
	}
	t.gap()
	t.buffered = buffered
}

// change applies one change and publishes what came of it.
func (t *topic) change(m *market.Message) {
	if t.phase == opening && t.key.Channel == market.ChannelMarket {
		t.confirm() // a venue that sends changes has taken the subscription, whether it says so or not
	}
	if t.phase != following {
		if len(t.buffered) == maxBuffered {
			t.cut = t.buffered[maxBuffered/2-1] // a snapshot that does not reach it leaves a gap
			t.buffered = slices.Delete(t.buffered, 0, maxBuffered/2)
		}
		t.buffered = append(t.buffered, m)
		return
	}
	late := t.late(m)
	if seen(&t.state, m) || late && (m.Seq == 0 || t.base.seq != 0) {
		return
	}
	if !t.follows(&t.state, m) {
		t.gap()
		if t.key.Channel != market.ChannelMarket {
			t.buffered = append(t.buffered, m)
			return
		}
	}
	next := t.state
	if late {
		t.base.renumber(&next, m)
		t.commit(next, Items{})
		return
	}
	items := apply(&next, m)
	if t.crossed(&next) {
		t.gap()
		return
	}
	t.commit(next, items)
}

// seen reports whether a message is no newer than a state.
func seen(s *State, m *market.Message) bool {
	return m.Seq != 0 && m.Epoch == s.Epoch && m.Seq <= s.Seq
}

// skips reports whether messages between a state and a message are missing.
func skips(s *State, m *market.Message) bool {
	return m.Seq != 0 && s.Seq != 0 && (m.Epoch != s.Epoch || m.Seq > s.Seq+1)
}

// follows reports whether a change is the next one after a state.
func (t *topic) follows(s *State, m *market.Message) bool {
	if m.Seq == 0 {
		return true
	}
	if s.Seq == 0 {
		return true // the first number tells where the counting stands
	}
	return m.Epoch == s.Epoch && m.Seq == s.Seq+1 && (m.PrevSeq == 0 || m.PrevSeq == s.Seq)
}

// old reports whether a whole state is no newer than the one that is known. While a snapshot is awaited, one with the
// number of the known state is what was asked for. The first snapshot of a session may count from anew where the venue
// names no epoch, and where it does it is believed after a resync.
func (t *topic) old(m *market.Message) bool {
	if !t.state.Known || !seen(&t.state, m) {
		return false
	}
	switch {
	case t.phase == following:
		return true
	case t.phase == opening && (m.Epoch == "" || t.failures > 0):
		return false
	default:
		return m.Seq < t.state.Seq
	}
}

// crossed reports whether a state has a book that no real one is like.
func (t *topic) crossed(s *State) bool {
	return t.key.Channel == market.ChannelOrderbook && crossed(s.Book)
}

// gap makes the topic stale and asks for a snapshot. The lock is held.
func (t *topic) gap() {
	t.feed.counts.gaps.Add(1)
	if t.state.Known && !t.broken {
		about := []any{"channel", t.key.Channel, "seq", t.state.Seq, "resyncs", t.state.Resyncs}
		if t.key.Scope == "" { // whose accounts are followed is nobody's business
			about = append(about, "topic", t.key.ID)
		}
		t.feed.cfg.Log.Info("a topic has a gap and is read anew", about...)
	}
	if t.key.Channel == market.ChannelMarket {
		t.resynced() // its state is read over REST, so it is enough to say that something was missed
		t.feed.cfg.Sink.StreamStale(t.key)
		t.feed.cfg.Sink.StreamMarket(&t.session.Session, t.key.ID, nil)
		t.publish()
		return
	}
	t.broken = t.broken || t.state.Known
	t.phase = resyncing
	t.stale()
	t.publish()
	t.feed.upstream.Resync(t.key)
	t.await()
}

// await asks again for a snapshot that does not come. The lock is held.
func (t *topic) await() {
	t.rest()
	wait := t.waits
	t.waiter = time.AfterFunc(snapshotWithin, func() { t.overdue(wait) })
}

// rest ends the wait for a snapshot. The lock is held.
func (t *topic) rest() {
	t.waits++
	if t.waiter != nil {
		t.waiter.Stop()
		t.waiter = nil
	}
}

func (t *topic) overdue(wait int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits != wait {
		return
	}
	t.overdues++
	quiet := t.key.Channel == market.ChannelPrices && t.phase == opening && t.failures+1 >= failedResyncs
	switch {
	case t.overdues > 1 && t.adopt():
		return
	case t.reading != nil, t.overdues > 1 && t.read(), t.aged:
	case quiet && t.feed.cfg.Origin == nil:
		return // a venue that sends prices only as they change; queries read it over REST meanwhile
	case quiet, t.fruitless():
	default:
		t.feed.upstream.Resync(t.key)
	}
	t.await()
}

// fruitless takes note of a resync that brought nothing. After too many of them it drops the connection and reports
// true. What then does not come either is given twice as many resyncs before the next time, since all other topics of
// the connection pay for it. The lock is held.
func (t *topic) fruitless() bool {
	if t.failures++; t.failures < failedResyncs<<min(t.reconnects, maxPatience) {
		return false
	}
	t.failures = 0
	t.reconnects++
	t.feed.counts.reconnects.Add(1)
	t.feed.cfg.Log.Warn("a topic gets no snapshot: its connection is dropped", "channel", t.key.Channel, "times", t.reconnects)
	t.feed.upstream.Reconnect(t.key)
	return true
}

// heartbeat compares the venue's number with ours, so that a lost last message of a quiet topic is found.
func (t *topic) heartbeat(epoch string, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase != following || epoch != "" && epoch == t.past {
		return
	}
	if t.state.Seq != 0 { // else the venue numbers nothing that we know of
		restarted := epoch != "" && t.state.Epoch != "" && epoch != t.state.Epoch
		if seq <= t.state.Seq && !restarted {
			return
		}
		t.gap()
	}
	if t.key.Channel == market.ChannelMarket {
		t.state.Epoch, t.state.Seq = epoch, seq
	}
}

// follow enters the phase in which changes are applied. The lock is held.
func (t *topic) follow() {
	t.phase, t.buffered, t.cut = following, nil, nil
	t.failures, t.reconnects, t.overdues, t.fetches = 0, 0, 0, 0
	t.rest()
	t.abandon()
	t.state.Live, t.state.Meta.Stale = true, false
}

// resynced counts a state that took the place of one that may have missed something. The lock is held.
func (t *topic) resynced() {
	t.broken = false
	t.state.Resyncs++
	t.feed.counts.resyncs.Add(1)
}

// whole puts a whole state in the place of the old one, and returns what is new in it for those who must not miss any.
func (t *topic) whole(s *State, m *market.Message) (items Items) {
	known := s.Known
	number(s, m)
	switch m.Kind {
	case market.MessagePrice:
		s.Price, s.Spread = m.Price, m.Spread
	case market.MessageBookSnapshot:
		s.Book = numbered(m.Book, m)
	case market.MessageTradesSnapshot:
		s.Trades, items = tape(s.Trades, m.Trades, known)
	case market.MessageUserSnapshot:
		s.ledger = newLedger(m, s.ledger)
	}
	return items
}

// apply makes the next state out of the present one and a change, and returns what is new for those who must not miss
// any.
func apply(s *State, m *market.Message) (items Items) {
	number(s, m)
	switch m.Kind {
	case market.MessageBookDelta:
		s.Book = numbered(applyChanges(reaching(s.Book, m.Depth), m.Changes), m)
	case market.MessageTrade:
		s.Trades, items.Trades = added(s.Trades, m.Trades, m.Seq != 0)
	case market.MessageMarket:
		items.Changes = []market.MarketChange{*m.Market}
	case market.MessageFill:
		if items.Trades = m.Trades; s.ledger != nil {
			items.Trades = s.ledger.filled(m)
		}
	case market.MessageOrder, market.MessagePosition, market.MessageBalance:
		s.ledger.apply(m)
	}
	return items
}

// number takes over what a message says of its place and time.
func number(s *State, m *market.Message) {
	s.Known = true
	s.Epoch, s.Seq = m.Epoch, m.Seq
	s.Meta = market.Meta{AsOf: m.Time, ReceivedAt: m.ReceivedAt, Source: market.SourceStream}
}

// commit makes a state the present one, and hands it to the sink and the watches. The lock is held.
func (t *topic) commit(next State, items Items) {
	if t.state.Known && next.Epoch != "" && next.Epoch != t.state.Epoch {
		t.past = t.state.Epoch
	}
	spread := t.state.Spread
	t.state = next
	if t.broken {
		t.resynced()
	}
	t.follow()

	sink, s, in := t.feed.cfg.Sink, &t.state, &t.session.Session
	switch t.key.Channel {
	case market.ChannelPrices:
		if s.Spread == nil && spread != nil {
			sink.StreamStale(t.key) // what was said of the best prices no longer goes with the price
		}
		t.recent.add(s.Meta.ReceivedAt, s.Price.Price)
		sink.StreamPrice(in, s.Price, s.Meta)
		if s.Spread != nil {
			sink.StreamSpread(in, s.Spread, s.Meta)
		}
	case market.ChannelOrderbook:
		sink.StreamBook(in, s.Book, s.Meta)
	case market.ChannelMarket:
		var change *market.MarketChange
		if n := len(items.Changes); n > 0 {
			change = &items.Changes[n-1]
		}
		sink.StreamMarket(in, t.key.ID, change)
	case market.ChannelUser:
		t.tellSoon()
	}
	if !items.empty() {
		for _, w := range t.watches {
			w.queue(t.feed.cfg.Queue, items)
		}
	}
	t.publish()
}

// publish signals the watches. The lock is held.
func (t *topic) publish() {
	for _, w := range t.watches {
		w.notify()
	}
}
