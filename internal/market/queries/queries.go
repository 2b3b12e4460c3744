// Package queries defines the queries for lists, books and histories, comparable keys of these queries, and the
// interface Source, which answers them.
package queries

import (
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// Sort is the sort order of a market search.
type Sort string

// The sort orders of a market search.
const (
	SortRelevance Sort = "RELEVANCE"
	SortVolume    Sort = "VOLUME"
	SortVolume24h Sort = "VOLUME_24H"
	SortLiquidity Sort = "LIQUIDITY"
	SortStartsAt  Sort = "STARTS_AT"
	SortEndsAt    Sort = "ENDS_AT"
	// SortPriceChange24h sorts by the change of the first outcome's price.
	SortPriceChange24h Sort = "PRICE_CHANGE_24H"
)

// Filter is a kind of condition of a market search.
type Filter string

// The kinds of conditions of a market search.
const (
	FilterText     Filter = "TEXT"
	FilterStatus   Filter = "STATUS"
	FilterCategory Filter = "CATEGORY"
	FilterTag      Filter = "TAG"
	FilterEndsAt   Filter = "ENDS_AT"
)

// Searches is what a venue's searches for markets and events can do.
type Searches struct {
	MarketSorts, EventSorts     []Sort
	MarketFilters, EventFilters []Filter
}

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
	Status                []market.Status
	Category, Tag         string
	EndsAfter, EndsBefore Bound
	EventID, EventSlug    string
	Sort                  Sort
	Direction             Direction
	// Limit is the number of markets on a page, 1 to 100. A search for events ignores Limit, because each driver chooses the size of
	// these pages.
	Limit int
	// Page is the SearchPage.Next of the previous page. It is empty for the first page.
	Page string
}

// MatchesEnd reports whether the end of a market meets EndsAfter and EndsBefore. If either of them is set, a market without an end
// does not match.
func (q Search) MatchesEnd(end time.Time) bool {
	if !q.EndsAfter.IsSet() && !q.EndsBefore.IsSet() {
		return true
	}
	return !end.IsZero() && !IsOutside(end, q.EndsAfter, q.EndsBefore)
}

// MatchesState reports whether a market meets Status, EndsAfter and EndsBefore.
func (q Search) MatchesState(m *market.Market) bool {
	return (len(q.Status) == 0 || slices.Contains(q.Status, m.Status)) && q.MatchesEnd(m.EndsAt)
}

// SearchKey is a comparable Search.
type SearchKey struct {
	// Venue is the name of a further venue; see market.Names. It is empty for the first venue. It is left out of the JSON form then,
	// so that processes with one venue and with several share a search in Redis.
	Venue                       string `json:",omitempty"`
	Text, Status, Category, Tag string
	EndsAfter, EndsBefore       Bound
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
		EndsAfter: q.EndsAfter, EndsBefore: q.EndsBefore, EventID: q.EventID, EventSlug: q.EventSlug,
		Sort: q.Sort, Direction: q.Direction, Limit: q.Limit, Page: q.Page,
	}
}

// Search returns the search of the key.
func (k SearchKey) Search() Search {
	return Search{
		Text: k.Text, Status: splitWords[market.Status](k.Status), Category: k.Category, Tag: k.Tag,
		EndsAfter: k.EndsAfter, EndsBefore: k.EndsBefore, EventID: k.EventID, EventSlug: k.EventSlug,
		Sort: k.Sort, Direction: k.Direction, Limit: k.Limit, Page: k.Page,
	}
}

// joinWords joins a list of words into one text, because a comparable key cannot contain a list. splitWords is its inverse.
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
	Markets []*market.Market
	// Next is the value of Search.Page for the next page. It is empty on the last page.
	Next string
	// Total is the number of matching markets. It is nil if the venue does not send it.
	Total   *int
	LeftOut market.LeftOut
}

// Trades is a query for one page of a wallet's trades, newest first. A field with its zero value does not filter.
type Trades struct {
	MarketID string
	From, To Bound
	// Limit is the number of rows on a page, 1 to 100.
	Limit int
	Page  string
}

// TradesKey identifies a page of an account's trades.
type TradesKey struct {
	Address market.Address
	Query   Trades
}

// Key returns the key of the query's page for an account. Equal queries have equal keys.
func (q Trades) Key(a market.Address) TradesKey { return TradesKey{a, q} }

// MarketTrades is a query for one page of the public trades of a market, newest first. It is comparable.
type MarketTrades struct {
	MarketID string
	// TokenID is a token of the market. If it is empty, the query lists each trade once, from the taker's side. If EveryToken is set,
	// TokenID is empty, and the query lists each trade for every token to which the venue's stream sends it.
	TokenID    string
	EveryToken bool
	// Limit is the greatest number of rows on a page, 1 to 100. A page with fewer rows is not necessarily the last page.
	Limit int
	Page  string
}

// TradePage is one page of trades.
type TradePage struct {
	Trades  []market.Trade
	Next    string
	Total   *int
	LeftOut market.LeftOut
}

// History is a query for one page of a wallet's history, newest first. A field with its zero value does not filter.
type History struct {
	Kinds    []market.HistoryKind
	From, To Bound
	Limit    int
	Page     string
}

// HistoryKey identifies a page of an account's history.
type HistoryKey struct {
	Address market.Address
	Kinds   string
	// Page contains the fields From, To, Limit and Page of the query.
	Page Trades
}

// Key returns the key of the query's page for an account. Equal queries have equal keys.
func (q History) Key(a market.Address) HistoryKey {
	return HistoryKey{a, joinWords(q.Kinds), Trades{From: q.From, To: q.To, Limit: q.Limit, Page: q.Page}}
}

// Query returns the query of the key.
func (k HistoryKey) Query() History {
	return History{Kinds: splitWords[market.HistoryKind](k.Kinds), From: k.Page.From, To: k.Page.To, Limit: k.Page.Limit, Page: k.Page.Page}
}

// HistoryPage is one page of a wallet's history.
type HistoryPage struct {
	Records []market.HistoryRecord
	Next    string
	Total   *int
	LeftOut market.LeftOut
}

// Book is a query for at least the best Depth levels of each side of a token's book.
type Book struct {
	TokenID string
	// Depth is 1 to MaxBookDepth.
	Depth int
}

// MaxBookDepth is the greatest depth, in levels of a side, that the service requests from a venue.
const MaxBookDepth = 200

// PriceHistory is a query for a token's prices on the UTC days from From to To, inclusive.
type PriceHistory struct {
	TokenID  string
	From, To market.Date
}

// BookDepthStep rounds a depth up to 20, 50 or MaxBookDepth, so that queries with similar depths share a cached book. It returns
// MaxBookDepth for greater depths.
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
