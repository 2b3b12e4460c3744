package fleet

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutageLog checks that the log has a line when Redis cannot be reached, and one in each minute of the outage.
func TestOutageLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f, err := Open(Config{URL: "unix:///missing/redis.sock", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		text := log.String()
		first, further := strings.Count(text, "Redis cannot be reached"), strings.Count(text, "Redis still cannot be reached")
		// A probe fails at least every five seconds.
		if first != 1 || further < 9 || further > 10 || strings.Count(text, "since=2000-01-01T00:00:00") != further {
			t.Errorf("in ten minutes the log has %d lines for the beginning and %d further ones, want 1 and 9 or 10 with the beginning:\n%s", first, further, text)
		}
	})
}
