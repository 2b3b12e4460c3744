package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Admission decides when upstream calls may leave.
type Admission interface {
	// Reserve asks for one read of the venue, before it is known which keys it will carry: they gather while the ticket
	// waits. It never waits itself.
	Reserve(req reqctx.CallRequest) reqctx.Reservation
	// Left returns how much of the budget of public calls is left, from 0 to 1; 0 while the venue wants no calls.
	Left() float64
}

// coalescer joins equal keys in one flight and batches different keys in one call. The first key of a batch reserves a call. The batch
// starts when it is admitted and fewer than width calls are in flight; until then keys join it. There is no timer, so it adds no
// latency.
//
// A call is detached from the requests that wait for it. It counts the waiters of each key and is cancelled when no key has a waiter.
// A batch that loses all waiters before it starts releases its reservation.
type coalescer[K comparable, T any] struct {
	fetch func(ctx context.Context, keys []K) ([]market.Result[*T], error)
	cost  func(keys, bytes int) int
	// accept stores each result.
	accept func(key K, value *T, from origin) market.Read[*T]
	cached func(key K) (market.Read[*T], bool)
	// changes counts the streamed changes of keys; nil for kinds without streamed changes.
	changes *atomic.Uint64
	// scope returns the name of credentials for the rate limit. It is nil for public data, whose calls carry no credentials.
	scope     func(*market.Credentials) string
	admission Admission
	clock     market.Clock
	kind      reqctx.Kind
	batch     int
	priority  reqctx.Priority
	// observer is called for each ended batch; it may be nil.
	observer func(b reqctx.Batch, waited []*reqctx.Log)
	counters *counters
	tasks    *tasks
	// second is the second-level cache, read before a call; it may be nil.
	second *second[K, T]
	// waiting counts the callers inside do.
	waiting atomic.Int64
	// slots holds a token for each call in flight.
	slots chan struct{}

	// mu guards everything below and the fields of flights and batches. Lock order: the store's lock, mu, the locks of its LRUs.
	mu      sync.Mutex
	flights map[K]*flight[K, T]
	// queue holds the batches that have not started, oldest first.
	queue []*batch[K, T]
	// round is the number of the present call of do. A call adds its priority and deadline to a batch only once.
	round uint64
	// pace estimates the duration of a call.
	pace pace
}

// flight is the fetch of one key.
type flight[K comparable, T any] struct {
	key    K
	done   chan struct{}
	result market.Result[market.Read[*T]]
	// ended reports that result is set.
	ended bool
	// shared reports that the second cache answered.
	shared  bool
	waiters int
	batch   *batch[K, T]
	// logs are the logs of the waiting operations, if there is an observer.
	logs []*reqctx.Log
}

// do returns the values of keys in their order. It waits under ctx for keys that are not cached. A key whose call cannot be admitted
// before the deadline of ctx fails at once. A refresh has the lowest priority, any other call the coalescer's.
func (c *coalescer[K, T]) do(ctx context.Context, keys []K, refresh bool) []market.Result[market.Read[*T]] {
	out := make([]market.Result[market.Read[*T]], len(keys))
	if ctx.Err() != nil {
		for i := range out {
			out[i].Err = waitError(ctx)
		}
		return out
	}
	came, log := time.Now(), reqctx.LogFrom(ctx)
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
			return c.abandon(waitError(ctx), came, joined, out)
		case <-c.tasks.ctx.Done():
			return c.abandon(errClosed, came, joined, out)
		}
	}
	return out
}

// join joins or starts the flights of keys that are not cached. It writes the results of the other keys to out.
func (c *coalescer[K, T]) join(ctx context.Context, keys []K, refresh bool, log *reqctx.Log, out []market.Result[market.Read[*T]]) []*flight[K, T] {
	req := reqctx.CallRequest{Priority: c.priority, Caller: reqctx.CallerFrom(ctx)}
	if refresh {
		req.Priority = reqctx.PriorityRefresh
	}
	req.Deadline, _ = ctx.Deadline()
	var credentials *market.Credentials
	if c.scope != nil {
		credentials = reqctx.CredentialsFrom(ctx)
		req.Scope = c.scope(credentials)
	}
	joined := make([]*flight[K, T], len(keys))
	coalesced := uint32(0)
	var refused error
	c.mu.Lock()
	req.Takes = c.pace.max()
	c.round++
	fresh := reqctx.WantsFresh(ctx)
	if fresh {
		c.forget(keys)
	}
	known, share := c.known(keys, out, fresh)
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
		joined[i] = f
		f.join(req, c.round)
		f.batch.fresh = f.batch.fresh || fresh
		if log != nil && c.observer != nil {
			f.logs = append(f.logs, log)
		}
	}
	c.refuseLate(joined, req, out)
	c.mu.Unlock()
	c.counters.coalesced.Add(uint64(coalesced))
	log.CountReads(c.kind, reqctx.CacheCounts{Joined: coalesced})
	return joined
}

