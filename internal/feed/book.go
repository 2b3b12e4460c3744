package feed

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// crossed reports whether a book's best bid is at or above its best ask. The venue would have matched these orders, so a crossed
// book means that a message was lost. b is nil for a topic without a book.
func crossed(b *market.Book) bool {
	if b == nil {
		return false
	}
	bid, ask := b.BestBid(), b.BestAsk()
	return bid != nil && ask != nil && bid.Cmp(*ask) >= 0
}

// withPosition applies setBookPosition to a copy of a book and returns the copy.
func withPosition(b *market.Book, m *messages.Message) *market.Book {
	c := *b
	setBookPosition(&c, m)
	return &c
}

// setBookPosition sets the token, the sequence number and the time of a book from a message. If the message has no time, the book
// keeps its own time.
func setBookPosition(b *market.Book, m *messages.Message) {
	b.TokenID = m.Topic.ID
	b.Epoch, b.Seq = m.Epoch, m.Seq
	if !m.Time.IsZero() {
		b.Timestamp = m.Time
	}
}

// limitDepth cuts each side of a book to depth levels. The venue sends no changes of deeper levels, so the deeper levels would
// become outdated. If depth is 0, the venue's limit is unknown, and limitDepth returns b.
func limitDepth(b *market.Book, depth int) *market.Book {
	if depth == 0 || depth >= b.Depth {
		return b
	}
	c := *b.Cut(depth)
	c.Depth = depth
	return &c
}

// applyChanges returns a copy of b with the changes applied. The copy shares unchanged levels with b.
func applyChanges(b *market.Book, changes []market.LevelChange) *market.Book {
	next := *b
	for _, c := range changes {
		if c.Side == market.SideBuy {
			next.Bids = next.Bids.Set(c.Side, c.Level)
		} else {
			next.Asks = next.Asks.Set(market.SideSell, c.Level)
		}
	}
	next.Spread, next.Hash = next.Width(), ""
	return &next
}
