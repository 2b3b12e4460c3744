package kalshi_test

import (
	"fmt"
	"net/http"
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

// TestArchivedTrades checks that the list of trades ends where the archive begins, except for the trades that are in both. The
// archive must have the trades of a settled market, and max_ts must select older trades.
func TestArchivedTrades(t *testing.T) {
	r := newRig(t)
	opened := r.clock.Now()
	ticker := r.Tickers()[0]
	times := func(path string) (all []time.Time) {
		t.Helper()
		for _, trade := range r.rows(path, "trades") {
			at, err := time.Parse(time.RFC3339, trade["created_time"].(string))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, at)
		}
		return all
	}
	newestFirst := func(a, b time.Time) int { return b.Compare(a) }
	list, archive := times("/markets/trades?ticker="+ticker), times("/historical/trades?ticker="+ticker)
	if len(list) == 0 || len(archive) == 0 || !slices.IsSortedFunc(list, newestFirst) || !slices.IsSortedFunc(archive, newestFirst) {
		t.Fatalf("the list has the trades %v and the archive %v, want some trades in each, newest first", list, archive)
	}
	if oldest := opened.Add(-40 * time.Minute); list[len(list)-1].Before(oldest) || !archive[0].Before(opened.Add(-30*time.Minute)) || !archive[0].After(oldest) {
		t.Errorf("the list ends at %s and the archive begins at %s, want an overlap of at most ten minutes", list[len(list)-1], archive[0])
	}
	until := archive[2]
	if cut := times(fmt.Sprintf("/historical/trades?ticker=%s&max_ts=%d", ticker, until.Unix()+1)); !slices.Equal(cut, archive[2:]) && !slices.Equal(cut, archive[1:]) {
		t.Errorf("with max_ts a second after the third trade, the archive begins at %v, want %v", cut[0], until)
	}
	settled := r.rows("/historical/markets", "markets")[0]["ticker"].(string)
	if list, archive := times("/markets/trades?ticker="+settled), times("/historical/trades?ticker="+settled); len(list) > 0 || len(archive) == 0 {
		t.Errorf("for a settled market, the list has %d trades and the archive %d, want all in the archive", len(list), len(archive))
	}
	r.clock.Advance(time.Second)
	for _, bad := range []string{"max_ts=x", "min_ts=-1", "limit=1001"} {
		if status, _ := r.call("/historical/trades?ticker=" + ticker + "&" + bad); status != http.StatusBadRequest {
			t.Errorf("%s: got status %d, want 400", bad, status)
		}
	}
}
