package doorkeeper

import "testing"

// TestAgain remembers the last hashes, and a bounded number of them.
func TestAgain(t *testing.T) {
	var d Doorkeeper
	for i := range uint64(remembered) {
		if d.Again(i) {
			t.Fatalf("%d was not there before", i)
		}
	}
	for i := range uint64(remembered) {
		if !d.Again(i) {
			t.Fatalf("%d is forgotten", i)
		}
	}
	for i := range uint64(2*remembered + 1) {
		d.Again(1<<40 + i)
	}
	if d.Again(1) {
		t.Error("what was wanted long ago is still remembered")
	}
	if n := len(d.young) + len(d.old); n > 2*remembered {
		t.Errorf("%d hashes are remembered", n)
	}
}
