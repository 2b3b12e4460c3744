package market

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sort is the sort order of a market search.
type Sort string

// The sort orders of a market search.
const (
	SortRelevance Sort = "RELEVANCE"
	SortVolume    Sort = "VOLUME"
	SortVolume24h Sort = "VOLUME_24H"
	SortLiquidity Sort = "LIQUIDITY"
	SortEndsAt    Sort = "ENDS_AT"
)

// Direction is the direction of a sort.
type Direction string

// The directions of a sort.
const (
	Ascending  Direction = "ASC"
	Descending Direction = "DESC"
)

// Search is a query for one page of markets. A field with its zero value does not filter.
type Search struct {
	Text                  string
	Status                []Status
	Category, Tag         string
	EndsAfter, EndsBefore time.Time
	EventID, EventSlug    string
	Sort                  Sort
	Direction             Direction
	// Limit is the number of markets on a page, 1 to 100.
	Limit int
	// Page is empty for the first page, else the Next of the page before.
	Page string
}

// SearchKey is a comparable Search.
type SearchKey struct {
	Text, Status, Category, Tag string
	EndsAfter, EndsBefore       time.Time
	EventID, EventSlug          string
	Sort                        Sort
	Direction                   Direction
	Limit                       int
	Page                        string
}

// Key returns the comparable form of the search. Equal searches have equal keys.
func (q Search) Key() SearchKey {
	return SearchKey{
		Text: q.Text, Status: joinWords(q.Status), Category: q.Category, Tag: q.Tag,
		EndsAfter: q.EndsAfter.UTC(), EndsBefore: q.EndsBefore.UTC(), // == compares locations too
		EventID: q.EventID, EventSlug: q.EventSlug, Sort: q.Sort, Direction: q.Direction, Limit: q.Limit, Page: q.Page,
	}
}

// Search returns the search of the key.
func (k SearchKey) Search() Search {
	return Search{
		Text: k.Text, Status: splitWords[Status](k.Status), Category: k.Category, Tag: k.Tag,
		EndsAfter: k.EndsAfter, EndsBefore: k.EndsBefore, EventID: k.EventID, EventSlug: k.EventSlug,
		Sort: k.Sort, Direction: k.Direction, Limit: k.Limit, Page: k.Page,
	}
}

// joinWords joins a list of words into one text, so that it is comparable. splitWords reverses it.
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
	// Markets are summaries: they may lack description and resolution.
	Markets []*Market
	// Next is the Page of the next query; empty on the last page.
	Next string
	// Total is the number of matching markets; nil if the venue does not send it.
	Total   *int
	LeftOut LeftOut
}

// TradeQuery is a query for one page of a wallet's trades, newest first. A field with its zero value does not filter.
type TradeQuery struct {
	MarketID string
	From, To time.Time
	// Limit is the number of rows on a page, 1 to 100.
	Limit int
	Page  string
}

// TradesKey identifies a page of an account's trades.
type TradesKey struct {
	Address Address
	Query   TradeQuery
}

// Key returns the key of the query's page for an account. Equal queries have equal keys.
func (q TradeQuery) Key(a Address) TradesKey {
	q.From, q.To = q.From.UTC(), q.To.UTC() // == compares locations too
	return TradesKey{a, q}
}

// TradePage is one page of trades.
type TradePage struct {
	Trades  []Trade
	Next    string
	Total   *int
	LeftOut LeftOut
}

// HistoryQuery is a query for one page of a wallet's history, newest first. A field with its zero value does not filter.
type HistoryQuery struct {
	Kinds    []HistoryKind
	From, To time.Time
	Limit    int
	Page     string
}

// HistoryKey identifies a page of an account's history.
type HistoryKey struct {
	Address Address
	Kinds   string
	// Page has the fields that history and trade queries share.
	Page TradeQuery
}

// Key returns the key of the query's page for an account. Equal queries have equal keys.
func (q HistoryQuery) Key(a Address) HistoryKey {
	return HistoryKey{a, joinWords(q.Kinds), TradeQuery{From: q.From.UTC(), To: q.To.UTC(), Limit: q.Limit, Page: q.Page}}
}

// Query returns the query of the key.
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

// BookQuery is a query for a token's book with at least Depth levels on each side.
type BookQuery struct {
	TokenID string
	// Depth is 1 to MaxBookDepth.
	Depth int
}

// MaxBookDepth is the greatest depth that is requested from a venue.
const MaxBookDepth = 200

// PriceHistoryQuery is a query for a token's prices on the UTC days From to To, both inclusive.
type PriceHistoryQuery struct {
	TokenID  string
	From, To Date
}

// MarketRef identifies a market in one of the ways that a venue supports.
type MarketRef struct {
	By    MarketRefKind
	Value string
}

// MarketRefKind is a way to identify a market.
type MarketRefKind uint8

// The ways to identify a market: its id, its slug, or a token of one of its outcomes.
const (
	ByMarketID MarketRefKind = iota
	BySlug
	ByToken
)

// EventRef identifies an event by its id or, if the id is empty, by its slug.
type EventRef struct {
	EventID, EventSlug string
}

// BookDepthStep rounds a depth up to 20, 50 or MaxBookDepth, so that readers of different depths share a book.
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

// CheckID rejects an identifier that could change the request to the venue: one that is empty, longer than MaxIDLength or not
// UTF-8, or has a comma, a slash or a control character. Its errors have CodeBadUserInput.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDLength {
		return Errorf(CodeBadUserInput, "an id has 1 to %d bytes", MaxIDLength)
	}
	plain := true // only ASCII so far, like nearly all ids
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
