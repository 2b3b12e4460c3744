package kalshi

import (
	"errors"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldYesLevels = wire.NewField("yes_dollars", "yes_dollars_fp")
	fieldNoLevels  = wire.NewField("no_dollars", "no_dollars_fp")
)

// bids contains the bids for YES and the bids for NO of a market. The prices of NO bids are prices of NO, not of YES.
type bids [2]market.Side

// readBids reads the bids of both sides. A missing or null side is empty. If a side is not a list or any level is unreadable,
// readBids marks r as bad. If unified is true, the NO levels of r have prices of YES, and readBids converts them to prices of NO.
func readBids(r *wire.Row, unified bool) (b bids) {
	for s, f := range [...]wire.Field{yes: fieldYesLevels, no: fieldNoLevels} {
		var levels []market.Level
		if !r.Of(f).IsNull() {
			levels = r.LevelsOf(f)
		}
		if unified {
			for i := range levels {
				levels[i].Price = side(s).price(levels[i].Price)
			}
		}
		// The order of levels in Kalshi's responses differs from the documented order.
		slices.SortFunc(levels, func(a, b market.Level) int { return b.Price.Cmp(a.Price) })
		b[s] = market.NewSide(r.Merge(levels))
	}
	return b
}

// book returns the book of an outcome, with at most depth levels on each side. The bids of the book are the bids for the outcome.
// The asks of the book come from the bids for the other outcome: a bid at p is an ask at 1 − p. If the best bid is above the best
// ask, the book has no spread.
func (b bids) book(ticker string, s side, depth int) *market.Book {
	out := &market.Book{TokenID: s.token(ticker), Bids: b[s].Cut(depth), Depth: depth}
	var asks []market.Level
	for bid := range b[s.other()].Cut(depth).All() {
		asks = append(asks, market.Level{Price: one.Sub(bid.Price), Size: bid.Size})
	}
	out.Asks = market.NewSide(asks)
	if w := out.Width(); w != nil && w.Sign() >= 0 {
		out.Spread = w
	}
	return out
}

var errNegative = errors.New("a change makes a level negative")

// add adds a signed change to the bids of a side and returns the new total at the price. If the new total is negative, add changes
// nothing and returns errNegative.
func (b *bids) add(s side, price, delta market.Decimal) (total market.Decimal, err error) {
	total = delta
	for l := range b[s].All() {
		if l.Price.Cmp(price) == 0 {
			total = l.Size.Add(delta)
			break
		}
	}
	if total.Sign() < 0 {
		return total, errNegative
	}
	b[s] = b[s].Set(market.SideBuy, market.Level{Price: price, Size: total})
	return total, nil
}

// changeOf returns the change of an outcome's book when bids at a price get a new total size. The argument bidder is the outcome of
// these bids. A bid for the other outcome at p is an ask at 1 − p.
func changeOf(outcome, bidder side, price, total market.Decimal) market.LevelChange {
	if outcome == bidder {
		return market.LevelChange{Side: market.SideBuy, Level: market.Level{Price: price, Size: total}}
	}
	return market.LevelChange{Side: market.SideSell, Level: market.Level{Price: one.Sub(price), Size: total}}
}
