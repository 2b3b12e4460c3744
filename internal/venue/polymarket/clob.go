package polymarket

import (
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
	errForm     = errors.New("the response does not have the expected form")
	errOtherIDs = errors.New("the response is about other ids")
	errCrossed  = errors.New("the best bid is above the best ask")
)

// readMidpoints reads {token: midpoint}. If a side of a token's book is empty, the token has no midpoint.
func readMidpoints(payload wire.Value, requested []string, note func(string)) (rest.Values[market.Price], error) {
	members := payload.Members()
	if members == nil {
		return nil, errForm
	}
	out := make(rest.Values[market.Price], len(requested))
	for _, id := range requested {
		v := members[id]
		if v.IsNull() || v.Is("") {
			continue
		}
		r := &wire.Row{Note: note}
		r.Set(wire.FieldPrice, v)
		id = wire.Intern(id)
		out.Put(id, &market.Price{TokenID: id, Price: r.Price(wire.FieldPrice), Basis: market.BasisMidpoint}, r)
	}
	if len(out) == 0 && len(members) > 0 {
		return nil, errOtherIDs
	}
	return out, nil
}

// readLastTrades reads [{token_id,price,side}]. If a token never traded, its side is "" and its price is meaningless, so the token
// has no result.
func readLastTrades(payload wire.Value, requested []string, note func(string)) (rest.Values[market.Price], error) {
	return readTokens(payload, requested, note, func(r *wire.Row, id string) *market.Price {
		p := &market.Price{TokenID: id, Price: r.Price(wire.FieldPrice), Basis: market.BasisLast}
		if r.Text(wire.FieldSide) == "" {
			return nil
		}
		return p
	})
}

// readBooks reads a list of order books. A book has at most queries.MaxBookDepth levels on each side, best level first.
func readBooks(payload wire.Value, requested []string, note func(string)) (rest.Values[market.Book], error) {
	return readTokens(payload, requested, note, readBook)
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

// readTokens reads a list of rows that each belong to a token. If read returns nil and the row has no error, the token has no
// result. If a row has no readable id, every requested token without a result gets an error, because this row may belong to the
// token.
func readTokens[T any](payload wire.Value, requested []string, note func(string), read func(r *wire.Row, id string) *T) (rest.Values[T], error) {
	if payload.Kind() != wire.List {
		return nil, errForm
	}
	wanted := make(map[string]bool, len(requested))
	for _, id := range requested {
		wanted[id] = true
	}
	rows := payload.Elements()
	out, answered, nameless := make(rest.Values[T], len(requested)), 0, false
	for _, v := range rows {
		r := wire.NewRow(v, note)
		id, ok := r.Of(wire.FieldTokenID).ID()
		switch {
		case !ok || id == "":
			nameless = true
			note("element without a readable id")
		case wanted[id]:
			answered++
			if value := read(r, id); value != nil || r.Err != nil {
				out.Put(id, value, r)
			}
		}
	}
	if answered == 0 && !nameless && len(rows) > 0 {
		return nil, errOtherIDs
	}
	if nameless {
		for _, id := range out.Missing(requested) {
			out[id] = upstream.Result[*T]{Err: errors.New("an element has no readable id, so it may belong to this id")}
		}
	}
	return out, nil
}

// readPoints reads [{t,p}] and returns the points of the UTC days in a period, oldest first.
func readPoints(list []wire.Value, from, to market.Date, note func(string)) ([]market.PricePoint, rest.RowErrors) {
	points, bad := rest.ReadRows(list, note, func(r *wire.Row) market.PricePoint {
		return market.PricePoint{Timestamp: r.RequireTime(fieldTimestamp), Price: r.Price(wire.FieldPrice)}
	})
	return rest.PointsOfDays(points, from, to, func(string) {}), bad
}
