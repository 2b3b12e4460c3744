package persisted

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestRegistryEvictsLeastRecentlyUsed(t *testing.T) {
	const size = 100
	text := func(i int) string { return fmt.Sprintf("%*d", size, i) }
	r := newRegistry(4 * (size + overhead))
	has := func(i int) bool {
		for _, key := range r.lru.Keys() {
			if key == hashOf(text(i)) {
				return true
			}
		}
		return false
	}
	for i := range 4 {
		r.add(hashOf(text(i)), text(i))
	}
	if got, ok := r.get(hashOf(text(0))); !ok || got != text(0) {
		t.Fatalf("%q %v", got, ok)
	}
	r.add(hashOf(text(1)), text(1)) // the second call stores nothing, but makes the document the most recently used
	if r.bytes != 4*(size+overhead) {
		t.Errorf("%d bytes", r.bytes)
	}
	r.add(hashOf(text(4)), text(4))
	for i, want := range []bool{true, true, false, true, true} {
		if has(i) != want {
			t.Errorf("document %d is kept: %v", i, !want)
		}
	}
	if r.bytes != 4*(size+overhead) || r.lru.Len() != 4 {
		t.Errorf("%d documents of %d bytes", r.lru.Len(), r.bytes)
	}
	long := strings.Repeat("x", 3*(size+overhead)) // as large as three of the other documents
	r.add(hashOf(long), long)
	if r.bytes > r.budget || r.lru.Len() != 1 {
		t.Errorf("%d documents of %d bytes", r.lru.Len(), r.bytes)
	}
}

func TestRegistryLimits(t *testing.T) {
	r := newRegistry(1 << 20)
	for _, test := range []struct {
		size int
		kept bool
	}{{maxText, true}, {maxText + 1, false}} {
		text := strings.Repeat("x", test.size)
		r.add(hashOf(text), text)
		if _, ok := r.get(hashOf(text)); ok != test.kept {
			t.Errorf("%d bytes are kept: %v", test.size, ok)
		}
	}
	r = newRegistry(1000)
	text := strings.Repeat("x", 1000-overhead+1)
	r.add(hashOf(free), free)
	r.add(hashOf(text), text)
	if _, ok := r.get(hashOf(free)); !ok || r.lru.Len() != 1 {
		t.Error("a document larger than the budget evicts the others")
	}
}

// TestRegistryMemory checks that a registry needs at most 5/4 of its budget, even if documents are parts of larger bodies.
func TestRegistryMemory(t *testing.T) {
	const budget = 2 << 20
	for _, size := range []int{16, 300, 20_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := newRegistry(budget)
		for i := range 2 * budget / (size + overhead) {
			body := fmt.Sprintf("%*d", size+2_000, i)
			text := body[2_000:]
			r.add(hashOf(text), text)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("%d documents of %d bytes take %d KiB of %d", r.lru.Len(), size, grown>>10, budget>>10)
		if grown > budget*5/4 || r.bytes > budget || r.bytes < budget/2 {
			t.Errorf("documents of %d bytes take %d, counted as %d", size, grown, r.bytes)
		}
		runtime.KeepAlive(r)
	}
}
