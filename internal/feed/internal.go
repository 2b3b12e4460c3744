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
	if same && number.Seq <= before.Seq {
		return false, true
	}
	t.lastInternal = number
	if m.Seq != 0 && (t.phase != following || t.state.Seq != 0) {
		return false, false // the venue's numbers detect a loss
	}
	return before.Seq != 0 && (!same || number.Seq != before.Seq+1), false
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
