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
)

// stragglers is how long a key that was asked for alone waits for others. An idle process can't sleep for less.
const stragglers = time.Millisecond

// Source is where a loader reads: a look-up in memory and a fetch from upstream.
type Source[K comparable, T any] interface {
	// Lookup answers keys from memory, into out, and returns the indexes of the others appended to missing. It never
	// waits for upstream.
	Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int
	// Fetch asks upstream for keys and waits under ctx. The results are aligned with the keys.
	Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]]
}

// Loader reads one kind of data for one response. It is safe for concurrent use.
type Loader[K comparable, T any] struct {
	source Source[K, T]
	// ctx is the response's: batches run and wait under it.
	ctx      context.Context
	recorder *market.Recorder
	// gathers tells that several keys travel together, so that waiting for stragglers pays.
	gathers bool

	mu    sync.Mutex
	slots map[K]*slot[T]
	batch *dataloader.Loader[K, market.Read[*T]]
}

// slot is what a response knows of a key: its result, or the thunk that waits for it.
type slot[T any] struct {
	result market.Result[market.Read[*T]]
	thunk  dataloader.Thunk[market.Read[*T]]
}

func newLoader[K comparable, T any](ctx context.Context, source Source[K, T], gathers bool) *Loader[K, T] {
	return &Loader[K, T]{source: source, ctx: ctx, recorder: market.RecorderFrom(ctx), gathers: gathers}
}

// Get reads one key. A key that is not cached waits a moment for others where they can travel together.
func (l *Loader[K, T]) Get(key K) (market.Read[*T], error) {
	var found [1]*slot[T]
	l.enter([]K{key}, found[:], !l.gathers)
	return l.await(found[0])
}

// GetMany reads keys into out, which is aligned with them. What is not cached leaves at once, in one batch.
func (l *Loader[K, T]) GetMany(keys []K, out []market.Result[market.Read[*T]]) {
	found := make([]*slot[T], len(keys))
	l.enter(keys, found, true)
	for i, s := range found {
		out[i].Value, out[i].Err = l.await(s)
	}
}

// Prefetch sends for what will be read, in one batch, and does not wait.
func (l *Loader[K, T]) Prefetch(keys []K) {
	if len(keys) > 0 {
		l.enter(keys, make([]*slot[T], len(keys)), true)
	}
}

// enter finds the slots of keys: those that this response knows, then the cache's, then new ones in the batch, which
// leaves at once where that is wanted.
func (l *Loader[K, T]) enter(keys []K, found []*slot[T], leave bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots == nil {
		l.slots = make(map[K]*slot[T], len(keys))
	}
	fresh := make([]K, 0, len(keys))
	slots := make([]slot[T], len(keys))
	for i, key := range keys {
		s, known := l.slots[key]
		if !known {
			s = &slots[len(fresh)]
			s.result.Err = errNoAnswer
			fresh = append(fresh, key)
			l.slots[key] = s
		}
		found[i] = s
	}
	if len(fresh) > 0 {
		l.lookUp(fresh, slots)
	}
	if leave && l.batch != nil {
		l.batch.Flush()
	}
}

// lookUp fills the slots of keys that are new to this response.
func (l *Loader[K, T]) lookUp(keys []K, slots []slot[T]) {
	out := make([]market.Result[market.Read[*T]], len(keys))
	missing := l.source.Lookup(l.ctx, keys, out, nil)
	for i := range keys {
		slots[i].result = out[i]
	}
	if len(missing) > 0 && l.batch == nil {
		l.batch = dataloader.NewBatchedLoader(l.fetch,
			dataloader.WithWait[K, market.Read[*T]](stragglers),
			dataloader.WithInputCapacity[K, market.Read[*T]](64),
			dataloader.WithCache(&dataloader.NoCache[K, market.Read[*T]]{})) // the slots remember
	}
	for _, i := range missing {
		slots[i].thunk = l.batch.Load(l.ctx, keys[i])
	}
}

// await returns a slot's result and records what it was read from.
func (l *Loader[K, T]) await(s *slot[T]) (market.Read[*T], error) {
	read, err := s.result.Value, s.result.Err
	if s.thunk != nil {
		read, err = s.thunk()
	}
	l.recorder.Record(read.Handle)
	return read, err
}

// errNoAnswer is what a key has whose source did not return.
var errNoAnswer = errors.New("the source gave no answer")

// fetch is the dataloader's batch function. It ends with the response, since sources wait under its context. It recovers
// panics itself, because the dataloader prints them past our log.
func (l *Loader[K, T]) fetch(ctx context.Context, keys []K) (out []*dataloader.Result[market.Read[*T]]) {
	values := make([]dataloader.Result[market.Read[*T]], len(keys))
	out = make([]*dataloader.Result[market.Read[*T]], len(keys))
	for i := range values {
		values[i].Error = errNoAnswer
		out[i] = &values[i]
	}
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("reading %d keys: panic: %v\n%s", len(keys), p, debug.Stack())
			for i := range values {
				values[i].Error = err
			}
		}
	}()
	results := l.source.Fetch(ctx, keys)
	if len(results) != len(keys) {
		return out // nobody knows whose is which
	}
	for i, r := range results {
		values[i].Data, values[i].Error = r.Value, r.Err
	}
	return out
}
