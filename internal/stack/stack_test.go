package stack_test

import (
	"testing"
	"unsafe"

	"oddsgraph/internal/stack"
)

// TestReserve holds that a stack on which room was reserved does not move when that is used.
func TestReserve(t *testing.T) {
	moved := make(chan bool)
	go func() {
		stack.Reserve()
		var here byte
		before := uintptr(unsafe.Pointer(&here))
		spend(8 << 10)
		moved <- uintptr(unsafe.Pointer(&here)) != before
	}()
	if <-moved {
		t.Error("the stack has grown where there was room")
	}
}

// spend uses some bytes of the stack, 256 at a time.
//
//go:noinline
func spend(bytes int) (sum byte) {
	var used [256]byte
	for i := range used {
		used[i] = byte(bytes + i)
	}
	if bytes > 0 {
		sum = spend(bytes - 512) // what a call takes besides is counted as much again
	}
	return sum + used[bytes&0xff]
}
