package app

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"oddsgraph/httpapi/quota"
)

// TestListenersHaveDeadlines checks that the server has each deadline, and that no deadline is longer than documented.
func TestListenersHaveDeadlines(t *testing.T) {
	s, err := listen("--listen", "127.0.0.1:0", quota.ConnectionLimits{}, http.NotFoundHandler(), slog.New(slog.DiscardHandler), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, limit := range map[string]struct{ got, most time.Duration }{
		"header":   {s.HTTP.ReadHeaderTimeout, 10 * time.Second},
		"request":  {s.HTTP.ReadTimeout, 10 * time.Second},
		"response": {s.HTTP.WriteTimeout, 30 * time.Second},
		"idle":     {s.HTTP.IdleTimeout, 2 * time.Minute},
	} {
		if limit.got <= 0 || limit.got > limit.most {
			t.Errorf("%s: the deadline is %v, want more than 0 and at most %v", name, limit.got, limit.most)
		}
	}
}
