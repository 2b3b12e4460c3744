package kalshi

import (
	"cmp"
	"context"
	"net/http"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// Books returns the book of each query, in the order of the queries. One call returns the books of both tokens of a market. It is
// signed if the driver has a key. Each book has up to queries.MaxBookDepth levels a side, even if the query asks for fewer levels. The
// Value of a result is nil if the venue does not know the token.
func (d *Driver) Books(ctx context.Context, call upstream.Call, list []queries.Book) ([]upstream.Result[*market.Book], error) {
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.TokenID
	}
	l := rest.Lookup[bids]{Client: d.Client, Endpoint: upstream.EndpointBook, Batch: 1, IsID: isTicker, Call: d.readBids}
	return readTokens(ctx, call, l, ids, func(_ int, t token, b *bids) *market.Book { return b.book(t.ticker, t.side, queries.MaxBookDepth) })
}

func (d *Driver) readBids(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[bids], error) {
	rq := &rest.Request{Endpoint: upstream.EndpointBook, Path: pathMarkets + "/" + tickers[0] + "/orderbook", Keys: 1}
	if d.key != nil {
		rq.Sign = func(method, path string) http.Header {
			h, _ := d.key.Headers(method, path, d.Now()) // if the call cannot be signed, the venue may still answer
			return h
		}
	}
	payload, err := d.Get(ctx, call, rq)
	if err != nil || payload.IsNull() {
		return nil, rest.NilIfNotFound(err)
	}
	r := wire.NewRow(payload, note)
	book := r.Child(r.Of(fieldBook))
	b, found := readBids(book, false), rest.Values[bids]{}
	r.Err = cmp.Or(r.Err, book.Err)
	found.Put(tickers[0], &b, r)
	return found, nil
}

var fieldBook = wire.NewField("orderbook_fp")
