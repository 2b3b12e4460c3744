package cache

import (
	"sync"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
)

// nameIndex maps slugs and tokens to the markets that they are known to belong to, the latest ones, in bounded memory. It is safe for
// concurrent use.
type nameIndex struct {
	room  int
	mu    sync.Mutex
	bytes int
	lru   *simplelru.LRU[market.MarketRef, market.MarketRef]
}

func newNameIndex(size, room int) *nameIndex {
	n := &nameIndex{room: room}
	lru, err := simplelru.NewLRU(max(size, 1), func(name, id market.MarketRef) { n.bytes -= weighName(name, id) })
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	n.lru = lru
	return n
}

// weighName returns the bytes that a name takes. The names of a market share its id, but may outlive each other.
func weighName(name, id market.MarketRef) int {
	return 4*int(unsafe.Sizeof(name)) + 64 + slot + header + texts(name.Value, id.Value)
}

// Get returns the market of a name.
func (n *nameIndex) Get(name market.MarketRef) (id market.MarketRef, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lru.Get(name)
}

// Contains reports whether the market of a name is known.
func (n *nameIndex) Contains(name market.MarketRef) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lru.Contains(name)
}

// Add remembers the market of a name. The names that were used longest ago go where there is no room.
func (n *nameIndex) Add(name, id market.MarketRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, known := n.lru.Peek(name); known {
		n.bytes -= weighName(name, old)
	}
	n.bytes += weighName(name, id)
	n.lru.Add(name, id)
	for n.bytes > n.room {
		n.lru.RemoveOldest()
	}
}

// Remove forgets a name.
func (n *nameIndex) Remove(name market.MarketRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lru.Remove(name)
}

// Purge forgets all names.
func (n *nameIndex) Purge() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lru.Purge()
}
