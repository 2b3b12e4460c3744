package feed

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// phase is the state of a topic's subscription.
type phase uint8

const (
	// down: the topic has no connection.
	down phase = iota
	// opening: the subscription was sent. The topic waits for its first message. A topic with only events (see isEventsOnly) waits for
	// the venue's confirmation.
	opening
	// resyncing: a message was lost, and the topic waits for a new snapshot.
	resyncing
	// following: the topic is live. Its state contains all messages so far.
	following
)

// session is the reads.Session of the topics that were opened together on a connection.
type session struct {
	reads.Session
	// topics is the number of topics that use the session and have not lost the connection.
	topics atomic.Int32
}

// topic is one upstream subscription and its watches.
type topic struct {
	feed *Feed
	key  messages.Topic

	// mu protects all fields below. Calls to Sink are made with mu held, so Sink receives the states in order.
	mu      sync.Mutex
	watches []*Watch // watches[i].index equals i
	holder  *Reader  // the topic counts for this reader's caller (see shares); nil if the topic counts for no caller
	state   State
	phase   phase
	session *session // the latest session; nil before the first session and after the end of the topic
	// lastInternal is the internal number of the last message of the session. It is zero before the first message.
	lastInternal messages.Internal
	// previousEpoch is the epoch before the epoch of state. Late messages of the previous epoch are ignored.
	previousEpoch string
	// buffered contains the changes that have arrived since the topic began to wait for a snapshot.
	buffered []*messages.Message
	// discarded is the last change that was dropped because buffered was full or earlier messages were lost.
	discarded *messages.Message
	// confirmed reports whether the venue has confirmed the present subscription. completed reports whether the topic was ever live
	// without a snapshot.
	confirmed, completed bool
	// incomplete reports whether messages may be missing from the state. If incomplete is true, the next snapshot counts as a resync.
	incomplete bool
	// attempts counts how often the topic was subscribed again, and how many snapshots could not be used, since it was last live or
	// down.
	attempts int
	// waitTimer is the timeout of the wait for a snapshot or confirmation. A timer that is not waitTimer any more does nothing.
	waitTimer   *time.Timer
	lingerTimer *time.Timer // closes the topic Config.Linger after its last watch was closed
	// noLinger reports whether the topic closes as soon as it has no watches.
	noLinger bool
	ended    bool

	// recent contains the token's latest prices, oldest first.
	recent []Point
	// flushedAt is the time when Sink last got the account.
	flushedAt  time.Time
	dirty      bool        // whether the account has changed since flushedAt
	flushTimer *time.Timer // starts the next flush
}

// join adds a watch that owner opens. Changes of the topic signal r. If the topic counts for no caller yet, the topic now counts for
// owner.caller. r and owner may be nil.
func (t *topic) join(r, owner *Reader) *Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lingerTimer != nil {
		t.lingerTimer.Stop()
		t.lingerTimer = nil
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
	if len(t.watches) == 0 && !t.ended && t.lingerTimer == nil {
		linger := t.feed.cfg.Linger
		if t.noLinger {
			linger = 0
		}
		t.lingerTimer = time.AfterFunc(linger, func() { t.feed.closeAfterLinger(t) })
	}
}

// skipLinger makes the topic close as soon as it has no watches.
func (t *topic) skipLinger() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noLinger = true
	if t.lingerTimer != nil {
		t.lingerTimer.Reset(0)
	}
}

// hasWatch reports whether match returns true for any watch of the topic.
func (t *topic) hasWatch(match func(*Watch) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.watches, match)
}

// stopIfIdle stops the topic if the topic has no watches. It returns true if it has stopped the topic.
func (t *topic) stopIfIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.watches) > 0 {
		return false
	}
	t.stop()
	return true
}

// end stops the topic and ends its watches with an error.
func (t *topic) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	for _, w := range t.watches {
		w.fail(err)
	}
}

// stop cancels the topic's timers and marks the topic's values as stale. t.mu must be locked.
func (t *topic) stop() {
	if t.ended {
		return
	}
	t.ended = true
	t.recount()
	t.markStale()
	t.setSession(nil)
	if t.lingerTimer != nil {
		t.lingerTimer.Stop()
	}
}

// resyncing reports whether the topic waits for a snapshot after a gap. A price waits for its next message instead.
func (t *topic) resyncing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == resyncing && t.waitTimer != nil
}

// currentSession returns the session of the topic, or nil if the topic has no connection.
func (t *topic) currentSession() *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == down {
		return nil
	}
	return t.session
}

// setSession moves the topic to session s. If s is nil, the topic has no session. t.mu must be locked.
func (t *topic) setSession(s *session) {
	if t.session != nil && t.phase != down {
		t.session.topics.Add(-1)
	}
	if s != nil {
		s.topics.Add(1)
	}
	t.session = s
}

// up begins the session s.
func (t *topic) up(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.markStale()
	t.setSession(s)
	t.phase, t.previousEpoch, t.confirmed, t.lastInternal = opening, "", false, messages.Internal{}
	t.incomplete = t.state.Known || t.completed
	if t.isEventsOnly() {
		t.state.Seq = 0
	}
	t.await()
	t.publish()
}

// down marks the topic as not live until its next session.
func (t *topic) down() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	t.markStale()
	t.session.topics.Add(-1)
	t.phase, t.attempts = down, 0
	t.publish()
}

// markStale marks the state as stale, also in Sink, and drops the buffered messages. It cancels the wait and the flush. t.mu must be
// locked.
func (t *topic) markStale() {
	t.state.Live = false
	t.state.Meta.MarkStale(reads.CauseStreamDown)
	t.buffered, t.discarded = nil, nil
	t.stopWaiting()
	t.cancelFlush()
	if !t.state.Known || t.session == nil {
		return
	}
	if _, ended := t.session.Ended(); !ended { // if the session has ended, its values are already stale
		t.feed.cfg.Sink.StreamStale(t.key)
	}
}

// startFollowing makes the topic live. The topic no longer buffers changes but applies them to the state. t.mu must be locked.
func (t *topic) startFollowing() {
	t.phase, t.buffered, t.discarded = following, nil, nil
	t.attempts = 0
	t.stopWaiting()
	t.state.Live, t.state.Meta.Stale = true, false
}

// queue queues items for the watches. t.mu must be locked.
func (t *topic) queue(items Items) {
	for _, w := range t.watches {
		w.queue(items)
	}
}

// publish signals the watches. t.mu must be locked.
func (t *topic) publish() {
	for _, w := range t.watches {
		w.notify()
	}
}
