package kalshi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// parseRow parses the JSON of a row. The row adds its drift to notes.
func parseRow(t *testing.T, text string, notes *[]string) *wire.Row {
	t.Helper()
	v, err := wire.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return wire.NewRow(v, func(what string) { *notes = append(*notes, what) })
}

// TestCandles checks each member of a candlestick in both forms. The names and the values of the members are those of the API
// description (schemas MarketCandlestick and MarketCandlestickHistorical). If a period has no trade, the venue omits the price or
// sends null.
func TestCandles(t *testing.T) {
	const end = `"end_period_ts":1795687200,`
	for _, test := range []struct{ row, want string }{
		{
			`{` + end + `"price":{"open_dollars":"0.4100","low_dollars":"0.4000","high_dollars":"0.4600","close_dollars":"0.4450","mean_dollars":"0.4300",
			"previous_dollars":"0.4200"},"yes_bid":{"close_dollars":"0.4400"},"yes_ask":{"close_dollars":"0.4600"},"volume_fp":"31.50","open_interest_fp":"900.00"}`,
			"2026-11-26T09:59:59Z 0.4450 volume 31.50; NO 2026-11-26T09:59:59Z 0.5550 volume 31.50",
		},
		{
			`{` + end + `"price":{"open":"0.2100","low":"0.2000","high":"0.2200","close":"0.2050","mean":"0.2100","previous":null},"volume":"18.00","open_interest":"44.00"}`,
			"2026-11-26T09:59:59Z 0.2050 volume 18.00; NO 2026-11-26T09:59:59Z 0.7950 volume 18.00",
		},
		{`{` + end + `"price":{"close_dollars":"0.4400"}}`, "2026-11-26T09:59:59Z 0.4400 volume -; NO 2026-11-26T09:59:59Z 0.5600 volume -"},
		{`{` + end + `"price":{"previous_dollars":"0.4450"},"volume_fp":"0.00"}`, "no point"},
		{`{` + end + `"price":{"close_dollars":null,"previous_dollars":"0.4450"},"volume_fp":"0.00"}`, "no point"},
		{`{` + end + `"volume_fp":"0.00"}`, "price is unreadable"},
		{`{` + end + `"price":{"close_dollars":"44"}}`, "price is unreadable"},
		{`{` + end + `"price":"0.4450"}`, "price is unreadable"},
		{`{"price":{"close_dollars":"0.4450"}}`, "end_period_ts is not a time"},
		{`{"end_period_ts":"soon","price":{"close_dollars":"0.4450"}}`, "end_period_ts is not a time"},
	} {
		var notes []string
		r := parseRow(t, test.row, &notes)
		p := readCandle(r, periodHour, start.Add(time.Hour))
		got := "no point"
		if r.Err != nil {
			got = r.Err.Error()
		} else if !p.Timestamp.IsZero() {
			got = describePoint(points([]market.PricePoint{p}, yes)[0]) + "; NO " + describePoint(points([]market.PricePoint{p}, no)[0])
		}
		if got != test.want && (r.Err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("readCandle(%s) returns %q, want %q", test.row, got, test.want)
		}
	}
}

func describePoint(p market.PricePoint) string {
	volume := "-"
	if p.Volume != nil {
		volume = p.Volume.String()
	}
	return fmt.Sprint(p.Timestamp.Format(time.RFC3339), " ", p.Price, " volume ", volume)
}

// TestPointTimes checks the time of a candlestick's point. The ends of days are recorded ones, from
// tests/fixtures/golden/candlesticks_batch_response.json of the repository The-Obstacle-Is-The-Way/kalshi-starter-code-python,
// except the ends in March. In this recording, a day begins at midnight of Eastern time. It ends 24 hours later, also on 2 November
// 2025, which has 25 hours. 8 March 2026 has 23 hours, so for its end both the time after 24 hours and midnight are tested.
func TestPointTimes(t *testing.T) {
	for _, test := range []struct {
		end    int64
		period int
		want   string
	}{
		{1795687200, periodMinute, "2026-11-26T09:59:59Z"},
		{1795687200, periodHour, "2026-11-26T09:59:59Z"},
		{1760500800, periodDay, "2025-10-14T23:59:59Z"}, // midnight with daylight saving
		{1762056000, periodDay, "2025-11-01T23:59:59Z"},
		{1762142400, periodDay, "2025-11-02T23:59:59Z"}, // 23:00 of Eastern time on 2 November
		{1762232400, periodDay, "2025-11-03T23:59:59Z"}, // midnight without daylight saving
		{1768194000, periodDay, "2026-01-11T23:59:59Z"},
		{1772946000, periodDay, "2026-03-07T23:59:59Z"},
		{1773032400, periodDay, "2026-03-08T23:59:59Z"}, // 24 hours after the start of 8 March
		{1773028800, periodDay, "2026-03-08T23:59:59Z"}, // midnight after 8 March
		{1773115200, periodDay, "2026-03-09T23:59:59Z"},
	} {
		if got := pointTime(time.Unix(test.end, 0), test.period).UTC().Format(time.RFC3339); got != test.want {
			t.Errorf("the point of a candlestick of %d minutes that ends at %s is at %s, want %s", test.period, time.Unix(test.end, 0).UTC(), got, test.want)
		}
	}
}

func TestPeriods(t *testing.T) {
	for days, want := range map[int]int{1: 1, 2: 60, 31: 60, 32: 1440, 365: 1440} {
		if got := periodOf(days); got != want {
			t.Errorf("the candlesticks of %d days have %d minutes; want %d", days, got, want)
		}
	}
}

