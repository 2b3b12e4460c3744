package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Writer hands what is logged to another writer behind the backs of those who log, who never wait for it: what finds no
// room is dropped and counted. It is safe for concurrent use. Close it to have everything written.
type Writer struct {
	to      io.Writer
	dropped atomic.Uint64
	// done is closed when the goroutine has ended.
	done chan struct{}

	// mu protects the rest.
	mu sync.Mutex
	// waiting holds whole lines, spare the memory of those that were written before.
	waiting, spare []byte
	limit          int
	// busy tells that lines are being written.
	busy, closed bool
	// changed is signalled when there are lines to write, and when all of them are written.
	changed sync.Cond
	// hurry has lines written that others are waited for to join.
	hurry chan struct{}
}

// gathering is how long lines wait for others to be written with them, since to wake whoever writes them takes longer than to
// make a line.
const gathering = 2 * time.Millisecond

// NewWriter returns a writer that holds at most limit bytes which to has not taken yet.
func NewWriter(to io.Writer, limit int) *Writer {
	w := &Writer{to: to, limit: limit, done: make(chan struct{}), hurry: make(chan struct{}, 1)}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// Write takes a line, or drops it and counts it where there is no room, or after Close. It never fails.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(line) > w.limit {
		w.dropped.Add(1)
	} else {
		if len(w.waiting) == 0 && !w.busy {
			w.changed.Broadcast() // else the writer looks again by itself
		}
		w.waiting = append(w.waiting, line...)
		if len(w.waiting) > w.limit/4 {
			w.hasten()
		}
	}
	return len(line), nil
}

// crowded reports whether more than half of the room is taken, so that what matters little had better stay away.
func (w *Writer) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > w.limit/2
}

// Dropped returns how many lines were lost since the start: no room was left for them, or writing them failed.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// hasten has what is waiting written now.
func (w *Writer) hasten() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

// Flush waits until everything that was taken before is written.
func (w *Writer) Flush() {
	w.hasten()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy || len(w.waiting) > 0 {
		w.changed.Wait()
	}
}

// Close writes what is left and ends the goroutine of the writer. It waits at most so long, since whoever should read the
// lines may have stopped to.
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

// run writes what is there, all of it at once.
func (w *Writer) run() {
	defer close(w.done)
	gathered := time.NewTimer(gathering)
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
		gathered.Reset(gathering)
		select {
		case <-gathered.C:
		case <-w.hurry:
		}
		w.mu.Lock()
		lines := w.waiting
		w.waiting, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		if n, err := w.to.Write(lines); err != nil { // there is no log to report it in
			w.dropped.Add(uint64(bytes.Count(lines[min(max(n, 0), len(lines)):], []byte{'\n'})))
		}
		w.mu.Lock()
		w.spare, w.busy = lines, false
		if len(w.waiting) == 0 {
			w.changed.Broadcast()
		}
	}
}
