package cache

import (
	"hash/maphash"
	"runtime"
	"sync"
	"unsafe"
)

// shelf keeps entries by key, at most so many. It is a table of chains that a whole list of keys is found in at once, side by
// side, and an LRU that readers do not write to, but for a mark on what they have read: what is to go and was read since it
// came, or since it was to go the last time, stays for another turn (second chance). It is safe for concurrent use.
//
// Every entry that leaves is told so by its handle.
type shelf[K comparable, T any] struct {
	size int
	seed maphash.Seed

	mu sync.RWMutex
	// chains hold the entries by their hash, linked by next. There are twice as many as entries, a power of two.
	chains []*entry[K, T]
	count  int
	// ends closes the ring of all entries: newer than it is the oldest, older the newest.
	ends entry[K, T]
}

const (
	// minChains is the number of chains of a small shelf.
	minChains = 16
	// chances bounds how many entries stay for another turn when one is to go, and so the time that it takes.
	chances = 100
)

func newShelf[K comparable, T any](size int) *shelf[K, T] {
	s := &shelf[K, T]{size: max(size, 1), seed: maphash.MakeSeed(), chains: make([]*entry[K, T], minChains)}
	s.ends.newer, s.ends.older = &s.ends, &s.ends
	return s
}

// get returns the entry of a key, nil where there is none.
func (s *shelf[K, T]) get(key K) *entry[K, T] {
	hash := maphash.Comparable(s.seed, key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.chains[s.chain(hash)].find(hash, key)
}

// find is get for some keys, near at most, into found. Nothing of an entry is waited for before all are on their way.
func (s *shelf[K, T]) find(keys []K, found []*entry[K, T]) {
	var hashes [near]uint64
	for i, key := range keys {
		hashes[i] = maphash.Comparable(s.seed, key)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range keys {
		found[i] = s.chains[s.chain(hashes[i])]
	}
	for i := range keys {
		for e := found[i]; e != nil && e.hash != hashes[i]; {
			e = e.next
			found[i] = e
		}
	}
	for i, key := range keys {
		found[i] = found[i].find(hashes[i], key)
	}
}

// touch reads a little of what is about to be read of entries, all of them side by side, so that it is on its way when they are
// looked into one after the other.
func touch[K comparable, T any](entries []*entry[K, T]) {
	var sum byte
	for _, e := range entries {
		if e == nil {
			continue
		}
		if e.read.Stale {
			sum++
		}
		if v := e.read.Value; v != nil {
			sum += *(*byte)(unsafe.Pointer(v))
		}
	}
	runtime.KeepAlive(sum)
}

// find returns the entry of a key in the rest of a chain, nil where there is none.
func (e *entry[K, T]) find(hash uint64, key K) *entry[K, T] {
	for e != nil && (e.hash != hash || e.key != key) {
		e = e.next
	}
	return e
}

func (s *shelf[K, T]) chain(hash uint64) uint64 { return hash & uint64(len(s.chains)-1) }

// put keeps an entry that was in no shelf, in the place of another one of its key. evicted tells that one of another key had to
// go for it.
func (s *shelf[K, T]) put(key K, e *entry[K, T]) (evicted bool) {
	e.key, e.hash = key, maphash.Comparable(s.seed, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.chains[s.chain(e.hash)].find(e.hash, key); old != nil {
		s.takeOut(old)
		defer old.read.Handle.Bump() // when the new one is there
	}
	if evicted = s.count == s.size; evicted {
		s.evict()
	}
	if s.count*2 >= len(s.chains) {
		s.grow()
	}
	at := s.chain(e.hash)
	e.next, s.chains[at] = s.chains[at], e
	s.count++
	e.enter(&s.ends)
	return evicted
}

// grow doubles the number of chains. The lock is held.
func (s *shelf[K, T]) grow() {
	s.chains = make([]*entry[K, T], 2*len(s.chains))
	for e := s.ends.older; e != &s.ends; e = e.older {
		at := s.chain(e.hash)
		e.next, s.chains[at] = s.chains[at], e
	}
}

// evict takes out the entry that was read longest ago, as far as it is known. The lock is held.
func (s *shelf[K, T]) evict() {
	for range min(chances, s.count) {
		e := s.ends.newer
		if !e.used.Load() {
			break
		}
		e.used.Store(false)
		e.leave()
		e.enter(&s.ends)
	}
	e := s.ends.newer
	s.takeOut(e)
	e.read.Handle.Bump()
}

// remove takes out the entry of a key and reports whether there was one.
func (s *shelf[K, T]) remove(key K) bool {
	hash := maphash.Comparable(s.seed, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.chains[s.chain(hash)].find(hash, key)
	if e == nil {
		return false
	}
	s.takeOut(e)
	e.read.Handle.Bump()
	return true
}

// removeAll takes out the entries whose keys fit, and returns their number.
func (s *shelf[K, T]) removeAll(fits func(K) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.ends.newer; e != &s.ends; {
		next := e.newer
		if fits(e.key) {
			s.takeOut(e)
			e.read.Handle.Bump()
			n++
		}
		e = next
	}
	return n
}

// len returns the number of entries.
func (s *shelf[K, T]) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}

// takeOut takes an entry out. The lock is held.
func (s *shelf[K, T]) takeOut(e *entry[K, T]) {
	link := &s.chains[s.chain(e.hash)]
	for *link != e {
		link = &(*link).next
	}
	*link, e.next = e.next, nil
	e.leave()
	e.newer, e.older = nil, nil
	s.count--
}

// enter puts an entry into a ring as its newest.
func (e *entry[K, T]) enter(ends *entry[K, T]) {
	e.older, e.newer = ends.older, ends
	e.older.newer, ends.older = e, e
}

// leave takes an entry out of its ring.
func (e *entry[K, T]) leave() {
	e.older.newer, e.newer.older = e.newer, e.older
}
