//go:build unix && !race

package limits

import (
	"syscall"
	"time"
)

// timed is true if tests can rely on processorTime: the system reports the processor time, and no race detector distorts it.
const timed = true

// processorTime returns the processor time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
