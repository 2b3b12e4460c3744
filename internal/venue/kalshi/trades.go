package kalshi

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// maxTrades is the greatest number of trades on a page. Kalshi allows 1000.
const maxTrades = 100

// MarketTrades returns one page of the trades of a market. If q has a token, each trade has the price and the side for this token.
// If q has no token, each trade is a purchase of the outcome that the taker bought. If q.EveryToken is set, the page lists each trade
// for both tokens. If q.MarketID is not a ticker, or the token is not of this market, the page is empty.
//
// Kalshi moves trades to an archive when they are about three months old. So after the last page of the list of trades, the pages
// of the archive follow. A page may be empty although there is a next page.
func (d *Driver) MarketTrades(ctx context.Context, call upstream.Call, q queries.MarketTrades) (*queries.TradePage, error) {
	const e = upstream.EndpointMarketTrades
	ticker, _, isToken := parseToken(q.TokenID)
	var at position
	if err := rest.ParsePage(e, q.Page, &at); err != nil {
		return nil, err
	}
	switch {
	case q.Limit < 0 || q.Limit > maxTrades:
		return nil, rest.BadInput(e, "a page has 1 to 100 rows")
	case !isTicker(q.MarketID), q.TokenID != "" && (!isToken || ticker != q.MarketID):
		return &queries.TradePage{}, rest.CheckID(e, q.MarketID)
	}
	return rest.WithBackoff(d.Client, e, q.MarketID+" "+q.Page, func() (*queries.TradePage, error) { return d.trades(ctx, call, at, q) })
}

// trades reports unreadable trades and trades of other markets in LeftOut. If the page has only such trades, the error is
// UPSTREAM_BAD_RESPONSE.
func (d *Driver) trades(ctx context.Context, call upstream.Call, at position, q queries.MarketTrades) (*queries.TradePage, error) {
	const e = upstream.EndpointMarketTrades
	p, err := readPage(ctx, d, call, tradesRequest(q, at), fieldTrades, func(r *wire.Row) [2]market.Trade {
		both := readTrade(r)
		if both[yes].MarketID != q.MarketID {
			r.Fail(fieldMarketTicker, "is the ticker of another market")
		}
		return both
	})
	rows := p.rows
	switch {
	case at.Archived && market.CodeOf(err) == market.CodeNotFound:
		return &queries.TradePage{}, nil // the archive has no trade of this market
	case err != nil:
		return nil, rest.BadIfNotFound(e, err)
	case len(rows) == 0 && len(p.bad) > 0:
		return nil, rest.UnknownForm(e, p.bad.WhyEmpty())
	case at.Archived && !at.Oldest.IsZero(): // the archive also has the last trades of the list
		rows = slices.DeleteFunc(rows, func(both [2]market.Trade) bool { return !both[yes].Timestamp.Before(at.Oldest) })
	case !at.Archived && len(rows) > 0:
		at.Oldest = rows[len(rows)-1][yes].Timestamp // the venue sends the newest trade first
	}
	page := &queries.TradePage{LeftOut: p.bad.LeftOut(e), Next: at.next(rest.NextCursor(p.cursor, at.Cursor))}
	_, shown, isToken := parseToken(q.TokenID)
	for _, both := range rows {
		switch {
		case q.EveryToken:
			page.Trades = append(page.Trades, both[:]...)
		case !isToken && both[no].Side == market.SideBuy:
			page.Trades = append(page.Trades, both[no])
		default: // without a token, shown is yes
			page.Trades = append(page.Trades, both[shown])
		}
	}
	return page, nil
}

// tradesRequest returns the request for a page. In the archive, it asks for trades up to one second after the oldest trade on the
// earlier pages, because the parameter has whole seconds, and it is not documented whether it includes the time itself.
func tradesRequest(q queries.MarketTrades, at position) *rest.Request {
	rq := &rest.Request{Endpoint: upstream.EndpointMarketTrades, Keys: 1}
	rq.Query.Set("ticker", q.MarketID)
	if at.Archived {
		rq.Path = pathArchivedTrades
		if !at.Oldest.IsZero() {
			rq.Query.Set("max_ts", unix(at.Oldest.Add(time.Second)))
		}
	}
	rq.Query.Set("limit", strconv.Itoa(cmp.Or(q.Limit, maxTrades))).Set("cursor", at.Cursor)
	return rq
}

var (
	fieldTrades       = wire.NewField("trades")
	fieldTradeID      = wire.NewField("trade_id")
	fieldMarketTicker = wire.NewField("market_ticker", "ticker").Interned()
	fieldCount        = wire.NewField("count_fp", "count")
	fieldYesPrice     = wire.NewField("yes_price_dollars")
	fieldTaker        = wire.NewField("taker_outcome_side", "taker_side").Interned()
	fieldTime         = wire.NewField("ts_ms", "created_time", "ts", "time")
)

// readTrade reads a trade of a market. A purchase of one outcome at p is a sale of the other outcome at 1 − p. So readTrade returns
// a trade for each token. Both trades have the venue's id of the trade. The trade of the outcome that the taker bought has the
// ordinal 0, and the other trade has the ordinal 1. If the venue does not say which outcome the taker bought, both trades have the
// side SideUnknown, and the trade of YES has the ordinal 0.
func readTrade(r *wire.Row) (trades [2]market.Trade) {
	ticker := r.RequireID(fieldMarketTicker)
	t := market.Trade{
		TradeID: r.RequireID(fieldTradeID), MarketID: ticker, Size: r.Size(fieldCount), Timestamp: r.RequireTime(fieldTime),
		SideRaw: r.RequireText(fieldTaker),
	}
	price, taker := r.Price(fieldYesPrice), yes
	if t.SideRaw == suffixes[no][1:] {
		taker = no
	}
	for _, s := range sides {
		t.TokenID, t.Outcome, t.Price = s.token(ticker), labels[s], s.price(price)
		t.Side, t.Ordinal = market.SideBuy, 0
		if s != taker {
			t.Side, t.Ordinal = market.SideSell, 1
		}
		if t.SideRaw != suffixes[taker][1:] {
			t.Side = market.SideUnknown
		}
		trades[s] = t
	}
	return trades
}

// position is the start of a page in a list that continues in the archive. Kalshi moves trades, and settled markets, to an archive
// when they are about three months old.
type position struct {
	Archived bool `json:"a,omitempty"`
	// Oldest is the time of the oldest trade on the earlier pages of the list. It is zero if there is none, and in lists of markets.
	Oldest time.Time `json:"o,omitzero"`
	// Cursor is the venue's cursor. It is empty at the start of the list, and at the start of the archive.
	Cursor string `json:"c,omitempty"`
}

// next returns the token of the next page, or "". cursor is the venue's, or "" at the end of the list or of the archive.
func (p position) next(cursor string) string {
	if cursor == "" && p.Archived {
		return ""
	}
	p.Archived, p.Cursor = p.Archived || cursor == "", cursor
	return rest.PageToken(p)
}
