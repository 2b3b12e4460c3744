package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Writer is a buffered, asynchronous writer of log lines. A goroutine writes the buffer to the destination. Write does not block.
// If a line does not fit into the buffer, Write drops and counts the line. Writer is safe for concurrent use. Close writes the
// remaining lines.
type Writer struct {
	to      io.Writer
	dropped atomic.Uint64
	// done is closed when the goroutine has ended.
	done chan struct{}

	// mu protects waiting, spare, busy and closed.
	mu sync.Mutex
	// waiting contains the buffered lines. spare is the memory of the previous write, for reuse.
	waiting, spare []byte
	limit          int
	// busy is true while the goroutine gathers or writes lines. closed is true after Close.
	busy, closed bool
	// changed is signalled when the goroutine must wake up.
	changed sync.Cond
	// hurry makes the goroutine write before batchDelay has passed.
	hurry chan struct{}
}

// batchDelay is the time for which the goroutine waits for more lines before it writes. Without this delay, the goroutine would
// wake up for each line, and a wake-up takes longer than the formatting of a line.
const batchDelay = 2 * time.Millisecond

// NewWriter returns a Writer for a destination. limit is the largest number of bytes that the Writer buffers. The lines that the
// Writer is writing do not count.
func NewWriter(to io.Writer, limit int) *Writer {
	w := &Writer{to: to, limit: limit, done: make(chan struct{}), hurry: make(chan struct{}, 1)}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// Write buffers a line. It drops and counts the line if there is no space, or after Close. It never returns an error.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(line) > w.limit {
		w.dropped.Add(1)
	} else {
		if len(w.waiting) == 0 && !w.busy {
			w.changed.Broadcast() // while busy is true, the goroutine needs no signal
		}
		w.waiting = append(w.waiting, line...)
		if len(w.waiting) > w.limit/4 {
			w.hasten()
		}
	}
	return len(line), nil
}

// crowded reports whether the buffer is more than half full.
func (w *Writer) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > w.limit/2
}

// Dropped returns the number of lines that Write has dropped or that could not be written.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// hasten makes the goroutine write the buffered lines now.
func (w *Writer) hasten() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

// Close writes the remaining lines and stops the goroutine. It waits at most maxWait, because the destination may block.
func (w *Writer) Close(maxWait time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.mu.Unlock()
	w.hasten()
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case <-w.done:
	case <-timeout.C:
	}
}

// run writes the buffered lines until Close is called and no lines are left.
func (w *Writer) run() {
	defer close(w.done)
	delay := time.NewTimer(batchDelay)
	defer delay.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.waiting) == 0 && !w.closed {
			w.changed.Wait()
		}
		if len(w.waiting) == 0 {
			return
		}
		w.busy = true
		w.mu.Unlock()
		delay.Reset(batchDelay)
		select {
		case <-delay.C:
		case <-w.hurry:
		}
		w.mu.Lock()
		lines := w.waiting
		w.waiting, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		if n, err := w.to.Write(lines); err != nil { // an error of the log cannot be logged
			w.dropped.Add(uint64(bytes.Count(lines[min(max(n, 0), len(lines)):], []byte{'\n'})))
		}
		w.mu.Lock()
		w.spare, w.busy = lines, false
	}
}
