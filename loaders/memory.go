package loaders

import (
	"context"
	"errors"
	"slices"
	"sync"

	"oddsgraph/internal/market"
)

// errNotInMemory is what a read costs that would have to wait.
var errNotInMemory = errors.New("what is asked for is not in memory")

// FromMemory is With for a response that is to be made at once or not at all: reads are answered from memory, and one that
// would have to wait fails and sets Missed.
// Nothing is sent for. The set belongs to one goroutine. Release it when the response has been made: it is others' then, and the context has none.
func FromMemory(ctx context.Context, s Sources) (context.Context, *Set, *market.Recorder) {
	f := foundPool.Get().(*found)
	set := &f.set
	f.reading = reads(ctx, set, s)
	f.reading.Recorder.Tentatively(&f.tally)
	set.found, set.counted = f, s.Counted
	set.Prices.found, set.Spreads.found, set.Histories.found = &f.prices, &f.spreads, &f.histories
	set.Markets.found, set.Events.found = &f.markets, &f.events
	set.Balances.found, set.Positions.found, set.Orders.found = &f.balances, &f.positions, &f.orders
	set.books.found = &f.books
	return f.reading, set, &f.reading.Recorder
}

// InMemory reports whether reads are answered at once or fail, from memory or in an attempt, so that looking ahead leads to nothing.
func (s *Set) InMemory() bool { return s.found != nil || s.Attempts() }

// Missed reports whether a read has failed because it would have had to wait. Whatever was made with the set is void then.
func (s *Set) Missed() bool { return s.found != nil && s.found.missed }

// Stands tells that a response came of what was found, so that it counts.
func (s *Set) Stands() {
	for k, said := range s.found.tally {
		if said != (market.Reads{}) && s.counted != nil {
			s.counted(market.Kind(k), said)
		}
	}
}

// Release ends the use of a set that is FromMemory.
func (s *Set) Release() {
	f := s.found
	f.reading.Recorder.Tentatively(nil)
	f.reading.set = nil // a refresh may hold the context for longer
	f.reading = nil
	*s = Set{}
	f.missed, f.tally = false, market.Tally{}
	clear(f.shelf)
	for _, t := range [...]interface{ empty() }{
		&f.prices, &f.spreads, &f.histories, &f.markets, &f.events, &f.balances, &f.positions, &f.orders, &f.books,
	} {
		t.empty()
	}
	foundPool.Put(f)
}

// found is what a response has found in memory. Others use it again.
type found struct {
	// set is the set that finds, reading the context that it is of.
	set     Set
	reading *reading
	// missed tells that something was not there.
	missed bool
	// tally is what the cache said.
	tally market.Tally

	prices    table[string, market.Price]
	spreads   table[string, market.Spread]
	histories table[market.PriceHistoryQuery, market.PriceHistory]
	markets   table[market.MarketRef, market.Market]
	events    table[market.EventRef, market.Event]
	balances  table[market.Address, market.Balance]
	positions table[market.Address, []market.Position]
	orders    table[market.Address, []market.Order]
	books     table[market.BookQuery, market.Book]
	// shelf holds the books by token.
	shelf map[string]market.Read[*market.Book]
}

var foundPool = sync.Pool{New: func() any {
	f := &found{shelf: make(map[string]market.Read[*market.Book])}
	f.prices.missed, f.spreads.missed, f.histories.missed = &f.missed, &f.missed, &f.missed
	f.markets.missed, f.events.missed = &f.missed, &f.missed
	f.balances.missed, f.positions.missed, f.orders.missed = &f.missed, &f.missed, &f.missed
	f.books.missed = &f.missed
	return f
}}

// table is what was found of one kind, so that a key has one value within a response.
type table[K comparable, T any] struct {
	missed *bool
	// index says where in results a key's value is.
	index   map[K]int
	results []market.Result[market.Read[*T]]
	// one and fresh are the keys of a look-up: of a single one, and of those of many that are new.
	one   [1]K
	fresh []K
}

// maxKept bounds the size of the tables that are used again.
const maxKept = 1000

