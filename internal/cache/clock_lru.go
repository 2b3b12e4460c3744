package cache

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// clockLRU is an LRU with second chances. A reader marks the entry as used instead of moving it to the front, so a read lock is
// enough. If the oldest entry is marked, an eviction unmarks it and moves it to the front instead of removing it. The handle of a
// removed entry is invalidated. clockLRU is safe for concurrent use.
type clockLRU[K comparable, T any] struct {
	size, maxBytes int
	mu             sync.RWMutex
	lru            *simplelru.LRU[K, *entry[T]]
	// bytes is the total size of the entries, at most maxBytes.
	bytes int
}

// maxSecondChances bounds the second chances in one eviction, because put holds the lock for the whole eviction.
const maxSecondChances = 100

// newClockLRU returns an empty clockLRU. size is the greatest number of entries, and maxBytes is the greatest total size of the
// entries in bytes.
func newClockLRU[K comparable, T any](size, maxBytes int) *clockLRU[K, T] {
	size = max(size, 1)
	lru, err := simplelru.NewLRU[K, *entry[T]](size, nil)
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	return &clockLRU[K, T]{size: size, maxBytes: maxBytes, lru: lru}
}

// get returns the entry of a key, or nil.
func (s *clockLRU[K, T]) get(key K) *entry[T] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, _ := s.lru.Peek(key)
	return e
}

// find writes the entry of each key to found. It writes nil for a key without an entry.
func (s *clockLRU[K, T]) find(keys []K, found []*entry[T]) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, key := range keys {
		found[i], _ = s.lru.Peek(key)
	}
}

// put stores an entry and replaces any entry with the same key. It returns the number of evicted entries. An entry larger than
// maxBytes is not stored and counts as evicted.
func (s *clockLRU[K, T]) put(key K, e *entry[T]) (evicted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, replaces := s.lru.Peek(key); replaces {
		if bytes := s.bytes - old.bytes + e.bytes; bytes <= s.maxBytes {
			s.lru.Add(key, e)
			s.bytes = bytes
			old.read.Handle.Invalidate()
			return 0
		}
		s.take(key, old)
	}
	if e.bytes > s.maxBytes {
		e.read.Handle.Invalidate()
		return 1
	}
	evicted = s.evict(e.bytes)
	s.lru.Add(key, e)
	s.bytes += e.bytes
	return evicted
}

// evict removes the least recently used entries until an entry of the given size fits. It returns the number of removed
// entries. The calling function holds the lock.
func (s *clockLRU[K, T]) evict(bytes int) (n int) {
	for left := min(maxSecondChances, s.lru.Len()); s.lru.Len() == s.size || s.bytes+bytes > s.maxBytes; n++ {
		key, e, _ := s.lru.GetOldest()
		for ; left > 0 && e.used.Load(); left-- {
			e.used.Store(false)
			s.lru.Get(key) // moves it to the front
			key, e, _ = s.lru.GetOldest()
		}
		s.take(key, e)
	}
	return n
}

// take removes an entry and invalidates its handle. The calling function holds the lock.
func (s *clockLRU[K, T]) take(key K, e *entry[T]) {
	s.lru.Remove(key)
	s.bytes -= e.bytes
	e.read.Handle.Invalidate()
}

// remove removes the entry of a key and reports whether there was one.
func (s *clockLRU[K, T]) remove(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.lru.Peek(key)
	if ok {
		s.take(key, e)
	}
	return ok
}

// removeAll removes the entries of all keys for which fits returns true. It returns the number of removed entries.
func (s *clockLRU[K, T]) removeAll(fits func(K) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.lru.Keys() {
		if !fits(key) {
			continue
		}
		e, _ := s.lru.Peek(key)
		s.take(key, e)
		n++
	}
	return n
}

// stats returns the number of entries and their size in bytes.
func (s *clockLRU[K, T]) stats() (entries, bytes int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lru.Len(), s.bytes
}
