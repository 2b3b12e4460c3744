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

	"oddsgraph/internal/market"
)

const (
	// maxAge is the time after which a request is executed again, even if its response is still valid. The data cache (package cache)
	// keeps only entries that are read, and the feed keeps only streams that are read. A cached response prevents these reads, so it
	// must not be used for long.
	maxAge = 5 * time.Second
	// staleAge is maxAge of a response that shows that values are stale, or whose values are too old to be served without a reason such
	// as a failing venue. Another execution after this time finds out whether the reason still exists.
	staleAge = time.Second
	// overhead is the size of a response without its body, in bytes. perHandle is the size of each handle. perRequest is the size of
	// each stored request without its body.
	overhead, perHandle, perRequest = 1024, 96, 256
	// A response may use at most Config.Bytes/maxShare bytes.
	maxShare = 16
)

// Key identifies a response.
type Key struct {
	// Operation is a hash of everything that the response depends on, except the client; see OperationHash.
	Operation [sha256.Size]byte
	Identity  Identity
}

// OperationHash returns the hash of a document's operation with variables, for a media type. Equal variables must be passed as
// equal bytes.
func OperationHash(document [sha256.Size]byte, operation string, variables []byte, media string) [sha256.Size]byte {
	text := make([]byte, 0, 512)
	text = append(text, document[:]...)
	text = append(binary.AppendUvarint(text, uint64(len(operation))), operation...)
	text = append(binary.AppendUvarint(text, uint64(len(media))), media...)
	return sha256.Sum256(append(text, variables...))
}

// Config configures a Cache.
type Config struct {
	// Bytes limits the memory of the cache in bytes. A response that needs more than a sixteenth of Bytes is not stored.
	Bytes int64
	Clock market.Clock
	// Encode returns a body in the content coding zstd, br or gzip.
	Encode func(body []byte, coding string) []byte
	// Reading returns a context for the refresh of values on behalf of a client. ctx is the context of Do or FindRequest.
	Reading func(ctx context.Context) context.Context
}

// Cache stores responses. It is safe for concurrent use. Do starts a goroutine for each execution, and several calls of Do may wait
// for it. The last call that still waits for an execution returns only after the execution has ended.
type Cache struct {
	limit      int64
	clock      market.Clock
	encode     func(body []byte, coding string) []byte
	reading    func(ctx context.Context) context.Context
	identities *identities
	seed       maphash.Seed

	hits, misses, stored, invalidated, evicted, coalesced atomic.Uint64

	// mu guards the fields below. invalidate, store, addBytes, onEvict, begin and unlist are called with it held.
	mu    sync.Mutex
	lru   *simplelru.LRU[Key, *Response]
	bytes int64
	// seen remembers the operations of recent executions. Only the response to a remembered operation may evict other responses.
	seen     Doorkeeper
	requests map[requestKey]*storedRequest
	flights  map[Key]*flight
	// Each time that a call of Do finds no valid response, it increments sequence. flushes counts the calls of Forget and Flush.
	sequence, flushes uint64
	// sinceSweep is the number of new responses since the last sweep, including responses that did not fit into the cache.
	sinceSweep int
}

// New returns an empty cache.
func New(cfg Config) *Cache {
	c := &Cache{
		limit: cfg.Bytes, clock: cfg.Clock, encode: cfg.Encode, reading: cfg.Reading, identities: newIdentities(), seed: maphash.MakeSeed(),
		requests: make(map[requestKey]*storedRequest), flights: make(map[Key]*flight),
	}
	lru, err := simplelru.NewLRU(math.MaxInt, func(_ Key, r *Response) { c.onEvict(r) })
	if err != nil {
		panic("respcache: " + err.Error()) // the size is a constant
	}
	c.lru = lru
	return c
}

// Stats are the counters of a Cache since the start, and its present size.
type Stats struct {
	// Hits counts responses from the cache. Misses counts executions. Coalesced counts responses from an execution that another
	// call of Do started.
	Hits, Misses, Coalesced uint64
	// Stored counts stored responses. Invalidated counts responses that were removed because they were no longer valid. Evicted
	// counts responses that were removed to make room.
	Stored, Invalidated, Evicted uint64
	Entries                      int
	Bytes                        int64
}

// Stats returns the present counters and the size.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	entries, bytes := c.lru.Len(), c.bytes
	c.mu.Unlock()
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Coalesced: c.coalesced.Load(),
		Stored: c.stored.Load(), Invalidated: c.invalidated.Load(), Evicted: c.evicted.Load(), Entries: entries, Bytes: bytes,
	}
}

