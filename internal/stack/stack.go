// Package stack gives a new goroutine room for what it is about to do.
package stack

// Reserve makes the stack of the calling goroutine large enough for some 9 KB more. A stack grows by being copied to one of twice
// the size, frame by frame: at the beginning of a goroutine there is next to nothing to copy, deep in it there is much, and several
// times.
func Reserve() { reserve(false) }

// reserve has a frame of that size, which is made room for when it is called, and is not touched unless it is used.
//
//go:noinline
func reserve(use bool) {
	if use {
		var room [9 << 10]byte
		keep(&room)
	}
}

//go:noinline
func keep(*[9 << 10]byte) {}
