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

// coalescer is a single flight per key and a batch per call. A batch asks for admission when its first key comes, and
// leaves when it is admitted and fewer than width are in flight; until then keys join it. There is no timer, so it adds no
// latency.
//
// A call runs detached from the requests that wait for it. It counts the waiters of each of its keys and is cancelled
// when none of them has any. A batch that has not left and lost all its waiters gives its place in the queue back.
type coalescer[K comparable, T any] struct {
	fetch func(ctx context.Context, keys []K) ([]market.Result[*T], error)
	cost  func(keys, bytes int) int
	// accept takes each answer.
	accept func(key K, value *T, from origin) market.Read[*T]
	cached func(key K) (market.Read[*T], bool)
	// changes numbers the changes that are told of what the keys stand for; nil where nothing tells of any.
	changes *atomic.Uint64
	// scope names credentials for admission. It is nil for public data, whose calls never carry any.
	scope     func(*market.Credentials) string
	admission Admission
	clock     market.Clock
	kind      reqctx.Kind
	batch     int
	priority  reqctx.Priority
	// observer is told of batches that have ended; nil where nobody wants to know.
	observer func(b reqctx.Batch, waited []*reqctx.Log)
	counters *counters
	tasks    *tasks
	// waiting counts the callers inside do.
	waiting atomic.Int64
	// slots holds a token for each call in flight.
	slots chan struct{}

	// mu protects all below and the fields of flights and batches. The store's locks may be held when it is taken, and
	// those of its LRUs taken under it.
	mu      sync.Mutex
	flights map[K]*flight[K, T]
	// queue holds the batches that have not left, in the order in which they were formed.
	queue []*batch[K, T]
	// round numbers the callers, so that each raises a batch once.
	round uint64
	// pace is that of the calls that have ended.
	pace pace
}

// flight is one key on its way.
type flight[K comparable, T any] struct {
	key    K
	done   chan struct{}
	result market.Result[market.Read[*T]]
	// ended tells that the result is there.
	ended   bool
	waiters int
	batch   *batch[K, T]
	// waited are the journals of those who have waited, where there is an observer.
	waited []*reqctx.Log
}

// batch is a call that will leave or has left.
type batch[K comparable, T any] struct {
	ctx         context.Context
	cancel      context.CancelFunc
	reservation reqctx.Reservation
	flights     []*flight[K, T]
	// bytes is what the ids of its keys take in a URL.
	bytes int
	// request has the greatest priority and the latest deadline of all callers that joined.
	request     reqctx.CallRequest
	credentials *market.Credentials
	left        bool
	// change is the last one that was announced when the batch left, at the time at.
	change uint64
	at     time.Time
	// wanted counts the keys of a batch that has left that somebody waits for.
	wanted int
	round  uint64
	// listed is the round in which the batch was formed, for a share of a list.
	listed uint64

	// What is told of it: serial tells batches apart, the times are zero where it did not come so far.
	serial                              uint64
	formed, admitted, departed, arrived time.Time
	calls                               []reqctx.UpstreamCall
	err                                 error
}

// serials number the batches of all coalescers.
var serials atomic.Uint64

