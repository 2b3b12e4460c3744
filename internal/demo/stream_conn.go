package demo

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// frame is a message to clients. All receivers share its bytes.
type frame struct {
	data []byte
	kind frameKind
}

// streamConn is a client's connection. The goroutine of the HTTP request reads frames and a second goroutine writes them. Senders
// push frames into the queue and never wait.
type streamConn struct {
	v   *Venue
	ws  *websocket.Conn
	raw net.Conn

	wake    chan struct{} // capacity 1; signals work for the writer
	drained chan struct{} // capacity 1; signals that the queue is at most half full
	gone    chan struct{} // closed when nothing more can be read
	written chan struct{} // closed when the writer has ended
	greeted atomic.Bool   // hello was sent

	mu          sync.Mutex // guards the fields below up to reason; locked after all other mutexes
	queue       []frame
	head        int  // index of the first waiting frame in queue
	bytes       int  // bytes of the waiting frames
	readerWaits bool // the reader waits for a signal on drained
	ending      bool
	code        int // close code to send when the queue is empty
	reason      string

	// Used only by the reader. handleWindow bounds the frames that the reader handles in a second. If the client sends more frames
	// than receiveWindow admits, the venue closes the connection.
	handleWindow, receiveWindow window1s
	addresses                   map[string]bool // authenticated addresses

	// Changed by the reader under the venue's lock.
	subs  map[topicKey]*subscription
	turns [channels][]*subscription // by channel, in the order in which heartbeats list the topics
	// Used only by the writer. For each channel, the index in turns of the last topic that the previous heartbeat listed.
	lastBeat [channels]int
}

func (c *streamConn) serve() {
	c.v.stream.counts.opened.Add(1)
	limits := &c.v.stream.limits
	c.ws.SetReadLimit(int64(limits.frameBytes))
	c.handleWindow, c.receiveWindow = newWindow1s(limits.framesPerSecond), newWindow1s(2*limits.framesPerSecond)
	c.addresses = make(map[string]bool)

	c.v.mu.RLock() // the epoch must not change between greet and greeted.Store
	c.greet()
	c.greeted.Store(true)
	c.v.mu.RUnlock()
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

// push queues a frame. If too many frames wait, push closes the connection. If the connection is ending, push does nothing.
func (c *streamConn) push(f frame) {
	defer c.signal()
	c.mu.Lock()
	defer c.mu.Unlock()
	limits := &c.v.stream.limits
	waiting := len(c.queue) - c.head
	switch {
	case c.ending:
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

// end closes the connection. If immediate is false, the writer first sends the waiting frames.
func (c *streamConn) end(code int, reason string, immediate bool) {
	c.mu.Lock()
	c.finish(code, reason, immediate)
	c.mu.Unlock()
	c.signal()
}

// finish does what end does, for callers that hold c.mu and then signal the writer.
func (c *streamConn) finish(code int, reason string, immediate bool) {
	if c.ending {
		return
	}
	c.ending, c.code, c.reason = true, code, reason
	if immediate {
		c.queue, c.head, c.bytes = nil, 0, 0
	}
	c.relieve()
}

// waitForRoom waits until the queue is at most half full or the connection ends. The reader calls waitForRoom before it queues a
// snapshot, so that answers to many requests do not overflow the queue.
func (c *streamConn) waitForRoom() {
	c.mu.Lock()
	c.readerWaits = !c.ending && c.moreThanHalfFull()
	wait := c.readerWaits
	c.mu.Unlock()
	if wait {
		select {
		case <-c.drained:
		case <-c.written:
		}
	}
}

func (c *streamConn) moreThanHalfFull() bool {
	limits := &c.v.stream.limits
	return len(c.queue)-c.head > limits.queue/2 || c.bytes > limits.queueBytes/2
}

// relieve wakes a reader that waits in waitForRoom, if the queue is at most half full or the connection is ending.
func (c *streamConn) relieve() {
	if c.readerWaits && (c.ending || !c.moreThanHalfFull()) {
		c.readerWaits = false
		c.drained <- struct{}{} // does not block: only relieve sends, once for each wait of the reader
	}
}

func (c *streamConn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next removes and returns the next frame of the queue. ok is false if the queue is empty. over is true if no more frames will
// come.
func (c *streamConn) next() (f frame, ok, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == len(c.queue) {
		return f, false, c.ending
	}
	f = c.queue[c.head]
	c.queue[c.head] = frame{}
	c.head++
	c.bytes -= len(f.data)
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
	c.relieve()
	return f, true, false
}

// write sends queued frames and heartbeats until the connection ends.
func (c *streamConn) write() {
	defer close(c.written)
	beat := time.NewTicker(c.v.config.Heartbeat)
	defer beat.Stop()
	for {
		f, ok, over := c.next()
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
		}
		select {
		case <-c.wake:
		case <-beat.C:
			c.beat()
		case <-c.gone:
			c.cut()
			return
		}
	}
}

// close sends a close frame and disconnects a client that doesn't answer.
func (c *streamConn) close() {
	c.v.stream.counts.countClose(c.code)
	_ = c.raw.SetDeadline(time.Now().Add(c.v.stream.limits.goodbye))
	_ = c.ws.Close(websocket.StatusCode(c.code), c.reason)
}

// cut closes the connection without a close frame.
func (c *streamConn) cut() {
	c.end(0, "", true)
	_ = c.raw.Close()
}

// beat sends a heartbeat with the sequence numbers of some of the topics.
func (c *streamConn) beat() {
	c.v.mu.RLock()
	defer c.v.mu.RUnlock()
	c.push(c.heartbeat())
}

// window1s admits at most len(times) frames in any period of one second.
type window1s struct {
	times []time.Time
	next  int
}

func newWindow1s(n int) window1s { return window1s{times: make([]time.Time, n)} }

// take admits and counts a frame, and returns 0. If the window is full, take returns the time until it can admit a frame.
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
