package limits

import "math"

// addSat returns a + b, or math.MaxInt64 on overflow. a and b must not be negative.
func addSat(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// mulSat returns a × b, or math.MaxInt64 on overflow. a and b must not be negative.
func mulSat(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
