package venue

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// Qualified returns a Reader of a further venue, whose ids begin with the name of the venue and a colon. If noAccounts is true, the
// Reader does not serve the endpoints of accounts.
func Qualified(r Reader, name string, noAccounts bool) Reader {
	return &qualified{Reader: r, name: name, noAccounts: noAccounts}
}

// qualified cuts the name of the venue off the ids in arguments, and writes it into copies of the results. Limits and categories,
// which have no ids, are those of the embedded Reader.
type qualified struct {
	Reader
	name       string
	noAccounts bool
}

var errForeign = market.Errorf(market.CodeBadUserInput, "an id belongs to another venue")

// readOne calls read with the venue's own form of an argument. copied returns a copy of the value with other ids.
func readOne[A, T any](ctx context.Context, q *qualified, call upstream.Call, argument A, read func(context.Context, upstream.Call, A) (T, error), copied func(*renamer, T) T) (none T, err error) {
	in := renamer{venue: q.name, cut: true}
	if in.rename(&argument); in.foreign {
		return none, errForeign
	}
	value, err := read(ctx, call, argument)
	if err != nil {
		return none, err
	}
	return copied(&renamer{venue: q.name}, value), nil
}

// readList is like readOne for a list.
func readList[A, T any](ctx context.Context, q *qualified, call upstream.Call, arguments []A, read func(context.Context, upstream.Call, []A) ([]upstream.Result[*T], error)) ([]upstream.Result[*T], error) {
	return readOne(ctx, q, call, arguments, read, func(r *renamer, results []upstream.Result[*T]) []upstream.Result[*T] {
		results = slices.Clone(results)
		for i := range results {
			results[i].Value = renamed(r, results[i].Value)
		}
		return results
	})
}

func (q *qualified) Can(e upstream.Endpoint) error {
	if q.noAccounts && e.User() {
		return market.Errorf(market.CodeUnsupported, "accounts of the venue %s need credentials, which only the first venue takes (%s)", q.name, e)
	}
	return q.Reader.Can(e)
}

// Cost subtracts the name of the venue from the lengths, because no URL contains it.
func (q *qualified) Cost(e upstream.Endpoint, keys, bytes int) int {
	return q.Reader.Cost(e, keys, max(bytes-keys*(len(q.name)+len("%3A")), 0))
}

func (q *qualified) Prices(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Price], error) {
	return readList(ctx, q, call, tokenIDs, q.Reader.Prices)
}

func (q *qualified) Spreads(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Spread], error) {
	return readList(ctx, q, call, tokenIDs, q.Reader.Spreads)
}

func (q *qualified) Books(ctx context.Context, call upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error) {
	return readList(ctx, q, call, books, q.Reader.Books)
}

func (q *qualified) PriceHistories(ctx context.Context, call upstream.Call, histories []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error) {
	return readList(ctx, q, call, histories, q.Reader.PriceHistories)
}

func (q *qualified) MarketsByID(ctx context.Context, call upstream.Call, marketIDs []string) ([]upstream.Result[*market.Market], error) {
	return readList(ctx, q, call, marketIDs, q.Reader.MarketsByID)
}

func (q *qualified) MarketsByToken(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Market], error) {
	return readList(ctx, q, call, tokenIDs, q.Reader.MarketsByToken)
}

func (q *qualified) MarketBySlug(ctx context.Context, call upstream.Call, slug string) (*market.Market, error) {
	return readOne(ctx, q, call, slug, q.Reader.MarketBySlug, renamed)
}

func (q *qualified) Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error) {
	return readOne(ctx, q, call, ref, q.Reader.Event, renamed)
}

func (q *qualified) Search(ctx context.Context, call upstream.Call, s queries.Search) (*queries.SearchPage, error) {
	return readOne(ctx, q, call, s, q.Reader.Search, renamed)
}

func (q *qualified) SearchEvents(ctx context.Context, call upstream.Call, s queries.Search) (*queries.EventPage, error) {
	return readOne(ctx, q, call, s, q.Reader.SearchEvents, renamed)
}

func (q *qualified) MarketTrades(ctx context.Context, call upstream.Call, t queries.MarketTrades) (*queries.TradePage, error) {
	return readOne(ctx, q, call, t, q.Reader.MarketTrades, renamed)
}

func (q *qualified) Balance(ctx context.Context, call upstream.Call, a market.Address) (*market.Balance, error) {
	return readOne(ctx, q, call, a, q.Reader.Balance, renamed)
}

func (q *qualified) Positions(ctx context.Context, call upstream.Call, a market.Address) ([]market.Position, error) {
	return readOne(ctx, q, call, a, q.Reader.Positions, renamedAll)
}

func (q *qualified) Orders(ctx context.Context, call upstream.Call, a market.Address) ([]market.Order, error) {
	return readOne(ctx, q, call, a, q.Reader.Orders, renamedAll)
}

// Trades returns an empty page for a market of another venue, because a filter that nothing meets is no error.
func (q *qualified) Trades(ctx context.Context, call upstream.Call, a market.Address, t queries.Trades) (*queries.TradePage, error) {
	own, ok := market.CutVenue(q.name, t.MarketID)
	if !ok && t.MarketID != "" {
		return &queries.TradePage{}, nil
	}
	t.MarketID = own
	read := func(ctx context.Context, call upstream.Call, a market.Address) (*queries.TradePage, error) {
		return q.Reader.Trades(ctx, call, a, t)
	}
	return readOne(ctx, q, call, a, read, renamed)
}

func (q *qualified) History(ctx context.Context, call upstream.Call, a market.Address, h queries.History) (*queries.HistoryPage, error) {
	read := func(ctx context.Context, call upstream.Call, a market.Address) (*queries.HistoryPage, error) {
		return q.Reader.History(ctx, call, a, h)
	}
	return readOne(ctx, q, call, a, read, renamed)
}
