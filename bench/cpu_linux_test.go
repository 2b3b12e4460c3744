package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestCPUTime compares the processor clock of this process with what getrusage says before and after.
func TestCPUTime(t *testing.T) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for before := used(); used() == before; { // so that the time is not 0
	}
	before := used()
	got, err := cpuTime(os.Getpid())
	after := used()
	const rounding = time.Millisecond
	if err != nil || got < before-rounding || got > after+rounding {
		t.Errorf("got %v and the error %v, want %v to %v", got, err, before, after)
	}
}
