package graphqlws

import (
	"bytes"
	"context"

	"github.com/coder/websocket"
)

// maxReplies is the number of bytes of waiting replies above which the socket stops reading. A single reply may be larger.
const maxReplies = 4 << 10

// reply queues a frame that is sent before all waiting responses. If too many replies are queued already, reply waits until the
// writer has taken some of them. It returns false if the socket is closing.
func (k *socket) reply(frame []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.replies) > 0 && k.replyBytes+len(frame) > maxReplies && !k.closing {
		k.replyTaken.Wait()
	}
	k.replies = append(k.replies, frame)
	k.replyBytes += len(frame)
	k.startWriter()
	return !k.closing
}

// wake queues the operation for the writer, except if the operation is queued already or has ended.
func (op *operation) wake() {
	k := op.socket
	k.mu.Lock()
	defer k.mu.Unlock()
	if !op.queued && !op.over {
		op.queued = true
		k.ready = append(k.ready, op)
		k.startWriter()
	}
}

func (k *socket) startWriter() {
	if !k.flushing && !k.closing {
		k.flushing = true
		k.work.Add(1)
		go k.flush()
	}
}

func (k *socket) write() {
	defer k.work.Done()
	for {
		frame, op, ok := k.next()
		switch {
		case !ok:
			return
		case op == nil:
			ok = k.put(frame)
		default:
			ok = k.send(op)
		}
		if !ok {
			return
		}
	}
}

// next returns the next frame to write, or an operation that may have a frame. ok is false if there is nothing to write or if
// the socket is closing. The writer must then end.
func (k *socket) next() (frame []byte, op *operation, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closing:
		return nil, nil, false
	case len(k.replies) > 0:
		frame = k.replies[0]
		k.replyBytes -= len(frame)
		k.replies[0] = nil
		if k.replies = k.replies[1:]; len(k.replies) == 0 {
			k.replies = nil
		}
		k.replyTaken.Signal()
		return frame, nil, true
	case len(k.ready) > 0:
		op = k.ready[0]
		copy(k.ready, k.ready[1:])
		k.ready[len(k.ready)-1] = nil
		k.ready = k.ready[:len(k.ready)-1]
		op.queued = false
		return nil, op, true
	default:
		k.flushing = false
		return nil, nil, false
	}
}

// send sends the next frame of an operation. It returns false if the connection is broken or closing.
func (k *socket) send(op *operation) bool {
	payload, over, end := op.member.Take()
	switch {
	case payload != nil:
		buf, _ := buffers.Get().(*bytes.Buffer)
		buf.Grow(len(op.prefix) + len(payload) + 1)
		buf.Write(op.prefix)
		buf.Write(payload)
		buf.WriteByte('}')
		ok := k.put(buf.Bytes())
		putBuffer(buf)
		op.member.Written()
		op.wake() // the operation may have more frames
		return ok
	case !over:
		return true
	case !k.release(op): // the id must be free before the client gets the frame that ends the operation
		return true // the client has completed the operation, or the socket is closing
	}
	if end.Unread {
		k.server.crowded.Add(1)
		return k.close(codeTryAgainLater, "Too much waits to be read")
	}
	errors := end.Errors
	if end.Err != nil {
		errors = k.server.cfg.Operator.Errors(k.ctx, end.Err)
	}
	frame := completeFrame(op.id)
	if errors != nil {
		frame = errorFrame(op.id, errors)
	}
	ok := k.put(frame)
	k.settle(op)
	return ok
}

// put writes a frame. It returns false when the connection is broken.
func (k *socket) put(frame []byte) bool {
	k.writeStart.Store(monotonic())
	// A write deadline would cost eleven allocations. Instead, socket.check closes the connection if a write takes too long.
	err := k.conn.Write(context.Background(), websocket.MessageText, frame)
	k.writeStart.Store(0)
	if err != nil {
		k.abort() // also ends the goroutine that reads
	}
	return err == nil
}
