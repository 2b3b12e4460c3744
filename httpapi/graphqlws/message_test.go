package graphqlws

import "testing"

// TestBufferOfAFrame checks that no buffer is much larger than its frame, even if large buffers were returned before.
func TestBufferOfAFrame(t *testing.T) {
	for range 10 {
		for _, size := range []int{100 << 10, 64 << 10, 64<<10 - 1, 5000, 1025, 1024, 100, 1} {
			b := buffer(size)
			if b.Len() != 0 || b.Cap() < size || b.Cap() > max(1<<10, 2*size) {
				t.Fatalf("the buffer for a frame of %d bytes has a capacity of %d bytes and contains %d bytes", size, b.Cap(), b.Len())
			}
			b.WriteByte(0)
			putBuffer(b)
		}
	}
}
