//go:build race

package guard

// timed is false where the race detector makes some code ten times slower than other.
const timed = false
