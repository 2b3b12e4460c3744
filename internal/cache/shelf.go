package cache

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// shelf is an LRU of entries that readers do not write to: they mark what they have read, and a whole list of keys is found
// under one lock that they share. What is to go and was read since it came, or since it was to go the last time, stays for
// another turn (second chance). It is safe for concurrent use.
//
// Every entry that leaves is told so by its handle.
type shelf[K comparable, T any] struct {
	size, room int
	mu         sync.RWMutex
	lru        *simplelru.LRU[K, *entry[T]]
	// bytes is the sum of the entries' bytes, at most room.
	bytes int
}

// chances bounds how many entries stay for another turn while room is made, and so the time that it takes.
const chances = 100

// newShelf returns a shelf of at most size entries, which take at most room bytes together.
func newShelf[K comparable, T any](size, room int) *shelf[K, T] {
	size = max(size, 1)
	lru, err := simplelru.NewLRU[K, *entry[T]](size, nil)
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	return &shelf[K, T]{size: size, room: room, lru: lru}
}

// get returns the entry of a key, nil where there is none.
func (s *shelf[K, T]) get(key K) *entry[T] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, _ := s.lru.Peek(key)
	return e
}

// find is get for some keys, into found.
func (s *shelf[K, T]) find(keys []K, found []*entry[T]) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, key := range keys {
		found[i], _ = s.lru.Peek(key)
	}
}

// put keeps an entry of e.bytes in the place of another one of its key, and returns how many entries had to go for it. An entry
// that is larger than the whole room is not kept: then it is the one that goes.
func (s *shelf[K, T]) put(key K, e *entry[T]) (evicted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, replaces := s.lru.Peek(key); replaces {
		if bytes := s.bytes - old.bytes + e.bytes; bytes <= s.room {
			s.lru.Add(key, e)
			s.bytes = bytes
			old.read.Handle.Invalidate()
			return 0
		}
		s.take(key, old)
	}
	if e.bytes > s.room {
		e.read.Handle.Invalidate()
		return 1
	}
	evicted = s.evict(e.bytes)
	s.lru.Add(key, e)
	s.bytes += e.bytes
	return evicted
}

// evict makes room for an entry of so many bytes and returns how many entries went: those that were read longest ago, as far as
// that is known. The lock is held.
func (s *shelf[K, T]) evict(bytes int) (n int) {
	for left := min(chances, s.lru.Len()); s.lru.Len() == s.size || s.bytes+bytes > s.room; n++ {
		key, e, _ := s.lru.GetOldest()
		for ; left > 0 && e.used.Load(); left-- {
			e.used.Store(false)
			s.lru.Get(key) // is the newest now
			key, e, _ = s.lru.GetOldest()
		}
		s.take(key, e)
	}
	return n
}

// take takes out an entry. The lock is held.
func (s *shelf[K, T]) take(key K, e *entry[T]) {
	s.lru.Remove(key)
	s.bytes -= e.bytes
	e.read.Handle.Invalidate()
}

// remove takes out the entry of a key and reports whether there was one.
func (s *shelf[K, T]) remove(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.lru.Peek(key)
	if ok {
		s.take(key, e)
	}
	return ok
}

// removeAll takes out the entries whose keys fit, and returns their number.
func (s *shelf[K, T]) removeAll(fits func(K) bool) (n int) {
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

// taken returns the number of entries and their bytes.
func (s *shelf[K, T]) taken() (entries, bytes int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lru.Len(), s.bytes
}
