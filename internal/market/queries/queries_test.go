package queries

import "testing"

func TestBookDepthStep(t *testing.T) {
	for depth, want := range map[int]int{-1: 20, 1: 20, 20: 20, 21: 50, 50: 50, 51: 200, 200: 200, 999: MaxBookDepth} {
		if got := BookDepthStep(depth); got != want {
			t.Errorf("the step of %d is %d; want %d", depth, got, want)
		}
	}
}
