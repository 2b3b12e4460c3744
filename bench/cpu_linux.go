package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the user and system time that a process has used. It reads the processor clock of the process, because
// /proc/<pid>/stat has the time only in hundredths of a second.
func cpuTime(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED of Linux's posix-timers.h: the clock that counts nanoseconds
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|sched), &t)
	return time.Duration(t.Nano()), err
}
