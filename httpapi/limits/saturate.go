package limits

import "math"

// addSat returns a + b of numbers that are not negative, or the greatest number where that is too large.
func addSat(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// mulSat returns a × b of numbers that are not negative, or the greatest number where that is too large.
func mulSat(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
