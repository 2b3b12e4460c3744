package loaders

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"oddsgraph/internal/market"
	"oddsgraph/internal/stack"
)

const (
	// stragglers is how long a key that was asked for alone waits for others. An idle process can't sleep for less.
	stragglers = time.Millisecond
	// never is longer than any batch waits.
	never = time.Hour
)

// Source is where a loader reads: a look-up in memory and a fetch from upstream.
type Source[K comparable, T any] interface {
	// Lookup answers keys from memory, into out, and returns the indexes of the others appended to missing. It never
	// asks upstream.
	Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int
	// Refresh fetches the stale entries of keys in the background.
	Refresh(ctx context.Context, keys []K)
	// Fetch asks upstream for keys and waits under ctx. The results are aligned with the keys.
	Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]]
}

// response is what the loaders of one response have in common.
type response struct {
	// ctx is the response's: batches run and wait under it.
	ctx      context.Context
	recorder *market.Recorder
	journal  *market.Journal
	// refreshes tells that stale values are refreshed as they are read, not by Set.Refresh.
	refreshes bool
	// gathering is that of a response that is made by attempts, or was; nil for others.
	gathering *gathering
}

// Loader reads one kind of data for one response. It is safe for concurrent use.
type Loader[K comparable, T any] struct {
	*response
	kind   market.Kind
	source Source[K, T]
	// gathers tells that several keys travel together, so that waiting for stragglers pays.
	gathers bool
	// found is what a loader that answers from memory alone has found, and all that it uses of what is below; nil for one
	// that waits.
	found *table[K, T]

	mu    sync.Mutex
	slots map[K]*slot[T]
	batch *dataloader.Loader[K, result[T]]
	// waiting tells that stragglers are in the batch and that a timer will send it.
	waiting bool
	// wanted are the keys that the present attempt lacks.
	wanted []K
	// stale are the keys that were answered by stale values and have not been refreshed.
	stale []K
	// underway is the result of a read whose value is not there yet; nil before the first.
	underway result[T]
}

// result is what a batch brings of a key, or what was in memory.
type result[T any] = *market.Result[market.Read[*T]]

// slot is what a response knows of a key: its result, or the thunk that waits for it.
type slot[T any] struct {
	// result is what was in memory, or what the thunk will give, as soon as it is there; nil before. The loader's lock protects the
	// latter.
	result result[T]
	thunk  dataloader.Thunk[result[T]]
	// wanted tells that an attempt lacks the key, which has its thunk when the attempt is over.
	wanted bool
	// followers are those who want the result before the thunk gives it. The loader's lock protects them.
	followers []wish[T]
	// party is the one that the key has left in, nil where it left alone or by a call for all.
	party *party
}

// follower waits for several keys, left of which are still to come.
type follower[T any] struct {
	results []market.Result[market.Read[*T]]
	left    int
	then    func([]market.Result[market.Read[*T]])
}

// wish is the place of one key's result among those that a follower waits for.
type wish[T any] struct {
	of    *follower[T]
	index int
}

// begin makes the zero loader one of a response.
func (l *Loader[K, T]) begin(of *response, kind market.Kind, source Source[K, T], gathers bool) {
	l.response, l.kind, l.source, l.gathers = of, kind, source, gathers
}

// looked notes what a look-up gave.
func (l *Loader[K, T]) looked(results []market.Result[market.Read[*T]], missing int) {
	if l.journal == nil {
		return
	}
	n := market.Reads{Misses: uint32(missing)}
	for i := range results {
		switch r := &results[i]; {
		case r.Value.Handle == nil: // missing
		case r.Value.Stale:
			n.Stale++
		case r.Value.Value == nil:
			n.Absent++
		default:
			n.Hits++
		}
	}
	l.journal.Looked(l.kind, n)
}

// noteStale collects the keys that were answered by stale values. The caller holds the lock.
func (l *Loader[K, T]) noteStale(keys []K, results []market.Result[market.Read[*T]]) {
	for i := range results {
		if results[i].Value.Stale {
			l.stale = append(l.stale, keys[i])
		}
	}
	if l.refreshes {
		l.refreshNoted()
	}
}

// refreshStale refreshes what noteStale has collected.
func (l *Loader[K, T]) refreshStale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refreshNoted()
}

