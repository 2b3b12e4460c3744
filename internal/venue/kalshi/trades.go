package kalshi

import (
	"cmp"
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// maxTrades is the greatest number of trades on a page. Kalshi allows 1000.
const maxTrades = 100

// MarketTrades returns one page of the trades of a market. If q has a token, each trade has the price and the side for this token.
// If q has no token, each trade is a purchase of the outcome that the taker bought. If q.MarketID is not a ticker, or the token is
// not of this market, the page is empty.
func (d *Driver) MarketTrades(ctx context.Context, q queries.MarketTrades) (*queries.TradePage, error) {
	const e = reqctx.EndpointMarketTrades
	ticker, s, ok := parseToken(q.TokenID)
	switch {
	case len(q.Page) > maxCursor || q.Limit < 0 || q.Limit > maxTrades:
		return nil, rest.BadInput(e, "a page has 1 to 100 rows and a cursor of this service")
	case !isTicker(q.MarketID), q.TokenID != "" && (!ok || ticker != q.MarketID):
		return &queries.TradePage{}, rest.CheckID(e, q.MarketID)
	}
	rq := &rest.Request{Endpoint: e, Keys: 1}
	rq.Query.Set("ticker", q.MarketID).Set("limit", strconv.Itoa(cmp.Or(q.Limit, maxTrades))).Set("cursor", q.Page)
	return rest.WithBackoff(d.client, e, rq.Query.String(), func() (*queries.TradePage, error) {
		page, rows, err := d.trades(ctx, rq, q)
		for _, both := range rows {
			shown := s
			if q.TokenID == "" && both[no].Side == market.SideBuy { // without a token, s is yes
				shown = no
			}
			page.Trades = append(page.Trades, both[shown])
		}
		return page, err
	})
}

// trades requests a page. It returns two trades for each trade of the venue, one for each outcome; see readTrade. It reports
// unreadable trades and trades of other markets in LeftOut. If the page has only such trades, the error is UPSTREAM_BAD_RESPONSE.
func (d *Driver) trades(ctx context.Context, rq *rest.Request, q queries.MarketTrades) (*queries.TradePage, [][2]market.Trade, error) {
	payload, err := d.client.Get(ctx, rq)
	if err != nil {
		return nil, nil, rest.BadIfNotFound(rq.Endpoint, err)
	}
	list, ok := payload.Member("trades").List()
	if !ok {
		return nil, nil, rest.UnknownForm(rq.Endpoint, "no list of trades")
	}
	var n rest.Drift
	defer func() { d.client.Report(rq.Endpoint, n) }()
	rows, bad := rest.ReadRows(list, n.Add, func(r *wire.Row) [2]market.Trade {
		both := readTrade(r)
		if both[yes].MarketID != q.MarketID {
			r.Fail(fieldMarketTicker, "is the ticker of another market")
		}
		return both
	})
	if len(rows) == 0 && len(bad) > 0 {
		return nil, nil, rest.UnknownForm(rq.Endpoint, bad.WhyEmpty())
	}
	page := &queries.TradePage{LeftOut: bad.LeftOut(rq.Endpoint), Next: nextCursor(payload, q.Page)}
	return page, rows, nil
}
