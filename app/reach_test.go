package app

import (
	"testing"
	"time"
)

// TestVenueIsUnreachableAfterThreeFailures checks that the venue counts as unreachable only after three failures in a row. A 429 is not a failure,
// so a 429 after these failures makes the venue reachable again.
func TestVenueIsUnreachableAfterThreeFailures(t *testing.T) {
	var r reach
	now := time.Unix(1, 0)
	for _, status := range []int{0, 503, 200, 500, 0, 404, 0, 0} {
		if r.note(status, now); !r.ok() {
			t.Fatalf("the venue counts as unreachable after the status %d, want reachable", status)
		}
	}
	if r.note(504, now); r.ok() {
		t.Error("the venue counts as reachable after three failures in a row")
	}
	if r.note(429, now); !r.ok() {
		t.Error("the venue counts as unreachable after a 429")
	}
}
