package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// run waits until a batch may start and makes its call.
func (c *coalescer[K, T]) run(b *batch[K, T]) {
	defer b.cancel()
	select {
	case <-b.reservation.Decided(): // a call within the rate limit
	case <-b.ctx.Done():
	}
	err := b.reservation.Err()
	var admitted time.Time
	if err == nil {
		admitted = time.Now()
		select {
		case c.slots <- struct{}{}: // fewer calls in flight
			defer func() { <-c.slots }()
		case <-b.ctx.Done():
		}
	}
	var results []reads.Result[*T]
	c.start(b, err == nil, admitted)
	if err == nil {
		if err = b.ctx.Err(); err == nil {
			results, err = c.fetchBatch(b)
		}
	}
	if c.store.tasks.ctx.Err() != nil && err != nil {
		err = errClosed
	}
	b.reservation.Release(err == nil)
	if told := c.finish(b, results, err); c.store.cfg.Observer != nil && len(told.Calls) > 0 {
		c.store.cfg.Observer(told, b.logs())
	}
}

// finish sets the results of a batch's flights and returns a description of the batch for the observer.
func (c *coalescer[K, T]) finish(b *batch[K, T], results []reads.Result[*T], err error) upstream.Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.endedAt, b.err = time.Now(), err
	for i, f := range b.flights {
		// The results are stored before their flights are deleted, so a caller that finds no flight finds the entry.
		if c.flights[f.key] == f {
			delete(c.flights, f.key)
		}
		switch {
		case f.ended:
		case err != nil:
			c.end(f, reads.Result[*T]{Err: err})
		default:
			c.end(f, results[i])
		}
	}
	return c.describe(b, 0)
}

// logs returns the logs of the operations that waited for an ended batch.
func (b *batch[K, T]) logs() (all []*request.Log) {
	for _, f := range b.flights {
		for _, j := range f.logs {
			if !slices.Contains(all, j) {
				all = append(all, j)
			}
		}
	}
	return all
}

// start removes a batch from the queue. If sending is true, the batch is about to be sent. In this case, start also moves as many
// keys as fit from other queued batches with the same scope into b.
func (c *coalescer[K, T]) start(b *batch[K, T], sending bool, admitted time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.admitted = admitted; sending {
		b.startedAt = time.Now()
	}
	c.queue = slices.DeleteFunc(c.queue, func(other *batch[K, T]) bool { return other == b })
	for i := 0; sending && c.maxKeys > 1 && i < len(c.queue) && b.ctx.Err() == nil; {
		other := c.queue[i]
		together := len(other.flights) + len(b.flights)
		// Two batches that the same call of coalescer.do has formed are merged only if one HTTP request is enough for the merged batch.
		if other.request.Scope != b.request.Scope || other.formedRound == b.formedRound && (together > c.maxKeys || c.cost(together, other.bytes+b.bytes) > 1) {
			i++
			continue
		}
		n := 0
		for n < len(other.flights) && c.fits(b, other.flights[n].key) {
			f := other.flights[n]
			f.batch = b
			b.flights = append(b.flights, f)
			b.bytes, other.bytes = b.bytes+bytesOf(f.key), other.bytes-bytesOf(f.key)
			n++
		}
		if n == 0 {
			i++
			continue
		}
		other.flights = slices.Delete(other.flights, 0, n)
		b.raise(other.request)
		b.fresh = b.fresh || other.fresh
		if len(other.flights) == 0 {
			c.drop(other)
		} else {
			i++
		}
	}
	b.started = true
	b.startedClock, b.change = c.store.clock.Now(), c.store.changes.Load()
	for _, f := range b.flights {
		if f.waiters > 0 {
			b.waitedKeys++
		}
	}
}

// fetchBatch fetches the keys of a batch. It returns an error if the fetch fails, panics, returns the wrong number of results, or
// ends after the last waiter has given up.
func (c *coalescer[K, T]) fetchBatch(b *batch[K, T]) (values []reads.Result[*T], err error) {
	keys := make([]K, len(b.flights))
	for i, f := range b.flights {
		keys[i] = f.key
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fetching %d keys: panic: %v\n%s", len(keys), p, debug.Stack())
		}
	}()
	if c.store.shared != nil && !c.wantsFresh(b) {
		return c.askShared(b, keys)
	}
	values = make([]reads.Result[*T], len(keys))
	all := make([]int, len(keys))
	for i := range all {
		all[i] = i
	}
	return values, c.call(b, keys, all, values)
}

