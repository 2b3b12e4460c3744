package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
	// second is asked before a call; nil where there is none.
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
	// round numbers the calls of do, so that each joins a reservation once.
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

// batch is the keys of one call, before or after its start.
type batch[K comparable, T any] struct {
	ctx         context.Context
	cancel      context.CancelFunc
	reservation reqctx.Reservation
	flights     []*flight[K, T]
	// bytes is the length of its ids in a URL.
	bytes int
	// request has the greatest priority and the latest deadline of all callers that joined.
	request     reqctx.CallRequest
	credentials *market.Credentials
	started     bool
	// change is the number of the last streamed change at startedClock, when the batch started.
	change       uint64
	startedClock time.Time
	// fresh reports that a caller needs a response of the venue, not of the second cache.
	fresh bool
	// wanted counts the keys with waiters of a started batch.
	wanted int
	round  uint64
	// listed is the round in which the batch was formed.
	listed uint64

	// For observers: serial identifies the batch; a time is zero before its event.
	serial                               uint64
	formed, admitted, startedAt, endedAt time.Time
	calls                                []reqctx.UpstreamCall
	err                                  error
}

// serials counts the batches of all coalescers.
var serials atomic.Uint64

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
	joined := make([]*flight[K, T], len(keys))
	req := reqctx.CallRequest{Priority: c.priority, Caller: reqctx.CallerFrom(ctx)}
	if refresh {
		req.Priority = reqctx.PriorityRefresh
	}
	req.Deadline, _ = ctx.Deadline()
	journal := reqctx.LogFrom(ctx)
	var credentials *market.Credentials
	if c.scope != nil {
		credentials = reqctx.CredentialsFrom(ctx)
		req.Scope = c.scope(credentials)
	}

	came := time.Now()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	c.mu.Lock()
	req.Takes = c.pace.max()
	c.round++
	var refused error
	coalesced := uint32(0)
	if reqctx.WantsFresh(ctx) {
		c.forget(keys)
	}
	known, share := c.known(keys, out, reqctx.WantsFresh(ctx))
	for i, key := range keys {
		f := c.flights[key]
		if f != nil {
			coalesced++
		} else {
			if known[i] {
				continue
			}
			if refused == nil {
				f, refused = c.addKey(key, share, req, credentials)
			}
			if refused != nil {
				out[i].Err = refused
				continue
			}
		}
		joined[i] = f
		f.join(req, c.round)
		f.batch.fresh = f.batch.fresh || reqctx.WantsFresh(ctx)
		if journal != nil && c.observer != nil {
			f.logs = append(f.logs, journal)
		}
	}
	c.refuseLate(joined, req, out)
	c.mu.Unlock()
	c.counters.coalesced.Add(uint64(coalesced))
	journal.CountReads(c.kind, reqctx.CacheCounts{Joined: coalesced})
	if journal != nil {
		defer c.logBatches(journal, joined)
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

// describe returns a batch for the log of an operation that waited for own of its keys. The caller holds the lock.
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

// calls returns the number of calls for keys whose ids have the given length in a URL.
func (c *coalescer[K, T]) calls(keys, bytes int) int {
	if keys == 0 {
		return 0
	}
	return max((keys+c.batch-1)/c.batch, c.cost(keys, bytes))
}

// addKey adds a new key to a batch that has not started, or to a new batch. It fails if the reservation of a new batch fails. The
// caller holds the lock.
func (c *coalescer[K, T]) addKey(key K, share int, req reqctx.CallRequest, credentials *market.Credentials) (*flight[K, T], error) {
	f := &flight[K, T]{key: key, done: make(chan struct{})}
	for _, b := range c.queue {
		if c.fits(b, key) && b.accepts(req) && b.reservation.Err() == nil && (b.listed != c.round || len(b.flights) < share) {
			f.batch = b
			break
		}
	}
	if f.batch == nil {
		b := &batch[K, T]{request: req, credentials: credentials, round: c.round, listed: c.round, serial: serials.Add(1), formed: time.Now()}
		b.reservation = c.admission.Reserve(req)
		if err := b.reservation.Err(); err != nil {
			b.reservation.Release(false)
			return nil, err
		}
		b.ctx, b.cancel = context.WithCancel(c.tasks.ctx)
		if !c.tasks.start(func() { c.run(b) }) {
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

// accepts reports whether a batch that has not started accepts a key of a request. Keys with waiters do not join refreshes: they would
// raise the priority of all refreshes, so requests for unknown ids could spend the rate limit on refreshes.
func (b *batch[K, T]) accepts(req reqctx.CallRequest) bool {
	return b.request.Scope == req.Scope && (b.request.Priority > reqctx.PriorityRefresh || req.Priority == reqctx.PriorityRefresh)
}

// fits reports whether a key fits into the one call of a batch.
func (c *coalescer[K, T]) fits(b *batch[K, T], key K) bool {
	keys := len(b.flights) + 1
	return keys <= 1 || keys <= c.batch && b.ctx.Err() == nil && c.cost(keys, b.bytes+bytesOf(key)) <= 1
}

// join adds a waiter. The caller holds the coalescer's lock.
func (f *flight[K, T]) join(req reqctx.CallRequest, round uint64) {
	b := f.batch
	if f.waiters++; f.waiters == 1 && b.started {
		b.wanted++
	}
	if b.round != round {
		b.round = round
		b.raise(req)
	}
}

// raise adds the priority and the deadline of a waiter.
func (b *batch[K, T]) raise(req reqctx.CallRequest) {
	b.request.Priority = max(b.request.Priority, req.Priority)
	if req.Deadline.IsZero() || !b.request.Deadline.IsZero() && req.Deadline.After(b.request.Deadline) {
		b.request.Deadline = req.Deadline
	}
	b.reservation.Join(req)
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

// abandon returns the results so far when a caller that came at the given time gives up. A missing key fails with err. If the caller
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
			// A call without waiters was cancelled, so its error is the caller's.
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

// leave removes a waiter from a flight. Without waiters, a key that has not started is dropped. A call without waiters is cancelled. The
// caller holds the lock.
func (c *coalescer[K, T]) leave(f *flight[K, T]) {
	if f.waiters--; f.waiters > 0 || f.ended {
		return
	}
	if !f.batch.started {
		delete(c.flights, f.key)
	}
	c.dropWaiter(f)
}

// dropWaiter removes a flight without waiters from its batch. The caller holds the lock.
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
	if b.wanted--; b.wanted == 0 {
		b.cancel()
		for _, other := range b.flights {
			if c.flights[other.key] == other {
				delete(c.flights, other.key) // later callers start a new call
			}
		}
	}
}

// drop removes a batch without keys from the queue. The caller holds the lock.
func (c *coalescer[K, T]) drop(b *batch[K, T]) {
	b.cancel()
	b.reservation.Release(false)
	c.queue = slices.DeleteFunc(c.queue, func(other *batch[K, T]) bool { return other == b })
}

// resolve ends the flight of a key with a value from the stream.
func (c *coalescer[K, T]) resolve(key K, read market.Read[*T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[key]
	if f == nil {
		return
	}
	delete(c.flights, key)
	c.end(f, market.Result[market.Read[*T]]{Value: read})
	if !f.batch.started || f.waiters > 0 {
		c.dropWaiter(f)
	}
}

// detach prevents later callers from joining flights that started before a change of key: the flight of the key and of keys that may
// mean the same market. mayMean is nil if no key has an alias.
func (c *coalescer[K, T]) detach(key K, change uint64, mayMean func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, f := range c.flights {
		if (k == key || mayMean != nil && mayMean(k)) && f.batch.started && f.batch.change < change {
			delete(c.flights, k)
		}
	}
}

// forget prevents this and later callers from joining started flights of keys. The caller holds the lock.
func (c *coalescer[K, T]) forget(keys []K) {
	for _, key := range keys {
		if f := c.flights[key]; f != nil && f.batch.started {
			delete(c.flights, key)
		}
	}
}

// end sets the result of a flight. The caller holds the lock.
func (c *coalescer[K, T]) end(f *flight[K, T], result market.Result[market.Read[*T]]) {
	f.result, f.ended = result, true
	close(f.done)
}

// run waits until a batch may start and makes its call.
func (c *coalescer[K, T]) run(b *batch[K, T]) {
	defer b.cancel()
	select {
	case <-b.reservation.Decided():
	case <-b.ctx.Done():
	}
	err := b.reservation.Err()
	var admitted time.Time
	if err == nil {
		admitted = time.Now()
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-b.ctx.Done():
		}
	}
	var results []market.Result[market.Read[*T]]
	c.start(b, err == nil, admitted)
	if err == nil {
		if err = b.ctx.Err(); err == nil {
			results, err = c.fetchBatch(b)
		}
	}
	if c.tasks.ctx.Err() != nil && err != nil {
		err = errClosed
	}
	b.reservation.Release(err == nil)
	if told := c.finish(b, results, err); c.observer != nil && len(told.Calls) > 0 {
		c.observer(told, b.logs())
	}
}

// finish sets the results of a batch's flights and returns the batch for observers.
func (c *coalescer[K, T]) finish(b *batch[K, T], results []market.Result[market.Read[*T]], err error) reqctx.Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.endedAt, b.err = time.Now(), err
	c.recordPace(b)
	for i, f := range b.flights {
		// The entry exists by now, so a caller that misses the flight finds the entry.
		if c.flights[f.key] == f {
			delete(c.flights, f.key)
		}
		switch {
		case f.ended:
		case err != nil:
			c.end(f, market.Result[market.Read[*T]]{Err: err})
		default:
			c.end(f, results[i])
		}
	}
	return c.describe(b, 0)
}

// recordPace adds the duration of a batch's calls to the estimate. A cancelled batch does not count. The caller holds the lock.
func (c *coalescer[K, T]) recordPace(b *batch[K, T]) {
	if b.ctx.Err() != nil || len(b.calls) == 0 {
		return
	}
	took := time.Duration(0)
	for _, x := range b.calls {
		took += x.Elapsed
	}
	c.pace.add(took)
}

// logs returns the logs of the operations that waited for an ended batch.
func (b *batch[K, T]) logs() (all []*reqctx.Log) {
	for _, f := range b.flights {
		for _, j := range f.logs {
			if !slices.Contains(all, j) {
				all = append(all, j)
			}
		}
	}
	return all
}

// start removes a batch from the queue. An admitted batch takes keys from the other batches in the queue as far as they fit.
func (c *coalescer[K, T]) start(b *batch[K, T], leaves bool, admitted time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.admitted = admitted; leaves {
		b.startedAt = time.Now()
	}
	c.queue = slices.DeleteFunc(c.queue, func(other *batch[K, T]) bool { return other == b })
	for i := 0; leaves && i < len(c.queue) && b.ctx.Err() == nil; {
		other := c.queue[i]
		together := len(other.flights) + len(b.flights)
		if other.request.Scope != b.request.Scope || other.listed == b.listed && (together > c.batch || c.cost(together, other.bytes+b.bytes) > 1) { // shares of a list stay even
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
		if len(other.flights) == 0 {
			c.drop(other)
		} else {
			i++
		}
	}
	b.started = true
	if b.startedClock = c.clock.Now(); c.changes != nil {
		b.change = c.changes.Load()
	}
	for _, f := range b.flights {
		if f.waiters > 0 {
			b.wanted++
		}
	}
}

// fetchBatch fetches the keys of a batch. A panic, a result of the wrong length, and a result after the last waiter has left are errors.
func (c *coalescer[K, T]) fetchBatch(b *batch[K, T]) (reads []market.Result[market.Read[*T]], err error) {
	keys := make([]K, len(b.flights))
	for i, f := range b.flights {
		keys[i] = f.key
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fetching %d keys: panic: %v\n%s", len(keys), p, debug.Stack())
		}
	}()
	ctx := reqctx.WithPermit(b.ctx, b.reservation)
	ctx = reqctx.WithCall(ctx, &batchCall[K, T]{c: c, b: b})
	if b.credentials != nil {
		ctx = reqctx.WithCredentials(ctx, b.credentials)
	}
	if c.second != nil && !b.fresh {
		return c.askShared(ctx, b, keys)
	}
	reads = make([]market.Result[market.Read[*T]], len(keys))
	all := make([]int, len(keys))
	for i := range all {
		all[i] = i
	}
	return reads, c.call(ctx, b, keys, all, reads)
}

// call asks the venue for the keys at some indexes, and puts the answers into reads.
func (c *coalescer[K, T]) call(ctx context.Context, b *batch[K, T], keys []K, indexes []int, reads []market.Result[market.Read[*T]]) (err error) {
	if len(indexes) == 0 {
		return nil
	}
	asked, bytes := make([]K, len(indexes)), 0
	for n, i := range indexes {
		asked[n] = keys[i]
		bytes += bytesOf(keys[i])
	}
	var results []market.Result[*T]
	from := c.origin(b)
	if c.second != nil {
		defer func() { c.second.put(keys, indexes, results, reads, from) }()
	}
	c.counters.calls.Add(uint64(c.cost(len(asked), bytes)))
	c.counters.keys.Add(uint64(len(asked)))
	answers, err := c.fetch(ctx, asked)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case len(answers) != len(asked):
		return fmt.Errorf("fetching %d keys gave %d results", len(asked), len(answers))
	}
	results, from = answers, c.origin(b)
	for n, i := range indexes {
		if reads[i].Err = results[n].Err; reads[i].Err == nil {
			reads[i].Value = c.accept(keys[i], results[n].Value, from)
		}
	}
	return nil
}

// origin bounds the time at which the venue made a response.
type origin struct {
	// changes is the number of streamed changes at left, when the call started.
	changes uint64
	left    time.Time
	age     market.Age
	// came is when another process received the answer; zero for one of this process, which comes now.
	came time.Time
}

// before reports whether a response that arrived now was made before at.
func (o *origin) before(now, at time.Time) bool {
	return o.age.Least > 0 && now.Add(-o.age.Least).Before(at)
}

// origin returns the origin of a batch whose calls have ended.
func (c *coalescer[K, T]) origin(b *batch[K, T]) origin {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, first := origin{changes: b.change, left: b.startedClock}, true
	for _, x := range b.calls {
		switch {
		case x.Outcome != reqctx.OutcomeOK:
		case first:
			from.age, first = x.Age, false
		default:
			from.age = from.age.With(x.Age)
		}
	}
	return from
}

// batchCall is the reqctx.Call of a batch.
type batchCall[K comparable, T any] struct {
	c *coalescer[K, T]
	b *batch[K, T]
}

// Priority returns the highest priority of the batch's waiters.
func (d *batchCall[K, T]) Priority() reqctx.Priority {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.b.request.Priority
}

// Deadline returns the latest deadline of the batch's waiters.
func (d *batchCall[K, T]) Deadline() (time.Time, bool) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.b.request.Deadline, !d.b.request.Deadline.IsZero()
}

// Trace returns a child span for an HTTP call of the batch in the trace of a waiter, or zero if no waiter is traced.
func (d *batchCall[K, T]) Trace() reqctx.TraceContext {
	if d.c.observer == nil {
		return reqctx.TraceContext{}
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	for _, f := range d.b.flights {
		for _, j := range f.logs {
			for _, span := range j.Spans() {
				return span.Context().Child()
			}
		}
	}
	return reqctx.TraceContext{}
}

// NoteCall records an HTTP call of the batch.
func (d *batchCall[K, T]) NoteCall(x reqctx.UpstreamCall) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.b.calls = append(d.b.calls, x)
}
