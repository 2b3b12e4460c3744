package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Writer is a buffered, asynchronous writer of log lines. Write does not block; lines without space in the buffer are dropped
// and counted. It is safe for concurrent use. Close writes the remaining lines.
type Writer struct {
	to      io.Writer
	dropped atomic.Uint64
	// done is closed when the goroutine has ended.
	done chan struct{}

	// mu protects the fields below.
	mu sync.Mutex
	// waiting contains whole lines. spare is the buffer of the previous write, which is reused.
	waiting, spare []byte
	limit          int
	// busy reports whether lines are being written.
	busy, closed bool
	// changed is signalled when lines arrive and when all lines are written.
	changed sync.Cond
	// hurry ends batchDelay early.
	hurry chan struct{}
}

// batchDelay is the time for which a line waits for more lines, because waking the goroutine takes longer than formatting a
// line.
const batchDelay = 2 * time.Millisecond

// NewWriter returns a writer to `to` that buffers at most limit bytes.
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
			w.changed.Broadcast() // a writing goroutine checks again without a signal
		}
		w.waiting = append(w.waiting, line...)
		if len(w.waiting) > w.limit/4 {
			w.hasten()
		}
	}
	return len(line), nil
}

// crowded reports whether the buffer is more than half full. Unimportant lines should be skipped then.
func (w *Writer) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > w.limit/2
}

// Dropped returns the number of lines lost since the start, for lack of space or because a write failed.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// hasten makes the goroutine write the buffered lines now.
func (w *Writer) hasten() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

// Flush waits until all lines buffered so far are written.
func (w *Writer) Flush() {
	w.hasten()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy || len(w.waiting) > 0 {
		w.changed.Wait()
	}
}

// Close writes the remaining lines and stops the goroutine. It returns after patience at the latest, because the destination may
// block.
func (w *Writer) Close(patience time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.mu.Unlock()
	w.hasten()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-w.done:
	case <-late.C:
	}
}

// run writes all buffered lines together.
func (w *Writer) run() {
	defer close(w.done)
	gathered := time.NewTimer(batchDelay)
	defer gathered.Stop()
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
		gathered.Reset(batchDelay)
		select {
		case <-gathered.C:
		case <-w.hurry:
		}
		w.mu.Lock()
		lines := w.waiting
		w.waiting, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		if n, err := w.to.Write(lines); err != nil { // a failing log can't report its own failure
			w.dropped.Add(uint64(bytes.Count(lines[min(max(n, 0), len(lines)):], []byte{'\n'})))
		}
		w.mu.Lock()
		w.spare, w.busy = lines, false
		if len(w.waiting) == 0 {
			w.changed.Broadcast()
		}
	}
}
