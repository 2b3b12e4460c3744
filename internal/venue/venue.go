// Package venue declares what the drivers of venues have in common. Package drivers opens them.
package venue

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
)

// Reader is the part of a Driver that reads data. Methods that read several ids or queries return one result for each id or query,
// in the same order. If Value and Err of a result are nil, the venue does not know the id. A Reader is safe for concurrent use.
type Reader interface {
	// Can returns nil if the driver serves an endpoint, or an UNSUPPORTED error that says what the venue does not serve and why.
	// The result never changes.
	Can(endpoint upstream.Endpoint) error
	// MaxKeys returns the greatest number of ids in one call of an endpoint. This number never changes.
	MaxKeys(endpoint upstream.Endpoint) int
	// Cost returns the number of HTTP calls that a read of several ids would make at this time. keys is the number of different
	// ids, and bytes is the sum of their lengths in a URL.
	Cost(endpoint upstream.Endpoint, keys, bytes int) int

	Prices(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Price], error)
	Spreads(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Spread], error)
	Books(ctx context.Context, call upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error)
	PriceHistories(ctx context.Context, call upstream.Call, histories []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error)
	MarketsByID(ctx context.Context, call upstream.Call, marketIDs []string) ([]upstream.Result[*market.Market], error)
	MarketsByToken(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Market], error)
	MarketBySlug(ctx context.Context, call upstream.Call, slug string) (*market.Market, error)
	// Event returns an event with all its markets.
	Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error)
	Search(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error)
	// SearchEvents returns one page of the events with at least one market that matches a search.
	SearchEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error)
	// Categories returns the categories or tags of the venue's open markets.
	Categories(ctx context.Context, call upstream.Call) (*queries.Categories, error)
	// MarketTrades returns one page of the public trades of a market or of one of its tokens.
	MarketTrades(ctx context.Context, call upstream.Call, q queries.MarketTrades) (*queries.TradePage, error)
	Balance(ctx context.Context, call upstream.Call, a market.Address) (*market.Balance, error)
	Positions(ctx context.Context, call upstream.Call, a market.Address) ([]market.Position, error)
	Orders(ctx context.Context, call upstream.Call, a market.Address) ([]market.Order, error)
	Trades(ctx context.Context, call upstream.Call, a market.Address, q queries.Trades) (*queries.TradePage, error)
	History(ctx context.Context, call upstream.Call, a market.Address, q queries.History) (*queries.HistoryPage, error)
}

// Driver calls the REST API of one kind of venue.
type Driver interface {
	Reader
	// CanReadCash returns nil if balances contain the account's cash, or an UNSUPPORTED error with the reason. The result never
	// changes.
	CanReadCash() error
	// Stream returns the driver's address of the venue's stream, which is empty if it must be configured, and the protocol of the
	// stream. The protocol is nil if the driver has no stream.
	Stream() (address string, protocol *stream.Protocol)
	// Circuits returns the states of the circuit breakers, in a fixed order.
	Circuits() []rest.Circuit
	// Close closes idle connections. Calls in flight are not affected.
	Close()
}

// Prober is a driver that is told how its venue is asked, and finds out what it has not been told.
type Prober interface {
	// Undecided reports whether Probe would ask the venue.
	Undecided() bool
	// Probe asks the venue with few calls, each through admit, and decides what the answers show. What is decided stays until the
	// program stops. Probe returns an error if another Probe may decide more. It must not be called concurrently.
	Probe(ctx context.Context, admit upstream.Admit) error
	// Settings returns what has been told or decided, in the form of --venue-table. It may be empty.
	Settings() string
}