// Forget removes all responses that were made for a client with these credentials. The response of an execution that is running now
// will not be stored, even if the execution is for another client.
func (c *Cache) Forget(credentials *market.Credentials) {
	identity := c.Identity(credentials)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushes++
	for _, key := range c.lru.Keys() {
		if key.Identity == identity {
			c.lru.Remove(key)
		}
	}
}

// Flush empties the cache and returns the number of removed responses. The responses of executions that are running now will not
// be stored.
func (c *Cache) Flush() (responses int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushes++
	responses = c.lru.Len()
	c.lru.Purge()
	return responses
}

// find returns a valid response to the operation of a key. The response was made for everybody or for the identity of the key. If
// there is no such response, find returns nil.
func (c *Cache) find(ctx context.Context, key Key) *Response {
	c.mu.Lock()
	r, ok := c.lru.Get(Key{Operation: key.Operation})
	if !ok {
		r, ok = c.lru.Get(key)
	}
	c.mu.Unlock()
	if !ok || !c.use(ctx, r) {
		return nil
	}
	return r
}

// Contains reports whether there is a valid response for a key. A call of Contains does not count as a use of the response.
func (c *Cache) Contains(key Key) bool {
	c.mu.Lock()
	r, ok := c.lru.Peek(Key{Operation: key.Operation})
	if !ok {
		r, ok = c.lru.Peek(key)
	}
	c.mu.Unlock()
	return ok && r.valid(c.clock.Now())
}

// use reports whether a response is valid. It removes an invalid response. It counts a hit for a valid response, and begins the refresh
// of its stale values.
func (c *Cache) use(ctx context.Context, r *Response) bool {
	now := c.clock.Now()
	if r.valid(now) {
		c.hits.Add(1)
		r.refresh(ctx, now)
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidate(r)
	return false
}

func (c *Cache) invalidate(r *Response) {
	if r.stored {
		c.invalidated.Add(1)
		c.lru.Remove(r.key)
	}
}

// store stores a valid response for a key. A response that is too large is not stored. A response that does not depend on the
// client is stored for everybody. A full cache stores the response only if Cache.seen remembers its operation, and evicts other
// responses to make room.
func (c *Cache) store(key Key, r *Response) {
	size := int64(overhead + perHandle*cap(r.handles) + cap(r.Body) + r.NoteBytes)
	again := c.seen.Again(binary.LittleEndian.Uint64(key.Operation[:]))
	if size > c.limit/maxShare || c.bytes+size > c.limit && !again {
		c.sinceSweep++ // a sweep may remove invalid responses, which makes room
		return
	}
	if !r.personal {
		key.Identity = Identity{}
	}
	c.lru.Remove(key)
	r.stored, r.key, r.size = true, key, size
	c.lru.Add(key, r)
	c.stored.Add(1)
	c.sinceSweep++
	c.addBytes(size)
}

// addBytes counts n more bytes. It evicts responses until all stored responses together have at most c.limit bytes.
func (c *Cache) addBytes(n int64) {
	c.bytes += n
	for c.bytes > c.limit {
		c.lru.RemoveOldest()
		c.evicted.Add(1)
	}
}

// grow counts n bytes that were added to a response after it was stored.
func (c *Cache) grow(r *Response, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.stored {
		r.size += n
		c.addBytes(n)
	}
}

func (c *Cache) onEvict(r *Response) {
	for _, key := range r.requests {
		delete(c.requests, key)
	}
	c.bytes -= r.size
	r.stored, r.requests = false, nil
}

// minSweep is the least number of new responses between two sweeps.
const minSweep = 64

// sweep removes responses that are no longer valid. It does nothing until the number of new responses since the last sweep is at
// least minSweep and at least half the number of stored responses. So the average cost of sweeping for each new response is
// constant.
func (c *Cache) sweep() {
	c.mu.Lock()
	if c.sinceSweep < minSweep || 2*c.sinceSweep < c.lru.Len() {
		c.mu.Unlock()
		return
	}
	c.sinceSweep = 0
	all := c.lru.Values()
	c.mu.Unlock()
	now := c.clock.Now()
	var dead []*Response
	for _, r := range all {
		if !r.valid(now) {
			dead = append(dead, r)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range dead {
		c.invalidate(r)
	}
}
