//go:build !race

package guard

// timed tells that times can be compared.
const timed = true
