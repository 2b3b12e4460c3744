// Package admission bounds the number of operations that run, and divides the places among the clients.
package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// Limiter bounds the number of running operations, and the number of operations that wait in its queue for a place. A running
// operation has one place from its start to its end, while it executes and while it waits for the venue. At most half of the places
// are for operations that wait for the venue, so a slow endpoint of the venue does not block operations that need no call. Each of
// several venues has an equal part of that half, and an operation counts at one of the venues that it waits for. So a slow venue does not
// block operations that wait only for others.
//
// quota.Fair divides the places, each part, and the queue among the clients. A place that becomes free goes to the waiting
// client with the fewest running operations.
type Limiter struct {
	// client returns the client in a context.
	client            func(context.Context) quota.Client
	operations, queue int
	timeout           time.Duration
	busy              error
	// Venues is the number of venues, each with its part. It must not change later.
	Venues int

	// mu guards the fields below. share, forget, fits, room, count and admitNext are called with it held.
	mu sync.Mutex
	// running counts the operations that have a place, away those of them in the part of each venue, and waiting those in the queue.
	running, waiting int
	away             [nowhere + 1]int
	// clients contains the clients that have running or waiting operations.
	clients map[quota.Client]*share
	spare   []*share // unused values, for reuse
}

type share struct {
	client  quota.Client
	running int
	away    [nowhere + 1]int
	// waiting contains the waiting operations, oldest first.
	waiting []turn
	// release releases the place of an operation that does not wait for the venue.
	release func()
}

// turn is an operation in the queue, which waits for places; see enter.
type turn struct {
	at   Venues
	free int
	// admitted receives the part of the operation when it has its place.
	admitted chan int
}

// New returns a limiter of the clients that the function client finds in contexts. At most as many operations as operations run, and at
// most as many as queue wait for a place, each at most for timeout. The error busy refuses the others.
func New(client func(context.Context) quota.Client, operations, queue int, timeout time.Duration, busy error) *Limiter {
	return &Limiter{client: client, operations: operations, queue: queue, timeout: timeout, busy: busy, Venues: 1, clients: make(map[quota.Client]*share)}
}

// nowhere is the part of an operation that waits for no venue.
const nowhere = market.MaxVenues

// Acquire waits until an operation of the client in ctx may run, but at most for l.timeout. The calling function must call the
// function release once, when the operation has ended. The error is the one that New was given, or the cause of ctx.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	s, _, err := l.enter(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	return s.release, nil
}

// enter is like Acquire, but returns the share and the part that count the operation. If the operation waits for venues, free places of
// that part must be free: 1, or 2 for an operation that needs only one. The calling function must pass the share and the part to leave.
func (l *Limiter) enter(ctx context.Context, at Venues, free int) (s *share, part int, err error) {
	client := l.client(ctx)
	l.mu.Lock()
	s = l.share(client)
	if part, ok := l.fits(s, at, free); ok {
		l.count(s, part, 1)
		l.mu.Unlock()
		return s, part, nil
	}
	if !quota.Fair(len(s.waiting), 1, l.queue-l.waiting) {
		l.forget(s)
		l.mu.Unlock()
		return nil, nowhere, l.busy
	}
	t := turn{at, free, make(chan int, 1)}
	s.waiting = append(s.waiting, t)
	l.waiting++
	l.mu.Unlock()

	late := time.NewTimer(l.timeout)
	defer late.Stop()
	select {
	case part = <-t.admitted:
		return s, part, nil
	case <-late.C:
		err = l.busy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if !l.giveUp(s, t) {
		return s, <-t.admitted, nil
	}
	return nil, nowhere, err
}

// awayLimit is the number of operations that may wait in each part at the same time. All parts are half of the operations.
func (l *Limiter) awayLimit() int { return (l.operations/l.Venues + 1) / 2 }

// fits returns the part in which one more operation of a client may have a place; see room.
func (l *Limiter) fits(s *share, at Venues, free int) (part int, ok bool) {
	if !quota.Fair(s.running, 1, l.operations-l.running) {
		return nowhere, false
	}
	return l.room(s, at, free)
}

// room returns the part of the first of some venues in which free places are free for a client. Without venues, it returns nowhere.
func (l *Limiter) room(s *share, at Venues, free int) (part int, ok bool) {
	for part := range l.Venues {
		if at&(1<<part) != 0 && quota.Fair(s.away[part], free, l.awayLimit()-l.away[part]) {
			return part, true
		}
	}
	return nowhere, at == 0
}

// count adds n to the running operations of a client, and to those in a part.
func (l *Limiter) count(s *share, part, n int) {
	s.running, l.running = s.running+n, l.running+n
	s.away[part], l.away[part] = s.away[part]+n, l.away[part]+n
}

// move takes a running operation from one part to that of another venue. It returns false if fewer than free places are free there.
func (l *Limiter) move(s *share, from int, at Venues, free int) (part int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if part, ok = l.room(s, at, free); ok {
		l.count(s, from, -1)
		l.count(s, part, 1)
		if from != nowhere {
			l.admit()
		}
	}
	return part, ok
}

// share returns the client's entry in clients, and adds the entry if necessary.
func (l *Limiter) share(client quota.Client) *share {
	s := l.clients[client]
	if s != nil {
		return s
	}
	if last := len(l.spare) - 1; last >= 0 {
		s, l.spare = l.spare[last], l.spare[:last]
	} else {
		s = &share{}
		s.release = func() { l.leave(s, nowhere) }
	}
	s.client = client
	l.clients[client] = s
	return s
}

// forget moves a share without operations from clients to spare. It does nothing if the share has running or waiting operations.
func (l *Limiter) forget(s *share) {
	if s.running == 0 && len(s.waiting) == 0 {
		delete(l.clients, s.client)
		l.spare = append(l.spare, s)
	}
}

// leave stops counting an operation as running, and admits the waiting operations that may run now.
func (l *Limiter) leave(s *share, part int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(s, part, -1)
	l.admit()
	l.forget(s)
}

func (l *Limiter) admit() {
	for l.waiting > 0 && l.admitNext() {
	}
}

// admitNext admits the next waiting operation. It returns false if no waiting operation may run.
func (l *Limiter) admitNext() bool {
	var next *share
	var at, part int
	for _, s := range l.clients {
		if next != nil && s.running >= next.running {
			continue
		}
		for i, t := range s.waiting {
			if to, ok := l.fits(s, t.at, t.free); ok {
				next, at, part = s, i, to
				break
			}
		}
	}
	if next == nil {
		return false
	}
	t := next.waiting[at]
	next.waiting = slices.Delete(next.waiting, at, at+1)
	l.waiting--
	l.count(next, part, 1)
	t.admitted <- part
	return true
}

// giveUp removes an operation from the queue. It returns false if the operation was already admitted.
func (l *Limiter) giveUp(s *share, t turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(s.waiting, t)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	l.waiting--
	l.forget(s)
	return true
}

// Stats returns the number of operations that have a place, and of those in the queue.
func (l *Limiter) Stats() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running, l.waiting
}
