package respcache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/httpapi/doorkeeper"
	"oddsgraph/internal/market"
)

const (
	// renewal is how long a response is served at most before it is executed again. What it rests on may well stand for longer;
	// but the layers below judge by what is read what is still wanted, be it an entry or the stream of a token, and would give
	// up what answers best.
	renewal = 5 * time.Second
	// overhead is what a response takes beside its bytes, perHandle what each handle adds to that, and perRequest what a
	// request that leads to it does.
	overhead, perHandle, perRequest = 1024, 96, 256
	// share is the part of the whole that one response may take.
	share = 16
)

// Key says what is asked, and by whom.
type Key struct {
	// Question is a hash of everything but the caller that the response depends on.
	Question [sha256.Size]byte
	Scope    Scope
}

// Question returns the hash of an operation of a document, for a media type of responses. Equal variables must be equal bytes.
func Question(document [sha256.Size]byte, operation string, variables []byte, media string) [sha256.Size]byte {
	text := make([]byte, 0, 512)
	text = append(text, document[:]...)
	text = append(binary.AppendUvarint(text, uint64(len(operation))), operation...)
	text = append(binary.AppendUvarint(text, uint64(len(media))), media...)
	return sha256.Sum256(append(text, variables...))
}

// Config is what a Cache needs.
type Config struct {
	// Bytes bounds what is kept, everything counted. A sixteenth of it is the most for one response.
	Bytes int64
	Clock market.Clock
	// Encode returns a body in a content coding: zstd, br or gzip.
	Encode func(body []byte, coding string) []byte
	// Wait is called before a caller waits for the execution of another; its error ends the wait. nil lets all wait.
	Wait func(ctx context.Context) error
}

// Cache keeps responses. It is safe for concurrent use. Its goroutines end before the last call of Do that waits for them.
type Cache struct {
	limit  int64
	clock  market.Clock
	encode func(body []byte, coding string) []byte
	before func(ctx context.Context) error // Config.Wait
	scopes *scopes
	seed   maphash.Seed

	hits, misses, stored, invalidated, evicted, coalesced atomic.Uint64

	// mu protects all below.
	mu    sync.Mutex
	lru   *simplelru.LRU[Key, *Response]
	bytes int64
	// wanted decides which responses may displace others.
	wanted   doorkeeper.Doorkeeper
	requests map[requestKey]*request
	flights  map[Key]*flight
	// turn numbers arrivals and beginnings in Do, forgotten the calls of Forget.
	turn, forgotten uint64
	// since counts what was stored, or found no room, since the last sweep.
	since int
}

// New returns an empty cache.
func New(cfg Config) *Cache {
	c := &Cache{
		limit: cfg.Bytes, clock: cfg.Clock, encode: cfg.Encode, before: cfg.Wait, scopes: newScopes(), seed: maphash.MakeSeed(),
		requests: make(map[requestKey]*request), flights: make(map[Key]*flight),
	}
	lru, err := simplelru.NewLRU(math.MaxInt, func(_ Key, r *Response) { c.dropped(r) })
	if err != nil {
		panic("respcache: " + err.Error()) // the size is a constant
	}
	c.lru = lru
	return c
}

// Stats are the counters of a Cache since the start, and what it holds now.
type Stats struct {
	// Hits were answered from what is kept. Misses were executed, Coalesced shared the execution of another.
	Hits, Misses, Coalesced uint64
	// Stored responses went when they were Invalidated, or Evicted to make room. Others were replaced or forgotten, or are
	// still there.
	Stored, Invalidated, Evicted uint64
	Entries                      int
	Bytes                        int64
}

// Stats returns the figures of the cache.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	entries, bytes := c.lru.Len(), c.bytes
	c.mu.Unlock()
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Coalesced: c.coalesced.Load(),
		Stored: c.stored.Load(), Invalidated: c.invalidated.Load(), Evicted: c.evicted.Load(), Entries: entries, Bytes: bytes,
	}
}

