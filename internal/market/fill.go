package market

// Fill is the result of an order that trades at once against a book.
type Fill struct {
	// AveragePrice is Cost / FilledSize, but never outside the range of the prices used. WorstPrice is the price of the last level
	// used. Both are nil if nothing is filled.
	AveragePrice, WorstPrice *Decimal
	// FilledSize is in shares. Cost is the money that a buyer pays or a seller receives.
	FilledSize, Cost Decimal
	// Slippage is the absolute difference between AveragePrice and the price of the first level used. It is nil if nothing is
	// filled.
	Slippage *Decimal
	// Complete reports whether the book was deep enough for the whole order.
	Complete bool

	// best is the price of the first level used.
	best Decimal
}

// FillSize computes the fill of an order of the given size in shares. A buyer takes asks, a seller takes bids, best price first.
func FillSize(b *Book, side OrderSide, size Decimal) Fill {
	var f Fill
	left := size
	for l := range oppositeSide(b, side).All() {
		if left.Sign() <= 0 {
			break
		}
		if l.Size.Sign() <= 0 {
			continue
		}
		take := l.Size
		if take.Cmp(left) > 0 {
			take = left
		}
		f.take(take, take.Mul(l.Price), l.Price)
		left = left.Sub(take)
	}
	f.Complete = left.Sign() <= 0
	return f.finish()
}

// FillAmount computes the fill of an order that ends when a buyer has paid the amount, or a seller has received it. If the order
// needs only a part of the last level, the size of this part is the remaining amount divided by the price, rounded to 34 digits.
func FillAmount(b *Book, side OrderSide, amount Decimal) Fill {
	var f Fill
	left := amount
	for l := range oppositeSide(b, side).All() {
		if left.Sign() <= 0 {
			break
		}
		take, cost := l.Size, l.Size.Mul(l.Price)
		if cost.Sign() <= 0 {
			continue // a level that costs nothing does not reduce the amount
		}
		if cost.Cmp(left) > 0 {
			take, _ = left.Quo(l.Price) // cost > left > 0, so the price is not 0
			cost = left
		}
		f.take(take, cost, l.Price)
		left = left.Sub(cost)
	}
	f.Complete = left.Sign() <= 0
	return f.finish()
}

func oppositeSide(b *Book, side OrderSide) Side {
	if side == SideBuy {
		return b.Asks
	}
	return b.Bids
}

func (f *Fill) take(size, cost, price Decimal) {
	if f.WorstPrice == nil {
		f.best = price
	}
	f.FilledSize = f.FilledSize.Add(size)
	f.Cost = f.Cost.Add(cost)
	f.WorstPrice = &price
}

// finish computes the average and the slippage. Because FillAmount rounds a size, Cost / FilledSize can lie outside the range of
// the prices, so finish limits the average to this range.
func (f Fill) finish() Fill {
	if f.WorstPrice == nil {
		return f
	}
	f.FilledSize, f.Cost = f.FilledSize.Reduce(), f.Cost.Reduce()
	average, _ := f.Cost.Quo(f.FilledSize)
	low, high := f.best, *f.WorstPrice
	if low.Cmp(high) > 0 {
		low, high = high, low
	}
	switch {
	case average.Cmp(low) < 0:
		average = low.Reduce()
	case average.Cmp(high) > 0:
		average = high.Reduce()
	}
	slippage := average.Sub(f.best).Abs().Reduce()
	f.AveragePrice, f.Slippage = &average, &slippage
	return f
}
