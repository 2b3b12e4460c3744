package demo

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// frame is a message to a client. Its bytes are shared by all who get it.
type frame struct {
	data []byte
	kind frameKind
	// whole is set in frames that state all there is of a topic rather than a change.
	whole bool
}

// streamConn is a client's connection. The goroutine of its request reads, another one writes; whoever has something to say
// pushes it into the queue and never waits.
type streamConn struct {
	v   *Venue
	ws  *websocket.Conn
	raw net.Conn

	wake    chan struct{} // holds one: there is something for the writer
	drained chan struct{} // holds one: the queue is no more than half full
	gone    chan struct{} // closed when nothing more can be read
	written chan struct{} // closed when the writer has ended
	greeted atomic.Bool   // hello was said

	mu      sync.Mutex // guards what follows; taken last
	queue   []frame
	head    int  // of the first frame in queue that waits
	bytes   int  // of the frames that wait
	crowded bool // the reader waits for drained
	ending  bool
	code    int // with which to close when the queue is empty
	reason  string
	stalled time.Time        // until when nothing is sent or taken
	held    map[*topic]frame // that follow the next one of their topic
	delayed []delayedFrame   // in no order

	// Owned by the reader: frames of the last second, and who may be listened to.
	passed, heard window1s
	addresses     map[string]bool

	// Changed by the reader under the venue's lock.
	subs  map[topicKey]*subscription
	turns [channels][]*subscription
	// Owned by the writer: where the next heartbeat goes on.
	beaten [channels]int
}

type delayedFrame struct {
	due   time.Time
	frame frame
}

// serve runs the connection until it ends.
func (c *streamConn) serve() {
	c.v.stream.counts.opened.Add(1)
	limits := &c.v.stream.limits
	c.ws.SetReadLimit(int64(limits.frameBytes))
	c.passed, c.heard = newWindow1s(limits.framesPerSecond), newWindow1s(2*limits.framesPerSecond)
	c.addresses = make(map[string]bool)

	c.v.mu.RLock() // no new epoch between the two
	c.greet()
	c.greeted.Store(true)
	c.v.mu.RUnlock()
	c.v.settleRestart()
	go c.write()

	for {
		kind, message, err := c.ws.Read(context.Background())
		if err != nil {
			break
		}
		c.receive(message, kind == websocket.MessageText)
	}
	c.v.leaveAll(c)
	close(c.gone)
	<-c.written
	_ = c.ws.CloseNow()
}

// push queues a frame. A client that lets too many of them wait is closed.
func (c *streamConn) push(f frame) {
	c.mu.Lock()
	c.add(f)
	c.mu.Unlock()
	c.signal()
}

// add is push with the lock held and without a signal.
func (c *streamConn) add(f frame) {
	limits := &c.v.stream.limits
	waiting := len(c.queue) - c.head
	switch {
	case c.deaf():
	case waiting >= limits.queue || waiting > 0 && c.bytes+len(f.data) > limits.queueBytes:
		c.finish(CloseSlow, "frames are read too slowly", true)
	default:
		if c.head > len(c.queue)/2 && len(c.queue) == cap(c.queue) {
			c.queue = c.queue[:copy(c.queue, c.queue[c.head:])]
			c.head = 0
		}
		c.queue = append(c.queue, f)
		c.bytes += len(f.data)
	}
}

// deaf reports whether nothing is sent or taken any more, or for the time being.
func (c *streamConn) deaf() bool {
	return c.ending || !c.stalled.IsZero() && time.Now().Before(c.stalled)
}

// end closes the connection, after what waits unless now is set.
func (c *streamConn) end(code int, reason string, now bool) {
	c.mu.Lock()
	c.finish(code, reason, now)
	c.mu.Unlock()
	c.signal()
}

// finish is end with the lock held and without a signal.
func (c *streamConn) finish(code int, reason string, now bool) {
	if c.ending {
		return
	}
	c.ending, c.code, c.reason = true, code, reason
	c.drop(now)
	c.relieve()
}