// refreshNoted is refreshStale for callers that hold the lock.
func (l *Loader[K, T]) refreshNoted() {
	if len(l.stale) > 0 {
		l.source.Refresh(l.ctx, l.stale)
		l.stale = l.stale[:0]
	}
}

// excused notes what the venue was asked for and what is stale answers in its place.
func (l *Loader[K, T]) excused(results []market.Result[market.Read[*T]]) {
	if l.journal == nil {
		return
	}
	var n market.Reads
	for i := range results {
		if results[i].Err == nil && results[i].Value.Stale {
			n.Excused++
		}
	}
	l.journal.Looked(l.kind, n)
}

// Get reads one key. A key that is not cached waits a moment for others where they can travel together.
func (l *Loader[K, T]) Get(key K) (market.Read[*T], error) {
	if l.found != nil {
		return l.recall(key)
	}
	if l.Attempts() {
		return l.glean(key)
	}
	var found [1]*slot[T]
	l.enter([]K{key}, found[:], !l.gathers)
	return l.await(found[0])
}

// GetMany reads keys into out, which is aligned with them. What is not cached leaves at once, in one batch.
func (l *Loader[K, T]) GetMany(keys []K, out []market.Result[market.Read[*T]]) {
	if l.found != nil {
		l.recallMany(keys, out)
		return
	}
	if l.Attempts() {
		l.gleanMany(keys, out)
		return
	}
	found := make([]*slot[T], len(keys))
	l.enter(keys, found, true)
	for i, s := range found {
		out[i].Value, out[i].Err = l.await(s)
	}
}

// Prefetch sends for what will be read, in one batch, and does not wait.
func (l *Loader[K, T]) Prefetch(keys []K) {
	switch {
	case len(keys) == 0 || l.found != nil:
	case l.Attempts():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.note(keys)
	default:
		l.enter(keys, make([]*slot[T], len(keys)), true)
	}
}

// Peek returns a key's value where this response has it at hand, without a look-up. It does not count as a read.
func (l *Loader[K, T]) Peek(key K) (read market.Read[*T], ok bool) {
	if l.found != nil {
		i, known := l.found.index[key]
		if !known || *l.found.missed {
			return read, false
		}
		return l.found.results[i].Value, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[key]
	if s == nil || s.underway() || s.result == nil || s.result.Err != nil {
		return read, false
	}
	return s.result.Value, true
}

// follow sends for keys like Prefetch and calls then with their results, aligned with the keys, when all of them are there:
// at once, or before anybody who waits for the last of them goes on. then must neither wait nor panic.
func (l *Loader[K, T]) follow(keys []K, then func([]market.Result[market.Read[*T]])) {
	if l.found != nil {
		return
	}
	found := make([]*slot[T], len(keys))
	l.enter(keys, found, true)
	f := &follower[T]{results: make([]market.Result[market.Read[*T]], len(keys)), then: then}
	l.mu.Lock()
	for i, s := range found {
		switch {
		case s.result != nil:
			f.results[i] = *s.result
		case !s.underway():
			f.results[i].Err = errNoAnswer
		default:
			s.followers = append(s.followers, wish[T]{f, i})
			f.left++
		}
	}
	complete := f.left == 0
	l.mu.Unlock()
	if complete {
		then(f.results)
	}
}

// arrive hands the results of a batch to those who follow its keys.
func (l *Loader[K, T]) arrive(keys []K, results []market.Result[market.Read[*T]]) {
	var complete []*follower[T]
	l.mu.Lock()
	for i, key := range keys {
		s := l.slots[key]
		s.result = &results[i]
		for _, w := range s.followers {
			w.of.results[w.index] = results[i]
			if w.of.left--; w.of.left == 0 {
				complete = append(complete, w.of)
			}
		}
		s.followers = nil
		if s.party != nil {
			s.party.back.Add(1)
		}
	}
	l.mu.Unlock()
	for _, f := range complete {
		f.then(f.results)
	}
	l.gathering.arrived(len(keys))
}

// enter finds the slots of keys: those that this response knows, then the cache's, then new ones in the batch, which
// leaves at once where that is wanted.
func (l *Loader[K, T]) enter(keys []K, found []*slot[T], leave bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, slots := l.enroll(keys, found)
	entered := len(fresh) > 0 && l.lookUp(fresh, slots)
	switch {
	case l.batch == nil:
	case leave:
		l.send()
	case entered && !l.waiting:
		l.waiting = true
		time.AfterFunc(stragglers, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.waiting {
				l.send()
			}
		})
	}
}

