package kalshi

import (
	"cmp"
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// Books returns the book of each query, in the order of the queries. One call returns the books of both tokens of a market. Each
// book has up to queries.MaxBookDepth levels a side, even if the query asks for fewer levels. The Value of a result is nil if the
// venue does not know the token.
func (d *Driver) Books(ctx context.Context, list []queries.Book) ([]market.Result[*market.Book], error) {
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.TokenID
	}
	l := rest.Lookup[bids]{Client: d.client, Endpoint: reqctx.EndpointBook, Batch: maxBilled, IsID: isTicker, Call: d.readBooks}
	return readTokens(ctx, l, ids, func(_ int, t token, b *bids) *market.Book { return b.book(t.ticker, t.side, queries.MaxBookDepth) })
}

// readBooks reads the bids of several markets. Kalshi sends an empty book for an unknown ticker. So readBooks looks up the markets
// of empty books to find out whether these markets exist.
func (d *Driver) readBooks(ctx context.Context, tickers []string, note func(string)) (rest.Values[bids], error) {
	const e = reqctx.EndpointBook
	rq := &rest.Request{Endpoint: e, Keys: len(tickers)}
	for _, t := range tickers {
		rq.Query.Set("tickers", t) // this endpoint would read a list with commas as one ticker
	}
	payload, err := d.client.Get(ctx, rq)
	if err != nil {
		return nil, err
	}
	rows, ok := payload.Member("orderbooks").List()
	if !ok {
		return nil, rest.UnknownForm(e, "no list of order books")
	}
	found := make(rest.Values[bids], len(tickers))
	var empty []string
	for _, v := range rows {
		r := wire.NewRow(v, note)
		ticker := r.RequireID(fieldTicker)
		book := r.Child(r.Of(fieldBook))
		b := readBids(book, false)
		switch {
		case r.Err != nil || book.Err != nil:
			note("bad element")
			found[ticker] = market.Result[*bids]{Err: rest.BadElement(e, cmp.Or(r.Err, book.Err))}
		case b.empty():
			empty = append(empty, ticker)
		default:
			found[ticker] = market.Result[*bids]{Value: &b}
		}
	}
	if len(empty) == 0 {
		return found, nil
	}
	known, err := byTicker(d, reqctx.EndpointMarketsByID, quoteOf).Read(ctx, empty)
	if err != nil {
		return nil, err
	}
	for i, ticker := range empty {
		switch r := known[i]; {
		case r.Err != nil:
			found[ticker] = market.Result[*bids]{Err: r.Err}
		case r.Value != nil:
			found[ticker] = market.Result[*bids]{Value: new(bids)}
		}
	}
	return found, nil
}

var fieldBook = wire.NewField("orderbook_fp")