// Forget lets go of everything that was made for a caller with these credentials, and of what is being made for one.
func (c *Cache) Forget(credentials *market.Credentials) {
	scope := c.Scope(credentials)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	for _, key := range c.lru.Keys() {
		if key.Scope == scope {
			c.lru.Remove(key)
		}
	}
}

// Flush lets go of everything, and of what is being made, and returns the number of responses that went.
func (c *Cache) Flush() (responses int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	responses = c.lru.Len()
	c.lru.Purge()
	return responses
}

// find returns the response to a question, of the scope of the key or of none, if it stands.
func (c *Cache) find(key Key) *Response {
	c.mu.Lock()
	r, ok := c.lru.Get(Key{Question: key.Question})
	if !ok {
		r, ok = c.lru.Get(key)
	}
	c.mu.Unlock()
	if !ok || !c.checked(r) {
		return nil
	}
	return r
}

// Holds reports whether the response to a question is kept and stands. It does not count as asking for it.
func (c *Cache) Holds(key Key) bool {
	c.mu.Lock()
	r, ok := c.lru.Peek(Key{Question: key.Question})
	if !ok {
		r, ok = c.lru.Peek(key)
	}
	c.mu.Unlock()
	return ok && r.stands(c.clock.Now())
}

// checked reports whether a response that was found may be served, and removes it if not.
func (c *Cache) checked(r *Response) bool {
	if r.stands(c.clock.Now()) {
		c.hits.Add(1)
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidate(r)
	return false
}

// invalidate removes a response that does not stand. The caller holds the lock.
func (c *Cache) invalidate(r *Response) {
	if r.kept {
		c.invalidated.Add(1)
		c.lru.Remove(r.key)
	}
}

// keep stores a response for the scope of the key, or for all where it depends on nobody. In a full cache it displaces others only if
// the same was asked lately. The caller holds the lock and knows that it stands.
func (c *Cache) keep(key Key, r *Response, now time.Time) {
	size := int64(overhead + perHandle*cap(r.handles) + cap(r.Body) + r.Beside)
	again := c.wanted.Again(binary.LittleEndian.Uint64(key.Question[:]))
	if size > c.limit/share || c.bytes+size > c.limit && !again {
		c.since++ // sweeps make room, too
		return
	}
	if !r.personal {
		key.Scope = Scope{}
	}
	c.lru.Remove(key)
	r.before(now.Add(renewal))
	r.kept, r.key, r.size = true, key, size
	c.lru.Add(key, r)
	c.stored.Add(1)
	c.since++
	c.charge(size)
}

// charge counts bytes and makes room for them. The caller holds the lock.
func (c *Cache) charge(n int64) {
	c.bytes += n
	for c.bytes > c.limit {
		c.lru.RemoveOldest()
		c.evicted.Add(1)
	}
}

// grow counts bytes that were made for a response after it was stored.
func (c *Cache) grow(r *Response, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.kept {
		r.size += n
		c.charge(n)
	}
}

// dropped takes note of a response that has left the LRU. The caller holds the lock.
func (c *Cache) dropped(r *Response) {
	for _, key := range r.requests {
		delete(c.requests, key)
	}
	c.bytes -= r.size
	r.kept, r.requests = false, nil
}

// leastSweep is how many responses are stored between two sweeps at least.
const leastSweep = 64

// sweep removes the responses that do not stand any more and that nobody has asked for since, once half as many have been
// stored as there are: so it costs each of them the same, however many there are.
func (c *Cache) sweep() {
	c.mu.Lock()
	if c.since < leastSweep || 2*c.since < c.lru.Len() {
		c.mu.Unlock()
		return
	}
	c.since = 0
	all := c.lru.Values()
	c.mu.Unlock()
	now := c.clock.Now()
	var dead []*Response
	for _, r := range all {
		if !r.stands(now) {
			dead = append(dead, r)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range dead {
		c.invalidate(r)
	}
}
