package quota_test

import (
	"testing"

	"oddsgraph/httpapi/quota"
)

// TestSharedThingsTakeMemoryOnce checks that each key is always charged to exactly one of the clients that hold the key.
func TestSharedThingsTakeMemoryOnce(t *testing.T) {
	client := numbered
	s := quota.NewShared(1000)
	hold := func(i byte, key any, size int, want bool) {
		t.Helper()
		if got := s.Hold(client(i), key, size); got != want {
			t.Errorf("Hold of %v with %d bytes by client %d returned %v, want %v", key, size, i, got, want)
		}
	}
	held := func(want int) {
		t.Helper()
		if got := s.Held(); got != want {
			t.Errorf("%d bytes are held, want %d", got, want)
		}
	}
	for i := range byte(100) {
		hold(i, "a", 600, true)
		hold(i, "a", 600, true)
	}
	held(600)
	hold(0, "b", 200, false) // client 0 already pays for the 600 bytes of "a"
	hold(1, "b", 100, true)
	hold(2, "b", 150, true) // "b" has grown from 100 to 150 bytes
	held(750)
	s.Release(client(0), "a")
	hold(0, "c", 100, false)
	s.Release(client(0), "a") // now another client pays for "a"
	held(750)
	hold(0, "c", 100, true)
	hold(3, "d", 151, false) // only 150 bytes are free
	held(850)
	for i := byte(1); i < 100; i++ {
		s.Release(client(i), "a")
		s.Release(client(i), "a")
	}
	held(250)
	s.Release(client(1), "b")
	s.Release(client(2), "b")
	s.Release(client(0), "c")
	held(0)
	hold(0, "e", 750, true) // no client pays for anything
	if s.Refused() != 3 {
		t.Errorf("Hold refused %d calls, want 3", s.Refused())
	}
}
