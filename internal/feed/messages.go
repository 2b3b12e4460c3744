package feed

import (
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// message applies one message of the topic.
func (t *topic) message(m *messages.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	lost, duplicate := t.arrive(m)
	if duplicate || m.Epoch != "" && m.Epoch == t.previousEpoch {
		return
	}
	t.observeLag(m)
	if lost && t.phase != following {
		t.discardBuffered(m)
	}
	switch m.Kind {
	case messages.KindPrice:
		t.applyPrice(m, lost)
	case messages.KindBookSnapshot, messages.KindTradesSnapshot, messages.KindUserSnapshot:
		t.applySnapshot(m, lost)
	default:
		t.applyChange(m, lost)
	}
}

// observeLag calls Config.Lag for a change or a price. It ignores messages that arrive while the topic is not live, and messages
// without a time. It also ignores snapshots, because their values may be old.
func (t *topic) observeLag(m *messages.Message) {
	if t.feed.cfg.Lag == nil || t.phase != following || m.Time.IsZero() {
		return
	}
	switch m.Kind {
	case messages.KindBookSnapshot, messages.KindTradesSnapshot, messages.KindUserSnapshot:
	default:
		t.feed.cfg.Lag(m.ReceivedAt.Sub(m.Time))
	}
}

// applyPrice applies a price. A price message contains the complete state, so applyPrice also applies it if earlier messages were
// lost. In this case, the price counts as a resync.
func (t *topic) applyPrice(m *messages.Message, lost bool) {
	if t.isOld(m) {
		return
	}
	if t.phase == following && (lost || skips(&t.state, m)) {
		t.feed.counts.gaps.Add(1)
		t.incomplete = true
	}
	next := t.state
	replace(&next, m)
	t.commit(next, Items{})
}

// applySnapshot replaces the state with a snapshot and applies the buffered changes that the snapshot does not contain. If the
// result would be wrong, applySnapshot requests another snapshot instead.
func (t *topic) applySnapshot(m *messages.Message, lost bool) {
	if t.isOld(m) {
		return
	}
	next := t.state
	items := replace(&next, m)
	if crossed(next.Book) {
		t.snapshotFailed(nil)
		return
	}
	if d := t.discarded; d != nil && d.Seq == 0 && d.Time.After(m.Time) {
		t.snapshotFailed(nil)
		return
	}
	for i, later := range t.buffered {
		if seen(&next, later) || later.Seq == 0 && !later.Time.After(m.Time) {
			continue
		}
		if !follows(&next, later) {
			t.snapshotFailed(t.buffered[i:])
			return
		}
		items.add(apply(&next, later))
		if crossed(next.Book) {
			t.snapshotFailed(nil)
			return
		}
	}
	if t.phase == following && (lost || skips(&t.state, m)) {
		t.feed.counts.gaps.Add(1)
		t.incomplete = true
	}
	t.commit(next, items)
}

// snapshotFailed requests another snapshot, because the last snapshot cannot be used. After promptAttempts failures, it waits for the
// timer of await instead. Afterwards the topic's buffer contains only the given changes. t.mu must be locked.
func (t *topic) snapshotFailed(buffered []*messages.Message) {
	if t.attempts++; t.attempts <= promptAttempts {
		t.handleGap()
	}
	t.buffered = buffered
}

// applyChange applies a change. While the topic waits for a snapshot, applyChange buffers the change instead. If a message before
// the change was lost, applyChange calls handleGap.
func (t *topic) applyChange(m *messages.Message, lost bool) {
	if t.phase == opening && t.isEventsOnly() {
		t.complete() // the venue sends events only after it has accepted a subscription
	}
	t.markUnread(m)
	if t.phase != following {
		if len(t.buffered) == maxBuffered {
			t.discarded = t.buffered[maxBuffered/2-1] // a snapshot from before this change cannot be used any more
			t.buffered = slices.Delete(t.buffered, 0, maxBuffered/2)
		}
		if !lost {
			t.buffered = append(t.buffered, m)
		}
		return
	}
	if seen(&t.state, m) {
		return
	}
	if lost || !follows(&t.state, m) {
		t.handleGap()
		if t.phase != following {
			t.buffered = append(t.buffered, m)
			return
		}
	}
	next := t.state
	items := apply(&next, m)
	if crossed(next.Book) {
		t.handleGap()
		return
	}
	t.commit(next, items)
}

// seen reports whether the sequence numbers show that a state already includes a message.
func seen(s *State, m *messages.Message) bool {
	return m.Seq != 0 && m.Epoch == s.Epoch && m.Seq <= s.Seq
}

// skips reports whether the sequence numbers show that messages between a state and a message are missing.
func skips(s *State, m *messages.Message) bool {
	return m.Seq != 0 && s.Seq != 0 && (m.Epoch != s.Epoch || m.Seq > s.Seq+1)
}

// follows reports whether a change is the direct successor of a state. It also returns true if the change or the state has no
// sequence number.
func follows(s *State, m *messages.Message) bool {
	return m.Seq == 0 || s.Seq == 0 || m.Epoch == s.Epoch && m.Seq == s.Seq+1 && (m.PrevSeq == 0 || m.PrevSeq == s.Seq)
}

// isOld reports whether a snapshot or price must be ignored because its sequence number is too small. If the message and the state
// have different epochs, no number is too small. If both have the same epoch, the smallest accepted number depends on the phase:
//   - A live topic needs a greater number than the number of its state.
//   - A topic that waits for a snapshot also accepts the number of its state.
//   - If the venue sends no epochs or the subscription was sent again, the first snapshot of a session may have any number.
func (t *topic) isOld(m *messages.Message) bool {
	if !t.state.Known || !seen(&t.state, m) {
		return false
	}
	switch {
	case t.phase == following:
		return true
	case t.phase == opening && (m.Epoch == "" || t.attempts > 0):
		return false
	default:
		return m.Seq < t.state.Seq
	}
}

// heartbeat compares the venue's sequence number of the topic with the number of the state. If the venue's number is greater or has
// another epoch, the last message of the topic was lost. A state without a number cannot show a loss. For a topic with only events,
// heartbeat also stores the venue's number in the state.
func (t *topic) heartbeat(epoch string, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase != following || epoch != "" && epoch == t.previousEpoch {
		return
	}
	if t.state.Seq != 0 { // 0: the venue sends no numbers
		restarted := epoch != "" && t.state.Epoch != "" && epoch != t.state.Epoch
		if seq <= t.state.Seq && !restarted {
			return
		}
		t.handleGap()
	}
	if t.isEventsOnly() {
		t.state.Epoch, t.state.Seq = epoch, seq
	}
}

// replace replaces a state with the complete state in a message. It returns the new trades. The calling function must queue them
// for the watches.
func replace(s *State, m *messages.Message) (items Items) {
	known := s.Known
	setPosition(s, m)
	switch m.Kind {
	case messages.KindPrice:
		s.Price, s.Spread = m.Price, m.Spread
	case messages.KindBookSnapshot:
		s.Book = withPosition(m.Book, m)
	case messages.KindTradesSnapshot:
		s.Trades, items = mergeTape(s.Trades, m.Trades, known)
		s.Tape = true
	case messages.KindUserSnapshot:
		s.mutable = newMutableAccount(m, s.mutable)
	}
	return items
}

// apply applies a change to a state. It returns the new trades or market changes. The calling function must queue them for the
// watches.
func apply(s *State, m *messages.Message) (items Items) {
	setPosition(s, m)
	switch m.Kind {
	case messages.KindBookDelta:
		s.Book = applyChanges(limitDepth(s.Book, m.Depth), m.Changes)
		setBookPosition(s.Book, m)
	case messages.KindTrade:
		s.Trades, items.Trades = appendNew(s.Trades, m.Trades, m.Seq != 0)
	case messages.KindMarket:
		items.Changes = []market.MarketChange{*m.Market}
	case messages.KindFill:
		if items.Trades = m.Trades; s.mutable != nil {
			items.Trades = s.mutable.addFills(m)
		}
	case messages.KindOrder, messages.KindPosition, messages.KindBalance:
		s.mutable.apply(m)
	}
	return items
}

// setPosition sets the sequence number and the times of a state from a message.
func setPosition(s *State, m *messages.Message) {
	s.Known = true
	s.Epoch, s.Seq = m.Epoch, m.Seq
	s.Meta = reads.Meta{AsOf: m.Time, ReceivedAt: m.ReceivedAt, Source: market.SourceStream}
}

// commit makes next the state of the topic, passes it to Sink, and signals the watches. t.mu must be locked.
func (t *topic) commit(next State, items Items) {
	if t.state.Known && next.Epoch != "" && next.Epoch != t.state.Epoch {
		t.previousEpoch = t.state.Epoch
	}
	spread := t.state.Spread
	t.state = next
	if t.incomplete {
		t.countResync()
	}
	t.startFollowing()

	sink, s, in := t.feed.cfg.Sink, &t.state, &t.session.Session
	switch t.key.Channel {
	case messages.ChannelPrices:
		if s.Spread == nil && spread != nil {
			sink.StreamStale(t.key) // Sink still has a spread that does not belong to the new price
		}
		t.recent = addPoint(t.recent, s.Meta.ReceivedAt, s.Price.Price)
		sink.StreamPrice(in, s.Price, s.Meta)
		if s.Spread != nil {
			sink.StreamSpread(in, s.Spread, s.Meta)
		}
	case messages.ChannelOrderbook:
		sink.StreamBook(in, s.Book, s.Meta)
	case messages.ChannelMarket:
		var change *market.MarketChange
		if n := len(items.Changes); n > 0 {
			change = &items.Changes[n-1]
		}
		sink.StreamMarket(t.key.ID, change)
	case messages.ChannelUser:
		t.flushSoon()
	}
	if !items.empty() {
		t.queue(items)
	}
	t.publish()
}
