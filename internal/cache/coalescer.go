package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// Admission decides when calls to the venue may be sent.
type Admission interface {
	// Reserve puts one read of the venue into the queue of the rate limit. It returns at once. Further keys may join the read until
	// the returned Reservation is decided.
	Reserve(req upstream.CallRequest) upstream.Reservation
	// Scarce reports whether a call of a scope to an endpoint would have to wait. The scope of public data is "".
	Scarce(scope string, e upstream.Endpoint) bool
}

// coalescer fetches a key once for all callers that wait for it, and puts different keys into one call. The first key of a batch
// reserves a call. The batch starts when the reservation is admitted and fewer than cap(slots) calls are in flight. Until the batch
// starts, further keys can join it. A batch never waits for more keys, so batching adds no latency.
//
// A call does not depend on the context of any one caller. The coalescer counts the callers that wait for each key. When no caller
// waits for any key of a call, the coalescer cancels the call. If the call has not started, the coalescer releases the reservation
// of the call.
type coalescer[K comparable, T any] struct {
	store *store[K, T]
	route
	// unsupported is the error of every read if the venue does not serve the endpoint. It is nil if the venue serves the endpoint.
	unsupported error
	// maxKeys is the greatest number of keys in one call.
	maxKeys int
	// private reports that the rate limit counts the calls by the callers' credentials. It is false for public data, and if
	// Config.PublicAccounts is set.
	private bool
	// waiting is the number of calls of coalescer.do that have not returned.
	waiting atomic.Int64
	// slots bounds the number of calls in flight, so that keys gather in the queue while the venue is slow. No other semaphore bounds
	// the calls to the venue.
	slots chan struct{}

	// mu guards the fields below and the fields of flights and batches. pool.mu says the order of locks.
	mu      sync.Mutex
	flights map[K]*flight[K, T]
	// queue contains the batches that have not started, oldest first.
	queue []*batch[K, T]
	// round counts the calls of coalescer.do. Batches store the round, so that one call of do with several keys raises the priority
	// and the deadline of a batch only once.
	round uint64
}

// flight is the fetch of one key.
type flight[K comparable, T any] struct {
	key    K
	done   chan struct{}
	result reads.Result[*T]
	// ended reports whether result is set.
	ended bool
	// shared reports whether the value came from the shared cache.
	shared  bool
	waiters int
	batch   *batch[K, T]
	// logs are the logs of the waiting operations. logs is empty if the coalescer has no observer.
	logs []*request.Log
}

// do returns the values of keys in the order of keys. It fetches the keys that are not cached and waits for them until ctx ends. A
// key fails at once if the rate limit cannot admit its call before the deadline of ctx. If refresh is true, new calls get the
// lowest priority.
func (c *coalescer[K, T]) do(ctx context.Context, keys []K, refresh bool) []reads.Result[*T] {
	out := make([]reads.Result[*T], len(keys))
	err := c.unsupported
	if err == nil && ctx.Err() != nil {
		err = waitError(ctx)
	}
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	log := request.From(ctx).Log
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	joined := c.join(ctx, keys, refresh, log, out)
	if log != nil {
		defer c.logBatches(log, joined)
	}
	for i, f := range joined {
		if f == nil {
			continue
		}
		select {
		case <-f.done:
			out[i] = f.result
		case <-ctx.Done():
			return c.abandon(waitError(ctx), joined, out)
		case <-c.store.tasks.ctx.Done():
			return c.abandon(errClosed, joined, out)
		}
	}
	return out
}

// join returns the flights of keys that are not cached, and adds the caller to them. It creates missing flights. The flight of a
// key is nil if the key is cached or cannot be fetched; join then writes the result of the key to out.
func (c *coalescer[K, T]) join(ctx context.Context, keys []K, refresh bool, log *request.Log, out []reads.Result[*T]) []*flight[K, T] {
	from := request.From(ctx)
	req := upstream.CallRequest{Priority: c.priority, Endpoint: c.endpoint, Caller: from.Caller}
	if refresh || from.LowPriority {
		req.Priority = upstream.PriorityRefresh
	}
	req.Deadline, _ = ctx.Deadline()
	var credentials *market.Credentials
	if c.private {
		credentials = request.CredentialsFrom(ctx)
		req.Scope = c.store.scope.credentials(credentials)
	}
	joined := make([]*flight[K, T], len(keys))
	coalesced := uint32(0)
	var refused error
	c.mu.Lock()
	c.round++
	if from.Fresh {
		c.forget(keys)
	}
	known, share := c.known(keys, out, from.Fresh)
	for i, key := range keys {
		f := c.flights[key]
		switch {
		case f != nil:
			coalesced++
		case known[i]:
			continue
		case refused == nil:
			f, refused = c.addKey(key, share, req, credentials)
		}
		if f == nil {
			out[i].Err = refused
			continue
		}
		if out[i].Err = f.join(req, c.round); out[i].Err != nil {
			c.leave(f)
			continue
		}
		joined[i] = f
		f.batch.fresh = f.batch.fresh || from.Fresh
		if log != nil && c.store.cfg.Observer != nil {
			f.logs = append(f.logs, log)
		}
	}
	c.mu.Unlock()
	c.store.counters.coalesced.Add(uint64(coalesced))
	log.CountReads(c.store.name, request.CacheCounts{Joined: coalesced})
	return joined
}

