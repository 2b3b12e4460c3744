package cache

import (
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// item is an entry of a list.
type item interface {
	// size returns the size of the item with its key, in bytes. It never changes.
	size() int
	live() bool
	// leave is called once when the item is removed or replaced.
	leave()
}

// list contains the entries of one kind in a pool, ordered by the time of the last read or write. It is safe for concurrent use.
type list[K comparable, V item] struct {
	pool *pool
	// expired reports whether nothing may serve an item any more. If expired is nil, items do not expire.
	expired func(v V, now time.Time) bool

	// The lock of the pool guards the fields below. bytes is the size of all items. evictions counts the items that were removed to
	// make room before they had expired, and the items that were too large.
	lru       *simplelru.LRU[K, V]
	bytes     int
	evictions uint64
}

// newList returns an empty list and adds it to a pool.
func newList[K comparable, V item](p *pool, expired func(V, time.Time) bool) *list[K, V] {
	lru, err := simplelru.NewLRU[K, V](math.MaxInt, nil)
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	l := &list[K, V]{pool: p, expired: expired, lru: lru}
	p.lists = append(p.lists, l)
	return l
}

// get returns the item of a key, or the zero value, and makes it the newest item.
func (l *list[K, V]) get(key K) V {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.find(key)
}

// find is like get, but the calling function holds the lock.
func (l *list[K, V]) find(key K) V {
	v, _ := l.lru.Get(key)
	return v
}

// put stores an item, unless it is too large for the pool. It replaces any item with the same key.
func (l *list[K, V]) put(key K, v V) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if old, replaces := l.lru.Peek(key); replaces {
		if more := v.size() - old.size(); v.size() <= l.pool.limit/maxShare && l.pool.bytes+more <= l.pool.limit {
			l.lru.Add(key, v)
			l.grow(more)
			old.leave()
			return
		}
		l.take(key, old)
	}
	if v.size() > l.pool.limit/maxShare {
		v.leave()
		l.evictions++
		return
	}
	l.pool.makeRoom(v.size())
	l.lru.Add(key, v)
	l.grow(v.size())
}

func (l *list[K, V]) grow(bytes int) { l.bytes, l.pool.bytes = l.bytes+bytes, l.pool.bytes+bytes }

// take removes an item. The calling function holds the lock.
func (l *list[K, V]) take(key K, v V) {
	l.lru.Remove(key)
	l.grow(-v.size())
	v.leave()
}

// remove removes the item of a key.
func (l *list[K, V]) remove(key K) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if v, ok := l.lru.Peek(key); ok {
		l.take(key, v)
	}
}

// removeAll removes the items of all keys for which fits returns true. It returns the number of removed items.
func (l *list[K, V]) removeAll(fits func(K) bool) (n int) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	for _, key := range l.lru.Keys() {
		if fits(key) {
			v, _ := l.lru.Peek(key)
			l.take(key, v)
			n++
		}
	}
	return n
}

// stats returns the number of items, their size in bytes, and the number of evictions.
func (l *list[K, V]) stats() (items, bytes int, evictions uint64) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.lru.Len(), l.bytes, l.evictions
}

// next returns the oldest item that is not live. It moves live items to the front, at most maxLive of them. If there are more, it
// returns a live item. The calling function holds the lock.
func (l *list[K, V]) next(maxLive int) (key K, v V, ok bool) {
	for left := min(maxLive, l.lru.Len()); ; left-- {
		if key, v, ok = l.lru.GetOldest(); left == 0 || !v.live() {
			return key, v, ok
		}
		l.lru.Get(key)
	}
}

func (l *list[K, V]) size() int { return l.bytes }

func (l *list[K, V]) removeExpired(now time.Time) bool {
	if l.expired == nil {
		return false
	}
	key, v, ok := l.next(1)
	if ok = ok && l.expired(v, now); ok {
		l.take(key, v)
	}
	return ok
}

func (l *list[K, V]) evict() {
	if key, v, ok := l.next(maxLive); ok {
		l.take(key, v)
		l.evictions++
	}
}
