package polymarket

import (
	"context"
	"encoding/json"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

type tokenReader[T any] func(payload wire.Value, note func(string)) (rest.Values[T], error)

// tokenLookup returns a lookup that sends [{"token_id":…}] to a path. If it is empty, the path is that of the endpoint.
func tokenLookup[T any](d *Driver, e upstream.Endpoint, path string, read tokenReader[T]) rest.Lookup[T] {
	return lookup(d.clob, e, maxTokens, isToken,
		func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[T], error) {
			type token struct {
				ID string `json:"token_id"`
			}
			list := make([]token, len(ids))
			for i, id := range ids {
				list[i].ID = id
			}
			payload, err := d.clob.Get(ctx, call, &rest.Request{Endpoint: e, Path: path, Keys: len(ids), Body: body(list)})
			if err != nil {
				return nil, err
			}
			got, err := read(payload, note)
			return got, formError(e, err)
		})
}

func body(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of this package can always be encoded
	}
	return b
}

// Prices returns the prices of tokens. A price is the midpoint, or the price of the last trade if a side of the book is empty. If a
// token has neither price, the Value of the result is nil.
func (d *Driver) Prices(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Price], error) {
	const e = upstream.EndpointPrices
	results, err := tokenLookup(d, e, "", readMidpoints).Read(ctx, call, tokenIDs)
	if err != nil {
		return results, err
	}
	var missing []int
	var ids []string
	for i, r := range results {
		if r.Value == nil && r.Err == nil && isToken(tokenIDs[i]) {
			missing, ids = append(missing, i), append(ids, tokenIDs[i])
		}
	}
	last, _ := tokenLookup(d, e, pathLastTrades, readLastTrades).Read(ctx, call, ids)
	for n, i := range missing {
		results[i] = last[n]
	}
	return results, nil
}

// Spreads returns the best prices of tokens, from their order books. The Value of a token without a book is nil.
func (d *Driver) Spreads(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Spread], error) {
	return tokenLookup(d, upstream.EndpointSpreads, "", func(payload wire.Value, note func(string)) (rest.Values[market.Spread], error) {
		return readTokens(payload, note, func(r *wire.Row, id string) *market.Spread { return rest.SpreadOf(readBook(r, id)) })
	}).Read(ctx, call, tokenIDs)
}

// Books returns the order books of tokens. Each book has up to queries.MaxBookDepth levels a side, even if the query asks for
// fewer. The Value of a token without a book is nil.
func (d *Driver) Books(ctx context.Context, call upstream.Call, list []queries.Book) ([]upstream.Result[*market.Book], error) {
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.TokenID
	}
	return d.wholeBooks(ctx, call, ids)
}

type historyRequest struct {
	Markets []string `json:"markets"`
	Start   int64    `json:"start_ts"`
	End     int64    `json:"end_ts"`
	// Fidelity is the least number of minutes between two points.
	Fidelity int `json:"fidelity"`
}

// PriceHistories returns the prices of tokens on UTC days, oldest first. The number of days determines the time between two
// points; see fidelity. Points have no volume. Queries for the same days share calls. The Value of an unknown token is nil.
func (d *Driver) PriceHistories(ctx context.Context, call upstream.Call, list []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error) {
	return rest.ReadHistories(list, func(from, to market.Date, ids []string) ([]upstream.Result[*market.PriceHistory], error) {
		return d.histories(from, to).Read(ctx, call, ids)
	})
}

func (d *Driver) histories(from, to market.Date) rest.Lookup[market.PriceHistory] {
	const e = upstream.EndpointPriceHistory
	return lookup(d.clob, e, maxHistories, isToken,
		func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[market.PriceHistory], error) {
			payload, err := d.clob.Get(ctx, call, &rest.Request{Endpoint: e, Keys: len(ids), Body: body(historyRequest{
				Markets: ids, Start: from.Start().Unix(), End: (to + 1).Start().Add(-time.Second).Unix(), Fidelity: fidelity(from, to),
			})})
			if err != nil {
				return nil, err
			}
			got, err := readHistories(payload, from, to, note)
			return got, formError(e, err)
		})
}

func fidelity(from, to market.Date) int {
	switch days := to - from + 1; {
	case days <= 2:
		return 5
	case days <= 7:
		return 15
	case days <= 31:
		return 60
	default:
		return 24 * 60
	}
}

// readHistories reads {history:{token:[{t,p}]}}.
func readHistories(payload wire.Value, from, to market.Date, note func(string)) (rest.Values[market.PriceHistory], error) {
	members := fieldHistory.Of(payload).Members()
	if members == nil {
		return nil, errForm
	}
	out := make(rest.Values[market.PriceHistory], len(members))
	for id, v := range members {
		list, ok := v.List()
		switch {
		case v.IsNull():
			continue
		case !ok:
			note("bad element")
			out[id] = upstream.Result[*market.PriceHistory]{Err: errForm}
			continue
		}
		points, bad := readPoints(list, from, to, note)
		h := &market.PriceHistory{TokenID: market.Intern(id), From: from, To: to, Points: points, LeftOut: bad.LeftOut(upstream.EndpointPriceHistory)}
		if len(points) == 0 && len(bad) > 0 {
			out[id] = upstream.Result[*market.PriceHistory]{Err: rest.UnknownForm(upstream.EndpointPriceHistory, bad.WhyEmpty())}
			continue
		}
		out[id] = upstream.Result[*market.PriceHistory]{Value: h}
	}
	return out, nil
}
