package telemetry

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// oneOf is how many of those that went well one line stands for when there are too many of them.
const oneOf = 100

// sampling says which of those that went well have a line. It is safe for concurrent use.
type sampling struct {
	lines *Writer // nil where it is not known how much room there is
	above int64
	// second is the one that is counted in, seen how many have gone well in it.
	second, seen atomic.Int64
}

// linesOf returns what a logger of NewLogger writes to, if that is known.
func linesOf(log *slog.Logger) *Writer {
	if h, ok := log.Handler().(*idHandler); ok {
		w, _ := h.to.(*Writer)
		return w
	}
	return nil
}

// weight returns how many of those that went well a line of this one stands for: 0 where it has none.
func (s *sampling) weight(now time.Time) int {
	if s.lines != nil && s.lines.crowded() {
		return 0 // the room that is left is for failures
	}
	if second, last := now.Unix(), s.second.Load(); second != last && s.second.CompareAndSwap(last, second) {
		s.seen.Store(0)
	}
	switch n := s.seen.Add(1); {
	case n <= s.above:
		return 1
	case (n-s.above)%oneOf == 0:
		return oneOf
	}
	return 0
}
