package kalshi

import (
	"context"
	"slices"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// history contains the prices of a market's YES token, oldest first.
type history struct {
	points  []market.PricePoint
	leftOut market.LeftOut
}

// PriceHistories returns the prices of tokens on UTC days, oldest first. A point is the last trade of a period. The period is a
// minute in a query for one day, an hour in a query for up to 31 days, and a day in other queries. Queries for the same days share
// calls. The Value is nil if the venue does not know the token.
func (d *Driver) PriceHistories(ctx context.Context, list []queries.PriceHistory) ([]market.Result[*market.PriceHistory], error) {
	return rest.ReadHistories(list, func(from, to market.Date, ids []string) ([]market.Result[*market.PriceHistory], error) {
		return readTokens(ctx, d.histories(from, to), ids, func(i int, t token, h *history) *market.PriceHistory {
			return &market.PriceHistory{TokenID: wire.Intern(ids[i]), From: from, To: to, Points: points(h.points, t.side), LeftOut: h.leftOut}
		})
	})
}

// histories returns a lookup that reads candlesticks of UTC days. If a response lacks a market, the lookup reads the market's
// candlesticks from the archive with a further call.
func (d *Driver) histories(from, to market.Date) rest.Lookup[history] {
	const e = reqctx.EndpointPriceHistory
	days := int(to-from) + 1
	period := periodOf(days)
	candles := days * periodDay / period // for each market
	setSpan := func(rq *rest.Request) {
		rq.Query.Set("start_ts", strconv.FormatInt(from.Start().Unix()+1, 10)).Set("end_ts", strconv.FormatInt((to+1).Start().Unix(), 10)).
			Set("period_interval", strconv.Itoa(period))
	}
	return rest.Lookup[history]{Client: d.client, Endpoint: e, Batch: max(min(maxBilled, maxCandles/candles), 1), IsID: isTicker,
		Call: func(ctx context.Context, tickers []string, note func(string)) (rest.Values[history], error) {
			rq := &rest.Request{Endpoint: e, Keys: len(tickers)}
			rq.Query.List("market_tickers", tickers)
			setSpan(rq)
			payload, err := d.client.Get(ctx, rq)
			if err != nil {
				return nil, err
			}
			rows, ok := payload.Member("markets").List()
			if !ok {
				return nil, rest.UnknownForm(e, "no list of markets")
			}
			found := make(rest.Values[history], len(tickers))
			for _, v := range rows {
				ticker, _ := fieldMarketTicker.Of(v).ID()
				found[ticker] = readHistory(v, note)
			}
			for _, ticker := range unread(tickers, found) {
				rq := &rest.Request{Endpoint: e, Path: pathArchive + "/" + ticker + "/candlesticks", Keys: 1}
				setSpan(rq)
				payload, err := d.client.Get(ctx, rq)
				if err = rest.NilIfNotFound(err); err != nil {
					found[ticker] = market.Result[*history]{Err: err}
				} else if !payload.IsNull() {
					found[ticker] = readHistory(payload, note)
				}
			}
			return found, nil
		}}
}

// readHistory reads the candlesticks of one market. A candlestick without a trade yields no point. Unreadable candlesticks are
// reported in leftOut.
func readHistory(v wire.Value, note func(string)) market.Result[*history] {
	const e = reqctx.EndpointPriceHistory
	list, ok := fieldCandles.Of(v).List()
	if !ok {
		return market.Result[*history]{Err: rest.UnknownForm(e, "no list of candlesticks")}
	}
	rows, bad := rest.ReadRows(list, note, func(r *wire.Row) *market.PricePoint {
		if p, ok := readCandle(r); ok {
			return &p
		}
		return nil
	})
	h := &history{points: make([]market.PricePoint, 0, len(rows)), leftOut: bad.LeftOut(e)}
	for _, p := range rows {
		if p != nil {
			h.points = append(h.points, *p)
		}
	}
	slices.SortStableFunc(h.points, func(a, b market.PricePoint) int { return a.Timestamp.Compare(b.Timestamp) })
	return market.Result[*history]{Value: h}
}
