package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/telemetry"
)

// lines returns the lines of a log without their times, and empties it.
func lines(log *bytes.Buffer) (out []string) {
	for line := range strings.Lines(log.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, line)
	}
	log.Reset()
	return out
}

// TestOutageLog checks the lines of an outage of two endpoints, and of an endpoint that fails now and then.
func TestOutageLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := newOutage(telemetry.NewLogger(&log, nil, "text"))
		defer o.close()
		refused, hung := errors.New("connection refused"), errors.New("no answer")
		want := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			o.mu.Lock() // a timer writes the line of a minute
			got := lines(&log)
			o.mu.Unlock()
			if len(got) != len(want) {
				t.Fatalf("%s: the log is %q, want %d lines", what, got, len(want))
			}
			for i, line := range got {
				for part := range strings.SplitSeq(want[i], "|") {
					if !strings.Contains(line, part) {
						t.Errorf("%s: the line %q lacks %q", what, line, part)
					}
				}
			}
		}
		o.failed("prices", refused)
		want("the first failed call", `level=WARN|"a call to the venue has failed"|endpoint=prices reason="connection refused" since=2000-01-01T00:00:00|failed=1`)
		o.failed("prices", refused)
		o.answered("positions")
		o.failed("orderbook", hung)
		want("further failed calls")
		time.Sleep(time.Minute)
		want("a minute later", `level=WARN|"calls to the venue fail"|endpoint="orderbook prices" reason="no answer" since=2000-01-01T00:00:00|failed=2`)
		time.Sleep(time.Minute)
		want("a minute without calls")
		o.failed("prices", refused)
		time.Sleep(time.Minute)
		want("three minutes later", "failed=1")
		o.answered("orderbook")
		want("the end", `level=INFO|"the venue answers again"|since=2000-01-01T00:00:00|lasted=3m0s failed=4`)

		for range 60 {
			time.Sleep(time.Second)
			o.failed("prices", hung)
			o.answered("prices")
		}
		want("an endpoint that fails now and then", `"a call to the venue has failed"|failed=60`, "answers again")
		o.failed("prices", hung)
		time.Sleep(time.Minute)
		want("an outage soon after another", `"calls to the venue fail"|failed=1`)
	})
}
