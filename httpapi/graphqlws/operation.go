package graphqlws

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/semaphore"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/internal/market"
)

// operation is one that the client has started and that has not ended yet.
type operation struct {
	socket *socket
	id     string
	// next begins the frames of responses.
	next   []byte
	member *fanout.Member

	// The socket's lock protects these. queued tells that it is among those that are ready, over that it has ended for the
	// client.
	queued, over bool
	// once tells that it ends by itself, as far as is known; cancel makes it. turn tells that it has one of the socket's turns.
	once, turn bool
	cancel     context.CancelFunc
}

// maxResults is the number of operations that end by themselves which are carried out at once on a socket, or whose response
// waits to be written: what a client does not read is not even made.
const maxResults = 10

// begin handles a subscribe.
func (k *socket) begin(id string, payload json.RawMessage) bool {
	cfg := &k.server.cfg
	op := &operation{socket: k, id: id, next: fmt.Appendf(nil, `{"id":%s,"type":"next","payload":`, quote(id)), once: true}
	op.member = fanout.NewMember(op.wake)

	k.mu.Lock()
	_, taken := k.operations[id]
	gone := k.draining || k.closing
	full := len(k.operations) >= cfg.Operations
	k.mu.Unlock()
	var err error
	switch {
	case taken:
		return k.close(codeSubscriber, "Subscriber for "+id+" already exists")
	case gone:
		return true // the client is told to connect again
	case full:
		err = market.Errorf(market.CodeRateLimited, "more than %d operations at once on one connection", cfg.Operations)
	default:
		err = cfg.Quota.Begin(k.client)
	}
	if err != nil {
		return k.reply(failed(id, cfg.Operator.Refuse(k.ctx, err)))
	}

	// It is among the operations before it starts, so that it can end at once. Only this goroutine adds any.
	k.mu.Lock()
	if k.draining || k.closing {
		k.mu.Unlock()
		cfg.Quota.End(k.client)
		return true
	}
	if k.operations == nil {
		k.operations = make(map[string]*operation)
	}
	k.operations[id] = op
	k.once++
	k.mu.Unlock()
	k.server.operations.Add(1)

	k.deep = true
	once, errors, malformed := cfg.Operator.Operate(k.ctx, payload, op.member)
	switch {
	case malformed != nil:
		return k.close(codeBadRequest, malformed.Error())
	case errors != nil:
		op.member.Finish(fanout.End{Errors: errors})
	case once == nil:
		k.settle(op)
	default:
		ctx, cancel := context.WithCancel(k.ctx)
		k.mu.Lock()
		op.cancel = cancel
		over := op.over
		k.mu.Unlock()
		if over {
			cancel()
		}
		if k.turns == nil {
			k.turns = semaphore.NewWeighted(maxResults)
		}
		k.work.Go(func() {
			defer cancel()
			if k.take(ctx, op) {
				once(ctx)
			}
		})
	}
	return true
}

// take waits for a turn of an operation, which settle gives back. It returns false when the operation has ended.
func (k *socket) take(ctx context.Context, op *operation) bool {
	if k.turns.Acquire(ctx, 1) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if op.turn = op.once; !op.turn {
		k.turns.Release(1)
	}
	return op.turn
}

// complete handles a complete, which may have crossed the end of the operation.
func (k *socket) complete(id string) bool {
	k.mu.Lock()
	op := k.operations[id]
	k.mu.Unlock()
	if op != nil {
		k.release(op)
		k.settle(op)
	}
	return true
}

// release ends an operation, of which nothing more is heard and whose id is free. It reports whether it had not ended yet.
func (k *socket) release(op *operation) bool {
	k.mu.Lock()
	if op.over {
		k.mu.Unlock()
		return false
	}
	op.over = true
	delete(k.operations, op.id)
	if op.cancel != nil {
		op.cancel()
	}
	k.mu.Unlock()
	op.member.Leave()
	k.server.cfg.Quota.End(k.client)
	k.server.operations.Add(-1)
	return true
}

// settle tells that nobody need wait for an operation: it is a subscription, or its end was sent.
func (k *socket) settle(op *operation) {
	k.mu.Lock()
	if op.once {
		op.once = false
		k.once--
	}
	if op.turn {
		op.turn = false
		k.turns.Release(1)
	}
	done := k.draining && k.once == 0
	k.mu.Unlock()
	if done {
		k.restart()
	}
}
