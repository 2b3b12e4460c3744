package queries

import (
	"context"

	"oddsgraph/internal/market"
)

// Venue reads data from a venue. The methods for several keys return results in the order of the keys. A nil value means that the
// venue does not know the key. A Venue is safe for concurrent use.
type Venue interface {
	Prices(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Price], error)
	Spreads(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error)
	Books(ctx context.Context, books []Book) ([]market.Result[*market.Book], error)
	PriceHistories(ctx context.Context, histories []PriceHistory) ([]market.Result[*market.PriceHistory], error)
	MarketsByID(ctx context.Context, marketIDs []string) ([]market.Result[*market.Market], error)
	MarketsByToken(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Market], error)
	MarketBySlug(ctx context.Context, slug string) (*market.Market, error)
	// Event returns an event with all its markets.
	Event(ctx context.Context, ref market.EventRef) (*market.Event, error)
	Search(ctx context.Context, q Search) (*SearchPage, error)
	// SearchEvents returns one page of the events with at least one market that matches a search.
	SearchEvents(ctx context.Context, q Search) (*EventPage, error)
	// Categories returns the categories or tags of the venue's open markets.
	Categories(ctx context.Context) (*Categories, error)
	// MarketTrades returns one page of the public trades of a market or of one of its tokens.
	MarketTrades(ctx context.Context, q MarketTrades) (*TradePage, error)
	Balance(ctx context.Context, a market.Address) (*market.Balance, error)
	Positions(ctx context.Context, a market.Address) ([]market.Position, error)
	Orders(ctx context.Context, a market.Address) ([]market.Order, error)
	Trades(ctx context.Context, a market.Address, q Trades) (*TradePage, error)
	History(ctx context.Context, a market.Address, q History) (*HistoryPage, error)
}

// Source reads values of one kind by key, from a cache or from the venue.
type Source[K comparable, T any] interface {
	// Lookup writes the results of cached keys to out. It appends the indexes of the other keys to missing and returns the extended
	// slice. Lookup never calls the venue.
	Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int
	// Refresh fetches the stale entries of keys in the background.
	Refresh(ctx context.Context, keys []K)
	// Calls returns the number of calls to the venue that Fetch would make if none of the keys was cached or being fetched.
	Calls(keys []K) int
	// Fetch fetches keys from the venue. It returns the results, in the order of keys, at the latest when ctx ends.
	Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]]
}
