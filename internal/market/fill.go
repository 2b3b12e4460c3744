package market

// Fill is what trading at once against a book would give.
type Fill struct {
	// AveragePrice is cost / filled size and WorstPrice the price of the last level touched; nil when nothing fills.
	AveragePrice, WorstPrice *Decimal
	// FilledSize is in shares, Cost in money: paid by a buyer, received by a seller.
	FilledSize, Cost Decimal
	// Slippage is how much worse than the best price the average is, at least 0; nil when nothing fills.
	Slippage *Decimal
	// Complete is false when the book holds less than was asked for.
	Complete bool

	// best is the price of the first level taken.
	best Decimal
}

// FillSize trades size shares against the book: a buyer takes asks, a seller hits bids, best first.
func FillSize(b *Book, side OrderSide, size Decimal) Fill {
	var f Fill
	left := size
	for _, l := range against(b, side) {
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

// FillAmount trades until amount is paid by a buyer or received by a seller. The size taken from the last level is the
// rest of the amount over its price, to 34 digits.
func FillAmount(b *Book, side OrderSide, amount Decimal) Fill {
	var f Fill
	left := amount
	for _, l := range against(b, side) {
		if left.Sign() <= 0 {
			break
		}
		take, cost := l.Size, l.Size.Mul(l.Price)
		if cost.Sign() <= 0 {
			continue // what costs nothing brings the amount no nearer
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

func against(b *Book, side OrderSide) []Level {
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

// finish computes what follows from the sums. An average lies between the best and the worst price, though the size that
// it divides by was rounded.
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
