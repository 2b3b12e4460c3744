package market

import "time"

// Price is the venue's price of a token.
type Price struct {
	TokenID string
	// Price is the price of a share, from 0 to 1.
	Price Decimal
	Basis PriceBasis
	// Timestamp is the venue's timestamp. It is zero if the venue sent no timestamp.
	Timestamp time.Time
}

// Spread contains the best prices of a token's book and their difference.
type Spread struct {
	TokenID string
	// BestBid is nil if the book has no bids, and BestAsk is nil if it has no asks. Both are nil if the venue sends only Spread.
	BestBid, BestAsk, Spread *Decimal
	Timestamp                time.Time
	// FromBook reports that the prices come from the token's Book, because the venue sent no spread.
	FromBook bool
}

// Basis returns where the spread comes from.
func (s *Spread) Basis() SpreadBasis {
	if s.FromBook {
		return SpreadOfBook
	}
	return SpreadOfVenue
}

// Midpoint returns the mean of best bid and best ask, or nil if BestBid or BestAsk is nil.
func (s *Spread) Midpoint() *Decimal { return midpoint(s.BestBid, s.BestAsk) }

// Width returns best ask − best bid, or nil if BestBid or BestAsk is nil.
func (s *Spread) Width() *Decimal { return width(s.BestBid, s.BestAsk) }

// Price returns the midpoint. If only one of BestBid and BestAsk is set, it returns that price. ok is false if both are nil.
func (s *Spread) Price() (price Decimal, basis PriceBasis, ok bool) {
	switch {
	case s.BestBid == nil && s.BestAsk == nil:
		return Decimal{}, "", false
	case s.BestAsk == nil:
		return *s.BestBid, BasisBestBid, true
	case s.BestBid == nil:
		return *s.BestAsk, BasisBestAsk, true
	}
	return *s.Midpoint(), BasisMidpoint, true
}

// Level is a price of a book and the total size at this price.
type Level struct {
	// Price is the price of a share, from 0 to 1. Size is in shares.
	Price, Size Decimal
}

// Book is a token's order book.
type Book struct {
	TokenID string
	// Bids run from the highest price, Asks from the lowest.
	Bids, Asks Side
	// Spread is the spread that the venue sent. If the venue sent no spread, Spread is the result of Width. Some drivers replace a
	// negative Width by nil.
	Spread    *Decimal
	Timestamp time.Time
	// Seq is the venue's sequence number of this state of the book. It can be compared with other numbers of the same Epoch. It is 0
	// if the venue sends no numbers.
	Epoch string
	Seq   uint64
	Hash  string
	// Depth is the requested number of levels on each side.
	Depth int
}

// Covers reports whether the book has all levels up to the given depth. If both sides have fewer than b.Depth levels, the book is
// complete and covers every depth.
func (b *Book) Covers(depth int) bool {
	return depth <= b.Depth || b.Bids.Len() < b.Depth && b.Asks.Len() < b.Depth
}

// Cut returns the book with only the best levels of each side, at most depth of them. Cut returns b itself if both sides are short
// enough. Otherwise the result shares the levels of b.
func (b *Book) Cut(depth int) *Book {
	if b.Bids.Len() <= depth && b.Asks.Len() <= depth {
		return b
	}
	c := *b
	c.Bids, c.Asks = b.Bids.Cut(depth), b.Asks.Cut(depth)
	c.Depth = depth
	return &c
}

// BestBid returns the highest price of a bid, or nil if the book has no bids.
func (b *Book) BestBid() *Decimal { return best(b.Bids) }

// BestAsk returns the lowest price of an ask, or nil if the book has no asks.
func (b *Book) BestAsk() *Decimal { return best(b.Asks) }

// Midpoint returns the mean of best bid and best ask, or nil if a side is empty.
func (b *Book) Midpoint() *Decimal { return midpoint(best(b.Bids), best(b.Asks)) }

// Width returns best ask − best bid, or nil if a side is empty.
func (b *Book) Width() *Decimal { return width(best(b.Bids), best(b.Asks)) }

func best(s Side) *Decimal {
	if l := s.Best(); l != nil {
		return &l.Price
	}
	return nil
}

func midpoint(bid, ask *Decimal) *Decimal {
	if bid == nil || ask == nil {
		return nil
	}
	return new(bid.Add(*ask).Mul(NewDecimal(5, -1)).Reduce())
}

func width(bid, ask *Decimal) *Decimal {
	if bid == nil || ask == nil {
		return nil
	}
	return new(ask.Sub(*bid).Reduce())
}

// PricePoint is one point of a token's price history.
type PricePoint struct {
	Timestamp time.Time
	Price     Decimal
	// Volume is nil if the venue sends none.
	Volume *Decimal
}

// PriceHistory contains the prices of a token on the UTC days from From to To, inclusive. Points are sorted oldest first.
type PriceHistory struct {
	TokenID  string
	From, To Date
	Points   []PricePoint
	LeftOut  LeftOut
}

// LevelChange sets the total size of one price level. A size of 0 removes the level.
type LevelChange struct {
	Side OrderSide
	Level
}
