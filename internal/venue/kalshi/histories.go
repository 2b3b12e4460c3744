package kalshi

import (
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

// PriceHistories returns the prices of tokens on UTC days, oldest first. A point is the last trade of a period. The period is a
// minute in a query for one day, an hour in a query for up to 31 days, and a day of Eastern time in other queries. Queries for the
// same days share calls. The Value is nil if the venue does not know the token.
func (d *Driver) PriceHistories(ctx context.Context, call upstream.Call, list []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error) {
	return rest.ReadHistories(list, func(from, to market.Date, ids []string) ([]upstream.Result[*market.PriceHistory], error) {
		return readTokens(ctx, call, d.histories(span{from, to}), ids, func(ofYes *market.PriceHistory, ticker string, s side) *market.PriceHistory {
			h := *ofYes
			h.TokenID, h.Points = market.Intern(s.token(ticker)), points(h.Points, s)
			return &h
		})
	})
}

// span is a period of days, both included.
type span struct{ from, to market.Date }

func (s span) days() int { return int(s.to-s.from) + 1 }

// set adds the parameters that select the candlesticks of the period. The venue selects a candlestick by its end. Minutes and hours
// end after the start of the first day, and at the latest at the end of the last day. The day of Eastern time with the date d ends
// between 04:00 and 05:00 UTC on the day after d, so noon separates its end from the ends of its neighbours.
func (s span) set(rq *rest.Request) {
	start, end := s.from.Start().Add(time.Second), (s.to + 1).Start()
	period := periodOf(s.days())
	if period == periodDay {
		start, end = s.from.Start().Add(12*time.Hour), end.Add(12*time.Hour)
	}
	rq.Query.Set("start_ts", unix(start)).Set("end_ts", unix(end)).Set("period_interval", strconv.Itoa(period))
}

// histories returns a lookup of candlesticks. It reads the markets that a response lacks from the archive.
func (d *Driver) histories(s span) rest.Lookup[market.PriceHistory] {
	const e = upstream.EndpointPriceHistory
	candles := s.days() * periodDay / periodOf(s.days()) // for each market
	return rest.Lookup[market.PriceHistory]{Client: d.Client, Endpoint: e, Batch: max(min(d.MaxKeys(e), maxCandles/candles), 1), IsID: isTicker,
		Call: func(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[market.PriceHistory], error) {
			rq := &rest.Request{Endpoint: e, Keys: len(tickers)}
			rq.Query.List("market_tickers", tickers)
			s.set(rq)
			rows, _, err := d.list(ctx, call, rq, fieldMarkets)
			if err != nil {
				return nil, err
			}
			now := d.Now()
			found := rest.ReadByID(rows, fieldMarketTicker, note, func(r *wire.Row, _ string) *market.PriceHistory { return readHistory(r, s, now) })
			for _, ticker := range found.Missing(tickers) {
				rq := &rest.Request{Endpoint: e, Path: pathArchive + "/" + ticker + "/candlesticks", Keys: 1}
				s.set(rq)
				payload, err := d.Get(ctx, call, rq)
				if err = rest.NilIfNotFound(err); err != nil {
					found[ticker] = upstream.Result[*market.PriceHistory]{Err: err}
				} else if !payload.IsNull() {
					r := wire.NewRow(payload, note)
					found.Put(ticker, readHistory(r, s, now), r)
				}
			}
			return found, nil
		}}
}

// readHistory reads the candlesticks of one market, as prices of YES. A candlestick without a trade yields no point, nor does one on a
// day that was not requested. Unreadable candlesticks are reported in LeftOut.
func readHistory(r *wire.Row, s span, now time.Time) *market.PriceHistory {
	const e = upstream.EndpointPriceHistory
	list, ok := r.Of(fieldCandles).List()
	if !ok {
		r.Err = rest.UnknownForm(e, "no list of candlesticks")
		return nil
	}
	points, bad := rest.ReadRows(list, r.Note, func(r *wire.Row) market.PricePoint { return readCandle(r, periodOf(s.days()), now) })
	traded := slices.DeleteFunc(points, func(p market.PricePoint) bool { return p.Timestamp.IsZero() })
	return &market.PriceHistory{From: s.from, To: s.to, Points: rest.PointsOfDays(traded, s.from, s.to, r.Note), LeftOut: bad.LeftOut(e)}
}

var (
	fieldEnd     = wire.NewField("end_period_ts")
	fieldTraded  = wire.NewField("price")
	fieldClose   = wire.NewField("close_dollars", "close")
	fieldVolume  = wire.NewField("volume_fp", "volume")
	fieldCandles = wire.NewField("candlesticks")
)

// readCandle reads a candlestick as a point in the price history of YES. The price is that of the last trade in the period. If the
// period has no trade, the result is zero. The venue may also send the period that has not ended yet. No point is later than now.
func readCandle(r *wire.Row, period int, now time.Time) market.PricePoint {
	at, volume, price := pointTime(r.RequireTime(fieldEnd), period), r.Decimal(fieldVolume), r.Child(r.Of(fieldTraded))
	closed := price.Unit(fieldClose)
	if price.Err != nil {
		r.Fail(fieldTraded, "is unreadable: "+price.Err.Error())
	}
	if closed == nil {
		return market.PricePoint{}
	}
	return market.PricePoint{Timestamp: market.Earlier(at, now.UTC().Truncate(time.Second)), Price: *closed, Volume: volume}
}

// pointTime returns the time of the point for a candlestick with the given end. The end of a period is also the start of the next
// period, so the point is one second before the end.
//
// A day of Eastern time begins at 04:00 UTC with daylight saving and at 05:00 UTC without, and ends 24 hours later, also when daylight
// saving begins or ends. So its date is the UTC date twelve hours before its end, and the point is the last second of this date.
func pointTime(end time.Time, period int) time.Time {
	if period == periodDay {
		end = (market.DateOf(end.Add(-12*time.Hour)) + 1).Start()
	}
	return end.Add(-time.Second)
}

func points(ofYes []market.PricePoint, s side) []market.PricePoint {
	out := make([]market.PricePoint, len(ofYes))
	for i, p := range ofYes {
		p.Price = s.price(p.Price)
		out[i] = p
	}
	return out
}

// The lengths of candlesticks in minutes.
const (
	periodMinute = 1
	periodHour   = 60
	periodDay    = 1440
)

func periodOf(days int) int {
	switch {
	case days <= 1:
		return periodMinute
	case days <= 31:
		return periodHour
	}
	return periodDay
}
