//go:build race

package unraced

// Raced reports whether this binary was built with the race detector.
const Raced = true
