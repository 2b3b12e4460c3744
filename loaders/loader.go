package loaders

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

var (
	// ErrPending is the error of a read whose value has not arrived yet. Discard the output of the pass.
	ErrPending = errors.New("the value has not arrived yet")
	// errNoAnswer is the error of a key if Source.Lookup panicked, or if Source.Fetch returned a wrong number of results.
	errNoAnswer = errors.New("the source gave no answer")
	// ErrTooManyCalls is the cause of the error of Set.Fetch if the response needs too many upstream calls.
	ErrTooManyCalls = errors.New("too many upstream calls")
)

const (
	// never is the delay of the dataloader's timer. It is longer than any response takes, because batches are sent by Flush and not
	// by the timer.
	never = time.Hour
	// If a Loader has more than maxKept results, its memory is not reused for other responses.
	maxKept = 1000
)

// Loader reads one kind of data for one response. The Set's goroutine uses it. Only fetch runs on goroutines of the
// dataloader.
type Loader[K comparable, T any] struct {
	*response
	kind upstream.Kind
	// source points into Set.sources.
	source *reads.Source[K, T]

	// index maps each key to its index in results. The result of a missing key contains ErrPending.
	index   map[K]int
	results []reads.Result[*T]
	// missing contains the keys that the next Set.Fetch fetches. stale contains the keys that are refreshed when the Set is done, and again
	// those that GetFresh has read again.
	missing, stale, again []K
	// flows contains what was sent to each venue.
	flows [market.MaxVenues]flow
	batch *dataloader.Loader[K, reads.Value[*T]]

	// one, fresh and absent are buffers that save allocations.
	one    [1]K
	fresh  []K
	absent []int
}

// flow contains the number of keys that were passed to Source.Fetch, and the number of these keys that have a result. If all sent keys
// have a result, the next send first sets both numbers to 0.
type flow struct{ sent, received int }

// Get reads a key. It returns ErrPending if the key is missing.
func (l *Loader[K, T]) Get(key K) (reads.Value[*T], error) {
	i, known := l.index[key]
	if !known {
		l.one[0] = key
		i = len(l.results)
		l.lookUpNew(l.one[:])
	}
	r := &l.results[i]
	if r.Err == ErrPending {
		l.pending = true
	}
	return r.Value, r.Err
}

// GetMany reads keys. It writes the results to out, in the order of keys. The result of a missing key contains ErrPending.
func (l *Loader[K, T]) GetMany(keys []K, out []reads.Result[*T]) {
	l.lookUpNew(keys)
	for i, key := range keys {
		out[i] = l.results[l.index[key]]
		if out[i].Err == ErrPending {
			l.pending = true
		}
	}
}

// Prefetch looks up keys, so that the next Set.Fetch also fetches the missing ones. It does not make the pass pending.
func (l *Loader[K, T]) Prefetch(keys []K) { l.lookUpNew(keys) }

// Peek returns the value of a key that was read or prefetched before. ok is false if the key was not read or prefetched, is
// missing, or has an error.
func (l *Loader[K, T]) Peek(key K) (read reads.Value[*T], ok bool) {
	i, known := l.index[key]
	if !known || l.results[i].Err != nil {
		return read, false
	}
	return l.results[i].Value, true
}

// lookUpNew calls lookUp for the keys that the response has not read yet.
func (l *Loader[K, T]) lookUpNew(keys []K) {
	if l.index == nil {
		l.index = make(map[K]int, len(keys))
	}
	l.fresh = l.fresh[:0]
	for _, key := range keys {
		if _, known := l.index[key]; !known {
			l.index[key] = len(l.results) + len(l.fresh)
			l.fresh = append(l.fresh, key)
		}
	}
	if len(l.fresh) > 0 {
		l.lookUp(l.fresh)
	}
}

// lookUp calls Source.Lookup for keys that the response has not read yet, and appends their results.
func (l *Loader[K, T]) lookUp(keys []K) {
	first := len(l.results)
	l.results = slices.Grow(l.results, len(keys))[:first+len(keys)]
	results, answered := l.results[first:], false
	defer func() {
		if !answered { // the source panicked
			for i := range results {
				results[i].Err = errNoAnswer
			}
		}
	}()
	l.absent = (*l.source).Lookup(l.ctx, keys, results, l.absent[:0])
	answered = true
	err := l.failed
	if err == nil {
		err = ErrPending
	}
	for _, i := range l.absent {
		results[i].Err = err
	}
	if l.failed == nil {
		l.missing = slices.Grow(l.missing, len(l.absent))
		for _, i := range l.absent {
			l.missing = append(l.missing, keys[i])
		}
	}
	l.note(keys, results)
}

// note processes the results of a lookup: it records their handles in the dependencies, counts hits and misses, and collects the
// stale keys.
func (l *Loader[K, T]) note(keys []K, results []reads.Result[*T]) {
	n := request.CacheCounts{Misses: uint32(len(l.absent))}
	for i := range results {
		switch r := &results[i]; {
		case r.Err == ErrPending:
			continue
		case r.Value.Handle == nil:
		case r.Value.Stale:
			n.Stale++
			l.stale = append(l.stale, keys[i])
		case r.Value.Value == nil:
			n.Absent++
		default:
			n.Hits++
		}
	}
	if len(l.absent) == 0 || l.failed != nil {
		request.RecordAll(l.dependencies, results)
	} else {
		for i := range results {
			if results[i].Err != ErrPending {
				request.RecordAll(l.dependencies, results[i:i+1])
			}
		}
	}
	l.log.CountReads(l.kind, n)
}

