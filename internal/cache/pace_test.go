package cache

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p pace
	if p.max() != 0 {
		t.Errorf("max without calls: got %s, want 0", p.max())
	}
	p.add(100 * time.Millisecond)
	if got := p.max(); got != 300*time.Millisecond {
		t.Errorf("max after the first call: got %s, want 300ms", got)
	}
	for range 100 {
		p.add(100 * time.Millisecond)
	}
	if got := p.max(); got < 100*time.Millisecond || got > 101*time.Millisecond {
		t.Errorf("max after equal calls: got %s, want 100 to 101 ms", got)
	}
	p.add(200 * time.Millisecond)
	if got := p.max(); got < 200*time.Millisecond || got > 220*time.Millisecond {
		t.Errorf("max after a slow call: got %s, want 200 to 220 ms", got)
	}
}

// TestPaceOfTwoCalls checks that the second added duration has the weight 1/8 in the mean and 1/4 in the deviation.
func TestPaceOfTwoCalls(t *testing.T) {
	var p pace
	p.add(100 * time.Millisecond)
	p.add(200 * time.Millisecond)
	want := pace{true, 112500 * time.Microsecond, 62500 * time.Microsecond}
	if p != want || p.max() != 362500*time.Microsecond {
		t.Errorf("got %+v with max %s, want %+v with max 362.5ms", p, p.max(), want)
	}
}
