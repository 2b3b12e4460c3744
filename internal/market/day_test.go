package market

import (
	"fmt"
	"testing"
	"time"
)

// TestAtWithEqualTimestamps checks that At returns the last of several points with the same timestamp.
func TestAtWithEqualTimestamps(t *testing.T) {
	h, now := &PriceHistory{}, time.Unix(7, 0)
	for _, price := range []string{"0.1", "0.2", "0.3"} {
		h.Points = append(h.Points, PricePoint{Timestamp: now, Price: MustDecimal(price)})
	}
	if p, next := h.At(now); p == nil || p.Price.String() != "0.3" || !next.IsZero() {
		t.Errorf("got %v and %v, want the price 0.3 and no later point", p, next)
	}
}

func TestSamples(t *testing.T) {
	at := func(hour int) time.Time { return time.Unix(int64(hour)*3600, 0) }
	h := &PriceHistory{}
	for i, hour := range []int{10, 20, 22} {
		h.Points = append(h.Points, PricePoint{Timestamp: at(hour), Price: MustDecimal(fmt.Sprintf("0.%d", i+1))})
	}
	for _, test := range []struct {
		end, n int // end and until are hours, and n is a number of samples
		want   string
		until  int
	}{
		{24, 2, "[0.1 0.3]", 32},     // samples at 12 and 24 h
		{24, 4, "[0.1 0.1 0.3]", 26}, // samples at 6, 12, 18 and 24 h
		{22, 2, "[0.1 0.3]", 32},
		{60, 2, "[0.3 0.3]", 84},
		{5, 2, "[]", 10},
	} {
		prices, until := h.Samples(at(test.end), 24*time.Hour, test.n)
		if got := fmt.Sprint(prices); got != test.want || !until.Equal(at(test.until)) {
			t.Errorf("%d samples to hour %d: got %s until hour %d, want %s until hour %d", test.n, test.end, got, until.Unix()/3600, test.want, test.until)
		}
	}
}
