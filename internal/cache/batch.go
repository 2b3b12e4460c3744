package cache

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
)

// batch is a set of keys that one call fetches. It is created before the call starts and exists until the call ends.
type batch[K comparable, T any] struct {
	ctx         context.Context
	cancel      context.CancelFunc
	reservation upstream.Reservation
	flights     []*flight[K, T]
	// bytes is the total length of the keys' ids in a URL.
	bytes int
	// request has the greatest priority and the latest deadline of all callers that joined. The deadline is zero if a caller has no
	// deadline.
	request     upstream.CallRequest
	credentials *market.Credentials
	started     bool
	// startedClock is the time at which the batch started, by store.clock. change is the value of store.changes at that time.
	change       uint64
	startedClock time.Time
	// fresh reports that a caller needs a new response of the venue. Such a batch does not
	// read the cache that several processes share (Shared).
	fresh bool
	// waitedKeys is the number of keys that have waiters. It is 0 until the batch starts.
	waitedKeys int
	// round is the value of coalescer.round when the last caller joined the batch. formedRound is the value when the batch was
	// formed. late is the error of the last caller if the rate limit cannot admit the batch before its deadline.
	round, formedRound uint64
	late               error

	// serial identifies the batch in logs. Each of the times below is zero until its event has happened.
	serial                               uint64
	formed, admitted, startedAt, endedAt time.Time
	calls                                []upstream.HTTPCall
	err                                  error
}

// serials is the serial of the last batch of any coalescer.
var serials atomic.Uint64

// addKey adds a key to a batch that has not started. If no such batch accepts the key, addKey creates a batch for the key. A batch
// that the present call of coalescer.do has formed gets at most roundLimit keys. addKey fails if the reservation of the new
// batch is refused or the cache is closed. The calling function holds the lock.
func (c *coalescer[K, T]) addKey(key K, roundLimit int, req upstream.CallRequest, credentials *market.Credentials) (*flight[K, T], error) {
	f := &flight[K, T]{key: key, done: make(chan struct{})}
	open := c.queue
	if c.maxKeys == 1 {
		open = nil // every batch is full, and thousands of refreshes may wait
	}
	for _, b := range open {
		if c.fits(b, key) && b.accepts(req) && b.reservation.Err() == nil && (b.formedRound != c.round || len(b.flights) < roundLimit) {
			f.batch = b
			break
		}
	}
	if f.batch == nil {
		b := &batch[K, T]{request: req, credentials: credentials, round: c.round, formedRound: c.round, serial: serials.Add(1), formed: time.Now()}
		b.reservation = c.store.cfg.Admission.Reserve(req)
		if err := b.reservation.Err(); err != nil {
			b.reservation.Release(false)
			return nil, err
		}
		b.ctx, b.cancel = context.WithCancel(c.store.tasks.ctx)
		if !c.store.tasks.start(func() { c.run(b) }) {
			b.cancel()
			b.reservation.Release(false)
			return nil, errClosed
		}
		c.queue = append(c.queue, b)
		f.batch = b
	}
	f.batch.flights = append(f.batch.flights, f)
	f.batch.bytes += bytesOf(key)
	c.flights[key] = f
	return f, nil
}

// accepts reports whether a key of a request may join a batch that has not started. The scopes of the request and the batch must be
// equal. A key for which a caller waits must not join a batch of refreshes, because the key would raise the priority of the whole
// batch. A client could then raise the priority of refreshes by requesting unknown ids.
func (b *batch[K, T]) accepts(req upstream.CallRequest) bool {
	return b.request.Scope == req.Scope && (b.request.Priority > upstream.PriorityRefresh || req.Priority == upstream.PriorityRefresh)
}

// fits reports whether a batch may get one more key. The batch must not be cancelled, and one HTTP request must be enough for the
// key and all keys of the batch. A batch without keys may always get a key.
func (c *coalescer[K, T]) fits(b *batch[K, T], key K) bool {
	keys := len(b.flights) + 1
	return keys <= 1 || keys <= c.maxKeys && b.ctx.Err() == nil && c.cost(keys, b.bytes+bytesOf(key)) <= 1
}

