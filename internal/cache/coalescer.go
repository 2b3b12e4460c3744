package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// Admission decides when an upstream call may leave. It is asked before a batch is formed, so that keys gather while it
// waits.
type Admission interface {
	// Admit waits until a call of the given cost in HTTP requests may leave. Priority and deadline of call may rise
	// meanwhile. release is called when the call has ended. An error, which is meant for clients, fails the batch.
	Admit(ctx context.Context, cost int, call market.Call) (release func(), err error)
}

// coalescer is a single flight per key and a batch per call: a call leaves at once while fewer than width are in flight;
// keys that arrive meanwhile leave together when one has returned. It has no timer, so it adds no latency.
//
// A call runs detached from the requests that wait for it. It counts the waiters of each of its keys and is cancelled
// when none of them has any.
type coalescer[K comparable, T any] struct {
	fetch     func(ctx context.Context, keys []K) ([]market.Result[*T], error)
	cost      func(keys int) int
	accept    func(key K, value *T) market.Read[*T]
	cached    func(key K) (market.Read[*T], bool)
	admission Admission
	batch     int
	width     int
	priority  market.Priority
	// user tells that calls are made with the credentials of those who wait. Others never carry any.
	user     bool
	counters *counters
	tasks    *tasks

	// mu protects all below and the fields of flights and batches. The store's locks may be taken under it.
	mu       sync.Mutex
	flights  map[K]*flight[K, T]
	queue    []*flight[K, T]
	workers  int
	starting int
	// idle ends the wait for admission of the starting workers; it is replaced when it was used.
	idle       context.Context
	cancelIdle context.CancelFunc
}

// flight is one key on its way.
type flight[K comparable, T any] struct {
	key         K
	credentials *market.Credentials
	done        chan struct{}
	result      market.Result[market.Read[*T]]
	waiters     int
	// deadline is the latest of the waiters'; unlimited tells that one of them has none.
	deadline  time.Time
	unlimited bool
	batch     *batch[K, T]
}

// batch is a call that has left.
type batch[K comparable, T any] struct {
	cancel  context.CancelFunc
	flights []*flight[K, T]
	// wanted counts the keys that somebody waits for.
	wanted    int
	deadline  time.Time
	unlimited bool
}

// do returns the values of keys, aligned with them, and waits for those that are not cached under ctx.
func (c *coalescer[K, T]) do(ctx context.Context, keys []K) []market.Result[market.Read[*T]] {
	out := make([]market.Result[market.Read[*T]], len(keys))
	if ctx.Err() != nil {
		for i := range out {
			out[i].Err = waitError(ctx)
		}
		return out
	}
	joined := make([]*flight[K, T], len(keys))
	deadline, limited := ctx.Deadline()
	var credentials *market.Credentials
	if c.user {
		credentials = market.CredentialsFrom(ctx)
	}

	c.mu.Lock()
	for i, key := range keys {
		f := c.flights[key]
		if f != nil {
			c.counters.coalesced.Add(1)
		} else {
			if read, ok := c.cached(key); ok {
				out[i].Value = read
				continue
			}
			f = &flight[K, T]{key: key, credentials: credentials, done: make(chan struct{})}
			c.flights[key] = f
			c.queue = append(c.queue, f)
		}
		joined[i] = f
		f.join(deadline, limited)
	}
	c.start()
	c.mu.Unlock()

	for i, f := range joined {
		if f == nil {
			continue
		}
		select {
		case <-f.done:
			out[i] = f.result
		case <-ctx.Done():
			c.leave(joined)
			return abandoned(waitError(ctx), joined, out)
		case <-c.tasks.ctx.Done():
			c.leave(joined)
			return abandoned(errClosed, joined, out)
		}
	}
	return out
}

// errClosed is what those get who wait when the cache is closed, and those who come later.
var errClosed error = market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down")

// waitError says why a caller stopped waiting.
func waitError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return market.Errorf(market.CodeUpstreamTimeout, "the venue did not answer in time").Because(cause)
	}
	return fmt.Errorf("waiting for the venue: %w", cause)
}

// abandoned fills in what has arrived, and err for the rest.
func abandoned[K comparable, T any](err error, joined []*flight[K, T], out []market.Result[market.Read[*T]]) []market.Result[market.Read[*T]] {
	for i, f := range joined {
		if f == nil {
			continue
		}
		out[i].Err = err
		select {
		case <-f.done:
			// A call that was cancelled because nobody waited any more ended for the caller's reason, not for its own.
			if !errors.Is(f.result.Err, context.Canceled) {
				out[i] = f.result
			}
		default:
		}
	}
	return out
}

// join adds a waiter. The caller holds the coalescer's lock.
func (f *flight[K, T]) join(deadline time.Time, limited bool) {
	f.waiters++
	f.unlimited = f.unlimited || !limited
	if deadline.After(f.deadline) {
		f.deadline = deadline
	}
	if b := f.batch; b != nil {
		if f.waiters == 1 {
			b.wanted++
		}
		b.unlimited = b.unlimited || !limited
		if deadline.After(b.deadline) {
			b.deadline = deadline
		}
	}
}

