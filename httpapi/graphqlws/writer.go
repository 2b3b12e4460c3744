package graphqlws

import (
	"context"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/fanout"
)

// maxReplies is how many bytes of answers may wait to be written before no more is read, unless it is a single one.
const maxReplies = 4 << 10

// reply sends a frame before all that waits. It waits while the client does not read its answers.
func (k *socket) reply(frame []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.replies) > 0 && k.replyBytes+len(frame) > maxReplies && !k.closing {
		k.room.Wait()
	}
	k.replies = append(k.replies, frame)
	k.replyBytes += len(frame)
	k.start()
	return !k.closing
}

// wake tells that the operation has something to send.
func (op *operation) wake(*fanout.Member) {
	k := op.socket
	k.mu.Lock()
	defer k.mu.Unlock()
	if !op.queued && !op.over {
		op.queued = true
		k.ready = append(k.ready, op)
		k.start()
	}
}

// start starts the writer where there is none. The lock is held.
func (k *socket) start() {
	if !k.flushing && !k.closing {
		k.flushing = true
		k.work.Add(1)
		go k.flush()
	}
}

// write writes what there is.
func (k *socket) write() {
	defer k.work.Done()
	for {
		frame, op, ok := k.pick()
		switch {
		case !ok:
			return
		case op == nil:
			ok = k.put(frame)
		default:
			ok = k.advance(op)
		}
		if !ok {
			return
		}
	}
}

// pick takes what is to be written next: a frame, or the next of an operation. ok is false when there is nothing, and the
// writer has to end.
func (k *socket) pick() (frame []byte, op *operation, ok bool) {
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
		k.room.Signal()
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

// advance sends the next frame of an operation. It returns false when the socket is broken.
func (k *socket) advance(op *operation) bool {
	payload, over, end := op.member.Take()
	switch {
	case payload != nil:
		buf := buffer(len(op.next) + len(payload) + 1)
		buf.Write(op.next)
		buf.Write(payload)
		buf.WriteByte('}')
		ok := k.put(buf.Bytes())
		putBuffer(buf)
		op.member.Written()
		op.wake(nil) // there may be more
		return ok
	case !over:
		return true
	case !k.release(op): // before the client hears of it, since it may use the id again then
		return true // the client has ended it
	}
	if end.Unread {
		k.server.crowded.Add(1)
		return k.close(codeTryAgainLater, "Too much waits to be read")
	}
	errors := end.Errors
	if end.Err != nil {
		errors = k.server.cfg.Operator.Errors(k.ctx, end.Err)
	}
	frame := completed(op.id)
	if errors != nil {
		frame = failed(op.id, errors)
	}
	ok := k.put(frame)
	k.settle(op)
	return ok
}

// put writes a frame. It returns false when the socket is broken.
func (k *socket) put(frame []byte) bool {
	k.writing.Store(monotonic())
	// Without a deadline, which would cost eleven allocations: look closes the connection when this takes too long.
	err := k.conn.Write(context.Background(), websocket.MessageText, frame)
	k.writing.Store(0)
	if err != nil {
		k.abort() // which ends the reader
	}
	return err == nil
}
