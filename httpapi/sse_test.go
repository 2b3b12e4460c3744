package httpapi

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/httpapi/content"
)

// tape is a ResponseWriter that records the writes, and their times since start.
type tape struct {
	*httptest.ResponseRecorder
	start  time.Time
	mu     sync.Mutex
	times  []time.Duration
	writes []string
}

func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times, t.writes = append(t.times, time.Since(t.start)), append(t.writes, string(b))
	return len(b), nil
}

func (*tape) SetWriteDeadline(time.Time) error { return nil }
func (*tape) SetReadDeadline(time.Time) error  { return nil }

// TestKeepAlive checks that an event stream sends a comment at once and then every 15 seconds. An event does not restart the 15
// seconds.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t)
		event := make(chan int)
		cfg.Compiler = streamCompiler(t, event, func(int) string { return "1" })
		api := New(cfg)
		defer api.Drain(t.Context())
		w := &tape{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
		r := postRequest(t.Context(), `{"query":"subscription { streamStatusChanged { state } }"}`, "Accept", content.Events)
		var stream sync.WaitGroup
		stream.Go(func() { api.ServeHTTP(w, r) })
		time.Sleep(40 * time.Second)
		event <- 1
		time.Sleep(10 * time.Second)
		close(event)
		stream.Wait()
		want := []struct {
			at   time.Duration
			text string
		}{
			{0, ":\n\n"}, {15 * time.Second, ":\n\n"}, {30 * time.Second, ":\n\n"}, {40 * time.Second, "event: next\ndata: {\"data\":{\"streamStatusChanged\":1}}\n\n"},
			{45 * time.Second, ":\n\n"}, {50 * time.Second, "event: complete\ndata:\n\n"},
		}
		if len(w.writes) != len(want) {
			t.Fatalf("got the writes %q after %v, want %d writes", w.writes, w.times, len(want))
		}
		for i, e := range want {
			if w.times[i] != e.at || w.writes[i] != e.text {
				t.Errorf("write %d is %q after %v, want %q after %v", i, w.writes[i], w.times[i], e.text, e.at)
			}
		}
	})
}
