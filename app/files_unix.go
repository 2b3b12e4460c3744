//go:build unix

package app

import "syscall"

// maxOpenFiles returns how many files the process may open. Go has raised the soft limit to the hard limit at the start.
func maxOpenFiles() (limit uint64, ok bool) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}