// candlesAt returns a function for stub.answers. Like the venue, the function returns the candlesticks whose ends are in the
// requested period. The price of a candlestick is its index in ends, in cents.
func candlesAt(t *testing.T, ends ...int64) func(url.Values) (int, string) {
	t.Helper()
	return func(q url.Values) (int, string) {
		first, err1 := strconv.ParseInt(q.Get("start_ts"), 10, 64)
		last, err2 := strconv.ParseInt(q.Get("end_ts"), 10, 64)
		if err1 != nil || err2 != nil || first < 1 || last < first || q.Get("period_interval") == "" {
			t.Errorf("the parameters are %v, want a start_ts after 1970, an end_ts and a period_interval", q)
		}
		var rows []string
		for i, end := range ends {
			if end >= first && end <= last {
				rows = append(rows, fmt.Sprintf(`{"end_period_ts":%d,"price":{"close_dollars":"0.%02d00"},"volume_fp":"1.00"}`, end, i+1))
			}
		}
		return http.StatusOK, `{"markets":[{"market_ticker":"KXA-1","candlesticks":[` + strings.Join(rows, ",") + `]}]}`
	}
}

// TestDaysOfHistory checks that a history contains the days from the first to the last requested day, both included, with and
// without daylight saving. No point is later than the present time.
func TestDaysOfHistory(t *testing.T) {
	clock := tool.NewClock(time.Date(2026, 1, 12, 22, 8, 10, 0, time.UTC))
	for _, test := range []struct {
		from, to string
		ends     []int64
		want     []string
	}{
		{ // without daylight saving: the days 30 November, 1 December, 11 January, 12 January (not over yet)
			"2025-12-01", "2026-01-12", []int64{1764565200, 1764651600, 1768194000, 1768280400},
			[]string{"2025-12-01T23:59:59Z 0.0200", "2026-01-11T23:59:59Z 0.0300", "2026-01-12T22:08:10Z 0.0400"},
		},
		{ // with daylight saving at first: the days 30 September, 1 October, 1, 2, 3 November
			"2025-10-01", "2025-11-02", []int64{1759291200, 1759377600, 1762056000, 1762142400, 1762232400},
			[]string{"2025-10-01T23:59:59Z 0.0200", "2025-11-01T23:59:59Z 0.0300", "2025-11-02T23:59:59Z 0.0400"},
		},
		{"1969-12-15", "1970-01-01", []int64{28800, 1768194000}, []string{"1970-01-01T07:59:59Z 0.0100"}}, // only hours after 1970
		{"0001-01-01", "0001-02-28", []int64{28800}, nil},                                                 // no day after 1970
		{ // daylight saving begins on 9 March: the days 31 January, 1 February, 9 March, 10 March
			"2025-02-01", "2025-03-09", []int64{1738386000, 1738472400, 1741582800, 1741665600},
			[]string{"2025-02-01T23:59:59Z 0.0200", "2025-03-09T23:59:59Z 0.0300"},
		},
		{ // hours: the last hour before the first day, the first hour, the hour before the present one, the present hour
			"2026-01-11", "2026-01-12", []int64{1768089600, 1768093200, 1768255200, 1768258800},
			[]string{"2026-01-11T00:59:59Z 0.0200", "2026-01-12T21:59:59Z 0.0300", "2026-01-12T22:08:10Z 0.0400"},
		},
	} {
		s := &stub{answers: map[string]func(url.Values) (int, string){"/markets/candlesticks": candlesAt(t, test.ends...)}}
		d, err := New(rest.Config{Transport: s, Clock: clock, Retries: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		from, _ := market.ParseDate(test.from)
		to, _ := market.ParseDate(test.to)
		got, err := d.PriceHistories(t.Context(), upstream.Call{}, []queries.PriceHistory{{TokenID: "KXA-1:yes", From: from, To: to}})
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, p := range got[0].Value.Points {
			have = append(have, p.Timestamp.Format(time.RFC3339)+" "+p.Price.String())
		}
		if !slices.Equal(have, test.want) {
			t.Errorf("the history from %s to %s has the points %q, want %q", test.from, test.to, have, test.want)
		}
	}
}

// TestOtherDays checks that the driver drops the points on days that were not requested, and reports them as drift. The unreadable
// candlestick is reported in LeftOut.
func TestOtherDays(t *testing.T) {
	v, err := wire.Parse([]byte(`{"candlesticks":[
		{"end_period_ts":1795651200,"price":{"close_dollars":"0.1000"}},{"end_period_ts":1795687200,"price":{"close_dollars":"0.2000"}},
		{"end_period_ts":1795824001,"price":{"close_dollars":"0.3000"}},{"end_period_ts":1795687260,"price":{"close_dollars":"3"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	day := market.DateOf(start)
	var notes []string
	r := wire.NewRow(v, func(what string) { notes = append(notes, what) })
	h := readHistory(r, span{day, day}, start.AddDate(0, 0, 9))
	if r.Err != nil || len(h.Points) != 1 || h.Points[0].Price.String() != "0.2000" || len(h.LeftOut) != 1 {
		t.Errorf("readHistory returns %+v and the error %v, want the price 0.2000 and one row left out", h, r.Err)
	}
	if want := []string{"bad row", "point on another day", "point on another day"}; !slices.Equal(notes, want) {
		t.Errorf("the drift is %q, want %q", notes, want)
	}
}
