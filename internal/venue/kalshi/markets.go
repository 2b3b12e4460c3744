package kalshi

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// byTicker returns a lookup of markets by ticker. It reads the markets that are not in Kalshi's list from the archive.
func byTicker[T any](d *Driver, e upstream.Endpoint, read func(*wire.Row) *T) rest.Lookup[T] {
	return rest.Lookup[T]{Client: d.Client, Endpoint: e, Batch: maxTickers, IsID: isTicker, Call: func(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[T], error) {
		found := make(rest.Values[T], len(tickers))
		for _, path := range []string{pathMarkets, pathArchive} {
			missing := found.Missing(tickers)
			if len(missing) == 0 {
				break
			}
			rq := &rest.Request{Endpoint: e, Path: path, Keys: len(missing)}
			rq.Query.List("tickers", missing).Set("limit", strconv.Itoa(len(missing)))
			list, _, err := d.getMarkets(ctx, call, rq)
			if err != nil {
				if len(found) == 0 {
					return nil, err
				}
				for _, ticker := range missing { // the archive has failed, but the list had other markets
					found[ticker] = upstream.Result[*T]{Err: rest.BadIfNotFound(e, err)}
				}
				break
			}
			maps.Copy(found, rest.ReadByID(list, fieldTicker, note, func(r *wire.Row, _ string) *T { return read(r) }))
		}
		return found, nil
	}}
}

func (d *Driver) getMarkets(ctx context.Context, call upstream.Call, rq *rest.Request) (list []wire.Value, payload wire.Value, err error) {
	if payload, err = d.Get(ctx, call, rq); err != nil {
		return nil, payload, err
	}
	list, ok := payload.Member("markets").List()
	if !ok {
		return nil, payload, rest.UnknownForm(rq.Endpoint, "no list of markets")
	}
	return list, payload, nil
}

func marketOf(r *wire.Row) *market.Market { return readMarket(r, nil) }

func quoteOf(r *wire.Row) *quote { return new(readQuote(r)) }

// MarketsByID returns a result for each ticker, in the order of ids. The Value is nil if the venue does not know the market.
func (d *Driver) MarketsByID(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Market], error) {
	return byTicker(d, upstream.EndpointMarketsByID, marketOf).Read(ctx, call, ids)
}

// MarketsByToken returns the market of each token, in the order of tokenIDs.
func (d *Driver) MarketsByToken(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Market], error) {
	return readTokens(ctx, call, byTicker(d, upstream.EndpointMarketsByToken, marketOf), tokenIDs, func(_ int, _ token, m *market.Market) *market.Market { return m })
}

// MarketBySlug returns the market whose ticker is the slug in upper case. It returns nil if the venue does not know the market.
func (d *Driver) MarketBySlug(ctx context.Context, call upstream.Call, s string) (*market.Market, error) {
	ticker := strings.ToUpper(s)
	if slug(ticker) != s || !isTicker(ticker) {
		return nil, rest.CheckID(upstream.EndpointMarketBySlug, s)
	}
	results, err := byTicker(d, upstream.EndpointMarketBySlug, marketOf).Read(ctx, call, []string{ticker})
	return results[0].Value, cmp.Or(err, results[0].Err)
}

// Prices returns the price of each token, in the order of tokenIDs. One call returns the prices of both tokens of a market. The
// Value of a result is nil if the token has none of the prices that quote.price lists, or if the venue does not know the token.
func (d *Driver) Prices(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Price], error) {
	return readTokens(ctx, call, byTicker(d, upstream.EndpointPrices, quoteOf), tokenIDs, func(_ int, t token, q *quote) *market.Price { return q.price(t.ticker, t.side) })
}

// Spreads returns the best prices of each token, in the order of tokenIDs.
func (d *Driver) Spreads(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Spread], error) {
	return readTokens(ctx, call, byTicker(d, upstream.EndpointSpreads, quoteOf), tokenIDs, func(_ int, t token, q *quote) *market.Spread { return q.spread(t.ticker, t.side) })
}