// room waits until the queue is no more than half full. What a client asks for itself must not make it too slow: its requests
// wait instead.
func (c *streamConn) room() {
	c.mu.Lock()
	c.crowded = !c.ending && c.half()
	wait := c.crowded
	c.mu.Unlock()
	if wait {
		select {
		case <-c.drained:
		case <-c.written:
		}
	}
}

// half reports whether the queue is more than half full.
func (c *streamConn) half() bool {
	limits := &c.v.stream.limits
	return len(c.queue)-c.head > limits.queue/2 || c.bytes > limits.queueBytes/2
}

// relieve lets the reader go on if it waits for that.
func (c *streamConn) relieve() {
	if c.crowded && (c.ending || !c.half()) {
		c.crowded = false
		c.drained <- struct{}{} // has room: nobody else sends, and only when the reader waits
	}
}

// drop forgets what is held back and, when all is set, what waits.
func (c *streamConn) drop(all bool) {
	c.v.stream.held.Add(-int64(len(c.held)))
	c.held, c.delayed = nil, nil
	if all {
		c.queue, c.head, c.bytes = nil, 0, 0
	}
}

func (c *streamConn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next takes the next frame out of the queue; over tells that there will be none. Without a frame, at is when one falls due,
// if that is known.
func (c *streamConn) next() (f frame, ok, over bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.delayed) > 0 {
		at = c.release(time.Now())
	}
	if c.head == len(c.queue) {
		return f, false, c.ending, at
	}
	f = c.queue[c.head]
	c.queue[c.head] = frame{}
	c.head++
	c.bytes -= len(f.data)
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	c.relieve()
	return f, true, false, at
}

// release queues the delayed frames that are due and returns when the next one is.
func (c *streamConn) release(now time.Time) (next time.Time) {
	kept := c.delayed[:0]
	for _, d := range c.delayed {
		if !now.Before(d.due) {
			c.add(d.frame)
			continue
		}
		if next.IsZero() || d.due.Before(next) {
			next = d.due
		}
		kept = append(kept, d)
	}
	if !c.ending {
		c.delayed = kept
	}
	return next
}

// write sends what is queued until the connection ends, and a heartbeat once in a while.
func (c *streamConn) write() {
	defer close(c.written)
	beat := time.NewTicker(c.v.config.Heartbeat)
	defer beat.Stop()
	later := time.NewTimer(time.Hour)
	defer later.Stop()
	for {
		f, ok, over, at := c.next()
		switch {
		case ok:
			_ = c.raw.SetWriteDeadline(time.Now().Add(c.v.stream.limits.write))
			if c.ws.Write(context.Background(), websocket.MessageText, f.data) != nil {
				c.cut()
				return
			}
			c.v.stream.counts.frames[f.kind].Add(1)
			continue
		case over:
			c.close()
			return
		case !at.IsZero():
			later.Reset(time.Until(at))
		}
		select {
		case <-c.wake:
		case <-beat.C:
			c.beat()
		case <-later.C:
		case <-c.gone:
			c.cut()
			return
		}
	}
}

// close says goodbye, and cuts off a client that doesn't answer.
func (c *streamConn) close() {
	c.v.stream.counts.closed(c.code)
	_ = c.raw.SetDeadline(time.Now().Add(c.v.stream.limits.goodbye))
	_ = c.ws.Close(websocket.StatusCode(c.code), c.reason)
}

// cut ends the connection without a word.
func (c *streamConn) cut() {
	c.end(0, "", true)
	_ = c.raw.Close()
}

// beat sends a heartbeat with the sequence numbers of some of the topics.
func (c *streamConn) beat() {
	v := c.v
	v.mu.RLock()
	c.reply(c.heartbeat())
	v.mu.RUnlock()
	v.settleRestart()
}

// window1s lets so many through in any second.
type window1s struct {
	times []time.Time
	next  int
}

func newWindow1s(n int) window1s { return window1s{times: make([]time.Time, n)} }

// take counts one if it may pass, else it returns how long to wait.
func (w *window1s) take(now time.Time) (wait time.Duration) {
	if oldest := w.times[w.next]; !oldest.IsZero() {
		if wait = oldest.Add(time.Second).Sub(now); wait > 0 {
			return wait
		}
	}
	w.times[w.next] = now
	w.next = (w.next + 1) % len(w.times)
	return 0
}
