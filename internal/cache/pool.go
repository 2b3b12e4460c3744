package cache

import (
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// pool bounds the memory of several lists, one for each kind of data. A list may use all memory that the others leave free. When an
// item does not fit, the pool removes others until it fits:
//
//   - Items go first that nothing may serve any more. The pool looks for them at the old end of each list.
//   - Otherwise the oldest item of the largest list goes, which was read or stored longest ago. The largest list of a full pool has
//     more than 1/32 of the memory, because a pool has at most 16 lists. So a list that has less never loses an item to another list.
//   - Within its list, a live item goes last.
//   - An item larger than 1/maxShare of the memory is not stored.
//
// The removal of an expired item looks at two items of each list at most. Any other removal compares the sizes of the lists, and
// passes over at most maxLive live items. A pool is safe for concurrent use.
type pool struct {
	limit int // in bytes
	clock market.Clock

	// mu guards the fields below and the lists. Locks are taken in this order: store.mu, coalescer.mu, pool.mu. While a function holds
	// mu, it takes no other lock but that of the clock.
	mu    sync.Mutex
	bytes int // the sum of all lists, at most limit
	lists []member
}

const (
	maxShare = 16
	maxLive  = 16
)

// member is a list of a pool. The calling function holds the lock of the pool.
type member interface {
	// size returns the size of all items in bytes.
	size() int
	// removeExpired removes the oldest item if nothing may serve it any more. It reports whether it has removed one.
	removeExpired(now time.Time) bool
	// evict removes the oldest item that is not live. If there is none, it removes a live one.
	evict()
}

// makeRoom removes items until the given number of bytes fits. The calling function holds the lock.
func (p *pool) makeRoom(bytes int) {
	if p.bytes+bytes <= p.limit {
		return
	}
	now := p.clock.Now()
	for p.bytes+bytes > p.limit && slices.ContainsFunc(p.lists, func(l member) bool { return l.removeExpired(now) }) {
	}
	for p.bytes+bytes > p.limit {
		slices.MaxFunc(p.lists, func(a, b member) int { return a.size() - b.size() }).evict()
	}
}
