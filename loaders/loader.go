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
)

var (
	// ErrPending is the error of a read whose value has not arrived yet. The pass that gets it is void.
	ErrPending = errors.New("the value has not arrived yet")
	// errNoAnswer is the error of a key whose source did not return.
	errNoAnswer = errors.New("the source gave no answer")
	// ErrTooManyCalls is the cause of the error of a response that would take more upstream calls than it may.
	ErrTooManyCalls = errors.New("too many upstream calls")
)

const (
	// never is longer than any response takes: batches leave by Flush alone.
	never = time.Hour
	// maxKept is the number of results whose memory a table keeps for other responses.
	maxKept = 1000
)

// Source is where a loader reads: a look-up in memory and a fetch from upstream.
type Source[K comparable, T any] interface {
	// Lookup answers keys from memory, into out, and returns the indexes of the others appended to missing. It never
	// asks upstream.
	Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int
	// Refresh fetches the stale entries of keys in the background.
	Refresh(ctx context.Context, keys []K)
	// Calls returns the number of upstream calls that fetching keys takes at present.
	Calls(keys []K) int
	// Fetch asks upstream for keys and waits under ctx. The results are aligned with the keys.
	Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]]
}

// Loader reads one kind of data for one response. It belongs to the goroutine of its Set.
type Loader[K comparable, T any] struct {
	*response
	kind   market.Kind
	source Source[K, T]
	// gathers reports that one call carries several keys.
	gathers bool

	// index holds the place in results of each key that was read. The result of a key that is missing has the error ErrPending.
	index   map[K]int
	results []market.Result[market.Read[*T]]
	// missing are keys to send with the next Fetch, stale those to refresh when the response is made.
	missing, stale []K
	// sent and back count the keys that were sent, and those of them that arrived, since nothing was under way.
	sent, back int
	batch      *dataloader.Loader[K, struct{}]

	// one, fresh and absent are memory of look-ups.
	one    [1]K
	fresh  []K
	absent []int
}

// begin gives the loader a source for a response.
func (l *Loader[K, T]) begin(source Source[K, T]) { l.source = source }

// Get reads a key. It returns ErrPending if the value is not there yet.
func (l *Loader[K, T]) Get(key K) (market.Read[*T], error) {
	i, known := l.index[key]
	if !known {
		l.one[0] = key
		i = len(l.results)
		l.enter(l.one[:])
	}
	r := &l.results[i]
	if r.Err == ErrPending {
		l.pending = true
	}
	return r.Value, r.Err
}

// GetMany reads keys into out, which is aligned with them.
func (l *Loader[K, T]) GetMany(keys []K, out []market.Result[market.Read[*T]]) {
	l.enter(keys)
	for i, key := range keys {
		out[i] = l.results[l.index[key]]
		if out[i].Err == ErrPending {
			l.pending = true
		}
	}
}

// Prefetch looks up keys that will be read, and notes those that are missing. It does not make the pass void.
func (l *Loader[K, T]) Prefetch(keys []K) { l.enter(keys) }

// Peek returns the value of a key that was read or prefetched. ok is false if it was not, is pending or has failed.
func (l *Loader[K, T]) Peek(key K) (read market.Read[*T], ok bool) {
	i, known := l.index[key]
	if !known || l.results[i].Err != nil {
		return read, false
	}
	return l.results[i].Value, true
}

