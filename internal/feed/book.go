package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// crossed reports whether a book's best bid is at or above its best ask, which no real book is: something was missed.
func crossed(b *market.Book) bool {
	return b != nil && len(b.Bids) > 0 && len(b.Asks) > 0 && b.Bids[0].Price.Cmp(b.Asks[0].Price) >= 0
}

// numbered returns the book with a message's topic, place and time. The message's own book is shared and stays as it is.
func numbered(b *market.Book, m *market.Message) *market.Book {
	c := *b
	c.TokenID = m.Topic.ID
	c.Epoch, c.Seq = m.Epoch, m.Seq
	if !m.Time.IsZero() {
		c.Timestamp = m.Time
	}
	return &c
}

// reaching returns the book as deep as its changes reach: what lies deeper would never change. 0 does not say.
func reaching(b *market.Book, depth int) *market.Book {
	if depth == 0 || depth >= b.Depth {
		return b
	}
	c := *b.Cut(depth)
	c.Depth = depth
	return &c
}

// applyChanges returns the book with changes made. Sides that do not change are shared with b.
func applyChanges(b *market.Book, changes []market.LevelChange) *market.Book {
	next := *b
	var bidsOwn, asksOwn bool
	for _, c := range changes {
		if c.Side == market.SideBuy {
			next.Bids = set(next.Bids, &bidsOwn, c.Level, -1)
		} else {
			next.Asks = set(next.Asks, &asksOwn, c.Level, 1)
		}
	}
	next.Spread, next.Hash, next.Rendered = next.Width(), "", new(market.Rendered)
	return &next
}

// set puts a level in its place in a side that is sorted best first, or takes it out where its size is 0. order is 1 for
// rising prices, -1 for falling ones; own tells whether the side may be written to.
func set(side []market.Level, own *bool, l market.Level, order int) []market.Level {
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
