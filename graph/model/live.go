package model

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// MarketChange says what has changed in a market.
type MarketChange string

// The kinds of changes.
const (
	MarketCreated  MarketChange = "CREATED"
	MarketStatus   MarketChange = "STATUS"
	MarketMetadata MarketChange = "METADATA"
	MarketTickSize MarketChange = "TICK_SIZE"
	MarketResolved MarketChange = "RESOLVED"
	MarketUnknown  MarketChange = "UNKNOWN"
)

// ParseMarketChange converts market.MarketChange.Kind. It returns MarketUnknown for an unknown kind.
func ParseMarketChange(kind string) MarketChange {
	switch c := MarketChange(kind); c {
	case MarketCreated, MarketStatus, MarketMetadata, MarketTickSize, MarketResolved:
		return c
	default:
		return MarketUnknown
	}
}

// Preloaded contains values of a token from a subscription's event. The fields below the event return these values, even if the
// cache has newer values.
type Preloaded struct {
	Price  *TokenPrice
	Spread *Spread
	Book   *Orderbook
	Leg    *reads.Leg
}

// PriceUpdate is a change of a token's price.
type PriceUpdate struct {
	Reason        UpdateReason
	Price         TokenPrice
	PreviousPrice *market.Decimal
	Spread        *Spread
}

// IsUpdate marks PriceUpdate as an Update.
func (PriceUpdate) IsUpdate() {}

// Token returns the token with the event's price and spread.
func (u PriceUpdate) Token() Token {
	return Token{TokenID: u.Price.Quote.TokenID, Preloaded: &Preloaded{Price: &u.Price, Spread: u.Spread}}
}

// PricesUpdate contains changes of the prices of several tokens.
type PricesUpdate struct {
	Reason UpdateReason
	Prices []PriceUpdate
}

// IsUpdate marks PricesUpdate as an Update.
func (PricesUpdate) IsUpdate() {}

// OrderbookUpdate is a change of a book.
type OrderbookUpdate struct {
	Kind             BookUpdateKind
	Reason           UpdateReason
	Book             Orderbook
	PreviousSequence *string
	Bids, Asks       []market.Level
}

// IsUpdate marks OrderbookUpdate as an Update.
func (OrderbookUpdate) IsUpdate() {}

// TokenID returns the token's id.
func (u OrderbookUpdate) TokenID() string { return u.Book.Book.TokenID }

// Token returns the token with the event's book.
func (u OrderbookUpdate) Token() Token {
	return Token{TokenID: u.Book.Book.TokenID, Preloaded: &Preloaded{Book: &u.Book}}
}

// Sequence returns an opaque text that identifies the state of the book, or nil if the venue sends no sequence numbers.
func (u OrderbookUpdate) Sequence() *string { return u.Book.Sequence() }
