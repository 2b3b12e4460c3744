package generic

import (
	"fmt"
	"net/http"
	"oddsgraph/internal/upstream"
	"oddsgraph/tests/tool"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPermitObservesLimits checks what the client reports to the upstream.Permit about the venue's rate limit.
func TestPermitObservesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		headers := []string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "42"}
		for name, tt := range map[string]struct {
			answer    func(*http.Request) (*http.Response, error)
			observed  string
			throttled string
		}{
			"200 with limits":         {respond(200, `{"bids":[],"asks":[]}`, headers...), "100 42 -", "[]"},
			"200 without limits":      {respond(200, `{"bids":[],"asks":[]}`), "", "[]"},
			"200 with bad JSON":       {respond(200, `[`, headers...), "100 42 -", "[]"},
			"500":                     {respond(500, "", headers...), "100 42 -", "[]"},
			"503 with wait":           {respond(503, "", "Retry-After", "7"), "", "[]"},
			"429":                     {respond(429, "", "Retry-After", "7"), "", "[7s]"},
			"429 without wait":        {respond(429, "<html>", "Content-Type", "text/html"), "", "[0s]"},
			"429 with reset":          {respond(429, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12"), "-1 0 " + tool.Text(time.Now().Add(12*time.Second).UTC()), "[12s]"},
			"429 with wait and reset": {respond(429, "", "Retry-After", "3", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12"), "-1 0 " + tool.Text(time.Now().Add(12*time.Second).UTC()), "[3s]"},
			"429 with calls left":     {respond(429, "", "X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "12"), "-1 5 " + tool.Text(time.Now().Add(12*time.Second).UTC()), "[0s]"},
			"reported with 200":       {respond(200, `{"success":false,"code":"TOO_MANY_REQUESTS"}`, "Retry-After", "7"), "", "[7s]"},
			"no response":             {failWith(http.ErrHandlerTimeout), "", "[]"},
		} {
			p := &permit{}
			c := (&scripted{answer: tt.answer}).client(t, 1)
			_, _ = c.Book(t.Context(), upstream.Call{Permit: p}, "101", 20)
			if got := strings.Join(p.observed, ","); got != tt.observed || fmt.Sprint(p.throttledFor) != tt.throttled {
				t.Errorf("after %q, the permit observed %q and was throttled for %v, want %q and %s", name, got, p.throttledFor, tt.observed, tt.throttled)
			}
		}
	})
}
