package telemetry

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// sampleRate is the number of successes for which one line is logged. It applies after sampling.limit successes in the same second.
const sampleRate = 100

// sampling selects the successes that are logged. It is safe for concurrent use.
type sampling struct {
	lines *Writer // nil if the log does not write to a Writer
	limit int64   // number of successes in a second that are logged before the sampling begins
	// second is a time in seconds since 1970. successes is the number of successes in that second.
	second, successes atomic.Int64
}

// linesOf returns the Writer to which a logger writes, or nil if the logger writes to another type of writer.
func linesOf(log *slog.Logger) *Writer {
	if h, ok := log.Handler().(*idHandler); ok {
		w, _ := h.writer.(*Writer)
		return w
	}
	return nil
}

// weight returns the number of successes that the line of this success represents, or 0 if this success must not be logged.
func (s *sampling) weight(now time.Time) int {
	if s.lines != nil && s.lines.crowded() {
		return 0 // keep the remaining space for failures
	}
	if second, last := now.Unix(), s.second.Load(); second != last && s.second.CompareAndSwap(last, second) {
		s.successes.Store(0)
	}
	switch n := s.successes.Add(1); {
	case n <= s.limit:
		return 1
	case (n-s.limit)%sampleRate == 0:
		return sampleRate
	}
	return 0
}
