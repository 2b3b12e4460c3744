package polymarket

import (
	"context"
	"errors"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldTimestamp = wire.NewField("timestamp", "t")
	fieldHistory   = wire.NewField("history")
)

var (
	errForm    = errors.New("the response does not have the expected form")
	errCrossed = errors.New("the best bid is above the best ask")
)

// readMidpoints reads {token: midpoint}. If a side of a token's book is empty, the token has no midpoint.
func readMidpoints(payload wire.Value, note func(string)) (rest.Values[market.Price], error) {
	members := payload.Members()
	if members == nil {
		return nil, errForm
	}
	out := make(rest.Values[market.Price], len(members))
	for id, v := range members {
		if v.IsNull() || v.Is("") {
			continue
		}
		r := &wire.Row{Note: note}
		r.Set(wire.FieldPrice, v)
		id = market.Intern(id)
		out.Put(id, &market.Price{TokenID: id, Price: r.Price(wire.FieldPrice), Basis: market.BasisMidpoint}, r)
	}
	return out, nil
}

// readLastTrades reads [{token_id,price,side}]. A token that never traded has the side "" and a meaningless price.
func readLastTrades(payload wire.Value, note func(string)) (rest.Values[market.Price], error) {
	return readTokens(payload, note, func(r *wire.Row, id string) *market.Price {
		p := &market.Price{TokenID: id, Price: r.Price(wire.FieldPrice), Basis: market.BasisLast}
		if r.Text(wire.FieldSide) == "" {
			return nil
		}
		return p
	})
}

func readBooks(payload wire.Value, note func(string)) (rest.Values[market.Book], error) {
	return readTokens(payload, note, readBook)
}

// readBook reads an order book. Polymarket sends whole books, so one book can serve queries of every depth.
func readBook(r *wire.Row, id string) *market.Book {
	b := &market.Book{
		TokenID: id, Timestamp: r.Time(fieldTimestamp), Hash: r.Text(wire.FieldHash), Depth: queries.MaxBookDepth,
	}
	b.Bids, b.Asks = r.Levels()
	if bid, ask := b.BestBid(), b.BestAsk(); bid != nil && ask != nil && bid.Cmp(*ask) > 0 && r.Err == nil {
		r.Note("crossed book")
		r.Err = errCrossed
	}
	b.Spread = b.Width()
	return b.Cut(queries.MaxBookDepth)
}

func readTokens[T any](payload wire.Value, note func(string), read func(r *wire.Row, id string) *T) (rest.Values[T], error) {
	if payload.Kind() != wire.List {
		return nil, errForm
	}
	return rest.ReadByID(payload.Elements(), wire.FieldTokenID, note, read), nil
}

// readPoints reads [{t,p}] and returns the points of the UTC days in a period, oldest first.
func readPoints(list []wire.Value, from, to market.Date, note func(string)) ([]market.PricePoint, rest.RowErrors) {
	points, bad := rest.ReadRows(list, note, func(r *wire.Row) market.PricePoint {
		return market.PricePoint{Timestamp: r.RequireTime(fieldTimestamp), Price: r.Price(wire.FieldPrice)}
	})
	return rest.PointsOfDays(points, from, to, func(string) {}), bad
}

// lookup returns a rest.Lookup that passes lists of ids to the function read. If Polymarket refuses a list because of one of the
// ids, the rest.Lookup reads the halves of the list separately. An id that Polymarket does not know alone has no result.
func lookup[T any](c *rest.Client, e upstream.Endpoint, batch int, isID func(string) bool, read func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[T], error)) rest.Lookup[T] {
	return rest.Lookup[T]{
		Client: c, Endpoint: e, Batch: batch, IsID: isID, Halve: rest.Refused,
		Call: func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[T], error) {
			got, err := read(ctx, call, ids, note)
			if len(ids) == 1 && market.CodeOf(err) == market.CodeNotFound {
				return nil, nil
			}
			return got, err
		},
	}
}

func formError(e upstream.Endpoint, err error) error {
	if err == nil {
		return nil
	}
	return rest.UnknownForm(e, err.Error())
}