// logBatches adds the batches of the flights in joined to the log j of an operation.
func (c *coalescer[K, T]) logBatches(j *request.Log, joined []*flight[K, T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told, shared := make(map[*batch[K, T]]int, 1), uint32(0)
	for _, f := range joined {
		if f != nil {
			told[f.batch]++
		}
		if f != nil && f.shared {
			shared++
		}
	}
	j.CountReads(c.store.name, request.CacheCounts{Shared: shared})
	for b, own := range told {
		if len(b.flights) > 0 { // a batch without keys was never sent
			j.NoteBatch(c.describe(b, own))
		}
	}
}

// describe returns a description of b for the log of an operation. own is the number of keys in b for which this operation waited.
// The calling function holds the lock.
func (c *coalescer[K, T]) describe(b *batch[K, T], own int) upstream.Batch {
	d := upstream.Batch{
		Serial: b.serial, Venue: c.store.cfg.Venue, Kind: c.store.name, Priority: b.request.Priority, Keys: len(b.flights), Own: own,
		Formed: b.formed, Admitted: b.admitted, Left: b.startedAt, Ended: b.endedAt, Calls: slices.Clip(b.calls), Outcome: upstream.OutcomeOK,
	}
	err := b.err
	if err == nil && !slices.ContainsFunc(b.flights, func(f *flight[K, T]) bool { return f.result.Err == nil }) {
		err = b.flights[0].result.Err // for example, an open circuit has refused the call for each key
	}
	if err != nil {
		d.Outcome = string(market.CodeOf(err))
	}
	return d
}

// known writes the values of cached keys to out and reports which keys are cached. It skips keys that have a flight. If fresh is
// true, no key counts as cached. share is the greatest number of keys that one new batch may get. With this bound, the missing keys
// are spread evenly over the fewest possible calls. The calling function holds the lock.
func (c *coalescer[K, T]) known(keys []K, out []reads.Result[*T], fresh bool) (known []bool, share int) {
	known = make([]bool, len(keys))
	missing, bytes := 0, 0
	for i, key := range keys {
		if c.flights[key] != nil {
			continue
		}
		if !fresh {
			out[i].Value, known[i] = c.store.fresh(key)
		}
		if !known[i] {
			missing++
			bytes += bytesOf(key)
		}
	}
	calls := max(c.calls(missing, bytes), 1)
	return known, (missing + calls - 1) / calls
}

// calls returns the number of calls that fetch the given number of keys. bytes is the total length of the keys' ids in a URL.
func (c *coalescer[K, T]) calls(keys, bytes int) int {
	if keys == 0 || c.unsupported != nil {
		return 0
	}
	return max((keys+c.maxKeys-1)/c.maxKeys, c.cost(keys, bytes))
}

// cost returns the number of HTTP calls of one call; see venue.Reader.Cost. No URL contains the name of a further venue.
func (c *coalescer[K, T]) cost(keys, bytes int) int {
	if name := c.store.cfg.Name; name != "" {
		bytes = max(bytes-keys*(len(name)+len("%3A")), 0)
	}
	return c.store.venue.Cost(c.endpoint, keys, bytes)
}

// errClosed is the error of reads during and after Close.
var errClosed error = market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down")

// waitError returns the error of a caller whose ctx ended.
func waitError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return market.Errorf(market.CodeUpstreamTimeout, "the venue did not answer in time").Because(cause)
	}
	return fmt.Errorf("waiting for the venue: %w", cause)
}

// abandon ends the wait of a caller. It removes the caller from the flights in joined, and returns the results so far. A key
// without a result fails with err. But if the caller has timed out and the key still waits for the rate limit, the key fails with
// RATE_LIMITED.
func (c *coalescer[K, T]) abandon(err error, joined []*flight[K, T], out []reads.Result[*T]) []reads.Result[*T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := market.CodeOf(err) == market.CodeUpstreamTimeout
	for i, f := range joined {
		if f == nil {
			continue
		}
		switch {
		case f.ended && !errors.Is(f.result.Err, context.Canceled):
			out[i] = f.result
		case late:
			out[i].Err = cmp.Or(f.batch.reservation.Late(c.store.clock.Now()), err)
		default:
			// The coalescer cancels a call when the last waiter gives up. In that case, this caller gets the error of its own wait.
			out[i].Err = err
		}
	}
	for _, f := range joined {
		if f != nil {
			c.leave(f)
		}
	}
	return out
}
