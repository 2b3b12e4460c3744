package market

import "time"

// CandleInterval is the length of a candle. Intervals begin at UTC boundaries.
type CandleInterval string

// The candle intervals. A week starts on Monday.
const (
	CandleMinute         CandleInterval = "MINUTE"
	CandleFiveMinutes    CandleInterval = "FIVE_MINUTES"
	CandleFifteenMinutes CandleInterval = "FIFTEEN_MINUTES"
	CandleHour           CandleInterval = "HOUR"
	CandleFourHours      CandleInterval = "FOUR_HOURS"
	CandleDay            CandleInterval = "DAY"
	CandleWeek           CandleInterval = "WEEK"
)

// Candle summarizes the prices of one interval.
type Candle struct {
	Start                  time.Time
	Open, High, Low, Close Decimal
	// Volume is the sum of the points' volumes; nil if no point has a volume.
	Volume *Decimal
}

// Candles groups points, which must be sorted oldest first, into candles. Intervals without a point have no candle.
func Candles(points []PricePoint, interval CandleInterval) []Candle {
	var out []Candle
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
func (i CandleInterval) start(t time.Time) time.Time {
	t = t.UTC()
	switch i {
	case CandleMinute:
		return t.Truncate(time.Minute)
	case CandleFiveMinutes:
		return t.Truncate(5 * time.Minute)
	case CandleFifteenMinutes:
		return t.Truncate(15 * time.Minute)
	case CandleHour:
		return t.Truncate(time.Hour)
	case CandleFourHours:
		return t.Truncate(4 * time.Hour)
	case CandleWeek:
		return (DateOf(t) - Date((int(t.Weekday())+6)%7)).Start()
	default:
		return DateOf(t).Start()
	}
}
