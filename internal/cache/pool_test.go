package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// keys returns the keys of all items, the oldest first.
func (l *list[K, V]) keys() []K {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.lru.Keys()
}

// len returns the number of items.
func (l *list[K, V]) len() int {
	n, _, _ := l.stats()
	return n
}

// has reports whether a list has a key. Unlike get, it does not make the item the newest.
func has[K comparable, V item](l *list[K, V], key K) bool { return slices.Contains(l.keys(), key) }

type testList = list[string, *entry[string]]

// newLists returns a pool of 3200 bytes with n lists.
func newLists(n int) (*pool, []*testList) {
	p, lists := &pool{limit: 3200, clock: market.SystemClock{}}, make([]*testList, n)
	s := &store[string, string]{}
	for i := range lists {
		lists[i] = newList[string](p, s.expired)
	}
	return p, lists
}

// testEntry returns an entry of the given size. It expires after the given time, or is live if session is not nil.
func testEntry(bytes int, expires time.Duration, session *reads.Session) *entry[string] {
	e := &entry[string]{bytes: bytes, session: session, freshUntil: time.Now().Add(expires)}
	e.read.Value, e.read.Handle = new(string), reads.NewHandle(e.freshUntil)
	return e
}

// TestPoolRandom stores, reads and removes entries of three lists at random. The lists must behave like maps whose entries may be
// evicted, and evictions must follow the rules of pool.
func TestPoolRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, session := rand.New(rand.NewPCG(1, 1)), &reads.Session{}
		p, lists := newLists(3)
		want := [3]map[string]*entry[string]{{}, {}, {}}
		var left []*entry[string]
		for range 20_000 {
			now, n, key := time.Now(), r.IntN(3), fmt.Sprint(r.IntN(maxLive))
			before, sizes := want[n][key], [3]int{lists[0].bytes, lists[1].bytes, lists[2].bytes}
			var stored *entry[string]
			switch r.IntN(5) {
			case 0:
				lists[n].remove(key)
				delete(want[n], key)
			case 1:
				if got := lists[n].get(key); got != before {
					t.Fatalf("get returned %v, want %v", got, before)
				}
			case 2:
				time.Sleep(time.Millisecond)
			default:
				stored = testEntry(50+r.IntN(151), time.Duration(r.IntN(100))*time.Millisecond, []*reads.Session{nil, nil, session}[r.IntN(3)])
				lists[n].put(key, stored)
				want[n][key] = stored
			}
			if before != nil && want[n][key] != before {
				left = append(left, before)
			}
			sum := 0
			for n, l := range lists {
				kept, live := l.keys(), false
				for key, e := range want[n] {
					if slices.Contains(kept, key) {
						continue
					}
					left = append(left, e)
					delete(want[n], key)
					expired := !e.live() && !now.Before(e.freshUntil)
					if !expired && sizes[n] < p.limit/32 {
						t.Fatalf("an entry of %d bytes was evicted from a list of %d bytes", e.bytes, sizes[n])
					}
					live = live || e.live()
				}
				for _, other := range want[n] {
					if live && !other.live() && other != stored {
						t.Fatal("a live entry was evicted, but not all others")
					}
				}
				if sum += l.bytes; len(kept) != len(want[n]) {
					t.Fatalf("list %d has %d keys, want %d", n, len(kept), len(want[n]))
				}
			}
			if sum != p.bytes || sum > p.limit || stored != nil && !stored.read.Handle.Valid() {
				t.Fatalf("the lists have %d bytes, the pool counts %d, and the stored entry is %v", sum, p.bytes, stored)
			}
		}
		for _, e := range left {
			if e.read.Handle.Valid() {
				t.Fatal("the handle of an entry that has left is valid")
			}
		}
		for n := range lists {
			for key, e := range want[n] {
				if !e.read.Handle.Valid() {
					t.Fatalf("the handle of %s changed, although the entry is cached", key)
				}
			}
		}
		if _, _, n := lists[0].stats(); n == 0 {
			t.Error("got no evictions")
		}
	})
}

// TestPoolEvicts checks which entries leave a full pool: expired ones, then those of the largest list, and there the oldest that is
// not live.
func TestPoolEvicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, lists := newLists(16)
		session, small, large, expiring := &reads.Session{}, lists[0], lists[1], lists[2]
		put := func(l *testList, prefix string, from, to, bytes int, expires time.Duration, s *reads.Session) {
			for _, key := range ids(prefix, from, to) {
				l.put(key, testEntry(bytes, expires, s))
			}
		}
		put(small, "s", 0, 1, 100, time.Hour, nil)
		put(expiring, "e", 0, 8, 100, time.Second, nil)
		put(large, "live", 0, 2, 100, 0, session)
		put(large, "l", 0, 21, 100, time.Hour, nil)
		if p.bytes != p.limit {
			t.Fatalf("got %d bytes, want a full pool", p.bytes)
		}
		time.Sleep(time.Second)
		expiring.put("e007", testEntry(100, time.Hour, nil))
		put(small, "s", 1, 8, 100, time.Hour, nil)
		if got := expiring.keys(); !slices.Equal(got, []string{"e007"}) {
			t.Errorf("got keys %v of the list with expired entries, want e007", got)
		}
		put(small, "s", 8, 9, 200, time.Hour, nil)
		large.get("l002")
		put(small, "s", 9, 10, 100, time.Hour, nil)
		if has(large, "l001") || has(large, "l003") || !has(large, "l002") || !has(large, "live000") || !has(large, "live001") || small.len() != 10 {
			t.Errorf("got keys %v and %v, want the largest list without l000, l001 and l003", large.keys(), small.keys())
		}
		put(large, "crawl", 0, 1000, 100, time.Hour, nil)
		if small.len() != 10 || expiring.len() != 1 || !has(large, "live000") || !has(large, "live001") {
			t.Errorf("a crawler left %d and %d entries of the other lists, want 10 and 1, and the live entries", small.len(), expiring.len())
		}
		n := small.len()
		for _, bytes := range []int{200, 201} {
			e := testEntry(bytes, time.Hour, nil)
			if small.put("big", e); (e.read.Handle.Valid()) != (bytes == 200) || has(small, "big") != (bytes == 200) {
				t.Errorf("%d bytes: cached %v, want %v", bytes, has(small, "big"), bytes == 200)
			}
		}
		if _, bytes, evictions := small.stats(); small.len() != n || bytes != 1100 || evictions != 1 {
			t.Errorf("got %d entries of %d bytes and %d evictions, want %d, 1100 and 1", small.len(), bytes, evictions, n)
		}
		// Each of sixteen lists keeps a sixteenth when all are full.
		for _, l := range lists {
			put(l, "x", 0, 100, 100, time.Hour, nil)
		}
		for i, l := range lists {
			if l.bytes < p.limit/32 {
				t.Errorf("list %d has %d bytes, want at least %d", i, l.bytes, p.limit/32)
			}
		}
		if n := lists[15].removeAll(func(key string) bool { return key != "x099" }); n == 0 || lists[15].bytes != 100 {
			t.Errorf("removeAll removed %d entries and left %d bytes, want 100", n, lists[15].bytes)
		}
	})
}
