package feed

import "oddsgraph/internal/market/messages"

// arrive records the internal number of a message. lost reports that messages before it were lost between two parts of this service,
// and that no number of the venue shows it. again reports that the message has arrived before. The caller holds the lock.
func (t *topic) arrive(m *messages.Message) (lost, again bool) {
	number, before := m.Internal, t.arrived
	if number.Seq == 0 {
		return false, false
	}
	same := number.Epoch == before.Epoch
	if m.Merged {
		if same && number.Seq <= before.Seq {
			return false, t.phase == following
		}
		t.arrived = number
		return before.Seq != 0, false
	}
	if same && number.Seq <= before.Seq {
		return false, true
	}
	t.arrived = number
	if m.Seq != 0 && (t.phase != following || t.state.Seq != 0) {
		return false, false // the venue's numbers show what is missing
	}
	return before.Seq != 0 && (!same || number.Seq != before.Seq+1), false
}

// contains reports whether a snapshot contains a change without a number of the venue. The venue's own snapshots contain the changes up
// to their time.
func contains(snapshot, change *messages.Message) bool {
	if snapshot.Merged && snapshot.Internal.Epoch == change.Internal.Epoch {
		return change.Internal.Seq <= snapshot.Internal.Seq
	}
	return !change.Time.After(snapshot.Time)
}

// discardBuffered drops the buffered changes, because some between them and m were lost. A snapshot that is older than the last
// dropped one cannot be completed. The caller holds the lock.
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

// Sent compares the internal numbers of the last messages that were sent with those that arrived. So it detects the lost last message
// of a quiet topic.
func (f *Feed) Sent(epoch uint64, last map[messages.Topic]uint64) {
	for key, seq := range last {
		if t := f.find(key); t != nil {
			t.sent(messages.Internal{Epoch: epoch, Seq: seq})
		}
	}
}

// sent compares the internal number of the last message with the one that arrived. While the topic waits for a snapshot, the next
// message shows what is missing.
func (t *topic) sent(last messages.Internal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended, t.phase == down, last.Seq == 0, last.Epoch == t.arrived.Epoch && last.Seq <= t.arrived.Seq:
	case t.phase == following:
		t.arrived = last
		t.handleGap()
	case t.arrived.Seq == 0:
		t.arrived = last
	}
}

// Snapshot returns the state of a live topic as a merged message, or nil. The message contains all messages that have arrived. There is
// none of a state from REST while late messages may still be part of that state, except of a price, which each message replaces.
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
		Topic: key, Internal: t.arrived, Merged: true, Epoch: s.Epoch, Seq: s.Seq, Time: s.Meta.AsOf, ReceivedAt: s.Meta.ReceivedAt,
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

// Hold keeps a public topic open that only other processes read, until the watch is closed.
func (f *Feed) Hold(key messages.Topic) (*Watch, error) { return f.watchForQueries(key) }
