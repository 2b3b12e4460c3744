package persisted

import (
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// maxText is the greatest size in bytes of a document that is kept.
	maxText = 64 << 10
	// overhead is what one kept document costs beside its text, in bytes.
	overhead = 256
)

// registry keeps the documents that clients registered, within a budget of bytes. Those that were asked for least lately
// make room. It is safe for concurrent use.
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
		panic("documents: " + err.Error()) // the size is a constant
	}
	r.lru = lru
	return r
}

func (r *registry) get(h hash) (text string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lru.Get(h)
}

// add keeps a text, unless it is too long. The caller knows its hash.
func (r *registry) add(h hash, text string) {
	if len(text) > maxText || len(text)+overhead > r.budget {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.lru.Get(h); there {
		return
	}
	r.lru.Add(h, strings.Clone(text)) // text may be a part of a request's whole body
	r.bytes += len(text) + overhead
	for r.bytes > r.budget {
		r.lru.RemoveOldest()
	}
}
