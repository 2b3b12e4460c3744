package market

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sort orders the results of a market search.
type Sort string

// The orders of a market search.
const (
	SortRelevance Sort = "RELEVANCE"
	SortVolume    Sort = "VOLUME"
	SortVolume24h Sort = "VOLUME_24H"
	SortLiquidity Sort = "LIQUIDITY"
	SortEndsAt    Sort = "ENDS_AT"
)

// Direction is ascending or descending.
type Direction string

// The directions of a sort.
const (
	Ascending  Direction = "ASC"
	Descending Direction = "DESC"
)

// Search asks for one page of markets. The zero value of a field does not filter.
type Search struct {
	Text                  string
	Status                []Status
	Category, Tag         string
	EndsAfter, EndsBefore time.Time
	EventID, EventSlug    string
	Sort                  Sort
	Direction             Direction
	// Limit is the number of markets a page, 1 to 100.
	Limit int
	// Page is where the page starts: empty for the first, else the Next of the page before.
	Page string
}

// SearchPage is one page of a market search.
type SearchPage struct {
	// Markets are summaries.
	Markets []*Market
	// Next asks for the page after this one; empty at the end.
	Next string
	// Total counts all markets that match; nil where the venue does not say.
	Total   *int
	LeftOut LeftOut
}

// TradeQuery asks for one page of a wallet's trades, newest first. The zero value of a field does not filter.
type TradeQuery struct {
	MarketID string
	From, To time.Time
	// Limit is the number of rows a page, 1 to 100.
	Limit int
	Page  string
}

// TradePage is one page of trades.
type TradePage struct {
	Trades  []Trade
	Next    string
	Total   *int
	LeftOut LeftOut
}

// HistoryQuery asks for one page of a wallet's history, newest first. The zero value of a field does not filter.
type HistoryQuery struct {
	Kinds    []HistoryKind
	From, To time.Time
	Limit    int
	Page     string
}

// HistoryPage is one page of a wallet's history.
type HistoryPage struct {
	Records []HistoryRecord
	Next    string
	Total   *int
	LeftOut LeftOut
}

// BookQuery asks for a token's book with at least so many levels a side.
type BookQuery struct {
	TokenID string
	// Depth is 1 to MaxBookDepth.
	Depth int
}

// MaxBookDepth is the greatest number of levels a side that a venue is asked for.
const MaxBookDepth = 200

// PriceHistoryQuery asks for a token's prices over inclusive UTC days.
type PriceHistoryQuery struct {
	TokenID  string
	From, To Date
}

// MarketRef names a market by one of the ways that a venue knows.
type MarketRef struct {
	By    MarketRefKind
	Value string
}

// MarketRefKind is a way to name a market.
type MarketRefKind uint8

// The ways to name a market: its own identifier, its slug, or a token that is traded in it.
const (
	ByMarketID MarketRefKind = iota
	BySlug
	ByToken
)

// EventRef names an event by its identifier or, when that is empty, by its slug.
type EventRef struct {
	EventID, EventSlug string
}

// BookDepthStep rounds a depth up to one of a few, so that readers of different depths share a book.
func BookDepthStep(depth int) int {
	switch {
	case depth <= 20:
		return 20
	case depth <= 50:
		return 50
	default:
		return MaxBookDepth
	}
}

// MaxIDLength is the greatest length of an identifier in bytes.
const MaxIDLength = 256

// CheckID refuses an identifier that could change the request that it is sent in: an empty or overlong one, one that is not
// UTF-8, and one with a comma, a slash or a control character.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDLength {
		return Errorf(CodeBadUserInput, "an id has 1 to %d bytes", MaxIDLength)
	}
	plain := true // nearly all are ASCII
	for i := range len(id) {
		switch c := id[i]; {
		case c == ',' || c == '/' || c < ' ' || c == 0x7f:
			return Errorf(CodeBadUserInput, "an id has no comma, slash or control character")
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	switch {
	case plain:
		return nil
	case !utf8.ValidString(id):
		return Errorf(CodeBadUserInput, "an id is UTF-8")
	case strings.ContainsFunc(id, unicode.IsControl):
		return Errorf(CodeBadUserInput, "an id has no comma, slash or control character")
	}
	return nil
}