// call fetches keys[i] from the venue for each i in indexes, stores the results, and writes them to values[i].
func (c *coalescer[K, T]) call(b *batch[K, T], keys []K, indexes []int, values []reads.Result[*T]) (err error) {
	if len(indexes) == 0 {
		return nil
	}
	requested, bytes := make([]K, len(indexes)), 0
	for n, i := range indexes {
		requested[n] = keys[i]
		bytes += bytesOf(keys[i])
	}
	var results []upstream.Result[*T]
	from := origin{changes: b.change, startedAt: b.startedClock}
	if c.store.shared != nil {
		defer func() { c.store.shared.put(keys, indexes, results, values, from) }()
	}
	c.store.counters.calls.Add(uint64(c.cost(len(requested), bytes)))
	c.store.counters.keys.Add(uint64(len(requested)))
	// The read can use no credentials except those of the batch: b.ctx comes from the cache and not from a caller.
	call := upstream.Call{Permit: b.reservation, Credentials: b.credentials, Waiters: &batchWaiters[K, T]{c: c, b: b}}
	answers, err := c.store.ask(b.ctx, call, c.endpoint, requested)
	switch {
	case err != nil:
		return err
	case b.ctx.Err() != nil:
		return b.ctx.Err()
	case len(answers) != len(requested):
		return fmt.Errorf("fetching %d keys gave %d results", len(requested), len(answers))
	}
	results = answers
	for n, i := range indexes {
		if values[i].Err = results[n].Err; values[i].Err == nil {
			values[i].Value = c.store.accept(keys[i], results[n].Value, from)
		}
	}
	return nil
}

// ask reads keys from the venue. Only here, between the cache and the driver of a further venue, are the venue's own ids used.
func (s *store[K, T]) ask(ctx context.Context, call upstream.Call, e upstream.Endpoint, keys []K) ([]upstream.Result[*T], error) {
	own, ok := keys, true
	if !s.unkeyed {
		own, ok = market.CutAll(s.cfg.Name, keys)
	}
	if !ok { // the venue knows nothing of another venue's ids
		return make([]upstream.Result[*T], len(keys)), nil
	}
	answers, err := s.kind.fetch(ctx, call, s.venue, e, own)
	return market.QualifyAll(s.cfg.Name, answers), err
}

// origin says when a response was requested and received.
type origin struct {
	// startedAt is the time at which the batch started. changes is the value of store.changes at that time.
	changes   uint64
	startedAt time.Time
	// receivedAt is the time at which another process received the response. It is the zero time if this process has just received
	// the response.
	receivedAt time.Time
}

// batchWaiters implements upstream.Waiters for a batch.
type batchWaiters[K comparable, T any] struct {
	c *coalescer[K, T]
	b *batch[K, T]
}

// Priority returns the highest priority of the batch's waiters.
func (d *batchWaiters[K, T]) Priority() upstream.Priority {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.b.request.Priority
}

// Deadline returns the latest deadline of the batch's waiters.
func (d *batchWaiters[K, T]) Deadline() (time.Time, bool) { return d.c.deadline(d.b) }

// Trace returns the trace context of one waiting operation. It returns the zero value if no waiting operation is traced.
func (d *batchWaiters[K, T]) Trace() upstream.TraceContext {
	if d.c.store.cfg.Observer == nil {
		return upstream.TraceContext{}
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	for _, f := range d.b.flights {
		for _, j := range f.logs {
			for _, span := range j.Spans() {
				return span.Context()
			}
		}
	}
	return upstream.TraceContext{}
}

// NoteCall records an HTTP call of the batch.
func (d *batchWaiters[K, T]) NoteCall(x upstream.HTTPCall) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.b.calls = append(d.b.calls, x)
}
