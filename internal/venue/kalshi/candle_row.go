package kalshi

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldEnd     = wire.NewField("end_period_ts")
	fieldTraded  = wire.NewField("price")
	fieldClose   = wire.NewField("close_dollars", "close")
	fieldVolume  = wire.NewField("volume_fp", "volume")
	fieldCandles = wire.NewField("candlesticks")
)

// readCandle reads a candlestick as a point in the price history of YES. The price is that of the last trade in the period. If the
// period has no trade, ok is false. The venue may also send the period that has not ended yet. No point is later than now.
func readCandle(r *wire.Row, period int, now time.Time) (p market.PricePoint, ok bool) {
	p.Timestamp = market.Earlier(pointTime(r.RequireTime(fieldEnd), period), now.UTC().Truncate(time.Second))
	p.Volume = r.Decimal(fieldVolume)
	price := r.Child(r.Of(fieldTraded))
	closed := price.Unit(fieldClose)
	if price.Err != nil {
		r.Fail(fieldTraded, "is unreadable: "+price.Err.Error())
	}
	if closed == nil {
		return p, false
	}
	p.Price = *closed
	return p, true
}

// pointTime returns the time of the point for a candlestick with the given end. The end of a period is also the start of the next
// period, so the point is one second before the end.
//
// A day is a day of Eastern time. It begins at 04:00 UTC with daylight saving and at 05:00 UTC without, and ends 24 hours after its
// start, even if it is the day on which daylight saving begins or ends. So twelve hours before its end, its date is the same in
// UTC. The point is the last second of this date in UTC, so that the trades of a day count for this day.
func pointTime(end time.Time, period int) time.Time {
	if period == periodDay {
		end = (market.DateOf(end.Add(-12*time.Hour)) + 1).Start()
	}
	return end.Add(-time.Second)
}

// points converts the price history of YES into the price history of an outcome.
func points(ofYes []market.PricePoint, s side) []market.PricePoint {
	if s == yes {
		return ofYes
	}
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

// periodOf returns the length of the candlesticks for a number of days: a minute for one day, an hour for up to 31 days, a day for
// more.
func periodOf(days int) int {
	switch {
	case days <= 1:
		return periodMinute
	case days <= 31:
		return periodHour
	}
	return periodDay
}
