package cache

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p pace
	if p.max() != 0 {
		t.Errorf("%s of nothing", p.max())
	}
	p.add(100 * time.Millisecond)
	if got := p.max(); got != 300*time.Millisecond {
		t.Errorf("%s after the first", got)
	}
	for range 100 {
		p.add(100 * time.Millisecond)
	}
	if got := p.max(); got < 100*time.Millisecond || got > 101*time.Millisecond {
		t.Errorf("%s of equal ones", got)
	}
	p.add(200 * time.Millisecond)
	if got := p.max(); got < 200*time.Millisecond || got > 220*time.Millisecond {
		t.Errorf("%s after a slow one", got)
	}
}

// TestPaceOfTwo: a new time counts an eighth in the mean and a quarter in the deviation.
func TestPaceOfTwo(t *testing.T) {
	var p pace
	p.add(100 * time.Millisecond)
	p.add(200 * time.Millisecond)
	want := pace{true, 112500 * time.Microsecond, 62500 * time.Microsecond}
	if p != want || p.max() != 362500*time.Microsecond {
		t.Errorf("%+v, %s at most; want %+v", p, p.max(), want)
	}
}
