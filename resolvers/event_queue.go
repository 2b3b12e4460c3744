package resolvers

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
)

// eventQueue contains the events of a subscription that NextEvent has not returned yet. An event is a value, an error or the end.
// The subscription adds an event to the queue before it sends the event's value on its channel. eventQueue is safe for concurrent
// use.
type eventQueue struct {
	mu    sync.Mutex
	begun bool
	queue []StreamEvent
	// grown gets a value when the queue grows.
	grown chan struct{}
}

// StreamEvent announces the next event of a subscription. The zero StreamEvent means that the next event is a value on the
// subscription's channel.
type StreamEvent struct {
	// Problem is an error to send instead of a value. If Ended is set, Problem is the error that has ended the subscription, or nil.
	Problem error
	// Ended reports that the subscription has ended.
	Ended bool
}

type eventQueueKey struct{}

// WithEventQueue returns a context with an event queue. NextEvent returns the events of a subscription from the queue.
func WithEventQueue(ctx context.Context) context.Context {
	return context.WithValue(ctx, eventQueueKey{}, &eventQueue{grown: make(chan struct{}, 1)})
}

// queueOf returns the queue of ctx. If ctx has no queue, it returns a new queue that nobody reads.
func queueOf(ctx context.Context) *eventQueue {
	if t, ok := ctx.Value(eventQueueKey{}).(*eventQueue); ok {
		return t
	}
	return &eventQueue{grown: make(chan struct{}, 1)}
}

// NextEvent waits for the next event of the subscription of ctx. It returns an event with Ended if the subscription has not begun,
// or when ctx ends.
func NextEvent(ctx context.Context) StreamEvent {
	t := queueOf(ctx)
	for {
		event, ok := t.take()
		if ok {
			return event
		}
		select {
		case <-t.grown:
		case <-ctx.Done():
			return StreamEvent{Ended: true}
		}
	}
}

// take removes and returns the next event. The event with Ended stays in the queue. If the subscription has not begun, take returns
// an event with Ended. Otherwise, ok is false if the queue is empty.
func (t *eventQueue) take() (next StreamEvent, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		return StreamEvent{Ended: true}, true
	}
	if len(t.queue) == 0 {
		return next, false
	}
	next = t.queue[0]
	if !next.Ended {
		t.queue = t.queue[1:]
	}
	return next, true
}

func (t *eventQueue) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = true
}

func (t *eventQueue) add(next StreamEvent) {
	t.mu.Lock()
	t.queue = append(t.queue, next)
	t.mu.Unlock()
	select {
	case t.grown <- struct{}{}:
	default:
	}
}

// addProblem announces an error that is sent instead of a value. ctx is the context of the subscription.
func (t *eventQueue) addProblem(ctx context.Context, err error) {
	t.add(StreamEvent{Problem: atField(ctx, err)})
}

// end announces the end of the subscription. err is the error that has ended it, or nil.
func (t *eventQueue) end(ctx context.Context, err error) {
	if err != nil {
		err = atField(ctx, err)
	}
	t.add(StreamEvent{Problem: err, Ended: true})
}

// atField adds the path of ctx's field to an error.
func atField(ctx context.Context, err error) error {
	return &gqlerror.Error{Err: err, Message: "subscription failed", Path: exec.StreamPath(ctx)}
}
