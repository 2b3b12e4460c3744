package kalshi_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestEasternDays checks that the candlesticks of days begin at midnight of Eastern time and end 24 hours later. In 2026, daylight
// saving begins on 8 March. The ends of days in responses of Kalshi follow this rule, for example in
// tests/fixtures/golden/candlesticks_batch_response.json of the repository The-Obstacle-Is-The-Way/kalshi-starter-code-python.
// Hours and minutes begin at full hours and minutes.
func TestEasternDays(t *testing.T) {
	r := newRig(t)
	at := func(text string) int64 {
		t.Helper()
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant.Unix()
	}
	for _, test := range []struct {
		minutes    int
		start, end string
		want       []string
	}{
		{1440, "2026-03-07T06:00:00Z", "2026-03-11T12:00:00Z", []string{"2026-03-08T05:00:00Z", "2026-03-09T05:00:00Z", "2026-03-10T04:00:00Z", "2026-03-11T04:00:00Z"}},
		{1440, "2025-11-01T12:00:00Z", "2025-11-04T12:00:00Z", []string{"2025-11-02T04:00:00Z", "2025-11-03T04:00:00Z", "2025-11-04T05:00:00Z"}},
		{60, "2026-03-10T03:00:01Z", "2026-03-10T05:00:00Z", []string{"2026-03-10T04:00:00Z", "2026-03-10T05:00:00Z"}},
	} {
		path := fmt.Sprintf("/markets/candlesticks?market_tickers=%s&start_ts=%d&end_ts=%d&period_interval=%d", r.Tickers()[0], at(test.start), at(test.end), test.minutes)
		rows := r.rows(path, "markets")
		var got []string
		for _, c := range rows[0]["candlesticks"].([]any) {
			got = append(got, time.Unix(int64(c.(object)["end_period_ts"].(float64)), 0).UTC().Format(time.RFC3339))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("the candlesticks of %d minutes from %s to %s end at %q, want %q", test.minutes, test.start, test.end, got, test.want)
		}
		r.clock.Advance(time.Second)
	}
}
