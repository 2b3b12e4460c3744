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
	out := []Candle{}
	for i := range points {
		p := &points[i]
		start := interval.start(p.Timestamp)
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

// start returns the start of the interval that contains t.
func (i Interval) start(t time.Time) time.Time {
	t = t.UTC()
	switch i {
	case Minute:
		return t.Truncate(time.Minute)
	case FiveMinutes:
		return t.Truncate(5 * time.Minute)
	case FifteenMinutes:
		return t.Truncate(15 * time.Minute)
	case Hour:
		return t.Truncate(time.Hour)
	case FourHours:
		return t.Truncate(4 * time.Hour)
	case Week:
		return (market.DateOf(t) - market.Date((int(t.Weekday())+6)%7)).Start()
	default:
		return market.DateOf(t).Start()
	}
}
