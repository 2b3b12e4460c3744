package resolvers

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
)

// turns say what comes next of a subscription: an event, a problem or the end. The subscription notes each before it hands an
// event over; the engine takes them. They are safe for concurrent use.
type turns struct {
	mu    sync.Mutex
	begun bool
	queue []Turn
	// more is signalled when the queue grows.
	more chan struct{}
	// admit is asked before a subscription follows an account; nil admits every one.
	admit func() error
}

// Turn is what comes next of a subscription. The zero value is an event.
type Turn struct {
	// Problem is an error in the place of an event, or what the subscription ended with.
	Problem error
	// Ended reports that nothing follows.
	Ended bool
}

type turnsKey struct{}

// WithTurns returns a context for an operation, whose subscription notes its turns there. A subscription that follows an account
// begins if admit, which is called at most once, returns nil.
func WithTurns(ctx context.Context, admit func() error) context.Context {
	return context.WithValue(ctx, turnsKey{}, &turns{more: make(chan struct{}, 1), admit: admit})
}

// turnsOf returns the turns of ctx; some that nobody takes where it has none.
func turnsOf(ctx context.Context) *turns {
	if t, ok := ctx.Value(turnsKey{}).(*turns); ok {
		return t
	}
	return &turns{more: make(chan struct{}, 1)}
}

// NextTurn waits for the next turn of the subscription of ctx. One that has not begun, or whose ctx is over, has ended.
func NextTurn(ctx context.Context) Turn {
	t := turnsOf(ctx)
	for {
		turn, ok := t.take()
		if ok {
			return turn
		}
		select {
		case <-t.more:
		case <-ctx.Done():
			return Turn{Ended: true}
		}
	}
}

// take takes the next turn; ok is false where it is not known yet.
func (t *turns) take() (next Turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		return Turn{Ended: true}, true
	}
	if len(t.queue) == 0 {
		return next, false
	}
	next = t.queue[0]
	if !next.Ended { // the end stays
		t.queue = t.queue[1:]
	}
	return next, true
}

// begin notes that a subscription begins.
func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = true
}

func (t *turns) add(next Turn) {
	t.mu.Lock()
	t.queue = append(t.queue, next)
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// event notes that an event is about to be handed over.
func (t *turns) event() { t.add(Turn{}) }

// problem notes an error in the place of an event. ctx is the subscription's.
func (t *turns) problem(ctx context.Context, err error) { t.add(Turn{Problem: atField(ctx, err)}) }

// end notes the end, and why where that is an error.
func (t *turns) end(ctx context.Context, err error) {
	if err != nil {
		err = atField(ctx, err)
	}
	t.add(Turn{Problem: err, Ended: true})
}

// atField gives an error the path of the field of ctx.
func atField(ctx context.Context, err error) error {
	return &gqlerror.Error{Err: err, Message: "subscription failed", Path: exec.StreamPath(ctx)}
}
