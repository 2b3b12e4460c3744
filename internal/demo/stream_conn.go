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
	// whole is true if the frame has the whole state of a topic, not a change.
	whole bool
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

	mu           sync.Mutex // guards the fields below up to delayed; locked after all other mutexes
	queue        []frame
	head         int  // index of the first waiting frame in queue
	bytes        int  // bytes of the waiting frames
	readerWaits  bool // the reader waits for a signal on drained
	ending       bool
	code         int // close code to send when the queue is empty
	reason       string
	stalledUntil time.Time        // end of a stall, during which new frames are ignored
	held         map[*topic]frame // frames to send after the next frame of their topic
	delayed      []delayedFrame   // unordered

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

type delayedFrame struct {
	due   time.Time
	frame frame
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

// push queues a frame. If too many frames wait, push closes the connection. If the connection is ending or stalled, push does
// nothing.
func (c *streamConn) push(f frame) {
	c.mu.Lock()
	c.add(f)
	c.mu.Unlock()
	c.signal()
}

// add does what push does, for callers that hold c.mu and then signal the writer.
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

// deaf reports whether the connection is ending or stalled. Such a connection ignores new frames of the venue and of the client.
func (c *streamConn) deaf() bool {
	return c.ending || !c.stalledUntil.IsZero() && time.Now().Before(c.stalledUntil)
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
	c.drop(immediate)
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

// drop removes held and delayed frames. If all is true, drop also removes waiting frames.
func (c *streamConn) drop(all bool) {
	c.v.stream.heldFrames.Add(-int64(len(c.held)))
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

// next removes and returns the next frame of the queue. ok is false if the queue is empty. over is true if no more frames will
// come. at is the time of the next delayed frame, or the zero time if no frame is delayed.
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

// release queues the delayed frames that are due and returns the time when the next frame is due. It returns the zero time if no
// delayed frame is left.
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

// write sends queued frames and heartbeats until the connection ends.
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
	v := c.v
	v.mu.RLock()
	c.reply(c.heartbeat())
	v.mu.RUnlock()
	v.settleRestart()
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
