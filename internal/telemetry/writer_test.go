package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// blockedWriter is a writer that blocks until the channel release is closed.
type blockedWriter struct {
	release chan struct{}
	entered chan struct{}

	mu  sync.Mutex
	got bytes.Buffer
}

func newBlockedWriter() *blockedWriter {
	return &blockedWriter{release: make(chan struct{}), entered: make(chan struct{}, 1)}
}

func (h *blockedWriter) Write(p []byte) (int, error) {
	select {
	case h.entered <- struct{}{}:
	default:
	}
	<-h.release
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got.Write(p)
}

func (h *blockedWriter) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got.String()
}

// TestNobodyWaitsForTheLog checks that Write does not block. Write must drop and count the lines that do not fit into the buffer.
func TestNobodyWaitsForTheLog(t *testing.T) {
	to := newBlockedWriter()
	w := NewWriter(to, 100)
	fmt.Fprint(w, "first\n")
	<-to.entered
	for i := range 30 {
		if n, err := fmt.Fprintf(w, "line %04d\n", i); n != 10 || err != nil {
			t.Fatalf("Write: got %d bytes and error %v, want 10 bytes", n, err)
		}
	}
	if w.Dropped() != 20 || !w.crowded() {
		t.Errorf("after 30 lines of 10 bytes with a limit of 100: got %d dropped lines and crowded %v, want 20 and true", w.Dropped(), w.crowded())
	}
	close(to.release)
	for w.crowded() {
		runtime.Gosched() // wait until the writer's goroutine has taken the lines
	}
	fmt.Fprint(w, "last\n")
	w.Close(time.Minute)
	if lines := strings.Split(to.String(), "\n"); len(lines) != 13 || lines[0] != "first" || lines[1] != "line 0000" || lines[10] != "line 0009" || lines[11] != "last" {
		t.Errorf("got the lines %q, want first, line 0000 to line 0009, and last", lines)
	}
	fmt.Fprint(w, "too late\n")
	if w.Dropped() != 21 {
		t.Errorf("after a Write that follows Close: got %d dropped lines, want 21", w.Dropped())
	}
}

// pieces records the argument of every Write.
type pieces struct {
	mu  sync.Mutex
	got []string
}

func (p *pieces) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, string(b))
	return len(b), nil
}

// take returns and removes the recorded arguments.
func (p *pieces) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

// TestLinesAreWrittenTogether checks that lines that arrive within batchDelay are written together. The writer must write earlier
// after Close, or when more than a quarter of the buffer is full.
func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, start := &pieces{}, time.Now()
		w := NewWriter(to, 100)
		want := func(when time.Duration, pieces ...string) {
			t.Helper()
			synctest.Wait()
			got, since := to.take(), time.Since(start)
			if since != when || !slices.Equal(got, pieces) {
				t.Errorf("got the writes %q after %s, want %q after %s", got, since, pieces, when)
			}
			start = time.Now()
		}
		fmt.Fprint(w, "a\n")
		time.Sleep(batchDelay / 2)
		fmt.Fprint(w, "b\n")
		want(batchDelay / 2)
		time.Sleep(batchDelay / 2)
		want(batchDelay/2, "a\nb\n")
		fmt.Fprint(w, strings.Repeat("d", 26))
		want(0, strings.Repeat("d", 26))
		fmt.Fprint(w, "e\n")
		w.Close(time.Minute)
		want(0, "e\n")
	})
}

// TestCloseDoesNotWaitForever checks that Close returns after its timeout if the destination blocks.
func TestCloseDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, start := newBlockedWriter(), time.Now()
		w := NewWriter(to, 100)
		fmt.Fprint(w, "a\n")
		w.Close(5 * time.Second)
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("Close waited for %s, want 5s", waited)
		}
		close(to.release)
	})
}

// TestLinesStayWhole checks that the lines of many goroutines are not mixed.
func TestLinesStayWhole(t *testing.T) {
	var to bytes.Buffer
	w := NewWriter(&to, 1<<20)
	log := NewLogger(w, slog.LevelInfo, "json")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				log.Info("a line", "with", strings.Repeat("x", 100))
			}
		})
	}
	all.Wait()
	w.Close(time.Minute)
	lines := strings.Split(strings.TrimSpace(to.String()), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}") {
			t.Fatalf("%q is not one whole JSON object", line)
		}
	}
	if len(lines) != 800 || w.Dropped() != 0 {
		t.Errorf("got %d lines and %d dropped lines, want 800 and 0", len(lines), w.Dropped())
	}
}

// TestTheLevelChanges checks the text format, and that the level of a logger in use can be changed.
func TestTheLevelChanges(t *testing.T) {
	var to bytes.Buffer
	var level slog.LevelVar
	log := NewLogger(&to, &level, "text")
	log.Debug("one")
	level.Set(slog.LevelDebug)
	log.Debug("two", "a", 1)
	if got := to.String(); strings.Contains(got, "one") || !strings.Contains(got, "level=DEBUG msg=two a=1\n") {
		t.Errorf("got the log %q, want only the message two", got)
	}
}

// failingWriter is a writer whose writes all return an error. takes is the number of bytes that the writer still accepts.
type failingWriter struct{ takes int }

func (f *failingWriter) Write(b []byte) (int, error) {
	n := min(f.takes, len(b))
	f.takes -= n
	return n, io.ErrClosedPipe
}

// TestLinesThatCannotBeWrittenAreCounted checks that Dropped counts the lines that a failed write did not write completely.
func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	w := NewWriter(&failingWriter{takes: 8}, 100)
	fmt.Fprint(w, "one..\ntwo..\nthree\n")
	w.Close(time.Minute)
	if w.Dropped() != 2 {
		t.Errorf("%d lines are counted as lost, want 2", w.Dropped())
	}
}
