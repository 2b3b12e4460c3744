package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// keys returns the keys of all entries, the oldest first.
func (s *clockLRU[K, T]) keys() (keys []K) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lru.Keys()
}

// len returns the number of entries.
func (s *clockLRU[K, T]) len() int {
	n, _ := s.stats()
	return n
}

func newEntry(value string) *entry[string] {
	e := &entry[string]{}
	e.read = market.Read[*string]{Value: &value, Meta: market.Meta{Handle: market.NewHandle(time.Time{})}}
	return e
}

// TestClockLRUBehavesLikeMap compares a clockLRU with a map. The version of a handle must change once when its entry is removed or
// replaced, and never before.
func TestClockLRUBehavesLikeMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s, want := newClockLRU[string, string](1<<20, 1<<30), map[string]*entry[string]{}
	var gone []*entry[string]
	leave := func(key string) {
		if old := want[key]; old != nil {
			gone = append(gone, old)
			delete(want, key)
		}
	}
	for range 20_000 {
		key := fmt.Sprint(r.IntN(3000))
		switch n := r.IntN(1000); {
		case n == 0:
			had := len(want)
			for k := range want {
				if k[0] == key[0] {
					leave(k)
				}
			}
			if n := s.removeAll(func(k string) bool { return k[0] == key[0] }); n != had-len(want) {
				t.Fatalf("removeAll returned %d, want %d", n, had-len(want))
			}
		case n < 400:
			if s.remove(key) != (want[key] != nil) {
				t.Fatalf("remove of %s reported the wrong result", key)
			}
			leave(key)
		default:
			e := newEntry(key)
			if s.put(key, e) > 0 {
				t.Fatal("put evicted an entry")
			}
			leave(key)
			want[key] = e
		}
	}
	if len(want) < 500 || s.len() != len(want) || len(s.keys()) != len(want) {
		t.Fatalf("len returned %d and keys returned %d keys, want %d", s.len(), len(s.keys()), len(want))
	}
	for from := 0; from < 3000; from += lookAhead {
		keys, found := make([]string, lookAhead), make([]*entry[string], lookAhead)
		for i := range keys {
			keys[i] = fmt.Sprint(from + i)
		}
		s.find(keys, found)
		for i, key := range keys {
			if found[i] != want[key] || s.get(key) != want[key] {
				t.Fatalf("%s: find wrote %v and get returned %v, want %v", key, found[i], s.get(key), want[key])
			}
			if want[key] != nil && want[key].read.Handle.Version() != 0 {
				t.Fatalf("the handle of %s changed, although it is cached", key)
			}
		}
	}
	for _, e := range gone {
		if n := e.read.Handle.Version(); n != 1 {
			t.Fatalf("the handle of %s changed %d times, want once", *e.read.Value, n)
		}
	}
}

// TestClockLRUEvicts checks that the oldest unused entry is evicted, or the oldest entry if all entries were used.
func TestClockLRUEvicts(t *testing.T) {
	s := newClockLRU[string, string](4, 1<<20)
	put := func(keys ...string) {
		for _, key := range keys {
			s.put(key, newEntry(key))
		}
	}
	want := func(keys ...string) {
		t.Helper()
		if got := s.keys(); !slices.Equal(got, keys) {
			t.Errorf("got keys %v, want %v", got, keys)
		}
	}
	put("a", "b", "c", "d", "a")
	want("b", "c", "d", "a") // the second put of the key a has made it the newest
	s.get("b").markUsed()
	s.get("d").markUsed()
	put("e")
	want("d", "a", "b", "e")
	put("f")
	want("b", "e", "d", "f") // the first eviction has cleared the used mark of b, so b is evicted next
	put("g")
	want("e", "d", "f", "g")
	for _, key := range s.keys() {
		s.get(key).markUsed()
	}
	put("h")
	want("d", "f", "g", "h")
}

// TestClockLRUEvictionIsBounded checks that an eviction passes over at most maxSecondChances used entries.
func TestClockLRUEvictionIsBounded(t *testing.T) {
	s := newClockLRU[string, string](3*maxSecondChances, 1<<20)
	for _, key := range ids("t", 0, 3*maxSecondChances) {
		s.put(key, newEntry(key))
		s.get(key).markUsed()
	}
	s.put("x", newEntry("x"))
	if keys := s.keys(); len(keys) != 3*maxSecondChances || keys[0] != ids("t", maxSecondChances+1, maxSecondChances+2)[0] || keys[len(keys)-2] != ids("t", maxSecondChances-1, maxSecondChances)[0] {
		t.Errorf("got %d entries, the first %s; want %d, the first t%03d", len(keys), keys[0], 3*maxSecondChances, maxSecondChances+1)
	}
}

// TestClockLRUConcurrent lets the race detector check concurrent readers and writers.
func TestClockLRUConcurrent(t *testing.T) {
	s := newClockLRU[string, string](50, 1<<20)
	keys := ids("t", 0, 100)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			found := make([]*entry[string], lookAhead)
			for range 500 {
				key := keys[r.IntN(len(keys))]
				if r.IntN(5) == 0 {
					s.remove(key)
				} else {
					s.put(key, newEntry(key))
				}
				from := r.IntN(len(keys) - lookAhead)
				s.find(keys[from:from+lookAhead], found)
				for j, e := range found {
					if e != nil && *e.read.Value != keys[from+j] {
						t.Errorf("find wrote the entry of %s for the key %s", *e.read.Value, keys[from+j])
					} else if e != nil {
						e.markUsed()
					}
				}
			}
		})
	}
	wg.Wait()
	if n := s.len(); n != len(s.keys()) || n > 50 {
		t.Errorf("got %d entries, want at most 50", n)
	}
}
