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

var (
	fieldTicker         = wire.NewField("ticker").Interned()
	fieldEventTicker    = wire.NewField("event_ticker").Interned()
	fieldTitle          = wire.NewField("title")
	fieldYesSubTitle    = wire.NewField("yes_sub_title")
	fieldRulesPrimary   = wire.NewField("rules_primary")
	fieldRulesSecondary = wire.NewField("rules_secondary")
	fieldResult         = wire.NewField("result").Interned()
	fieldOpenTime       = wire.NewField("open_time")
	fieldCloseTime      = wire.NewField("close_time")
	fieldCreatedTime    = wire.NewField("created_time")
	fieldUpdatedTime    = wire.NewField("updated_time")
	fieldSettledAt      = wire.NewField("settlement_ts")
	fieldPriceRanges    = wire.NewField("price_ranges")
	fieldStep           = wire.NewField("step")
)

// statuses maps Kalshi's states of a market to the statuses of the GraphQL API. An inactive market is only paused, so it is still
// open. The result of a determined market is published, but can still be disputed. An amended market has a new result instead of
// the disputed result.
var statuses = map[string]market.Status{
	"initialized": market.StatusUpcoming,
	"active":      market.StatusOpen,
	"inactive":    market.StatusOpen,
	"closed":      market.StatusClosed,
	"disputed":    market.StatusDisputed,
	"determined":  market.StatusResolved,
	"amended":     market.StatusResolved,
	"finalized":   market.StatusResolved,
}

func statusOf(raw string) market.Status { return cmp.Or(statuses[raw], market.StatusUnknown) }

// minOrder is the least number of contracts of an order.
var minOrder = market.NewDecimal(1, -2)

// readMarket reads a market. Its second argument is the event of the market, or nil. readMarket leaves out the volumes, because
// Kalshi's volumes are numbers of contracts, but market.Market has amounts of money.
func readMarket(r *wire.Row, e *eventRow) *market.Market {
	ticker := r.RequireID(fieldTicker)
	m := &market.Market{
		MarketID:       ticker,
		Slug:           slug(ticker),
		Question:       r.Text(fieldTitle),
		GroupItemTitle: r.Text(fieldYesSubTitle),
		Description:    strings.TrimSpace(r.Text(fieldRulesPrimary) + "\n\n" + r.Text(fieldRulesSecondary)),
		StatusRaw:      r.RequireText(wire.FieldStatus),
		StartsAt:       r.Time(fieldOpenTime),
		EndsAt:         r.Time(fieldCloseTime),
		TickSize:       tickSize(r),
		MinOrderSize:   &minOrder,
		EventID:        r.ID(fieldEventTicker),
		CreatedAt:      r.Time(fieldCreatedTime),
		UpdatedAt:      r.Time(fieldUpdatedTime),
	}
	if !isTicker(ticker) {
		r.Fail(fieldTicker, "is not a ticker")
	}
	m.Status, m.AcceptingOrders = statusOf(m.StatusRaw), new(m.StatusRaw == "active")
	m.EventSlug = slug(m.EventID)
	if e != nil {
		m.EventID, m.EventSlug, m.EventTitle, m.Category, m.Tags = e.EventID, e.Slug, e.Title, e.Category, e.tags
		m.Question = cmp.Or(m.Question, e.Title)
	}
	m.Question = cmp.Or(m.Question, m.GroupItemTitle)
	readOutcomes(r, m)
	return m
}

// tickSize returns the step between prices. If the step depends on the price, is missing or is unreadable, tickSize returns nil.
func tickSize(r *wire.Row) *market.Decimal {
	list, ok := r.Of(fieldPriceRanges).List()
	if !ok && !r.Of(fieldPriceRanges).IsNull() {
		r.Unreadable(fieldPriceRanges)
	}
	var step *market.Decimal
	for _, v := range list {
		d, ok := fieldStep.Of(v).Decimal()
		if !ok || step != nil && step.Cmp(d) != 0 {
			return nil
		}
		step = &d
	}
	return step
}

// readOutcomes sets the two outcomes, and the winner and the resolution if the result is published. With the result "scalar", no
// outcome wins: each outcome pays a part of the full payout, and this part is the price of the outcome.
func readOutcomes(r *wire.Row, m *market.Market) {
	q := readQuote(r)
	m.Outcomes = make([]market.Outcome, len(sides))
	for _, s := range sides {
		m.Outcomes[s] = market.Outcome{TokenID: s.token(m.MarketID), Label: labels[s]}
		if p := q.price(m.MarketID, s); p != nil {
			m.Outcomes[s].Price = &p.Price
		}
	}
	if m.Status != market.StatusResolved {
		return
	}
	m.Resolution = &market.Resolution{ResolvedAt: r.Time(fieldSettledAt)}
	for _, s := range sides {
		if strings.EqualFold(r.Text(fieldResult), labels[s]) {
			m.Outcomes[s].Winner, m.Outcomes[s.other()].Winner, m.Resolution.Outcome = new(true), new(false), labels[s]
		}
	}
}

var (
	fieldYesBid          = wire.NewField("yes_bid_dollars")
	fieldYesAsk          = wire.NewField("yes_ask_dollars")
	fieldLastPrice       = wire.NewField("last_price_dollars", "price_dollars")
	fieldSettlementValue = wire.NewField("settlement_value_dollars")
)

