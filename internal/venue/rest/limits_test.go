package rest

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestRateLimitHeaders(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ limit, remaining, reset, want string }{
		{"100", "7", "1795251630", "100 7 2026-11-21T09:00:30Z"},
		{"100", "0", "1795251630250", "100 0 2026-11-21T09:00:30.25Z"},
		{" 300 ", " 299 ", " 30 ", "300 299 2026-11-21T09:00:30Z"},
		{"100, 100;w=60", "5;w=60", "Sat, 21 Nov 2026 09:00:30 GMT", "100 5 2026-11-21T09:00:30Z"},
		{"", "", "", "-1 -1 -"},
		{"many", "few", "soon", "-1 -1 -"},
		{"-1", "-2", "-3", "-1 -1 -"},
		{"0", "0", "0", "-1 0 2026-11-21T09:00:00Z"},
		{"1e3", "1.5", "1.5", "-1 -1 -"},
		{"99999999999999999999", "1000000001", "99999999999999999999", "-1 -1 -"},
		{"100", "1", "999999999", "100 1 2026-11-21T09:05:00Z"},
		{"100", "1", "9999999999999", "100 1 2026-11-21T09:05:00Z"},
		{"100", "1", "1000000000", "100 1 2001-09-09T01:46:40Z"},
	} {
		h := http.Header{}
		h.Set("X-RateLimit-Limit", tt.limit)
		h.Set("x-ratelimit-remaining", tt.remaining)
		h.Set("X-RATELIMIT-RESET", tt.reset)
		got := rateLimitOf(h, now)
		reset := "-"
		if !got.reset.IsZero() {
			reset = got.reset.UTC().Format(time.RFC3339Nano)
		}
		if text := fmt.Sprint(got.limit, " ", got.remaining, " ", reset); text != tt.want {
			t.Errorf("for the headers %v, the limit, the remaining calls and the reset are %s, want %s", h, text, tt.want)
		}
	}
}
