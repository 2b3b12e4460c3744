package app

import (
	"testing"
)

// TestOneTimeoutIsNoOutage checks that the venue counts as unreachable only after three failures in a row. A 429 is not a failure,
// so a 429 after these failures makes the venue reachable again.
func TestOneTimeoutIsNoOutage(t *testing.T) {
	var r reach
	for _, status := range []int{0, 503, 200, 500, 0, 404, 0, 0} {
		if r.note(status); !r.ok() {
			t.Fatalf("the venue is out of reach after a %d", status)
		}
	}
	if r.note(504); r.ok() {
		t.Error("the venue is in reach after three failures")
	}
	if r.note(429); !r.ok() {
		t.Error("the venue answers, and is out of reach")
	}
}
