package candles_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/candles"
)

func TestCandles(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	point := func(when, price, volume string) market.PricePoint {
		p := market.PricePoint{Timestamp: at(when), Price: market.MustDecimal(price)}
		if volume != "" {
			p.Volume = new(market.MustDecimal(volume))
		}
		return p
	}
	points := []market.PricePoint{
		point("2024-02-25T23:59:59.9Z", "0.5", ""), // a Sunday
		point("2024-02-26T00:00:00Z", "0.50", "10"),
		point("2024-02-26T00:04:59Z", "0.40", ""),
		point("2024-02-26T00:05:00Z", "0.45", ""),
		point("2024-02-26T01:00:00+01:00", "0.60", "0.5"), // midnight UTC, written in another zone
		point("2024-03-03T23:59:59Z", "0.55", "1"),
		point("2024-03-04T00:00:00Z", "0.10", ""),
	}
	volumes := []*market.Decimal{points[1].Volume, points[4].Volume}
	for interval, want := range map[candles.Interval]string{
		candles.FiveMinutes:    "02-25T23:55 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.50/0.40/0.40 10, 02-26T00:05 0.45/0.45/0.45/0.45 -, 02-26T00:00 0.60/0.60/0.60/0.60 0.5, 03-03T23:55 0.55/0.55/0.55/0.55 1, 03-04T00:00 0.10/0.10/0.10/0.10 -",
		candles.Minute:         "02-25T23:59 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.50/0.50/0.50 10, 02-26T00:04 0.40/0.40/0.40/0.40 -, 02-26T00:05 0.45/0.45/0.45/0.45 -, 02-26T00:00 0.60/0.60/0.60/0.60 0.5, 03-03T23:59 0.55/0.55/0.55/0.55 1, 03-04T00:00 0.10/0.10/0.10/0.10 -",
		candles.FifteenMinutes: "02-25T23:45 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.60/0.40/0.60 10.5, 03-03T23:45 0.55/0.55/0.55/0.55 1, 03-04T00:00 0.10/0.10/0.10/0.10 -",
		candles.FourHours:      "02-25T20:00 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.60/0.40/0.60 10.5, 03-03T20:00 0.55/0.55/0.55/0.55 1, 03-04T00:00 0.10/0.10/0.10/0.10 -",
		candles.Hour:           "02-25T23:00 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.60/0.40/0.60 10.5, 03-03T23:00 0.55/0.55/0.55/0.55 1, 03-04T00:00 0.10/0.10/0.10/0.10 -",
		candles.Day:            "02-25T00:00 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.60/0.40/0.60 10.5, 03-03T00:00 0.55/0.55/0.55/0.55 1, 03-04T00:00 0.10/0.10/0.10/0.10 -",
		candles.Week:           "02-19T00:00 0.5/0.5/0.5/0.5 -, 02-26T00:00 0.50/0.60/0.40/0.55 11.5, 03-04T00:00 0.10/0.10/0.10/0.10 -",
	} {
		var got []string
		for _, c := range candles.Of(points, interval) {
			got = append(got, fmt.Sprintf("%s %s/%s/%s/%s %s", c.Start.Format("01-02T15:04"), c.Open, c.High, c.Low, c.Close, show(c.Volume)))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s:\n got %s\nwant %s", interval, s, want)
		}
	}
	if volumes[0].String() != "10" || volumes[1].String() != "0.5" {
		t.Errorf("Of changed the volumes of the points to %s and %s, want 10 and 0.5", volumes[0], volumes[1])
	}
	if c := candles.Of(nil, candles.Day); len(c) != 0 {
		t.Errorf("got candles %v without points, want none", c)
	}
}

func show(d *market.Decimal) string {
	if d == nil {
		return "-"
	}
	return d.String()
}
