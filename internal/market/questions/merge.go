package questions

import (
	"slices"

	"oddsgraph/internal/market"
)

// LegBook is the book of a leg. Book is nil if the venue has none.
type LegBook struct {
	Venue        string
	TakerFeeRate *market.Decimal // as in Leg
	*market.Book
}

// Level is a level of the book of one leg. The sizes of different venues are never added.
type Level struct {
	market.Level
	// Leg is the index of the leg, and Venue the name of its venue.
	Leg   int
	Venue string
	// PriceAfterFee is what a taker pays for a share at an ask, or gets at a bid, after the fee rate × price × (1 − price), before the
	// venue rounds the fee for the whole order. It is nil without a rate.
	PriceAfterFee *market.Decimal
}

// Book has levels of the books of several legs, the best price first. Of equal prices, that of the earlier leg is first.
type Book struct{ Bids, Asks []Level }

// Merge merges the books of all legs, and keeps at most depth levels of each side.
func Merge(books []LegBook, depth int) Book {
	bids, asks := levels(books, market.SideSell, depth), levels(books, market.SideBuy, depth)
	return Book{bids[:min(len(bids), depth)], asks[:min(len(asks), depth)]}
}

// Best returns what is best for a taker, of the first level of each leg: the best price after the fee if all these legs have a fee
// rate, otherwise the best price before the fee. It returns nil if no book has a level.
func Best(books []LegBook, taker market.OrderSide) *Level {
	tops := levels(books, taker, 1)
	if len(tops) == 0 {
		return nil
	}
	if !slices.ContainsFunc(tops, func(l Level) bool { return l.PriceAfterFee == nil }) {
		slices.SortStableFunc(tops, func(a, b Level) int { return better(*a.PriceAfterFee, *b.PriceAfterFee, taker) })
	}
	return &tops[0]
}

var one = market.NewDecimal(1, 0)

// levels returns the best levels of each leg that a taker finds, at most depth, in the order of Book.
func levels(books []LegBook, taker market.OrderSide, depth int) []Level {
	out := []Level{}
	for i, b := range books {
		if b.Book == nil {
			continue
		}
		side, sign := b.Bids, market.NewDecimal(-1, 0)
		if taker == market.SideBuy {
			side, sign = b.Asks, one
		}
		for l := range side.Cut(depth).All() {
			level := Level{Level: *l, Leg: i, Venue: b.Venue}
			if b.TakerFeeRate != nil {
				fee := b.TakerFeeRate.Mul(l.Price).Mul(one.Sub(l.Price))
				level.PriceAfterFee = new(l.Price.Add(sign.Mul(fee)).Reduce())
			}
			out = append(out, level)
		}
	}
	slices.SortStableFunc(out, func(a, b Level) int { return better(a.Price, b.Price, taker) })
	return out
}

// better returns -1 if price a is better than b for a taker, and 1 if it is worse.
func better(a, b market.Decimal, taker market.OrderSide) int {
	if taker == market.SideBuy {
		return a.Cmp(b)
	}
	return b.Cmp(a)
}

// Spread returns lowest ask − highest bid. It is negative if the books cross, and nil if a side is empty.
func (b Book) Spread() *market.Decimal {
	if len(b.Bids) == 0 || len(b.Asks) == 0 {
		return nil
	}
	return new(b.Asks[0].Price.Sub(b.Bids[0].Price).Reduce())
}