// cost returns the loader's kind and the number of upstream calls that the missing keys need.
func (l *Loader[K, T]) cost() (upstream.Kind, int) {
	if len(l.missing) == 0 {
		return l.kind, 0
	}
	return l.kind, (*l.source).Calls(l.missing)
}

// send loads the missing keys in the batches of the source. The values of a batch go to arrivals when all its thunks have one.
func (l *Loader[K, T]) send() {
	if len(l.missing) == 0 {
		return
	}
	if l.batch == nil {
		l.batch = dataloader.NewBatchedLoader(l.fetch,
			dataloader.WithWait[K, reads.Value[*T]](never),
			dataloader.WithInputCapacity[K, reads.Value[*T]](64),
			dataloader.WithCache(&dataloader.NoCache[K, reads.Value[*T]]{})) // index and results are the cache
	}
	for i := range l.flows {
		if f := &l.flows[i]; f.received == f.sent {
			*f = flow{}
		}
	}
	l.inFlight += len(l.missing)
	for _, keys := range (*l.source).Batches(slices.Clone(l.missing)) {
		l.flows[l.part(keys[0])].sent += len(keys)
		thunks := make([]dataloader.Thunk[reads.Value[*T]], len(keys))
		for i, key := range keys {
			thunks[i] = l.batch.Load(l.fetchCtx, key)
		}
		l.batch.Flush()
		go func() {
			for _, thunk := range thunks {
				_, _ = thunk()
			}
			l.arrivals <- func() { l.store(keys, thunks) }
		}()
	}
	l.missing = l.missing[:0]
}

// part returns the index of a key's venue.
func (l *Loader[K, T]) part(key K) int {
	if r, ok := (*l.source).(*routed[K, T]); ok {
		return r.venue(key)
	}
	return 0
}

// venues returns the venues of which the loader has missing keys or keys in flight, and those of which only some batches have returned.
func (l *Loader[K, T]) venues() (waits, partial uint32) {
	for _, key := range l.missing {
		waits |= 1 << l.part(key)
	}
	for i, f := range l.flows {
		if f.received < f.sent {
			waits |= 1 << i
			partial |= uint32(min(f.received, 1)) << i
		}
	}
	return waits, partial
}

// fetch is the dataloader's batch function. It recovers a panic of the source, because the dataloader would print the panic without
// the service's logger.
func (l *Loader[K, T]) fetch(ctx context.Context, keys []K) (out []*dataloader.Result[reads.Value[*T]]) {
	failed := errNoAnswer
	defer func() {
		if p := recover(); p != nil {
			failed = fmt.Errorf("reading %d keys: panic: %v\n%s", len(keys), p, debug.Stack())
		}
		for len(out) < len(keys) {
			out = append(out, &dataloader.Result[reads.Value[*T]]{Error: failed})
		}
	}()
	results := (*l.source).Fetch(ctx, keys)
	if len(results) != len(keys) { // the results cannot be assigned to keys
		return nil
	}
	out = make([]*dataloader.Result[reads.Value[*T]], len(keys))
	for i, r := range results {
		out[i] = &dataloader.Result[reads.Value[*T]]{Data: r.Value, Error: r.Err}
	}
	return out
}

// store stores the values of a batch. Its thunks do not wait any more.
func (l *Loader[K, T]) store(keys []K, thunks []dataloader.Thunk[reads.Value[*T]]) {
	part := l.part(keys[0])
	l.flows[part].received += len(keys)
	l.arrived |= 1 << part
	l.inFlight -= len(keys)
	var n request.CacheCounts
	results := make([]reads.Result[*T], len(keys))
	for i, key := range keys {
		r := &results[i]
		switch r.Value, r.Err = thunks[i](); {
		case r.Err != nil:
		case r.Value.Stale:
			n.Excused++
		case l.kind.User() && part == 0: // only the first venue gets credentials that it could accept
			l.dependencies.AnswerAccount(accountOf(key))
		}
		l.results[l.index[key]] = *r
	}
	request.RecordAll(l.dependencies, results)
	l.log.CountReads(l.kind, n)
}

// accountOf returns the account of a key of a kind for which Kind.User returns true.
func accountOf(key any) market.Address {
	switch k := key.(type) {
	case market.Address:
		return k
	case queries.TradesKey:
		return k.Address
	case queries.HistoryKey:
		return k.Address
	}
	return ""
}

// fail sets err as the result of all missing keys that were not sent.
func (l *Loader[K, T]) fail(err error) {
	for _, key := range l.missing {
		l.results[l.index[key]].Err = err
		l.dependencies.Record(nil)
	}
	l.missing = l.missing[:0]
}

// forget removes a key if it is missing and was not sent.
func (l *Loader[K, T]) forget(key K) {
	if i := slices.Index(l.missing, key); i >= 0 {
		l.missing = slices.Delete(l.missing, i, i+1)
		delete(l.index, key)
	}
}

func (l *Loader[K, T]) refreshStale() {
	if len(l.stale) > 0 {
		(*l.source).Refresh(l.ctx, l.stale)
	}
}

func (l *Loader[K, T]) reset() {
	if len(l.results) == 0 {
		return
	}
	if len(l.results) > maxKept {
		*l = Loader[K, T]{response: l.response, kind: l.kind, source: l.source}
		return
	}
	clear(l.index)
	clear(l.results)
	for _, keys := range [...][]K{l.missing, l.stale, l.again, l.fresh, l.one[:]} { // each slice uses at most len(l.results) elements
		clear(keys[:min(cap(keys), len(l.results))])
	}
	l.results, l.missing, l.stale, l.again, l.fresh = l.results[:0], l.missing[:0], l.stale[:0], l.again[:0], l.fresh[:0]
	clear(l.flows[:])
}