func (t *table[K, T]) empty() {
	if len(t.results) > maxKept {
		*t = table[K, T]{missed: t.missed}
		return
	}
	clear(t.index)
	clear(t.results)
	clear(t.one[:])
	clear(t.fresh)
	t.results, t.fresh = t.results[:0], t.fresh[:0]
}

// miss notes a read that would have to wait.
func (t *table[K, T]) miss() (read market.Read[*T], err error) {
	*t.missed = true
	return read, errNotInMemory
}

// enter gives keys that are new to the response their places, and returns them.
func (t *table[K, T]) enter(keys []K) []K {
	if t.index == nil {
		t.index = make(map[K]int)
	}
	t.fresh = t.fresh[:0]
	for _, key := range keys {
		if _, known := t.index[key]; !known {
			t.index[key] = len(t.results) + len(t.fresh)
			t.fresh = append(t.fresh, key)
		}
	}
	return t.fresh
}

// recall is Get from memory.
func (l *Loader[K, T]) recall(key K) (market.Read[*T], error) {
	t := l.found
	i, known := t.index[key]
	if !known && !*t.missed {
		t.one[0] = key
		i = len(t.results)
		l.lookUpNew(t.enter(t.one[:]))
	}
	if *t.missed {
		return t.miss()
	}
	return t.results[i].Value, nil
}

// recallMany is GetMany from memory. All keys that are new to the response are looked up in one go.
func (l *Loader[K, T]) recallMany(keys []K, out []market.Result[market.Read[*T]]) {
	l.Recall(keys, func(i int, read *market.Read[*T]) { out[i] = market.Result[market.Read[*T]]{Value: *read} })
	if *l.found.missed {
		for i := range keys {
			out[i].Value, out[i].Err = l.found.miss()
		}
	}
}

// Recall reads keys from memory and calls each with what was read of each, as long as nothing is missed. Those that are new to
// the response are looked up in one go. In an attempt it reads what is there, and notes the rest. It does nothing in a set that
// waits. each must not keep what it is given.
func (l *Loader[K, T]) Recall(keys []K, each func(i int, read *market.Read[*T])) {
	if l.found == nil && l.Attempts() {
		l.gleanEach(keys, each)
		return
	}
	t := l.found
	if t == nil || *t.missed {
		return
	}
	first := len(t.results)
	if fresh := t.enter(keys); len(fresh) > 0 {
		l.lookUpNew(fresh)
	}
	if *t.missed {
		return
	}
	inOrder := len(t.results)-first == len(keys) // all are new
	for i, key := range keys {
		at := first + i
		if !inOrder {
			at = t.index[key]
		}
		each(i, &t.results[at].Value)
	}
}

// lookUpNew looks up keys that were entered last.
func (l *Loader[K, T]) lookUpNew(keys []K) {
	t, first := l.found, len(l.found.results)
	t.results = slices.Grow(t.results, len(keys))[:first+len(keys)]
	results := t.results[first:]
	*t.missed = len(l.source.Lookup(l.ctx, keys, results, nil)) > 0
	l.looked(results, 0)
	l.noteStale(keys, results)
	for i := range results {
		if results[i].Err != nil {
			*t.missed = true
		}
	}
	market.RecordAll(l.recorder, results)
}

// recallBook is Book from memory. Books of one token that were read at different depths must be of one entry: whoever looks
// ahead reads them all at the greatest.
func (s *Set) recallBook(q market.BookQuery) (market.Read[*market.Book], error) {
	held, known := s.found.shelf[q.TokenID]
	if known && (held.Value == nil || held.Value.Covers(q.Depth)) {
		return held, nil
	}
	read, err := s.books.recall(q)
	if err == nil && known && read.Handle != held.Handle {
		return s.books.found.miss()
	}
	if err == nil {
		s.found.shelf[q.TokenID] = read
	}
	return read, err
}

// ended is a context that has ended, with the values of another: who reads under it gets what is in memory, or an error.
type ended struct{ context.Context }

var over = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done implements context.Context.
func (ended) Done() <-chan struct{} { return over }

// Err implements context.Context.
func (ended) Err() error { return context.Canceled }
