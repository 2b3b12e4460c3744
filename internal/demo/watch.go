package demo

import (
	"slices"
	"time"
)

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
	ID    string
	Price Price
	Size  Size
	Side  Side
	At    time.Time
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
		TickSize: m.tick, MinOrder: m.minOrder, Volume: m.volume, Volume24h: m.volume24h, Liquidity: m.liquidity, Binary: m.binary(),
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

// Tape returns the last public trades of a token, at most 50, newest first. It returns nil for an unknown token.
func (v *Venue) Tape(tokenID string) []Trade {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	recent := t.recentTrades(v.opened)
	trades := make([]Trade, 0, len(recent))
	for _, trade := range slices.Backward(recent) {
		trades = append(trades, trade.toTrade())
	}
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
