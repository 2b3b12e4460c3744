//go:build !race

package unraced

// Raced tells whether this binary has the race detector.
const Raced = false
