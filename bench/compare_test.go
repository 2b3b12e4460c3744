package main

import "testing"

func TestBounds(t *testing.T) {
	var values []float64
	for i := range 30 {
		values = append(values, float64(30-i)) // 30 … 1
	}
	// A bound may be wrong with a probability of at most 5 %. The 11th of 30 sorted values is greater than the median of the
	// distribution with a probability of 4.9 %, and the 12th value with a probability of 10 %. So the bounds are the 11th value
	// from each end.
	if lower, upper := bounds(values); lower != 11 || upper != 20 {
		t.Errorf("bounds of 1 to 30 are %v and %v, want 11 and 20", lower, upper)
	}
	if lower, upper := bounds(values[:3]); lower != 28 || upper != 30 {
		t.Errorf("bounds of 28, 29 and 30 are %v and %v, want the least and the greatest value", lower, upper)
	}
}
