package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// gate bounds how many operations are under way at once, and how many wait for that and for how long. It shares both out
// among the clients, which are told apart as by quota.Network: a client takes of either what is quota.Fair. What becomes free
// goes to the client that waits with the least under way.
type gate struct {
	operations, queue int
	patience          time.Duration

	mu sync.Mutex
	// inside counts the operations under way, waiting those that wait.
	inside, waiting int
	// clients are those that have an operation inside or waiting; spare are shares of others, to be used again.
	clients map[netip.Prefix]*share
	spare   []*share
}

// share is what one client has of a gate.
type share struct {
	client netip.Prefix
	inside int
	// waiting are the operations that wait, the first to come first. Each is told by closing that it is inside.
	waiting []chan struct{}
	leave   func()
}

func newGate(operations, queue int, patience time.Duration) *gate {
	return &gate{operations: operations, queue: queue, patience: patience, clients: make(map[netip.Prefix]*share)}
}

// retryAfter is when a client that was turned away had better come again.
const retryAfter = time.Second

// enter waits until an operation of the client in ctx may go on. leave must be called once, when it is done. The error is a
// refusal, or the cause of ctx's end.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	g.mu.Lock()
	s := g.share(quota.Network(identityFrom(ctx).client))
	if quota.Fair(s.inside, 1, g.operations-g.inside) {
		g.admit(s)
		g.mu.Unlock()
		return s.leave, nil
	}
	if !quota.Fair(len(s.waiting), 1, g.queue-g.waiting) {
		g.forget(s)
		g.mu.Unlock()
		return nil, busy()
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	g.waiting++
	g.mu.Unlock()

	late := time.NewTimer(g.patience)
	defer late.Stop()
	select {
	case <-turn:
		return s.leave, nil
	case <-late.C:
		err = busy()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if !g.giveUp(s, turn) {
		return s.leave, nil
	}
	return nil, err
}

// share returns the share of a client. The lock is held.
func (g *gate) share(client netip.Prefix) *share {
	s := g.clients[client]
	if s != nil {
		return s
	}
	if last := len(g.spare) - 1; last >= 0 {
		s, g.spare = g.spare[last], g.spare[:last]
	} else {
		s = &share{}
		s.leave = func() { g.leave(s) }
	}
	s.client = client
	g.clients[client] = s
	return s
}

// forget lets go of a share in which nothing is left. There are never more of them than operations inside and waiting at
// once, and one. The lock is held.
func (g *gate) forget(s *share) {
	if s.inside == 0 && len(s.waiting) == 0 {
		delete(g.clients, s.client)
		g.spare = append(g.spare, s)
	}
}

// admit counts an operation as inside. The lock is held.
func (g *gate) admit(s *share) {
	s.inside++
	g.inside++
}

// leave counts an operation as done and admits those that may go on now.
func (g *gate) leave(s *share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.inside--
	g.inside--
	for g.waiting > 0 {
		var next *share
		for _, c := range g.clients {
			if len(c.waiting) > 0 && (next == nil || c.inside < next.inside) {
				next = c
			}
		}
		if !quota.Fair(next.inside, 1, g.operations-g.inside) {
			break
		}
		close(next.waiting[0])
		next.waiting = slices.Delete(next.waiting, 0, 1)
		g.waiting--
		g.admit(next)
	}
	g.forget(s)
}

// giveUp takes an operation out of the queue, or reports false where it is inside already.
func (g *gate) giveUp(s *share, turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(s.waiting, turn)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	g.waiting--
	g.forget(s)
	return true
}

// stats returns how many operations are inside and how many wait.
func (g *gate) stats() (inside, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside, g.waiting
}

func busy() error {
	err := market.Errorf(market.CodeRateLimited, "the service has too much to do; try again in a moment")
	err.RetryAfter = retryAfter
	return &refusal{http.StatusServiceUnavailable, err}
}
