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
	size int
	mu   sync.RWMutex
	lru  *simplelru.LRU[K, *entry[T]]
}

// chances bounds how many entries stay for another turn when one is to go, and so the time that it takes.
const chances = 100

func newShelf[K comparable, T any](size int) *shelf[K, T] {
	size = max(size, 1)
	lru, err := simplelru.NewLRU[K, *entry[T]](size, nil)
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	return &shelf[K, T]{size: size, lru: lru}
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

// put keeps an entry, in the place of another one of its key. evicted tells that one of another key had to go for it.
func (s *shelf[K, T]) put(key K, e *entry[T]) (evicted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, replaces := s.lru.Peek(key); replaces {
		s.lru.Add(key, e)
		old.read.Handle.Bump()
		return false
	}
	if evicted = s.lru.Len() == s.size; evicted {
		s.evict()
	}
	s.lru.Add(key, e)
	return evicted
}

// evict takes out the entry that was read longest ago, as far as it is known. The lock is held.
func (s *shelf[K, T]) evict() {
	for range min(chances, s.lru.Len()) {
		key, e, _ := s.lru.GetOldest()
		if !e.used.Load() {
			break
		}
		e.used.Store(false)
		s.lru.Get(key) // is the newest now
	}
	_, e, _ := s.lru.RemoveOldest()
	e.read.Handle.Bump()
}

// remove takes out the entry of a key and reports whether there was one.
func (s *shelf[K, T]) remove(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.lru.Peek(key)
	if ok {
		s.lru.Remove(key)
		e.read.Handle.Bump()
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
		s.lru.Remove(key)
		e.read.Handle.Bump()
		n++
	}
	return n
}

// len returns the number of entries.
func (s *shelf[K, T]) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lru.Len()
}
