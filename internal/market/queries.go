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

// SearchKey is a Search in a form that can be compared.
type SearchKey struct {
	Text, Status, Category, Tag string
	EndsAfter, EndsBefore       time.Time
	EventID, EventSlug          string
	Sort                        Sort
	Direction                   Direction
	Limit                       int
	Page                        string
}

// Key returns the search in a form that can be compared. Equal searches have equal keys.
func (q Search) Key() SearchKey {
	return SearchKey{
		Text: q.Text, Status: joinWords(q.Status), Category: q.Category, Tag: q.Tag,
		EndsAfter: q.EndsAfter.UTC(), EndsBefore: q.EndsBefore.UTC(), // a comparison would see locations
		EventID: q.EventID, EventSlug: q.EventSlug, Sort: q.Sort, Direction: q.Direction, Limit: q.Limit, Page: q.Page,
	}
}

// Search returns the search that the key stands for.
func (k SearchKey) Search() Search {
	return Search{
		Text: k.Text, Status: splitWords[Status](k.Status), Category: k.Category, Tag: k.Tag,
		EndsAfter: k.EndsAfter, EndsBefore: k.EndsBefore, EventID: k.EventID, EventSlug: k.EventSlug,
		Sort: k.Sort, Direction: k.Direction, Limit: k.Limit, Page: k.Page,
	}
}

// joinWords and splitWords make a list of words part of a key and back.
func joinWords[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ",")
}

func splitWords[T ~string](list string) []T {
	if list == "" {
		return nil
	}
	words := strings.Split(list, ",")
	out := make([]T, len(words))
	for i, w := range words {
		out[i] = T(w)
	}
	return out
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

// TradesKey names a page of an account's trades.
type TradesKey struct {
	Address Address
	Query   TradeQuery
}

// Key returns the name of the query's page for an account. Equal queries have equal keys.
func (q TradeQuery) Key(a Address) TradesKey {
	q.From, q.To = q.From.UTC(), q.To.UTC() // a comparison would see locations
	return TradesKey{a, q}
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

// HistoryKey names a page of an account's history.
type HistoryKey struct {
	Address Address
	Kinds   string
	// Page is what the query shares with one of trades.
	Page TradeQuery
}

// Key returns the name of the query's page for an account. Equal queries have equal keys.
func (q HistoryQuery) Key(a Address) HistoryKey {
	return HistoryKey{a, joinWords(q.Kinds), TradeQuery{From: q.From.UTC(), To: q.To.UTC(), Limit: q.Limit, Page: q.Page}}
}

// Query returns the query that the key was made of.
func (k HistoryKey) Query() HistoryQuery {
	return HistoryQuery{Kinds: splitWords[HistoryKind](k.Kinds), From: k.Page.From, To: k.Page.To, Limit: k.Page.Limit, Page: k.Page.Page}
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
