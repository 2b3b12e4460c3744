package wire

import (
	"math"
	"testing"
	"time"
)

func TestJitterIsFull(t *testing.T) {
	for failures, bound := range map[int]time.Duration{
		1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 3: time.Second, 7: 16 * time.Second, 8: 30 * time.Second, 9: 30 * time.Second,
		100: 30 * time.Second, 1 << 40: 30 * time.Second,
	} {
		for _, at := range []float64{0, 0.25, 0.5} {
			if got, want := (Backoff{250 * time.Millisecond, 30 * time.Second}).Wait(failures, at), time.Duration(at*float64(bound)); got != want {
				t.Errorf("after %d failures at %v: %v, want %v", failures, at, got, want)
			}
		}
	}
	if got := (Backoff{time.Minute, time.Second}).Wait(1, 0.5); got != time.Second/2 {
		t.Errorf("Wait = %v with Min above Max", got)
	}
	if got := (Backoff{1, math.MaxInt64}).Wait(1000, 0.5); got < math.MaxInt64/4 {
		t.Errorf("Wait = %v with the greatest Max", got)
	}
}