// enroll finds the slots of keys, and returns those that are new to the response with new slots. found may be nil. The caller
// holds the lock.
func (l *Loader[K, T]) enroll(keys []K, found []*slot[T]) (fresh []K, slots []slot[T]) {
	if l.slots == nil {
		l.slots = make(map[K]*slot[T], len(keys))
	}
	for i, key := range keys {
		s, known := l.slots[key]
		if !known {
			if slots == nil {
				fresh, slots = make([]K, 0, len(keys)-i), make([]slot[T], len(keys)-i)
			}
			s = &slots[len(fresh)]
			fresh = append(fresh, key)
			l.slots[key] = s
		}
		if found != nil {
			found[i] = s
		}
	}
	return fresh, slots
}

// underway reports whether the key was sent for, or will be.
func (s *slot[T]) underway() bool { return s.thunk != nil || s.wanted }

// send lets the batch leave. The caller holds the lock.
func (l *Loader[K, T]) send() {
	l.waiting = false
	l.batch.Flush()
}

// look fills the slots of keys that are new to this response with what is in memory, and returns the indexes of the others.
func (l *Loader[K, T]) look(keys []K, slots []slot[T]) (missing []int) {
	out := make([]market.Result[market.Read[*T]], len(keys))
	missing = l.source.Lookup(l.ctx, keys, out, nil)
	l.looked(out, len(missing))
	l.noteStale(keys, out)
	for i := range out {
		slots[i].result = &out[i]
	}
	for _, i := range missing {
		slots[i].result = nil
	}
	return missing
}

// lookUp is look, and reports whether some of the keys entered the batch.
func (l *Loader[K, T]) lookUp(keys []K, slots []slot[T]) bool {
	missing := l.look(keys, slots)
	for _, i := range missing {
		l.load(&slots[i], keys[i])
	}
	return len(missing) > 0
}

// load has a key enter the batch. The caller holds the lock.
func (l *Loader[K, T]) load(s *slot[T], key K) {
	if l.batch == nil {
		l.batch = dataloader.NewBatchedLoader(l.fetch,
			dataloader.WithWait[K, result[T]](never), // its timer would cut a list in two where entering it takes longer
			dataloader.WithInputCapacity[K, result[T]](64),
			dataloader.WithCache(&dataloader.NoCache[K, result[T]]{})) // the slots remember
	}
	s.thunk = l.batch.Load(l.ctx, key)
}

// await returns a slot's result and records what it was read from.
func (l *Loader[K, T]) await(s *slot[T]) (read market.Read[*T], err error) {
	var r result[T]
	if s.thunk != nil {
		r, err = s.thunk()
	} else if r = s.result; r == nil {
		err = errNoAnswer
	}
	if r != nil {
		read, err = r.Value, r.Err
	}
	l.recorder.Record(read.Handle)
	return read, err
}

// errNoAnswer is what a key has whose source did not return.
var errNoAnswer = errors.New("the source gave no answer")

// fetch is the dataloader's batch function. It ends with the response, since sources wait under its context.
func (l *Loader[K, T]) fetch(ctx context.Context, keys []K) []*dataloader.Result[result[T]] {
	stack.Reserve()
	results := l.ask(ctx, keys)
	l.arrive(keys, results)
	values := make([]dataloader.Result[result[T]], len(keys))
	out := make([]*dataloader.Result[result[T]], len(keys))
	for i := range results {
		values[i].Data = &results[i]
		out[i] = &values[i]
	}
	return out
}

// ask asks the source. It recovers panics itself, because the dataloader prints them past our log.
func (l *Loader[K, T]) ask(ctx context.Context, keys []K) (results []market.Result[market.Read[*T]]) {
	failed := errNoAnswer
	defer func() {
		if p := recover(); p != nil {
			failed = fmt.Errorf("reading %d keys: panic: %v\n%s", len(keys), p, debug.Stack())
		}
		if len(results) == len(keys) {
			return
		}
		results = make([]market.Result[market.Read[*T]], len(keys)) // nobody knows whose is which
		for i := range results {
			results[i].Err = failed
		}
	}()
	results = l.source.Fetch(ctx, keys)
	l.excused(results)
	return results
}