// quote contains the prices of a market. All fields are prices of YES.
type quote struct {
	// bid is nil if the book has no bids, and ask is nil if the book has no asks. Both are also nil if the venue's bid is above its
	// ask. last is nil if the market never traded.
	bid, ask, last *market.Decimal
	// settled is the final value of a YES share. It is nil until the market is resolved.
	settled *market.Decimal
}

// readQuote reads the prices of a market or of a ticker frame. If a side of the book is empty, Kalshi sends a bid of 0, or an ask
// of 0 or 1. If the market never traded, Kalshi sends a last price of 0. No order can have the price 0 or 1.
func readQuote(r *wire.Row) *quote {
	traded := func(f wire.Field) *market.Decimal {
		if p := r.Unit(f); p != nil && !p.IsZero() && p.Cmp(one) != 0 {
			return p
		}
		return nil
	}
	q := &quote{bid: traded(fieldYesBid), ask: traded(fieldYesAsk), last: traded(fieldLastPrice)}
	if statusOf(r.Text(wire.FieldStatus)) == market.StatusResolved {
		q.settled = r.Unit(fieldSettlementValue)
	}
	if q.bid != nil && q.ask != nil && q.bid.Cmp(*q.ask) > 0 {
		r.Note("crossed quote")
		q.bid, q.ask = nil, nil
	}
	return q
}

func (q quote) spread(ticker string, s side) *market.Spread {
	out := &market.Spread{TokenID: s.token(ticker), BestBid: q.bid, BestAsk: q.ask}
	if s == no {
		out.BestBid, out.BestAsk = inverse(q.ask), inverse(q.bid)
	}
	out.Spread = out.Width()
	return out
}

// price returns a price of an outcome. It tries, in this order: the settlement value, the midpoint, the last trade, the best price
// of the only side with orders. If none of these prices exists, price returns nil.
func (q quote) price(ticker string, s side) *market.Price {
	p := &market.Price{TokenID: s.token(ticker)}
	switch {
	case q.settled != nil:
		p.Price, p.Basis = s.price(*q.settled), market.BasisSettlement
	case q.last != nil && (q.bid == nil || q.ask == nil):
		p.Price, p.Basis = s.price(*q.last), market.BasisLast
	default:
		var ok bool
		if p.Price, p.Basis, ok = q.spread(ticker, s).Price(); !ok {
			return nil
		}
	}
	return p
}

// lookup returns a lookup of markets by ticker. It reads the markets that are not in Kalshi's list from the archive.
func lookup[T any](d *Driver, e upstream.Endpoint, read func(*wire.Row) *T) rest.Lookup[T] {
	return rest.Lookup[T]{Client: d.Client, Endpoint: e, Batch: maxTickers, IsID: isTicker, Call: func(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[T], error) {
		found := make(rest.Values[T], len(tickers))
		for _, path := range []string{pathMarkets, pathArchive} {
			missing := found.Missing(tickers)
			if len(missing) == 0 {
				break
			}
			rq := &rest.Request{Endpoint: e, Path: path, Keys: len(missing)}
			rq.Query.List("tickers", missing).Set("limit", strconv.Itoa(len(missing)))
			list, _, err := d.list(ctx, call, rq, fieldMarkets)
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

func marketOf(r *wire.Row) *market.Market { return readMarket(r, nil) }

// MarketsByID returns a result for each ticker, in the order of ids. The Value is nil if the venue does not know the market.
func (d *Driver) MarketsByID(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Market], error) {
	return lookup(d, upstream.EndpointMarketsByID, marketOf).Read(ctx, call, ids)
}

// MarketsByToken returns the market of each token, in the order of tokenIDs.
func (d *Driver) MarketsByToken(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Market], error) {
	return readTokens(ctx, call, lookup(d, upstream.EndpointMarketsByToken, marketOf), tokenIDs, func(m *market.Market, _ string, _ side) *market.Market { return m })
}

// MarketBySlug returns the market whose ticker is the slug in upper case. It returns nil if the venue does not know the market.
func (d *Driver) MarketBySlug(ctx context.Context, call upstream.Call, s string) (*market.Market, error) {
	ticker := strings.ToUpper(s)
	if slug(ticker) != s || !isTicker(ticker) {
		return nil, rest.CheckID(upstream.EndpointMarketBySlug, s)
	}
	results, err := lookup(d, upstream.EndpointMarketBySlug, marketOf).Read(ctx, call, []string{ticker})
	return results[0].Value, cmp.Or(err, results[0].Err)
}

// Prices returns the price of each token, in the order of tokenIDs. One call returns the prices of both tokens of a market. The
// Value of a result is nil if the token has none of the prices that quote.price lists, or if the venue does not know the token.
func (d *Driver) Prices(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Price], error) {
	return readTokens(ctx, call, lookup(d, upstream.EndpointPrices, readQuote), tokenIDs, (*quote).price)
}

// Spreads returns the best prices of each token, in the order of tokenIDs.
func (d *Driver) Spreads(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Spread], error) {
	return readTokens(ctx, call, lookup(d, upstream.EndpointSpreads, readQuote), tokenIDs, (*quote).spread)
}
