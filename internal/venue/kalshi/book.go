package kalshi

import (
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldYesLevels = wire.NewField("yes_dollars", "yes_dollars_fp")
	fieldNoLevels  = wire.NewField("no_dollars", "no_dollars_fp")
)

// bids contains the bids for YES and the bids for NO of a market, best price first. The prices of NO bids are prices of NO, not of
// YES.
type bids [2][]market.Level

// readBids reads the bids of both sides. A missing or null side is empty. If a side is not a list or any level is unreadable,
// readBids marks r as bad. If unified is true, the NO levels of r have prices of YES, and readBids converts them to prices of NO.
func readBids(r *wire.Row, unified bool) (b bids) {
	b[yes], b[no] = levels(r, fieldYesLevels), levels(r, fieldNoLevels)
	if unified {
		for i := range b[no] {
			b[no][i].Price = no.price(b[no][i].Price)
		}
	}
	for _, s := range sides {
		b[s] = sorted(r, b[s])
	}
	return b
}

// levels reads a side, which may be missing or null.
func levels(r *wire.Row, f wire.Field) []market.Level {
	if r.Of(f).IsNull() {
		return nil
	}
	return r.LevelsOf(f)
}

// sorted sorts bids, best price first, and adds up levels of the same price. The sort is necessary, because the order of levels in
// Kalshi's responses differs from the documented order.
func sorted(r *wire.Row, levels []market.Level) []market.Level {
	slices.SortFunc(levels, func(a, b market.Level) int { return b.Price.Cmp(a.Price) })
	return r.Merge(levels)
}

func (b bids) empty() bool { return len(b[yes]) == 0 && len(b[no]) == 0 }

// book returns the book of an outcome, with at most depth levels on each side. The bids of the book are the bids for the outcome.
// The asks of the book come from the bids for the other outcome: a bid at p is an ask at 1 − p. If the best bid is above the best
// ask, the book has no spread.
func (b bids) book(ticker string, s side, depth int) *market.Book {
	out := &market.Book{TokenID: s.token(ticker), Bids: market.NewSide(b[s]).Cut(depth), Depth: depth}
	opposite := b[s.other()]
	asks := make([]market.Level, min(len(opposite), depth))
	for i := range asks {
		asks[i] = market.Level{Price: one.Sub(opposite[i].Price), Size: opposite[i].Size}
	}
	out.Asks = market.NewSide(asks)
	if w := out.Width(); w != nil && w.Sign() >= 0 {
		out.Spread = w
	}
	return out
}
