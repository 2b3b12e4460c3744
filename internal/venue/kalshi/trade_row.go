package kalshi

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldTradeID      = wire.NewField("trade_id")
	fieldMarketTicker = wire.NewField("market_ticker", "ticker").Interned()
	fieldCount        = wire.NewField("count_fp")
	fieldYesPrice     = wire.NewField("yes_price_dollars")
	fieldTaker        = wire.NewField("taker_outcome_side", "taker_side").Interned()
	fieldTime         = wire.NewField("ts_ms", "created_time", "ts", "time")
)

// readTrade reads a trade of a market. It returns the trade once for each token: a purchase of one outcome at p is a sale of the
// other outcome at 1 − p.
func readTrade(r *wire.Row) (trades [2]market.Trade) {
	ticker := r.RequireID(fieldMarketTicker)
	t := market.Trade{
		TradeID: r.RequireID(fieldTradeID), MarketID: ticker, Size: r.Size(fieldCount), Timestamp: r.RequireTime(fieldTime),
		SideRaw: r.RequireText(fieldTaker),
	}
	price := r.Price(fieldYesPrice)
	for _, s := range sides {
		t.TokenID, t.Outcome, t.Price = s.token(ticker), labels[s], s.price(price)
		switch t.SideRaw {
		case "yes", "no":
			t.Side = market.SideSell
			if (t.SideRaw == "yes") == (s == yes) {
				t.Side = market.SideBuy
			}
		default:
			t.Side = market.SideUnknown
		}
		trades[s] = t
	}
	return trades
}

// timeOf returns the time of a frame; zero if the frame has none.
func timeOf(r *wire.Row) time.Time { return r.Time(fieldTime) }
