package feed

import (
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
	previousEpoch string
	// buffered are the changes that arrived while a snapshot was awaited; cut is the last one for which there was no room.
	buffered  []*market.Message
	discarded *market.Message
	// confirmed reports that the venue has confirmed a market's subscription once; unconfirmed counts the subscriptions in a
	// row that it did not confirm.
	confirmed   bool
	unconfirmed int
	// broken tells that the next snapshot replaces a state that may have missed something.
	incomplete bool
	// failures counts the resyncs in a row that brought nothing, reconnects how often that was too much since a snapshot
	// came last.
	failedResyncs, reconnects int
	// waiter ends the wait for a snapshot; waits tells one wait from another. overdues counts those that brought none in a
	// row, also over several sessions.
	waitTimer     *time.Timer
	waitID        int
	lateSnapshots int
	// reading is the read of the state over REST that is under way; fetches counts those in a row that brought nothing, and
	// readAt is the earliest time of the next. base is what the state rests on where it was read so, and still matters.
	reading    *originRead
	emptyReads int
	nextRead   time.Time
	// buffers is since when changes are buffered; aged reports that the last read brought a state that may be from before that.
	bufferingSince time.Time
	readTooOld     bool
	base           *base
	linger         *time.Timer
	// brief tells that the topic does not linger.
	noLinger bool
	ended    bool

	// recent are a token's latest prices.
	recent pointRing
	// told is when the sink was given an account last, untold that it has changed since, and teller is to give it then.
	flushedAt  time.Time
	dirty      bool
	flushTimer *time.Timer
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
	w := &Watch{topic: t, reader: r, owner: owner, index: len(t.watches)}
	t.watches = append(t.watches, w)
	if t.holder == nil {
		t.recount()
	}
	if t.state.Known || t.state.Live {
		w.notify()
	}
	return w
}

func (t *topic) leave(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.index != detached {
		last := len(t.watches) - 1
		t.watches[w.index] = t.watches[last]
		t.watches[w.index].index = w.index
		t.watches[last] = nil
		t.watches, w.index = t.watches[:last], detached
	}
	if w.owner != nil && w.owner == t.holder {
		t.recount()
	}
	if len(t.watches) == 0 && !t.ended && t.linger == nil {
		linger := t.feed.cfg.Linger
		if t.noLinger {
			linger = 0
		}
		t.linger = time.AfterFunc(linger, func() { t.feed.lingerOver(t) })
	}
}

// shorten takes the linger away.
func (t *topic) skipLinger() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noLinger = true
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
func (t *topic) stopIfIdle() bool {
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
	t.recount()
	t.markStale()
	t.setSession(nil)
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
func (t *topic) currentSession() *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == down {
		return nil
	}
	return t.session
}

// enter takes the topic from its session to another, or to none where s is nil. The lock is held.
func (t *topic) setSession(s *session) {
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
	t.markStale()
	t.setSession(s)
	t.phase, t.previousEpoch, t.failedResyncs = opening, "", 0
	if t.key.Channel == market.ChannelMarket {
		t.incomplete, t.state.Seq = t.confirmed, 0
		t.awaitConfirmation()
	} else {
		t.incomplete = t.state.Known
		t.awaitSnapshot()
	}
	t.publish()
}

// down ends the topic's part in the session: it is not live until it is up again.
func (t *topic) down() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	t.markStale()
	t.session.topics.Add(-1)
	t.phase = down
	t.publish()
}

// stale takes note that the state is no longer the present one. What was buffered is forgotten. The lock is held.
func (t *topic) markStale() {
	t.state.Live, t.state.Meta.Stale = false, true
	t.buffered, t.discarded, t.base = nil, nil, nil
	t.bufferingSince, t.readTooOld = t.feed.cfg.Clock.Now(), false
	t.stopWaiting()
	t.cancelRead()
	t.cancelFlush()
	if !t.state.Known || t.session == nil {
		return
	}
	if _, ended := t.session.Ended(); !ended { // else all that was streamed in it is stale already
		t.feed.cfg.Sink.StreamStale(t.key)
	}
}

// follow enters the phase in which changes are applied. The lock is held.
func (t *topic) startFollowing() {
	t.phase, t.buffered, t.discarded = following, nil, nil
	t.failedResyncs, t.reconnects, t.lateSnapshots, t.emptyReads = 0, 0, 0, 0
	t.stopWaiting()
	t.cancelRead()
	t.state.Live, t.state.Meta.Stale = true, false
}

// publish signals the watches. The lock is held.
func (t *topic) publish() {
	for _, w := range t.watches {
		w.notify()
	}
}
