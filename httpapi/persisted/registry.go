package persisted

import (
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	maxText = 64 << 10
	// overhead is the memory that a stored document needs in addition to its text, in bytes.
	overhead = 256
)

// registry stores the documents that clients have registered. It evicts the least recently used documents when all documents
// together need more than budget bytes. It is safe for concurrent use.
type registry struct {
	budget int

	mu    sync.Mutex
	bytes int
	lru   *simplelru.LRU[hash, string]
}

func newRegistry(budget int) *registry {
	r := &registry{budget: budget}
	lru, err := simplelru.NewLRU(math.MaxInt, func(_ hash, text string) { r.bytes -= len(text) + overhead })
	if err != nil {
		panic("persisted: " + err.Error()) // the size is a constant
	}
	r.lru = lru
	return r
}

func (r *registry) get(h hash) (text string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lru.Get(h)
}

// add stores a text with its hash. If the text is too long, it stores nothing.
func (r *registry) add(h hash, text string) {
	if len(text) > maxText || len(text)+overhead > r.budget {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.lru.Get(h); there {
		return
	}
	r.lru.Add(h, strings.Clone(text)) // without a copy, text may keep a whole request body in memory
	r.bytes += len(text) + overhead
	for r.bytes > r.budget {
		r.lru.RemoveOldest()
	}
}
