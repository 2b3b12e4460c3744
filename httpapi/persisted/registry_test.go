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
		t.Fatalf("document 0 is %q (found: %v), want %q", got, ok, text(0))
	}
	r.add(hashOf(text(1)), text(1)) // the second call stores nothing, but makes the document the most recently used
	if r.bytes != 4*(size+overhead) {
		t.Errorf("the registry counts %d bytes, want %d", r.bytes, 4*(size+overhead))
	}
	r.add(hashOf(text(4)), text(4))
	for i, want := range []bool{true, true, false, true, true} {
		if has(i) != want {
			t.Errorf("document %d is stored: %v, want %v", i, !want, want)
		}
	}
	if r.bytes != 4*(size+overhead) || r.lru.Len() != 4 {
		t.Errorf("the registry has %d documents and counts %d bytes, want 4 and %d", r.lru.Len(), r.bytes, 4*(size+overhead))
	}
	long := strings.Repeat("x", 3*(size+overhead)) // as large as three of the other documents
	r.add(hashOf(long), long)
	if r.bytes > r.budget || r.lru.Len() != 1 {
		t.Errorf("after a long document, the registry has %d documents and counts %d bytes, want 1 and at most %d", r.lru.Len(), r.bytes, r.budget)
	}
}

func TestRegistryLimits(t *testing.T) {
	r := newRegistry(1 << 20)
	for _, test := range []struct {
		size   int
		stored bool
	}{{maxText, true}, {maxText + 1, false}} {
		text := strings.Repeat("x", test.size)
		r.add(hashOf(text), text)
		if _, ok := r.get(hashOf(text)); ok != test.stored {
			t.Errorf("a document of %d bytes is stored: %v, want %v", test.size, ok, test.stored)
		}
	}
	r = newRegistry(1000)
	text := strings.Repeat("x", 1000-overhead+1)
	r.add(hashOf(free), free)
	r.add(hashOf(text), text)
	if _, ok := r.get(hashOf(free)); !ok || r.lru.Len() != 1 {
		t.Error("a document larger than the budget was stored, or has evicted another document")
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
			t.Errorf("documents of %d bytes take %d bytes of memory, want at most %d; the registry counts %d bytes", size, grown, budget*5/4, r.bytes)
		}
		runtime.KeepAlive(r)
	}
}
