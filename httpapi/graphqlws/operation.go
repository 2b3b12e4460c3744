package graphqlws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

type operation struct {
	socket *socket
	id     string
	// prefix is the first part of each frame that contains a response. The payload follows it.
	prefix []byte
	member *fanout.Member
	// client is the client for which the operation counts.
	client quota.Client

	// queued reports whether the operation is in socket.ready. over reports whether the operation has ended for the client. The
	// socket's lock guards these and all following fields.
	queued, over bool
	// pending reports that a drain must wait for the operation. It is true at the start. It becomes false when the operation
	// turns out to be a subscription, when the end of the operation was sent, or when the client completes the operation.
	//
	// hasSlot reports whether the operation uses one of socket.slots.
	pending, hasSlot bool
	// cancel ends a query or mutation.
	cancel context.CancelFunc
}

// maxExecuting limits how many queries and mutations of a socket are executed at the same time. An operation counts until its
// response was written or the client completes the operation. So a client that does not read cannot cause further work.
const maxExecuting = 10

var errDuplicate, errClosing = errors.New("duplicate id"), errors.New("the socket is closing")

func (k *socket) begin(id string, payload json.RawMessage) bool {
	op := &operation{socket: k, id: id, prefix: fmt.Appendf(nil, `{"id":%s,"type":"next","payload":`, quote(id)), pending: true}
	op.member = fanout.NewMember(op.wake)
	switch err := k.register(op); {
	case errors.Is(err, errDuplicate):
		return k.close(codeSubscriber, "Subscriber for "+id+" already exists")
	case errors.Is(err, errClosing):
		return true // the close frame will tell the client to connect again
	case err != nil:
		return k.reply(errorFrame(id, k.server.cfg.Operator.Refuse(k.ctx, err)))
	}
	run, errors, malformed := k.server.cfg.Operator.Operate(k.ctx, payload, op.member)
	switch {
	case malformed != nil:
		return k.close(codeBadRequest, malformed.Error())
	case errors != nil:
		op.member.Finish(fanout.End{Errors: errors})
	case run == nil:
		k.settle(op)
	default:
		k.execute(op, run)
	}
	return true
}

// register adds an operation to the socket's operations. Call register before the operation starts, so that release finds an
// operation that ends at once. The error is errDuplicate, errClosing, or the reason for refusing the operation.
func (k *socket) register(op *operation) error {
	cfg := &k.server.cfg
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.operations[op.id] != nil:
		return errDuplicate
	case k.draining || k.closing:
		return errClosing
	case len(k.operations) >= cfg.Operations:
		return market.Errorf(market.CodeRateLimited, "more than %d operations at once on one connection", cfg.Operations)
	}
	op.client = cfg.Operator.Client(k.ctx)
	if err := cfg.Quota.Begin(op.client); err != nil {
		return err
	}
	if k.operations == nil {
		k.operations = make(map[string]*operation)
	}
	k.operations[op.id] = op
	k.pending++
	k.server.operations.Add(1)
	return nil
}

// execute starts a goroutine that calls run when acquireSlot has succeeded.
func (k *socket) execute(op *operation, run func(context.Context)) {
	ctx, cancel := context.WithCancel(k.ctx)
	k.mu.Lock()
	op.cancel = cancel
	over := op.over
	k.mu.Unlock()
	if over {
		cancel()
	}
	if k.slots == nil {
		k.slots = semaphore.NewWeighted(maxExecuting)
	}
	k.work.Go(func() {
		defer cancel()
		if k.acquireSlot(ctx, op) {
			run(ctx)
		}
	})
}

// acquireSlot waits until the operation gets one of socket.slots. settle releases that slot. acquireSlot returns false if the
// operation has ended.
func (k *socket) acquireSlot(ctx context.Context, op *operation) bool {
	if k.slots.Acquire(ctx, 1) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if op.hasSlot = op.pending; !op.hasSlot {
		k.slots.Release(1)
	}
	return op.hasSlot
}

// complete handles a complete message. The operation may already have ended.
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

// release ends an operation and makes its id available. Nothing more is sent for the operation. release returns false if the
// operation had already ended.
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
	k.server.cfg.Quota.End(op.client)
	k.server.operations.Add(-1)
	return true
}

// settle records that a drain need not wait for an operation: the operation is a subscription, its end was sent, or the client has
// completed it. settle also releases the slot of the operation.
func (k *socket) settle(op *operation) {
	k.mu.Lock()
	if op.pending {
		op.pending = false
		k.pending--
	}
	if op.hasSlot {
		op.hasSlot = false
		k.slots.Release(1)
	}
	done := k.draining && k.pending == 0
	k.mu.Unlock()
	if done {
		k.restart()
	}
}
