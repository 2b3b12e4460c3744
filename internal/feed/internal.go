package feed

import "oddsgraph/internal/market/messages"

// arrive stores the internal number of a message (see messages.Internal). lost reports whether the internal numbers show that this
// service lost earlier messages. lost is false for a message of the venue if the venue's own numbers are enough to detect a loss.
// duplicate reports whether the topic already contains the message. The calling function must ignore such a message. t.mu must be
// locked.
func (t *topic) arrive(m *messages.Message) (lost, duplicate bool) {
	number, before := m.Internal, t.lastInternal
	if number.Seq == 0 {
		return false, false
	}
	same := number.Epoch == before.Epoch
	if m.Merged {
		if same && number.Seq <= before.Seq {
			return false, t.phase == following
		}
		t.lastInternal = number
		return before.Seq != 0, false
	}
	if same && number.Seq <= before.Seq {
		return false, true
	}
	t.lastInternal = number
	if m.Seq != 0 && (t.phase != following || t.state.Seq != 0) {
		return false, false // the venue's numbers detect a loss
	}
	return before.Seq != 0 && (!same || number.Seq != before.Seq+1), false
}

// contains reports whether a snapshot already contains a change. It is for changes without a sequence number of the venue. It
// compares the internal numbers if the snapshot is merged and both messages have the same internal epoch. Otherwise it compares the
// times of the venue.
func contains(snapshot, change *messages.Message) bool {
	if snapshot.Merged && snapshot.Internal.Epoch == change.Internal.Epoch {
		return change.Internal.Seq <= snapshot.Internal.Seq
	}
	return !change.Time.After(snapshot.Time)
}

// discardBuffered drops all buffered changes, because messages between them and m were lost. If m is a change, discardBuffered also
// drops m. discardBuffered stores the last dropped change in t.discarded, because a snapshot without this change cannot be used.
// t.mu must be locked.
func (t *topic) discardBuffered(m *messages.Message) {
	switch m.Kind {
	case messages.KindPrice, messages.KindBookSnapshot, messages.KindTradesSnapshot, messages.KindUserSnapshot:
		if n := len(t.buffered); n > 0 {
			t.discarded = t.buffered[n-1]
		}
	default:
		t.discarded = m
	}
	t.buffered = nil
}

// Sent tells the feed that another process has sent messages to this process. numbers contains the internal number of each topic's
// last message. If this message has not arrived, the topic has a gap. Without Sent, the feed would notice the gap only when the
// next message arrives.
func (f *Feed) Sent(epoch uint64, numbers map[messages.Topic]uint64) {
	for key, seq := range numbers {
		if t := f.find(key); t != nil {
			t.sent(messages.Internal{Epoch: epoch, Seq: seq})
		}
	}
}

// sent handles a gap if the topic is live and the message with the given number has not arrived. If the topic still waits for its
// first message, sent only stores this number.
func (t *topic) sent(last messages.Internal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended, t.phase == down, last.Seq == 0, last.Epoch == t.lastInternal.Epoch && last.Seq <= t.lastInternal.Seq:
	case t.phase == following:
		t.lastInternal = last
		t.handleGap()
	case t.lastInternal.Seq == 0:
		t.lastInternal = last
	}
}

// Snapshot returns the state of a live topic as a merged message. See messages.Message. It returns nil if the topic is not live or
// belongs to a market or an account. It also returns nil if the state was read over REST, because the state may contain changes
// whose messages have not arrived yet. A price is an exception, because each message replaces the whole price.
func (f *Feed) Snapshot(key messages.Topic) *messages.Message {
	t := f.find(key)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.state
	if t.ended || t.phase != following || !s.Known || t.base != nil && key.Channel != messages.ChannelPrices {
		return nil
	}
	m := &messages.Message{
		Topic: key, Internal: t.lastInternal, Merged: true, Epoch: s.Epoch, Seq: s.Seq, Time: s.Meta.AsOf, ReceivedAt: s.Meta.ReceivedAt,
	}
	switch key.Channel {
	case messages.ChannelPrices:
		m.Kind, m.Price, m.Spread = messages.KindPrice, s.Price, s.Spread
	case messages.ChannelOrderbook:
		m.Kind, m.Book = messages.KindBookSnapshot, s.Book
	case messages.ChannelTrades:
		m.Kind, m.Trades = messages.KindTradesSnapshot, s.Trades
	default:
		return nil
	}
	return m
}
