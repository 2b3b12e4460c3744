package demo

import (
	"slices"
	"time"
)

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

// Engine returns the venue. It, ID and DemoID are for venues whose dialects have an engine and identifiers of their own.
func (v *Venue) Engine() *Venue { return v }

// ID returns the identifier.
func (v *Venue) ID(id string) string { return id }

// DemoID returns the identifier.
func (v *Venue) DemoID(id string) string { return id }

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

// Watcher is notified of every change of a venue's markets, in order. The venue holds its lock during a call, so a Watcher
// must return soon and must not call methods of the venue.
type Watcher interface {
	// Moved reports the whole book and the price of a token whose book or price changed. If two tokens share the book, tokenID is
	// the id of the first token.
	Moved(tokenID string, price Price, book Book)
	// Traded reports a public trade of a token.
	Traded(tokenID string, trade Trade)
	// Changed reports the state of a market after a change of the kind CREATED, STATUS, TICK_SIZE, METADATA or RESOLVED.
	Changed(market Market, change string)
}

// Trade is a public trade. Side is the taker's side.
type Trade struct {
	ID, TokenID string
	Price       Price
	Size        Size
	Side        Side
	At          time.Time
}

// Market is the state of a market.
type Market struct {
	MarketID, Slug, Question, GroupTitle, Description, Image, Category string
	Tags                                                               []string
	EventID, EventSlug, EventTitle                                     string
	// Status is UPCOMING, OPEN, CLOSED, DISPUTED, RESOLVED or CANCELLED.
	Status string
	// ClosedAt and ResolvedAt are zero before the market is closed or resolved.
	StartAt, EndAt, ClosedAt, ResolvedAt, UpdatedAt time.Time
	// Winner is the index of the winning token, or -1 if there is no winner. Source is the publisher of the result.
	Winner                       int
	Source                       string
	TickSize                     Price
	MinOrder                     Size
	Volume, Volume24h, Liquidity Money
	// Quiet is true if the market never moves and never trades by itself.
	Quiet bool
	// Binary is true if the market has the outcomes YES and NO, which share one book.
	Binary bool
	// TokenIDs and Outcomes have the ids and labels of the tokens in the same order.
	TokenIDs, Outcomes []string
}

// Point is one point of a price history.
type Point struct {
	At    time.Time
	Price Price
}

// Record is an event of a wallet's history.
type Record struct {
	// Number is greater for later records. The number of a record never changes.
	Number uint64
	At     time.Time
	// Kind is TRADE, DEPOSIT, WITHDRAWAL, SPLIT, MERGE, REDEEM, FEE, REWARD or TRANSFER.
	Kind string
	// TokenID is empty for records without a token.
	TokenID string
	// Side is empty for records other than trades.
	Side   Side
	Price  Price
	Size   Size
	Amount Money // change of the cash
	// Transaction is a hash in 64 hex digits.
	Transaction string
}

// Markets returns all markets in the order in which they are listed. The markets of an event are adjacent.
func (v *Venue) Markets() []Market {
	v.mu.RLock()
	defer v.mu.RUnlock()
	markets := make([]Market, len(v.listing.markets))
	for i, m := range v.listing.markets {
		markets[i] = m.state()
	}
	return markets
}

func (m *market) state() Market {
	s := Market{
		MarketID: m.id, Slug: m.slug, Question: m.question, GroupTitle: m.groupTitle, Description: m.description, Image: m.image,
		Category: m.category, Tags: m.tags, EventID: m.event.id, EventSlug: m.event.slug, EventTitle: m.event.title, Status: m.status,
		StartAt: m.startAt.Time(), EndAt: m.endAt.Time(), UpdatedAt: m.updatedAt.Time(), Winner: m.winner, Source: m.source,
		TickSize: m.tick, MinOrder: m.minOrder, Volume: m.volume, Volume24h: m.volume24h, Liquidity: m.liquidity, Binary: m.binary(), Quiet: m.quiet(),
	}
	if m.closedAt > 0 {
		s.ClosedAt = m.closedAt.Time()
	}
	if m.resolvedAt > 0 {
		s.ResolvedAt = m.resolvedAt.Time()
	}
	for _, t := range m.tokens {
		s.TokenIDs, s.Outcomes = append(s.TokenIDs, t.id), append(s.Outcomes, t.label)
	}
	return s
}

// History returns the price history of a token in [from, until), newest first. It returns nil for an unknown token.
func (v *Venue) History(tokenID string, from, until time.Time) []Point {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return nil
	}
	now := v.now()
	v.mu.RLock()
	defer v.mu.RUnlock()
	var points []Point
	for _, p := range t.market.history(t.outcome, millisOf(from), millisOf(until), now) {
		points = append(points, Point{p.at.Time(), p.price})
	}
	return points
}

// Tape returns the last public trades of tokens, at most 50 of each, newest first. Unknown tokens have none.
func (v *Venue) Tape(tokenIDs ...string) (trades []Trade) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, id := range tokenIDs {
		if t := v.listing.tokenByID[id]; t != nil {
			for _, trade := range slices.Backward(t.recentTrades(v.opened)) {
				trades = append(trades, trade.toTrade(t))
			}
		}
	}
	slices.SortStableFunc(trades, func(a, b Trade) int { return b.At.Compare(a.At) })
	return trades
}

// Records returns the history of a wallet, newest first. It returns nil if the address is not well-formed.
func (v *Venue) Records(address string) []Record {
	address, ok := parseAddress(address)
	if !ok {
		return nil
	}
	w := v.walletOf(address)
	v.mu.RLock()
	defer v.mu.RUnlock()
	records := make([]Record, 0, len(w.records))
	for i := len(w.records) - 1; i >= 0; i-- {
		r := &w.records[i]
		out := Record{
			Number: w.dropped + uint64(i), At: r.at.Time(), Kind: kindNames[r.kind], Price: r.price, Size: r.size, Amount: r.amount,
		}
		if r.token != nil {
			out.TokenID = r.token.id
		}
		if r.kind == kindTrade {
			out.Side = r.side()
		}
		var hash []byte
		for part := range uint64(4) {
			hash = appendHex(hash, w.recordHash(i, 5+part))
		}
		out.Transaction = string(hash)
		records = append(records, out)
	}
	return records
}

func (v *Venue) notifyMoved(t *token) {
	if v.config.Watch != nil {
		v.config.Watch.Moved(t.id, t.lastPrice(), t.book())
	}
}
