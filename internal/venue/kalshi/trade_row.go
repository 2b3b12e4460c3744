package kalshi

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
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
