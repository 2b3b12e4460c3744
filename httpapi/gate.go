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

// gate bounds the operations that run at once, and the operations that wait to run. Clients, one for each quota.Network, share both:
// a client takes a place only if that is quota.Fair. A free place goes to the waiting client with the fewest running operations.
type gate struct {
	operations, queue int
	patience          time.Duration

	mu sync.Mutex
	// inside counts running operations, waiting counts waiting ones.
	inside, waiting int
	// clients holds the share of each client with running or waiting operations. spare holds unused shares for the next clients.
	clients map[netip.Prefix]*share
	spare   []*share
}

// share counts the operations of one client.
type share struct {
	client netip.Prefix
	inside int
	// waiting holds a channel for each waiting operation, the oldest first. The gate closes the channel when the operation may run.
	waiting []chan struct{}
	leave   func()
}

func newGate(operations, queue int, patience time.Duration) *gate {
	return &gate{operations: operations, queue: queue, patience: patience, clients: make(map[netip.Prefix]*share)}
}

// retryAfter is the delay that a refused client should wait before its next attempt.
const retryAfter = time.Second

// enter waits until an operation of the client in ctx may run. The caller must call leave once, when the operation is done. The
// error is a refusal, or the cause of the end of ctx.
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

// share returns the share of a client. The caller holds the lock.
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

// forget makes an empty share spare. The gate never has more shares than operations that ran and waited at the same time, plus one.
// The caller holds the lock.
func (g *gate) forget(s *share) {
	if s.inside == 0 && len(s.waiting) == 0 {
		delete(g.clients, s.client)
		g.spare = append(g.spare, s)
	}
}

// admit counts an operation as running. The caller holds the lock.
func (g *gate) admit(s *share) {
	s.inside++
	g.inside++
}

// leave counts an operation as done and admits the waiting operations that may run now.
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

// giveUp removes an operation from the queue. It returns false if the operation was admitted already.
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

// stats returns the number of running and of waiting operations.
func (g *gate) stats() (inside, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside, g.waiting
}

// busy returns the refusal of an operation for which the gate has no place.
func busy() error {
	err := market.Errorf(market.CodeRateLimited, "the service has too much to do; try again in a moment")
	err.RetryAfter = retryAfter
	return &refusal{http.StatusServiceUnavailable, err}
}
