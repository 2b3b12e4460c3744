package cache

import (
	"sync"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
)

// nameIndex maps recently used slugs and tokens to the ids of their markets, in bounded memory. It is safe for concurrent use.
type nameIndex struct {
	maxBytes int
	mu       sync.Mutex
	bytes    int
	lru      *simplelru.LRU[market.MarketRef, market.MarketRef]
}

func newNameIndex(size, maxBytes int) *nameIndex {
	n := &nameIndex{maxBytes: maxBytes}
	lru, err := simplelru.NewLRU(max(size, 1), func(name, id market.MarketRef) { n.bytes -= weighName(name, id) })
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	n.lru = lru
	return n
}

// weighName returns the size of a name and its id in bytes. All names of a market share the memory of the market's id. But the size
// of each name includes the id, because each name may be the last one that keeps the id in memory.
func weighName(name, id market.MarketRef) int {
	return 4*int(unsafe.Sizeof(name)) + 64 + tableSlot + header + texts(name.Value, id.Value)
}

// Get returns the id of the market that has the given name, which is a slug or a token.
func (n *nameIndex) Get(name market.MarketRef) (id market.MarketRef, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lru.Get(name)
}

// Contains reports whether a name is in the index.
func (n *nameIndex) Contains(name market.MarketRef) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lru.Contains(name)
}

// Add stores the id of the market that has the given name. It evicts the least recently used names while the index needs more than
// maxBytes bytes.
func (n *nameIndex) Add(name, id market.MarketRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, known := n.lru.Peek(name); known {
		n.bytes -= weighName(name, old)
	}
	n.bytes += weighName(name, id)
	n.lru.Add(name, id)
	for n.bytes > n.maxBytes {
		n.lru.RemoveOldest()
	}
}

func (n *nameIndex) Remove(name market.MarketRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lru.Remove(name)
}

func (n *nameIndex) Purge() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lru.Purge()
}
