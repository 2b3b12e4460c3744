package questions

import (
	"cmp"
	"slices"

	"oddsgraph/internal/market"
)

// Level is a level of the book of one leg.
type Level struct {
	market.Level
	// Leg is the index of the leg in Question.Legs.
	Leg int
	// PriceAfterFee is what a taker pays for a share at an ask, or gets at a bid, after TakerFee. It is nil without a rate.
	PriceAfterFee *market.Decimal
}

// Book has levels of the books of several legs. A level belongs to one leg: the sizes of different venues are never added.
type Book struct {
	// Bids run from the highest price, Asks from the lowest. Of equal prices, the one that is better after the fee comes first, then a
	// price with a known fee, then the earlier leg.
	Bids, Asks []Level
}

// Merge merges the books of a question's legs, and keeps at most depth levels of each side. books has an element for each leg. It is
// nil for a leg without a book.
func Merge(q *Question, books []*market.Book, depth int) Book {
	return Book{
		Bids: merge(q, books, market.SideSell, depth),
		Asks: merge(q, books, market.SideBuy, depth),
	}
}

// merge merges what a taker finds who buys or sells: the asks or the bids.
func merge(q *Question, books []*market.Book, taker market.OrderSide, depth int) []Level {
	out := []Level{}
	for i, b := range books {
		out = append(out, levels(q, i, b, taker, depth)...)
	}
	slices.SortStableFunc(out, func(a, b Level) int { return byPrice(&a, &b, taker) })
	return out[:min(len(out), depth)]
}

// levels returns the best levels of the leg with index i.
func levels(q *Question, i int, b *market.Book, taker market.OrderSide, depth int) (out []Level) {
	if b == nil {
		return nil
	}
	side := b.Bids
	if taker == market.SideBuy {
		side = b.Asks
	}
	for l := range side.Cut(depth).All() {
		out = append(out, Level{Level: *l, Leg: i, PriceAfterFee: afterFee(q.Legs[i].TakerFeeRate, l.Price, taker)})
	}
	return out
}

// Best returns what is best for a taker, of the first level of each leg: the best price after the fee if all these legs have a fee
// rate, otherwise the best price before the fee. It returns nil if no book has a level. A taker with SideBuy pays an ask.
func Best(q *Question, books []*market.Book, taker market.OrderSide) *Level {
	var tops []Level
	for i, b := range books {
		tops = append(tops, levels(q, i, b, taker, 1)...)
	}
	if len(tops) == 0 {
		return nil
	}
	order := byPrice
	if !slices.ContainsFunc(tops, func(l Level) bool { return l.PriceAfterFee == nil }) {
		order = func(a, b *Level, taker market.OrderSide) int {
			return cmp.Or(better(*a.PriceAfterFee, *b.PriceAfterFee, taker), better(a.Price, b.Price, taker))
		}
	}
	best := &tops[0]
	for i := range tops {
		if order(&tops[i], best, taker) < 0 {
			best = &tops[i]
		}
	}
	return best
}

// Width returns lowest ask − highest bid over all legs. It is negative if the books cross, and nil if a side is empty.
func (b Book) Width() *market.Decimal {
	if len(b.Bids) == 0 || len(b.Asks) == 0 {
		return nil
	}
	return new(b.Asks[0].Price.Sub(b.Bids[0].Price).Reduce())
}

// byPrice compares two levels in the order of Book.
func byPrice(a, b *Level, taker market.OrderSide) int {
	if c := better(a.Price, b.Price, taker); c != 0 {
		return c
	}
	switch {
	case a.PriceAfterFee != nil && b.PriceAfterFee != nil:
		return better(*a.PriceAfterFee, *b.PriceAfterFee, taker)
	case a.PriceAfterFee != nil:
		return -1
	case b.PriceAfterFee != nil:
		return 1
	}
	return 0
}

// better returns -1 if price a is better than b for a taker, and 1 if it is worse.
func better(a, b market.Decimal, taker market.OrderSide) int {
	if taker == market.SideBuy {
		return a.Cmp(b)
	}
	return b.Cmp(a)
}

func afterFee(rate *market.Decimal, price market.Decimal, taker market.OrderSide) *market.Decimal {
	fee := TakerFee(rate, price)
	if fee == nil {
		return nil
	}
	if taker == market.SideBuy {
		return new(price.Add(*fee).Reduce())
	}
	return new(price.Sub(*fee).Reduce())
}