// leave takes a waiter off each flight. A queued key that nobody waits for any more is dropped, a call none of
// whose keys has a waiter is cancelled.
func (c *coalescer[K, T]) leave(joined []*flight[K, T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range joined {
		if f == nil {
			continue
		}
		if f.waiters--; f.waiters > 0 || c.flights[f.key] != f {
			continue
		}
		if f.batch == nil {
			delete(c.flights, f.key)
			continue
		}
		if f.batch.wanted--; f.batch.wanted == 0 {
			f.batch.cancel()
			for _, other := range f.batch.flights {
				if c.flights[other.key] == other {
					delete(c.flights, other.key) // whoever asks from now on starts anew
				}
			}
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(f *flight[K, T]) bool { return f.waiters == 0 })
	c.rest()
}

// rest ends the waits for admission when there is nothing left to admit. The caller holds the lock.
func (c *coalescer[K, T]) rest() {
	if len(c.queue) == 0 && c.starting > 0 {
		c.cancelIdle()
		c.idle, c.cancelIdle = context.WithCancel(c.tasks.ctx)
	}
}

// start makes sure that there are workers for the queue, at most width at once. The caller holds the lock.
func (c *coalescer[K, T]) start() {
	for c.workers < c.width && c.starting*c.batch < len(c.queue) {
		if !c.tasks.start(c.work) {
			return // closed: the waiters see it too
		}
		c.workers++
		c.starting++
	}
}

// work makes calls until the queue is empty.
func (c *coalescer[K, T]) work() {
	for first := true; ; first = false {
		c.mu.Lock()
		if !first {
			c.starting++
		}
		if len(c.queue) == 0 {
			c.workers--
			c.starting--
			c.mu.Unlock()
			return
		}
		size := min(len(c.queue), c.batch)
		idle := c.idle
		c.mu.Unlock()

		cost := c.cost(size)
		release, err := c.admission.Admit(idle, cost, (*queued[K, T])(c))
		most := c.batch // what has gathered meanwhile travels along as far as it was paid for
		for most > size && c.cost(most) > cost {
			most--
		}

		c.mu.Lock()
		c.starting--
		var b *batch[K, T]
		var ctx context.Context
		if err == nil || idle.Err() == nil || c.tasks.ctx.Err() != nil {
			b, ctx = c.take(most)
		}
		c.rest()
		c.start()
		c.mu.Unlock()
		if b != nil {
			c.call(ctx, b, err)
			b.cancel()
		}
		if release != nil {
			release()
		}
	}
}

// take forms the batch of a call from the head of the queue, of at most so many keys. The caller holds the lock.
func (c *coalescer[K, T]) take(most int) (*batch[K, T], context.Context) {
	n := min(len(c.queue), most)
	if n == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(c.tasks.ctx)
	b := &batch[K, T]{cancel: cancel, flights: slices.Clone(c.queue[:n])}
	c.queue = slices.Delete(c.queue, 0, n)
	for _, f := range b.flights {
		f.batch = b
		if f.waiters > 0 {
			b.wanted++
		}
		b.unlimited = b.unlimited || f.unlimited
		if f.deadline.After(b.deadline) {
			b.deadline = f.deadline
		}
	}
	ctx = market.WithCall(ctx, &departed[K, T]{c: c, b: b})
	if credentials := b.flights[0].credentials; credentials != nil {
		ctx = market.WithCredentials(ctx, credentials)
	}
	return b, ctx
}

// call asks upstream and hands the results to the waiters. refused is what admission said.
func (c *coalescer[K, T]) call(ctx context.Context, b *batch[K, T], refused error) {
	err := refused
	if err == nil {
		err = c.ask(ctx, b.flights)
	}
	if err != nil {
		if c.tasks.ctx.Err() != nil {
			err = errClosed
		}
		for _, f := range b.flights {
			f.result = market.Result[market.Read[*T]]{Err: err}
		}
	}
	c.mu.Lock()
	for _, f := range b.flights {
		// Only now: a caller that no longer finds the flight finds the entry.
		if c.flights[f.key] == f {
			delete(c.flights, f.key)
		}
		close(f.done)
	}
	c.mu.Unlock()
}

// ask fetches the keys of flights and gives each its result. A panic, an answer of the wrong length and one that came
// after everybody had left, and a newer call may have left, are errors.
func (c *coalescer[K, T]) ask(ctx context.Context, flights []*flight[K, T]) (err error) {
	keys := make([]K, len(flights))
	for i, f := range flights {
		keys[i] = f.key
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fetching %d keys: panic: %v\n%s", len(keys), p, debug.Stack())
		}
	}()
	c.counters.calls.Add(uint64(c.cost(len(keys))))
	c.counters.keys.Add(uint64(len(keys)))
	results, err := c.fetch(ctx, keys)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case len(results) != len(keys):
		return fmt.Errorf("fetching %d keys gave %d results", len(keys), len(results))
	}
	for i, f := range flights {
		if f.result.Err = results[i].Err; f.result.Err == nil {
			f.result.Value = c.accept(f.key, results[i].Value)
		}
	}
	return nil
}

// queued is the market.Call of the keys that wait to leave.
type queued[K comparable, T any] coalescer[K, T]

// Priority returns the coalescer's priority.
func (q *queued[K, T]) Priority() market.Priority { return q.priority }

// Deadline returns the latest deadline of all that is queued.
func (q *queued[K, T]) Deadline() (latest time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range q.queue {
		if f.unlimited {
			return time.Time{}, false
		}
		if f.deadline.After(latest) {
			latest = f.deadline
		}
	}
	return latest, true
}

// departed is the market.Call of a batch.
type departed[K comparable, T any] struct {
	c *coalescer[K, T]
	b *batch[K, T]
}

// Priority returns the coalescer's priority.
func (d *departed[K, T]) Priority() market.Priority { return d.c.priority }

// Deadline returns the latest deadline of the batch's waiters.
func (d *departed[K, T]) Deadline() (time.Time, bool) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.b.deadline, !d.b.unlimited
}
