package questions

import (
	"cmp"
	"slices"

	"oddsgraph/internal/market"
)

// Level is a level of the book of one leg. The sizes of different venues are never added.
type Level struct {
	market.Level
	// Leg is the index of the leg in Question.Legs.
	Leg int
	// PriceAfterFee is what a taker pays for a share at an ask, or gets at a bid, after TakerFee. It is nil without a rate.
	PriceAfterFee *market.Decimal
}

// Book has levels of the books of several legs, the best first. Of equal prices, the one that is better after the fee comes first, then
// a price with a known fee, then the earlier leg.
type Book struct{ Bids, Asks []Level }

// Merge merges the books of a question's legs, and keeps at most depth levels of each side. books has an element for each leg. It is
// nil for a leg without a book.
func Merge(q *Question, books []*market.Book, depth int) Book {
	bids, asks := levels(q, books, market.SideSell, depth), levels(q, books, market.SideBuy, depth)
	return Book{bids[:min(len(bids), depth)], asks[:min(len(asks), depth)]}
}

// Best returns what is best for a taker, of the first level of each leg: the best price after the fee if all these legs have a fee
// rate, otherwise the best price before the fee. It returns nil if no book has a level.
func Best(q *Question, books []*market.Book, taker market.OrderSide) *Level {
	tops := levels(q, books, taker, 1)
	if len(tops) == 0 {
		return nil
	}
	if !slices.ContainsFunc(tops, func(l Level) bool { return l.PriceAfterFee == nil }) {
		slices.SortStableFunc(tops, func(a, b Level) int { return better(a.PriceAfterFee, b.PriceAfterFee, taker) })
	}
	return &tops[0]
}

// levels returns the best levels of each leg that a taker finds, at most depth, in the order of Book.
func levels(q *Question, books []*market.Book, taker market.OrderSide, depth int) []Level {
	out := []Level{}
	for i, b := range books {
		if b == nil {
			continue
		}
		side, sign := b.Bids, market.NewDecimal(-1, 0)
		if taker == market.SideBuy {
			side, sign = b.Asks, one
		}
		for l := range side.Cut(depth).All() {
			level := Level{Level: *l, Leg: i}
			if fee := TakerFee(q.Legs[i].TakerFeeRate, l.Price); fee != nil {
				level.PriceAfterFee = new(l.Price.Add(sign.Mul(*fee)).Reduce())
			}
			out = append(out, level)
		}
	}
	slices.SortStableFunc(out, func(a, b Level) int {
		return cmp.Or(better(&a.Price, &b.Price, taker), better(a.PriceAfterFee, b.PriceAfterFee, taker))
	})
	return out
}

// better returns -1 if price a is better than b for a taker, and 1 if it is worse. A nil price is the worst.
func better(a, b *market.Decimal, taker market.OrderSide) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case taker == market.SideBuy:
		return a.Cmp(*b)
	}
	return b.Cmp(*a)
}

// Spread returns lowest ask − highest bid. It is negative if the books cross, and nil if a side is empty.
func (b Book) Spread() *market.Decimal {
	if len(b.Bids) == 0 || len(b.Asks) == 0 {
		return nil
	}
	return new(b.Asks[0].Price.Sub(b.Bids[0].Price).Reduce())
}
