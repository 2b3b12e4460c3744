package kalshi

import (
	"slices"
	"time"
	_ "time/tzdata" // for systems without time zones, such as containers

	"oddsgraph/internal/demo/server"
)

func (v *Venue) answerCandles(c *server.Call) any {
	rows := []object{}
	for _, ticker := range list(c.Query, "market_tickers") {
		m := v.byTicker[ticker]
		if m == nil || m.archived {
			continue
		}
		candles := v.candles(m, c, "_dollars", "_fp")
		rows = append(rows, object{"market_ticker": ticker, "candlesticks": candles})
	}
	return object{"markets": rows}
}

func (v *Venue) answerArchivedCandles(c *server.Call) any {
	m := v.byTicker[c.PathValue("ticker")]
	if m == nil || !m.archived {
		return c.Refuse(notFound)
	}
	return object{"ticker": m.ticker, "candlesticks": v.candles(m, c, "", "")}
}

// candles returns the candlesticks of a market. It appends priceSuffix to the names of prices, and countSuffix to the names of
// counts. As reported by users of Kalshi's API, a candlestick without trades has only the previous price.
func (v *Venue) candles(m *market, c *server.Call, priceSuffix, countSuffix string) []object {
	start, ok1 := server.Number(c.Get("start_ts"), 0, 1<<40, 0)
	end, ok2 := server.Number(c.Get("end_ts"), 0, 1<<40, 0)
	minutes, ok3 := server.Number(c.Get("period_interval"), 0, 1440, 0)
	if !ok1 || !ok2 || !ok3 || end < start || !slices.Contains([]int{1, 60, 1440}, minutes) {
		c.Refuse(wrong("start_ts, end_ts and period_interval are needed"))
		return nil
	}
	period := time.Duration(minutes) * time.Minute
	points := v.Engine().History(m.demoToken, time.Unix(int64(start), 0).Add(-period), time.Unix(int64(end), 0))
	out := []object{}
	for i := len(points) - 1; i >= 0; i-- {
		ends := periodEnd(points[i].At, period)
		if ends.Unix() < int64(start) || ends.Unix() > int64(end) {
			continue
		}
		p := dollars(points[i].Price)
		candle := object{
			"end_period_ts": ends.Unix(), "yes_bid": object{"close" + priceSuffix: p}, "yes_ask": object{"close" + priceSuffix: p},
			"price": object{
				"open" + priceSuffix: p, "low" + priceSuffix: p, "high" + priceSuffix: p, "close" + priceSuffix: p, "mean" + priceSuffix: p,
			},
			"volume" + countSuffix: "12.50", "open_interest" + countSuffix: "100.00",
		}
		if m.quiet {
			candle["price"], candle["volume"+countSuffix] = object{"previous" + priceSuffix: nil}, "0.00"
		}
		if n := len(out); n > 0 && out[n-1]["end_period_ts"] == candle["end_period_ts"] {
			out[n-1] = candle
			continue
		}
		out = append(out, candle)
	}
	return out
}

var eastern = func() *time.Location {
	l, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err) // the time zones are part of the program
	}
	return l
}()

// periodEnd returns the end of the candlestick that contains t. A day begins at midnight of Eastern time, and its candlestick ends
// 24 hours later, even if daylight saving begins or ends on this day.
func periodEnd(t time.Time, period time.Duration) time.Time {
	start := t.Truncate(period)
	if period == 24*time.Hour {
		year, month, day := t.In(eastern).Date()
		start = time.Date(year, month, day, 0, 0, 0, 0, eastern)
	}
	return start.Add(period)
}
