package feed

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// Join offers the topic a book that was read over REST, and reports whether the topic is now live with this book. A venue may send
// changes of a book but no snapshot. If its numbers prove that the book and the buffered changes of the stream fit together without
// a hole, the topic needs no snapshot. m describes the read.
func (w *Watch) Join(b *market.Book, m reads.Meta) bool {
	t := w.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase != opening && t.phase != resyncing || b.Seq == 0 || len(t.buffered) == 0 {
		return false
	}
	next, ok := t.splice(&messages.Message{
		Topic: t.key, Kind: messages.KindBookSnapshot, Book: b, Epoch: b.Epoch, Seq: b.Seq, Time: b.Timestamp, ReceivedAt: m.ReceivedAt,
	})
	if ok {
		t.feed.counts.spliced.Add(1)
		t.commit(next, Items{})
	}
	return ok
}

// splice applies the buffered changes to a book that was read over REST. ok is false if the book is older than the topic's state,
// if a change has no number or a number of another epoch, if a change between the book and the buffered changes is missing, or if
// the result is crossed. t.mu must be locked.
func (t *topic) splice(m *messages.Message) (next State, ok bool) {
	next = t.state
	if next.Known && seen(&next, m) {
		return next, false
	}
	replace(&next, m)
	next.Meta.Source = market.SourceREST
	changes := t.buffered
	if t.discarded != nil {
		changes = append([]*messages.Message{t.discarded}, changes...)
	}
	for _, later := range changes {
		if later.Seq == 0 || later.Epoch != m.Epoch {
			return next, false
		}
		if seen(&next, later) {
			continue
		}
		if later == t.discarded || !follows(&next, later) {
			return next, false
		}
		apply(&next, later)
	}
	return next, !crossed(next.Book)
}
