package demo

import "time"

// The types below describe the venue's state for the simulators and for tests.

// Token is one listed outcome.
type Token struct {
	TokenID  string
	MarketID string
	Slug     string // slug of the market
	EventID  string
	// Outcome is YES, NO or a label.
	Outcome string
	// Status is the status of the market: UPCOMING, OPEN, CLOSED, DISPUTED, RESOLVED or CANCELLED.
	Status string
}

// Quote has the prices of a token.
type Quote struct {
	// Price is the token's price: 1 or 0 once the market is resolved.
	Price Price
	// BestBid and BestAsk are the best prices of the book. The best price of an empty side is 0.
	BestBid, BestAsk Price
	// At is when the price changed last.
	At time.Time
	// Seq is the sequence number of the book.
	Seq uint64
}

// Book is a token's whole order book.
type Book struct {
	// Bids run from the highest price, Asks from the lowest.
	Bids, Asks []Level
	// Seq is the sequence number of the book, from 1.
	Seq uint64
	// At is when the book changed last.
	At time.Time
}

// Position is a holding of one token.
type Position struct {
	TokenID, MarketID, Outcome string
	Size                       Size
	AvgPrice, CurrentPrice     Price
	UnrealizedPnl              Money
}

// Balance is a wallet's money.
type Balance struct {
	PortfolioValue, CashBalance, TotalValue Money
}

// Tokens returns all tokens in the order in which they are listed. The tokens of a market are adjacent.
func (v *Venue) Tokens() []Token {
	v.mu.RLock()
	defer v.mu.RUnlock()
	tokens := make([]Token, len(v.listing.tokens))
	for i, t := range v.listing.tokens {
		tokens[i] = Token{t.id, t.market.id, t.market.slug, t.market.event.id, t.label, t.market.status}
	}
	return tokens
}

// Quote returns the present prices of a token, and whether the token is listed.
func (v *Venue) Quote(tokenID string) (Quote, bool) {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return Quote{}, false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	q := Quote{Price: t.price(), At: t.priceAt.Time(), Seq: t.bookSeq}
	if p, ok := t.bestBid(); ok {
		q.BestBid = p
	}
	if p, ok := t.bestAsk(); ok {
		q.BestAsk = p
	}
	return q, true
}

// Book returns a token's present book with all levels, and whether the token is listed.
func (v *Venue) Book(tokenID string) (Book, bool) {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return Book{}, false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return t.book(), true
}

func (t *token) book() Book {
	b := Book{Seq: t.bookSeq, At: t.bookAt.Time()}
	t.eachBid(func(l Level) bool { b.Bids = append(b.Bids, l); return true })
	t.eachAsk(func(l Level) bool { b.Asks = append(b.Asks, l); return true })
	return b
}

// Positions returns the present positions of a wallet, oldest first. It returns nil if the address is not well-formed.
func (v *Venue) Positions(address string) []Position {
	address, ok := parseAddress(address)
	if !ok {
		return nil
	}
	w := v.walletOf(address)
	v.mu.RLock()
	defer v.mu.RUnlock()
	positions := make([]Position, len(w.positions))
	for i, p := range w.positions {
		positions[i] = Position{
			TokenID: p.token.id, MarketID: p.token.market.id, Outcome: p.token.label,
			Size: p.size, AvgPrice: p.avgPrice(), CurrentPrice: p.token.price(), UnrealizedPnl: p.unrealizedPnl(),
		}
	}
	return positions
}

// Balance returns the present balance of a wallet, and whether the address is well-formed.
func (v *Venue) Balance(address string) (Balance, bool) {
	address, ok := parseAddress(address)
	if !ok {
		return Balance{}, false
	}
	w := v.walletOf(address)
	v.mu.RLock()
	defer v.mu.RUnlock()
	portfolio := w.portfolioValue()
	return Balance{portfolio, w.cash, portfolio + w.cash}, true
}
