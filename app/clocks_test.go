package app

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/request"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/upstream"
)

// TestClocks checks that a clock that is wrong by more than two seconds causes one warning, and a line when it is right again. A
// date has whole seconds and a call takes time; neither makes a clock wrong.
func TestClocks(t *testing.T) {
	var log bytes.Buffer
	h := &health{answered: make(chan struct{}), clocks: newClocks(telemetry.NewLogger(&log, nil, "text"), clockVenue, clockRedis), outage: newOutage(nil)}
	began := time.Date(2026, 3, 14, 15, 9, 26, 900e6, time.UTC)
	offset := func() (seconds float64) {
		h.clocks.offsets(func(value float64, name ...string) {
			if name[0] == clockVenue {
				seconds = value
			}
		})
		return seconds
	}
	for _, test := range []struct {
		what          string
		ahead         time.Duration // of the venue's clock
		took          time.Duration
		times         int
		want          float64
		level, second string
	}{
		{"a date without fractions", 0, 50 * time.Millisecond, 9, 0, "", ""},
		{"a slow call", 2 * time.Second, 3 * time.Second, 9, 0, "", ""},
		{"two dates ahead", 300 * time.Second, 0, 2, 299.1, "", ""},
		{"the right time", 0, 0, 1, 0, "", ""},
		{"dates ahead", 300 * time.Second, 0, 9, 299.1, "WARN", "other=venue other_ahead=4m59.1s"},
		{"the right time again", 0, 0, 9, 0, "INFO", "other=venue"},
		{"dates behind", -300 * time.Second, 0, 9, -299.9, "WARN", "other=venue other_ahead=-4m59.9s"},
	} {
		for range test.times {
			c := upstream.HTTPCall{Status: 200, Outcome: request.OutcomeOK, Started: began, Elapsed: test.took, Date: began.Add(test.ahead).Truncate(time.Second)}
			h.clock = fixedClock(began)
			h.Call(c, nil)
		}
		got := lines(&log)
		if want := test.level; (len(got) == 1) != (want != "") || len(got) > 1 || len(got) == 1 && (!strings.HasPrefix(got[0], "level="+want) || !strings.Contains(got[0], test.second)) {
			t.Errorf("%s: the log is %q, want a line %q with %q", test.what, got, want, test.second)
		}
		if got := offset(); got != test.want {
			t.Errorf("%s: the offset is %v, want %v", test.what, got, test.want)
		}
	}
}

// fixedClock is a clock that stands.
type fixedClock time.Time

// Now implements market.Clock.
func (c fixedClock) Now() time.Time { return time.Time(c) }
