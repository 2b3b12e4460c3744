//go:build race

package tool

// Raced reports whether this binary was built with the race detector.
const Raced = true
