package main

import "testing"

func TestBounds(t *testing.T) {
	var values []float64
	for i := range 30 {
		values = append(values, float64(30-i)) // 30 … 1
	}
	// Of 30 values, at most 10 are below the median with a probability of 0.049, and at most 11 with a probability of 0.10. The
	// bounds are therefore the 11th value from each end.
	if lower, upper := bounds(values); lower != 11 || upper != 20 {
		t.Errorf("bounds of 1 to 30 are %v and %v, want 11 and 20", lower, upper)
	}
	if lower, upper := bounds(values[:3]); lower != 28 || upper != 30 {
		t.Errorf("too few values must give the least and the greatest: %v, %v", lower, upper)
	}
}
