package kalshi

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

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
func readQuote(r *wire.Row) quote {
	traded := func(f wire.Field) *market.Decimal {
		if p := r.Unit(f); p != nil && !p.IsZero() && p.Cmp(one) != 0 {
			return p
		}
		return nil
	}
	q := quote{bid: traded(fieldYesBid), ask: traded(fieldYesAsk), last: traded(fieldLastPrice)}
	if statusOf(r.Text(fieldStatus)) == market.StatusResolved {
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
		out.BestBid, out.BestAsk = no.optionalPrice(q.ask), no.optionalPrice(q.bid)
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