// logBatches adds the batches of flights to the log of the operation that waited for them.
func (c *coalescer[K, T]) logBatches(j *reqctx.Log, joined []*flight[K, T]) {
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
	j.CountReads(c.kind, reqctx.CacheCounts{Shared: shared})
	for b, own := range told {
		if len(b.flights) > 0 { // a batch may lose all keys before it starts
			j.NoteBatch(c.describe(b, own))
		}
	}
}

// describe returns b for the log of an operation. own is the number of keys that the operation waited for. The caller holds the lock.
func (c *coalescer[K, T]) describe(b *batch[K, T], own int) reqctx.Batch {
	d := reqctx.Batch{
		Serial: b.serial, Kind: c.kind, Priority: b.request.Priority, Keys: len(b.flights), Own: own,
		Formed: b.formed, Admitted: b.admitted, Left: b.startedAt, Ended: b.endedAt, Calls: slices.Clip(b.calls), Outcome: reqctx.OutcomeOK,
	}
	if b.err != nil {
		d.Outcome = string(market.CodeOf(b.err))
	}
	return d
}

// known writes the values of cached keys to out and reports which they are. share is the number of missing keys for each call: the keys
// are divided evenly among the fewest calls, since the calls run concurrently. The caller holds the lock.
func (c *coalescer[K, T]) known(keys []K, out []market.Result[market.Read[*T]], fresh bool) (known []bool, share int) {
	known = make([]bool, len(keys))
	missing, bytes := 0, 0
	for i, key := range keys {
		if c.flights[key] != nil {
			continue
		}
		if !fresh {
			out[i].Value, known[i] = c.cached(key)
		}
		if !known[i] {
			missing++
			bytes += bytesOf(key)
		}
	}
	calls := max(c.calls(missing, bytes), 1)
	return known, (missing + calls - 1) / calls
}

// calls returns the number of calls for so many keys. bytes is the total length of their ids in a URL.
func (c *coalescer[K, T]) calls(keys, bytes int) int {
	if keys == 0 {
		return 0
	}
	return max((keys+c.batch-1)/c.batch, c.cost(keys, bytes))
}

// refuseLate fails the keys whose call will be admitted too late for the caller's deadline. Other callers may keep waiting for them. The
// caller holds the lock.
func (c *coalescer[K, T]) refuseLate(joined []*flight[K, T], req reqctx.CallRequest, out []market.Result[market.Read[*T]]) {
	if req.Deadline.IsZero() || len(c.queue) == 0 {
		return
	}
	var asked *batch[K, T]
	var turn time.Time
	for i, f := range joined {
		if f == nil || f.batch.started {
			continue
		}
		if f.batch != asked {
			asked, turn = f.batch, f.batch.reservation.ReadyAt()
		}
		if !turn.IsZero() && !turn.Add(req.Takes).Before(req.Deadline) {
			out[i].Err = reqctx.RateLimited(turn.Sub(c.clock.Now()))
			c.leave(f)
			joined[i] = nil
		}
	}
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

// abandon removes a caller that gives up from its flights and returns the results so far. came is the time of the call of do. A missing key fails with err. If the caller
// waited mostly for the rate limit, the key fails with RATE_LIMITED and the remaining wait.
func (c *coalescer[K, T]) abandon(err error, came time.Time, joined []*flight[K, T], out []market.Result[market.Read[*T]]) []market.Result[market.Read[*T]] {
	c.mu.Lock()
	defer c.mu.Unlock()
	late, now := market.CodeOf(err) == market.CodeUpstreamTimeout, time.Now()
	for i, f := range joined {
		if f == nil {
			continue
		}
		turn := f.batch.reservation.ReadyAt() // zero if the reservation no longer waits
		switch {
		case f.ended && !errors.Is(f.result.Err, context.Canceled):
			out[i] = f.result
		case late && !turn.IsZero():
			out[i].Err = reqctx.RateLimited(turn.Sub(c.clock.Now()))
		case late && f.batch.started && f.batch.admitted.Sub(came) > now.Sub(f.batch.admitted):
			out[i].Err = reqctx.RateLimited(f.batch.admitted.Add(c.pace.max()).Sub(now))
		default:
			// If the call was cancelled, its waiters had given up. Return the caller's own error.
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