// do returns the values of keys, aligned with them, and waits for those that are not cached under ctx. Whoever would be
// admitted too late for an answer within ctx is refused at once. A refresh has the lowest priority, else it is the coalescer's.
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
	req.Takes = c.pace.most()
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
				f, refused = c.enter(key, share, req, credentials)
			}
			if refused != nil {
				out[i].Err = refused
				continue
			}
		}
		joined[i] = f
		f.join(req, c.round)
		if journal != nil && c.observer != nil {
			f.waited = append(f.waited, journal)
		}
	}
	c.dismiss(joined, req, out)
	c.mu.Unlock()
	c.counters.coalesced.Add(uint64(coalesced))
	journal.CountReads(c.kind, reqctx.CacheCounts{Joined: coalesced})
	if journal != nil {
		defer c.tell(journal, joined)
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

// tell notes in a journal the batches of the flights that its operation has waited for.
func (c *coalescer[K, T]) tell(j *reqctx.Log, joined []*flight[K, T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := make(map[*batch[K, T]]int, 1)
	for _, f := range joined {
		if f != nil {
			told[f.batch]++
		}
	}
	for b, own := range told {
		if len(b.flights) > 0 { // it may have lost all its keys before it left
			j.NoteBatch(c.describe(b, own))
		}
	}
}

// describe returns what is told of a batch to whoever waited for so many of its keys. The caller holds the lock.
func (c *coalescer[K, T]) describe(b *batch[K, T], own int) reqctx.Batch {
	d := reqctx.Batch{
		Serial: b.serial, Kind: c.kind, Priority: b.request.Priority, Keys: len(b.flights), Own: own,
		Formed: b.formed, Admitted: b.admitted, Left: b.departed, Ended: b.arrived, Calls: slices.Clip(b.calls), Outcome: reqctx.OutcomeOK,
	}
	if b.err != nil {
		d.Outcome = string(market.CodeOf(b.err))
	}
	return d
}

// known answers the keys that are cached by now, into out, and tells which they are. The others, where they are more than one call
// carries, are to be shared out evenly among as few calls as there can be, since those are made and read side by side. The caller
// holds the lock.
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

// calls returns the number of calls for so many keys, whose ids have so many bytes in a URL.
func (c *coalescer[K, T]) calls(keys, bytes int) int {
	if keys == 0 {
		return 0
	}
	return max((keys+c.batch-1)/c.batch, c.cost(keys, bytes))
}

// enter puts a new key into a batch that has not left, or into one of its own. It fails when that is not admitted. The
// caller holds the lock.
func (c *coalescer[K, T]) enter(key K, share int, req reqctx.CallRequest, credentials *market.Credentials) (*flight[K, T], error) {
	f := &flight[K, T]{key: key, done: make(chan struct{})}
	for _, b := range c.queue {
		if c.holds(b, key) && b.takes(req) && b.reservation.Err() == nil && (b.listed != c.round || len(b.flights) < share) {
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
		if !c.tasks.start(func() { c.work(b) }) {
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

// takes reports whether a batch that has not left takes another key in. What somebody waits for does not join refreshes: it
// would take them out of their pace, and whoever asks for junk could have all of them spend the budget like this.
func (b *batch[K, T]) takes(req reqctx.CallRequest) bool {
	return b.request.Scope == req.Scope && (b.request.Priority > reqctx.PriorityRefresh || req.Priority == reqctx.PriorityRefresh)
}

// holds reports whether a batch may carry one key more: what was admitted is one call.
func (c *coalescer[K, T]) holds(b *batch[K, T], key K) bool {
	keys := len(b.flights) + 1
	return keys <= 1 || keys <= c.batch && b.ctx.Err() == nil && c.cost(keys, b.bytes+bytesOf(key)) <= 1
}

// join adds a waiter. The caller holds the coalescer's lock.
func (f *flight[K, T]) join(req reqctx.CallRequest, round uint64) {
	b := f.batch
	if f.waiters++; f.waiters == 1 && b.left {
		b.wanted++
	}
	if b.round != round {
		b.round = round
		b.raise(req)
	}
}

// raise takes in what one more waiter wants.
func (b *batch[K, T]) raise(req reqctx.CallRequest) {
	b.request.Priority = max(b.request.Priority, req.Priority)
	if req.Deadline.IsZero() || !b.request.Deadline.IsZero() && req.Deadline.After(b.request.Deadline) {
		b.request.Deadline = req.Deadline
	}
	b.reservation.Join(req)
}

// dismiss refuses, of the flights that a caller has joined, those whose turn will come too late for its deadline. Others may
// wait on for them. The caller holds the lock.
func (c *coalescer[K, T]) dismiss(joined []*flight[K, T], req reqctx.CallRequest, out []market.Result[market.Read[*T]]) {
	if req.Deadline.IsZero() || len(c.queue) == 0 {
		return
	}
	var asked *batch[K, T]
	var turn time.Time
	for i, f := range joined {
		if f == nil || f.batch.left {
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

// abandon lets a caller leave that came at a time. It fills in what has arrived; the rest fails with err, or where it was the
// turn that the caller waited for, wholly or longer than for the answer, with the time that this takes yet.
func (c *coalescer[K, T]) abandon(err error, came time.Time, joined []*flight[K, T], out []market.Result[market.Read[*T]]) []market.Result[market.Read[*T]] {
	c.mu.Lock()
	defer c.mu.Unlock()
	late, now := market.CodeOf(err) == market.CodeUpstreamTimeout, time.Now()
	for i, f := range joined {
		if f == nil {
			continue
		}
		turn := f.batch.reservation.ReadyAt() // zero for one that waits no more
		switch {
		case f.ended && !errors.Is(f.result.Err, context.Canceled):
			out[i] = f.result
		case late && !turn.IsZero():
			out[i].Err = reqctx.RateLimited(turn.Sub(c.clock.Now()))
		case late && f.batch.left && f.batch.admitted.Sub(came) > now.Sub(f.batch.admitted):
			out[i].Err = reqctx.RateLimited(f.batch.admitted.Add(c.pace.most()).Sub(now))
		default:
			// A call that was cancelled because nobody waited any more ended for the caller's reason, not for its own.
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

// leave takes a waiter off a flight. A key that has not left and that nobody waits for any more is dropped, a call none of
// whose keys has a waiter is cancelled. The caller holds the lock.
func (c *coalescer[K, T]) leave(f *flight[K, T]) {
	if f.waiters--; f.waiters > 0 || f.ended {
		return
	}
	if !f.batch.left {
		delete(c.flights, f.key)
	}
	c.unwant(f)
}

// unwant tells a flight's batch that nobody waits for the flight any more. The caller holds the lock.
func (c *coalescer[K, T]) unwant(f *flight[K, T]) {
	b := f.batch
	if !b.left {
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
				delete(c.flights, other.key) // whoever asks from now on starts anew
			}
		}
	}
}

// drop takes a batch out of the queue that has lost its keys. The caller holds the lock.
func (c *coalescer[K, T]) drop(b *batch[K, T]) {
	b.cancel()
	b.reservation.Release(false)
	c.queue = slices.DeleteFunc(c.queue, func(other *batch[K, T]) bool { return other == b })
}

// land ends the flight of a key, if there is one, by a value that came another way.
func (c *coalescer[K, T]) land(key K, read market.Read[*T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[key]
	if f == nil {
		return
	}
	delete(c.flights, key)
	c.end(f, market.Result[market.Read[*T]]{Value: read})
	if !f.batch.left || f.waiters > 0 {
		c.unwant(f)
	}
}

// detach keeps later callers from joining the flights that left before a change of a key: that of the key itself, and those
// whose keys may mean the same. mayMean is nil where every key means itself.
func (c *coalescer[K, T]) detach(key K, change uint64, mayMean func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, f := range c.flights {
		if (k == key || mayMean != nil && mayMean(k)) && f.batch.left && f.batch.change < change {
			delete(c.flights, k)
		}
	}
}

// forget keeps the caller, and those who ask from now on, from joining the flights of keys whose calls have left already. The
// caller holds the lock.
func (c *coalescer[K, T]) forget(keys []K) {
	for _, key := range keys {
		if f := c.flights[key]; f != nil && f.batch.left {
			delete(c.flights, key)
		}
	}
}

// end gives a flight its result. The caller holds the lock.
func (c *coalescer[K, T]) end(f *flight[K, T], result market.Result[market.Read[*T]]) {
	f.result, f.ended = result, true
	close(f.done)
}

// work waits until a batch may leave and makes its call.
func (c *coalescer[K, T]) work(b *batch[K, T]) {
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
	c.depart(b, err == nil, admitted)
	if err == nil {
		if err = b.ctx.Err(); err == nil {
			results, err = c.ask(b)
		}
	}
	if c.tasks.ctx.Err() != nil && err != nil {
		err = errClosed
	}
	b.reservation.Release(err == nil)
	if told := c.arrive(b, results, err); c.observer != nil && len(told.Calls) > 0 {
		c.observer(told, b.waited())
	}
}

// arrive gives the flights of a batch their results, and returns what is told of it.
func (c *coalescer[K, T]) arrive(b *batch[K, T], results []market.Result[market.Read[*T]], err error) reqctx.Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.arrived, b.err = time.Now(), err
	c.pass(b)
	for i, f := range b.flights {
		// Only now: a caller that no longer finds the flight finds the entry.
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

// pass takes in how long a batch was with the venue. One that everybody has left says nothing about that. The caller holds
// the lock.
func (c *coalescer[K, T]) pass(b *batch[K, T]) {
	if b.ctx.Err() != nil || len(b.calls) == 0 {
		return
	}
	took := time.Duration(0)
	for _, x := range b.calls {
		took += x.Elapsed
	}
	c.pace.add(took)
}

// waited returns the journals of those who have waited for a batch that has ended.
func (b *batch[K, T]) waited() (all []*reqctx.Log) {
	for _, f := range b.flights {
		for _, j := range f.waited {
			if !slices.Contains(all, j) {
				all = append(all, j)
			}
		}
	}
	return all
}

// depart takes a batch out of the queue. One that leaves, since it was admitted, takes along what others in the queue hold, as far as there
// is room for it.
func (c *coalescer[K, T]) depart(b *batch[K, T], leaves bool, admitted time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.admitted = admitted; leaves {
		b.departed = time.Now()
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
		for n < len(other.flights) && c.holds(b, other.flights[n].key) {
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
	b.left = true
	if b.at = c.clock.Now(); c.changes != nil {
		b.change = c.changes.Load()
	}
	for _, f := range b.flights {
		if f.waiters > 0 {
			b.wanted++
		}
	}
}

// ask fetches the keys of a batch. A panic, an answer of the wrong length and one that came after everybody had left, and
// a newer call may have left, are errors.
func (c *coalescer[K, T]) ask(b *batch[K, T]) (reads []market.Result[market.Read[*T]], err error) {
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
	ctx = reqctx.WithCall(ctx, &departed[K, T]{c: c, b: b})
	if b.credentials != nil {
		ctx = reqctx.WithCredentials(ctx, b.credentials)
	}
	c.counters.calls.Add(uint64(c.cost(len(keys), b.bytes)))
	c.counters.keys.Add(uint64(len(keys)))
	results, err := c.fetch(ctx, keys)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(results) != len(keys):
		return nil, fmt.Errorf("fetching %d keys gave %d results", len(keys), len(results))
	}
	reads = make([]market.Result[market.Read[*T]], len(keys))
	from := c.origin(b)
	for i := range results {
		if reads[i].Err = results[i].Err; reads[i].Err == nil {
			reads[i].Value = c.accept(keys[i], results[i].Value, from)
		}
	}
	return reads, nil
}

// origin says when the venue may have made an answer.
type origin struct {
	// changes is how many changes had been announced when the call left, which was at the time left.
	changes uint64
	left    time.Time
	age     market.Age
}

// before reports whether an answer that has come now was made before a time.
func (o *origin) before(now, at time.Time) bool {
	return o.age.Least > 0 && now.Add(-o.age.Least).Before(at)
}

// origin returns that of a batch whose calls have ended.
func (c *coalescer[K, T]) origin(b *batch[K, T]) origin {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, first := origin{changes: b.change, left: b.at}, true
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

// departed is the reqctx.Call of a batch.
type departed[K comparable, T any] struct {
	c *coalescer[K, T]
	b *batch[K, T]
}

// Priority returns the greatest priority of the batch's waiters.
func (d *departed[K, T]) Priority() reqctx.Priority {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.b.request.Priority
}

// Deadline returns the latest deadline of the batch's waiters.
func (d *departed[K, T]) Deadline() (time.Time, bool) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.b.request.Deadline, !d.b.request.Deadline.IsZero()
}

// Trace returns the place of one more HTTP call of the batch in the trace of one of its waiters; zero where none is traced.
func (d *departed[K, T]) Trace() reqctx.TraceContext {
	if d.c.observer == nil {
		return reqctx.TraceContext{}
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	for _, f := range d.b.flights {
		for _, j := range f.waited {
			for _, span := range j.Spans() {
				return span.Context().Child()
			}
		}
	}
	return reqctx.TraceContext{}
}

// Exchanged takes note of an HTTP call that was made for the batch.
func (d *departed[K, T]) NoteCall(x reqctx.UpstreamCall) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.b.calls = append(d.b.calls, x)
}
