package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSlowBodies checks the response to a client that sends only a part of a body.
func TestSlowBodies(t *testing.T) {
	s := openRigged(t, startTime, nil)
	if s.HTTP.ReadHeaderTimeout == 0 || s.HTTP.ReadTimeout != 10*time.Second || s.HTTP.IdleTimeout == 0 {
		t.Errorf("the timeouts are %v for headers, %v for requests and %v for idle connections, want 10s for requests and none of them 0",
			s.HTTP.ReadHeaderTimeout, s.HTTP.ReadTimeout, s.HTTP.IdleTimeout)
	}
	s.HTTP.ReadTimeout = 50 * time.Millisecond
	s.serveUntilEnd(t)
	reader, writer := io.Pipe()
	defer writer.Close()
	r := s.request(t, "", anonymous)
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"query":"{ canary`), reader)), -1
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if body := string(b); err != nil || resp.StatusCode != http.StatusRequestTimeout || !resp.Close || !strings.Contains(body, "the body took longer than 10s") || strings.Contains(body, "canary") {
		t.Errorf("got status %s, close %v, body %s and error %v; want status 408, close true and the reason", resp.Status, resp.Close, body, err)
	}
}