// join adds a waiter to a flight. It returns an error if the waiter must leave the flight; see batch.late. round is the present
// value of coalescer.round. The calling function holds the coalescer's lock.
func (f *flight[K, T]) join(req upstream.CallRequest, round uint64) error {
	b := f.batch
	if f.waiters++; f.waiters == 1 && b.started {
		b.waitedKeys++
	}
	if b.round != round {
		b.round = round
		b.raise(req)
		b.late = b.reservation.Late(req.Deadline)
	}
	return b.late
}

// raise updates the priority and the deadline of a batch for a new waiter; see batch.request. The calling function holds the lock.
func (b *batch[K, T]) raise(req upstream.CallRequest) {
	b.request.Priority = max(b.request.Priority, req.Priority)
	if req.Deadline.IsZero() || !b.request.Deadline.IsZero() && req.Deadline.After(b.request.Deadline) {
		b.request.Deadline = req.Deadline
	}
	b.reservation.Join(req)
}

// wantsFresh reports whether a caller of the batch needs a new response of the venue. It locks c.mu, because callers can join while
// the batch runs.
func (c *coalescer[K, T]) wantsFresh(b *batch[K, T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.fresh
}

// deadline returns the latest deadline of a batch's callers. The result is false if a caller has no deadline. deadline locks c.mu,
// because callers can join while the batch runs.
func (c *coalescer[K, T]) deadline(b *batch[K, T]) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.request.Deadline, !b.request.Deadline.IsZero()
}

// leave removes a waiter from a flight. If no waiter is left and the batch has not started, leave removes the key from the batch.
// If the batch has started and none of its keys has a waiter, leave cancels the call. The calling function holds the lock.
func (c *coalescer[K, T]) leave(f *flight[K, T]) {
	if f.waiters--; f.waiters > 0 || f.ended {
		return
	}
	if !f.batch.started {
		delete(c.flights, f.key)
	}
	c.dropWaiter(f)
}

// dropWaiter updates the batch of a flight that has lost its last waiter, or whose value the stream has sent; see leave and
// resolve. The calling function holds the lock.
func (c *coalescer[K, T]) dropWaiter(f *flight[K, T]) {
	b := f.batch
	if !b.started {
		b.flights = slices.DeleteFunc(b.flights, func(other *flight[K, T]) bool { return other == f })
		b.bytes -= bytesOf(f.key)
		if len(b.flights) == 0 {
			c.drop(b)
		}
		return
	}
	if b.waitedKeys--; b.waitedKeys == 0 {
		b.cancel()
		for _, other := range b.flights {
			if c.flights[other.key] == other {
				delete(c.flights, other.key) // later callers start a new call
			}
		}
	}
}

// drop removes a batch without keys from the queue and releases its reservation. The calling function holds the lock.
func (c *coalescer[K, T]) drop(b *batch[K, T]) {
	b.cancel()
	b.reservation.Release(false)
	c.queue = slices.DeleteFunc(c.queue, func(other *batch[K, T]) bool { return other == b })
}

// resolve ends the flight of a key, if there is one, with a value from the stream.
func (c *coalescer[K, T]) resolve(key K, read reads.Value[*T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[key]
	if f == nil {
		return
	}
	delete(c.flights, key)
	c.end(f, reads.Result[*T]{Value: read})
	if !f.batch.started || f.waiters > 0 {
		c.dropWaiter(f)
	}
}

// detach removes the flight of key from c.flights if the batch of the flight started before a streamed change. So later callers do
// not join this flight. change is the number of the streamed change. If mayMean is not nil, detach does the same for the
// flights of all keys for which mayMean returns true. These keys, such as slugs, may mean the same market as key.
func (c *coalescer[K, T]) detach(key K, change uint64, mayMean func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, f := range c.flights {
		if (k == key || mayMean != nil && mayMean(k)) && f.batch.started && f.batch.change < change {
			delete(c.flights, k)
		}
	}
}

// forget removes the started flights of keys from c.flights, so that the present caller and later callers start new calls. The
// calling function holds the lock.
func (c *coalescer[K, T]) forget(keys []K) {
	for _, key := range keys {
		if f := c.flights[key]; f != nil && f.batch.started {
			delete(c.flights, key)
		}
	}
}

// end sets the result of a flight and wakes its waiters. The calling function holds the lock.
func (c *coalescer[K, T]) end(f *flight[K, T], result reads.Result[*T]) {
	f.result, f.ended = result, true
	close(f.done)
}
