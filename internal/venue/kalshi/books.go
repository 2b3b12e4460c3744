package kalshi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// Books returns the book of each query, in the order of the queries. One read of a market returns the books of both tokens. Each
// book has up to queries.MaxBookDepth levels a side, even if the query asks for fewer levels. The Value of a result is nil if the
// venue does not know the token.
//
// Kalshi documents that a call for several books needs a key. So without a key, or after the venue has refused the key, Books makes
// a call for each market.
func (d *Driver) Books(ctx context.Context, call upstream.Call, list []queries.Book) ([]upstream.Result[*market.Book], error) {
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.TokenID
	}
	l := rest.Lookup[bids]{Client: d.client, Endpoint: upstream.EndpointBook, Batch: d.MaxKeys(upstream.EndpointBook), IsID: isTicker, Call: d.readBooks}
	return readTokens(ctx, call, l, ids, func(_ int, t token, b *bids) *market.Book { return b.book(t.ticker, t.side, queries.MaxBookDepth) })
}

// readBooks reads the bids of several markets. Kalshi sends an empty book for an unknown ticker. So readBooks looks up the markets
// of empty books to find out whether these markets exist.
func (d *Driver) readBooks(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[bids], error) {
	found, err := d.readBids(ctx, call, tickers, note)
	if err != nil {
		return nil, err
	}
	var empty []string
	for _, ticker := range tickers {
		if b := found[ticker].Value; b != nil && b.empty() {
			empty = append(empty, ticker)
		}
	}
	if len(empty) == 0 {
		return found, nil
	}
	known, err := byTicker(d, upstream.EndpointMarketsByID, quoteOf).Read(ctx, call, empty)
	if err != nil {
		return nil, err
	}
	for i, ticker := range empty {
		switch r := known[i]; {
		case r.Err != nil:
			found[ticker] = upstream.Result[*bids]{Err: r.Err}
		case r.Value == nil:
			delete(found, ticker)
		}
	}
	return found, nil
}

// readBids reads the bids of several markets with one signed call if the driver has a key. Otherwise, or if the venue refuses the
// key, it makes an unsigned call for each market.
func (d *Driver) readBids(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[bids], error) {
	if d.signs() {
		found, err := d.readList(ctx, call, tickers, note)
		if !refusesKey(err) {
			return found, err
		}
		d.refuseKey()
	}
	return d.readSingly(ctx, call, tickers, note)
}

// keyPause is the time for which the driver does not use a key that the venue has refused.
const keyPause = 10 * time.Minute

// signs reports whether the driver has a key that the venue has not refused recently.
func (d *Driver) signs() bool {
	until := d.refusedUntil.Load()
	return d.key != nil && (until == nil || !d.client.Now().Before(*until))
}

func (d *Driver) refuseKey() {
	until := d.client.Now().Add(keyPause)
	d.refusedUntil.Store(&until)
	d.client.Log().Warn("the venue refuses the API key: order books are read one by one, without the key", "until", until)
}

// refusesKey reports whether err is a response with the status 401 or 403.
func refusesKey(err error) bool {
	why, ok := errors.AsType[*rest.CallFailure](err)
	return ok && (why.Status == http.StatusUnauthorized || why.Status == http.StatusForbidden)
}

func (d *Driver) sign(method, path string) http.Header {
	h, err := d.key.Headers(method, path, d.client.Now())
	if err != nil {
		return nil // the venue refuses the call, and the driver reads the books without the key
	}
	return h
}

func (d *Driver) readSingly(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[bids], error) {
	const e = upstream.EndpointBook
	found := make(rest.Values[bids], len(tickers))
	var errs []error
	for _, ticker := range tickers {
		payload, err := d.client.Get(ctx, call, &rest.Request{Endpoint: e, Path: pathMarkets + "/" + ticker + "/orderbook", Keys: 1})
		if err = rest.NilIfNotFound(err); err != nil {
			found[ticker] = upstream.Result[*bids]{Err: err}
		} else if !payload.IsNull() {
			found[ticker] = readBook(wire.NewRow(payload, note))
		}
		errs = append(errs, err)
	}
	if err := rest.ErrorIfAllFailed(errs); err != nil {
		return nil, err
	}
	return found, nil
}

// readBook reads the bids of a row of a list, or of a response with one book. The result is the error of a bad element if they are
// missing or unreadable.
func readBook(r *wire.Row) upstream.Result[*bids] {
	book := r.Child(r.Of(fieldBook))
	b := readBids(book, false)
	err := r.Err
	if err == nil {
		err = book.Err
	}
	if err != nil {
		r.Note("bad element")
		return upstream.Result[*bids]{Err: rest.BadElement(upstream.EndpointBook, err)}
	}
	return upstream.Result[*bids]{Value: &b}
}

// readList reads the bids of several markets with a signed call.
func (d *Driver) readList(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[bids], error) {
	const e = upstream.EndpointBook
	rq := &rest.Request{Endpoint: e, Keys: len(tickers), Sign: d.sign}
	for _, t := range tickers {
		rq.Query.Set("tickers", t) // this endpoint would read a list with commas as one ticker
	}
	payload, err := d.client.Get(ctx, call, rq)
	if err != nil {
		return nil, err
	}
	rows, ok := payload.Member("orderbooks").List()
	if !ok {
		return nil, rest.UnknownForm(e, "no list of order books")
	}
	found := make(rest.Values[bids], len(tickers))
	for _, v := range rows {
		r := wire.NewRow(v, note)
		found[r.RequireID(fieldTicker)] = readBook(r)
	}
	return found, nil
}

var fieldBook = wire.NewField("orderbook_fp")