// enter gives the keys that are new to the response their results.
func (l *Loader[K, T]) enter(keys []K) {
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

// lookUp appends the results of keys.
func (l *Loader[K, T]) lookUp(keys []K) {
	first := len(l.results)
	l.results = slices.Grow(l.results, len(keys))[:first+len(keys)]
	results, answered := l.results[first:], false
	defer func() {
		if !answered { // the source panics
			for i := range results {
				results[i].Err = errNoAnswer
			}
		}
	}()
	l.absent = l.source.Lookup(l.ctx, keys, results, l.absent[:0])
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

// note records what a look-up found, counts it, and collects the keys of stale values.
func (l *Loader[K, T]) note(keys []K, results []market.Result[market.Read[*T]]) {
	n := market.Reads{Misses: uint32(len(l.absent))}
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
		market.RecordAll(l.recorder, results)
	} else {
		for i := range results {
			if results[i].Err != ErrPending {
				l.recorder.Record(results[i].Value.Handle)
			}
		}
	}
	l.journal.Looked(l.kind, n)
}

// cost returns the kind, and the number of calls that its missing keys take.
func (l *Loader[K, T]) cost() (market.Kind, int) {
	if len(l.missing) == 0 {
		return l.kind, 0
	}
	return l.kind, l.source.Calls(l.missing)
}

// send lets the missing keys leave: together, or each in a call of its own where a call carries one.
func (l *Loader[K, T]) send() {
	if len(l.missing) == 0 {
		return
	}
	if l.batch == nil {
		l.batch = dataloader.NewBatchedLoader(l.fetch,
			dataloader.WithWait[K, struct{}](never),
			dataloader.WithInputCapacity[K, struct{}](64),
			dataloader.WithCache(&dataloader.NoCache[K, struct{}]{})) // the table remembers
	}
	if l.back == l.sent {
		l.sent, l.back = 0, 0
	}
	l.sent += len(l.missing)
	l.underway += len(l.missing)
	for i, key := range l.missing {
		l.batch.Load(l.calls, key)
		if !l.gathers || i == len(l.missing)-1 {
			l.batch.Flush()
		}
	}
	l.missing = l.missing[:0]
}

// split reports whether some of the keys that left each on its own have arrived and others have not.
func (l *Loader[K, T]) split() bool { return !l.gathers && l.back > 0 && l.back < l.sent }

// fetch is the dataloader's batch function. Its results go to the goroutine of the Set.
func (l *Loader[K, T]) fetch(ctx context.Context, keys []K) []*dataloader.Result[struct{}] {
	results := l.ask(ctx, keys)
	l.arrivals <- func() { l.land(keys, results) }
	out := make([]*dataloader.Result[struct{}], len(keys))
	for i := range out {
		out[i] = nothing
	}
	return out
}

// nothing is what a dataloader gets for a key: the values go another way.
var nothing = &dataloader.Result[struct{}]{}

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
	return l.source.Fetch(ctx, keys)
}

// land puts the results of a batch in their places.
func (l *Loader[K, T]) land(keys []K, results []market.Result[market.Read[*T]]) {
	l.back += len(keys)
	l.underway -= len(keys)
	var n market.Reads
	for i, key := range keys {
		l.results[l.index[key]] = results[i]
		switch {
		case results[i].Err != nil:
		case results[i].Value.Stale:
			n.Excused++
		case l.kind.User():
			l.recorder.AnswerAccount()
		}
	}
	market.RecordAll(l.recorder, results)
	l.journal.Looked(l.kind, n)
}

// fail ends the keys that were not sent.
func (l *Loader[K, T]) fail(err error) {
	for _, key := range l.missing {
		l.results[l.index[key]].Err = err
		l.recorder.Record(nil)
	}
	l.missing = l.missing[:0]
}

// forget drops a key that is missing and was not sent.
func (l *Loader[K, T]) forget(key K) {
	if i := slices.Index(l.missing, key); i >= 0 {
		l.missing = slices.Delete(l.missing, i, i+1)
		delete(l.index, key)
	}
}

// done starts the refresh of the stale values that were read.
func (l *Loader[K, T]) done() {
	if len(l.stale) > 0 {
		l.source.Refresh(l.ctx, l.stale)
	}
}

// empty readies the loader for another response.
func (l *Loader[K, T]) empty() {
	l.source = nil
	if len(l.results) == 0 {
		return
	}
	if len(l.results) > maxKept {
		*l = Loader[K, T]{response: l.response, kind: l.kind, gathers: l.gathers}
		return
	}
	clear(l.index)
	clear(l.results)
	for _, keys := range [...][]K{l.missing, l.stale, l.fresh, l.one[:]} { // none was longer than the results are
		clear(keys[:min(cap(keys), len(l.results))])
	}
	l.results, l.missing, l.stale, l.fresh = l.results[:0], l.missing[:0], l.stale[:0], l.fresh[:0]
	l.sent, l.back = 0, 0
}
