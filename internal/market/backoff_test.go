package market

import (
	"math"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{250 * time.Millisecond, 30 * time.Second}
	for failures, bound := range map[int]time.Duration{
		-1: 250 * time.Millisecond, 0: 250 * time.Millisecond, 1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 3: time.Second,
		7: 16 * time.Second, 8: 30 * time.Second, 9: 30 * time.Second, 100: 30 * time.Second, math.MaxInt: 30 * time.Second,
	} {
		for random, want := range map[float64]time.Duration{0: bound / 2, 0.5: bound * 3 / 4, 1: bound} {
			if got := b.Wait(failures, random); got != want {
				t.Errorf("after %d failures with the random number %v, Wait = %v, want %v", failures, random, got, want)
			}
		}
	}
	if got := (Backoff{time.Minute, time.Second}).Wait(1, 1); got != time.Second {
		t.Errorf("with Min above Max, Wait = %v, want %v", got, time.Second)
	}
	if got := (Backoff{1, math.MaxInt64}).Wait(1000, 0); got < math.MaxInt64/4 {
		t.Errorf("with the greatest Max, Wait = %v, want at least a quarter of Max", got)
	}
}
