package respcache

import "testing"

// TestAgain checks that a Doorkeeper remembers the last hashes, forgets older hashes, and holds at most 2*generation hashes.
func TestAgain(t *testing.T) {
	var d Doorkeeper
	for i := range uint64(generation) {
		if d.Again(i) {
			t.Fatalf("the new hash %d was remembered before", i)
		}
	}
	for i := range uint64(generation) {
		if !d.Again(i) {
			t.Fatalf("the recent hash %d is not remembered", i)
		}
	}
	for i := range uint64(2*generation + 1) {
		d.Again(1<<40 + i)
	}
	if d.Again(1) {
		t.Error("an old hash is still remembered")
	}
	if n := len(d.young) + len(d.old); n > 2*generation {
		t.Errorf("%d hashes are remembered, want at most %d", n, 2*generation)
	}
}
