//go:build unix

package probe

import "syscall"

// cpu returns the process's user and system time in nanoseconds.
func cpu() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
