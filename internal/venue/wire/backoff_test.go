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
		for _, jitter := range []float64{0, 0.25, 0.5} {
			if got, want := (Backoff{250 * time.Millisecond, 30 * time.Second}).Wait(failures, jitter), time.Duration(jitter*float64(bound)); got != want {
				t.Errorf("after %d failures with the jitter %v, Wait = %v, want %v", failures, jitter, got, want)
			}
		}
	}
	if got := (Backoff{time.Minute, time.Second}).Wait(1, 0.5); got != time.Second/2 {
		t.Errorf("with Min above Max, Wait = %v, want %v", got, time.Second/2)
	}
	if got := (Backoff{1, math.MaxInt64}).Wait(1000, 0.5); got < math.MaxInt64/4 {
		t.Errorf("with the greatest Max, Wait = %v, want at least a quarter of Max", got)
	}
}
