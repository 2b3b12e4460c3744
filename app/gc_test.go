package app

import "testing"

func TestGCPercent(t *testing.T) {
	for _, test := range []struct {
		live uint64
		want int
	}{
		{0, 1600}, {1 << 20, 1600}, {4 << 20, 1600}, {8 << 20, 800}, {16 << 20, 400}, {32 << 20, 200}, {64 << 20, 100}, {1 << 30, 100},
	} {
		if got := gcPercent(test.live); got != test.want {
			t.Errorf("gcPercent for a live heap of %d MiB is %d, want %d", test.live>>20, got, test.want)
		}
	}
}
