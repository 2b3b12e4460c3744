package httpapi

import (
	"context"
	"sync"
	"time"
)

// gates bound the operations under way: those that execute, and apart from them those that wait for the venue. So an endpoint of
// the venue that hangs keeps nobody from what is cached.
type gates struct{ executing, waiting *gate }

func newGates(operations, queue int, patience time.Duration) gates {
	return gates{newGate(operations, queue, patience), newGate(operations, queue, patience)}
}

// turn is the place that an operation has in one of the gates. It is the context of the operation.
type turn struct {
	context.Context
	gates gates

	mu sync.Mutex
	// leave gives the place back; nil while there is none.
	leave func()
	// moved reports that the operation has left the first gate, over that it has ended.
	moved, over bool
}

type turnKey struct{}

// Value implements context.Context.
func (t *turn) Value(key any) any {
	if key == (turnKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// enter begins t when an operation of the client in ctx may execute. end must be called on the turn then. The error is a refusal, or
// the cause of the end of ctx.
func (g gates) enter(ctx context.Context, t *turn) error {
	leave, err := g.executing.enter(ctx)
	if err != nil {
		return err
	}
	*t = turn{Context: ctx, gates: g, leave: leave}
	return nil
}

// end gives back the place of the operation.
func (t *turn) end() {
	t.mu.Lock()
	leave := t.leave
	t.leave, t.over = nil, true
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// awaitVenue must be called before the operation of ctx waits for the venue. The first time it gives up the operation's place among
// those that execute, and waits for one among those that wait for the venue, which the operation then has to its end. The error is
// as that of enter.
func awaitVenue(ctx context.Context) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if t.moved || t.over {
		t.mu.Unlock()
		return nil
	}
	leave := t.leave
	t.moved, t.leave = true, nil
	t.mu.Unlock()
	leave()
	leave, err := t.gates.waiting.enter(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over { // while another request goes on waiting for the response
		leave()
		return nil
	}
	t.leave = leave
	return nil
}

// stats returns how many operations are under way, and how many wait to be.
func (g gates) stats() (inside, waiting int) {
	inside, waiting = g.executing.stats()
	away, more := g.waiting.stats()
	return inside + away, waiting + more
}
