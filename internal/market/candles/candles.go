// Package candles summarizes price histories.
package candles

import (
	"time"

	"oddsgraph/internal/market"
)

// Interval is the length of a candle. Intervals begin at UTC boundaries.
type Interval string

// The candle intervals. A week starts on Monday.
const (
	Minute         Interval = "MINUTE"
	FiveMinutes    Interval = "FIVE_MINUTES"
	FifteenMinutes Interval = "FIFTEEN_MINUTES"
	Hour           Interval = "HOUR"
	FourHours      Interval = "FOUR_HOURS"
	Day            Interval = "DAY"
	Week           Interval = "WEEK"
)

// lengths are the durations of the intervals. time.Time.Truncate counts them from January 1 of the year 1, which was a Monday.
var lengths = map[Interval]time.Duration{
	Minute: time.Minute, FiveMinutes: 5 * time.Minute, FifteenMinutes: 15 * time.Minute, Hour: time.Hour, FourHours: 4 * time.Hour,
	Day: 24 * time.Hour, Week: 7 * 24 * time.Hour,
}

// Candle summarizes the prices of one interval.
type Candle struct {
	Start                  time.Time
	Open, High, Low, Close market.Decimal
	// Volume is the sum of the points' volumes. It is nil if no point has a volume.
	Volume *market.Decimal
}

// Of groups points into candles. The points must be sorted oldest first. Intervals without a point have no candle. The result is
// never nil.
func Of(points []market.PricePoint, interval Interval) []Candle {
	out, length := []Candle{}, lengths[interval]
	for i := range points {
		p := &points[i]
		start := p.Timestamp.UTC().Truncate(length)
		if n := len(out); n == 0 || !out[n-1].Start.Equal(start) {
			out = append(out, Candle{Start: start, Open: p.Price, High: p.Price, Low: p.Price, Close: p.Price})
		}
		c := &out[len(out)-1]
		if p.Price.Cmp(c.High) > 0 {
			c.High = p.Price
		}
		if p.Price.Cmp(c.Low) < 0 {
			c.Low = p.Price
		}
		c.Close = p.Price
		if p.Volume != nil {
			sum := *p.Volume
			if c.Volume != nil {
				sum = c.Volume.Add(sum)
			}
			c.Volume = &sum
		}
	}
	return out
}
