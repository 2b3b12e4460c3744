package kalshi

import (
	"net/http"
	"net/url"
	"slices"
	"time"
	_ "time/tzdata" // for systems without time zones, such as containers
)

func (v *Venue) answerCandles(_ *http.Request, query url.Values) (any, *refusal) {
	rows := []object{}
	for _, ticker := range list(query, "market_tickers") {
		m := v.byTicker[ticker]
		if m == nil || m.archived {
			continue
		}
		candles, err := v.candles(m, query, "_dollars", "_fp")
		if err != nil {
			return nil, err
		}
		rows = append(rows, object{"market_ticker": ticker, "candlesticks": candles})
	}
	return object{"markets": rows}, nil
}

func (v *Venue) answerArchivedCandles(r *http.Request, query url.Values) (any, *refusal) {
	m := v.byTicker[r.PathValue("ticker")]
	if m == nil || !m.archived {
		return nil, notFound
	}
	candles, err := v.candles(m, query, "", "")
	if err != nil {
		return nil, err
	}
	return object{"ticker": m.ticker, "candlesticks": candles}, nil
}

// candles returns the candlesticks of a market. It appends priceSuffix to the names of prices, and countSuffix to the names of
// counts. As reported by users of Kalshi's API, a candlestick without trades has only the previous price.
func (v *Venue) candles(m *market, query url.Values, priceSuffix, countSuffix string) ([]object, *refusal) {
	start, err1 := number(query, "start_ts", 0, 1<<40)
	end, err2 := number(query, "end_ts", 0, 1<<40)
	minutes, err3 := number(query, "period_interval", 0, 1440)
	if err1 != nil || err2 != nil || err3 != nil || end < start || !slices.Contains([]int{1, 60, 1440}, minutes) {
		return nil, refuse(http.StatusBadRequest, "invalid_parameters", "start_ts, end_ts and period_interval are needed")
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
	return out, nil
}

// eastern is the time zone of Kalshi's days.
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
