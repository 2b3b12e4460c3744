package cache

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p pace
	if p.max() != 0 {
		t.Errorf("without calls: got %s, want 0", p.max())
	}
	p.add(100 * time.Millisecond)
	if got := p.max(); got != 300*time.Millisecond {
		t.Errorf("after the first: got %s, want 300ms", got)
	}
	for range 100 {
		p.add(100 * time.Millisecond)
	}
	if got := p.max(); got < 100*time.Millisecond || got > 101*time.Millisecond {
		t.Errorf("after equal ones: got %s, want 100 to 101 ms", got)
	}
	p.add(200 * time.Millisecond)
	if got := p.max(); got < 200*time.Millisecond || got > 220*time.Millisecond {
		t.Errorf("after a slow one: got %s, want 200 to 220 ms", got)
	}
}

// TestPaceOfTwo checks that the second added duration has the weight 1/8 in the mean and 1/4 in the deviation.
func TestPaceOfTwo(t *testing.T) {
	var p pace
	p.add(100 * time.Millisecond)
	p.add(200 * time.Millisecond)
	want := pace{true, 112500 * time.Microsecond, 62500 * time.Microsecond}
	if p != want || p.max() != 362500*time.Microsecond {
		t.Errorf("got %+v and at most %s, want %+v", p, p.max(), want)
	}
}
