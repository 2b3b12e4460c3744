package feed

import (
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// crossed reports whether a book's best bid is at or above its best ask. The venue would have matched these orders, so a
// crossed book shows that a message was missed.
func crossed(b *market.Book) bool {
	return b != nil && len(b.Bids) > 0 && len(b.Asks) > 0 && b.Bids[0].Price.Cmp(b.Asks[0].Price) >= 0
}

// withPosition returns a copy of a book with the token, the sequence number and the time of a message. It does not change the
// book of the message.
func withPosition(b *market.Book, m *messages.Message) *market.Book {
	c := *b
	c.TokenID = m.Topic.ID
	c.Epoch, c.Seq = m.Epoch, m.Seq
	if !m.Time.IsZero() {
		c.Timestamp = m.Time
	}
	return &c
}

// limitDepth returns the book cut to the depth that the venue's changes cover. Deeper levels would get no changes and become
// wrong. Depth 0 means that the depth is unknown.
func limitDepth(b *market.Book, depth int) *market.Book {
	if depth == 0 || depth >= b.Depth {
		return b
	}
	c := *b.Cut(depth)
	c.Depth = depth
	return &c
}

// applyChanges returns a new book with changes applied to b. The new book shares unchanged sides with b.
func applyChanges(b *market.Book, changes []market.LevelChange) *market.Book {
	next := *b
	var bidsOwn, asksOwn bool
	for _, c := range changes {
		if c.Side == market.SideBuy {
			next.Bids = setLevel(next.Bids, &bidsOwn, c.Level, -1)
		} else {
			next.Asks = setLevel(next.Asks, &asksOwn, c.Level, 1)
		}
	}
	next.Spread, next.Hash, next.Rendered = next.Width(), "", new(market.Rendered)
	return &next
}

// setLevel sets a level of a side, or removes the level if its size is 0. order is 1 for a side with rising prices and -1 for a
// side with falling prices. own reports whether side may be written to; setLevel copies side if not.
func setLevel(side []market.Level, own *bool, l market.Level, order int) []market.Level {
	i, found := slices.BinarySearchFunc(side, l.Price, func(x market.Level, p market.Decimal) int { return order * x.Price.Cmp(p) })
	if !found && l.Size.Sign() <= 0 {
		return side
	}
	if !*own {
		side = append(make([]market.Level, 0, len(side)+1), side...)
		*own = true
	}
	switch {
	case l.Size.Sign() <= 0:
		return slices.Delete(side, i, i+1)
	case found:
		side[i].Size = l.Size
		return side
	default:
		return slices.Insert(side, i, l)
	}
}
