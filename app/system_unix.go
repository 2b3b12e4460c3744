//go:build unix

package app

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxOpenFiles returns how many files the process may open. Go has raised the soft limit to the hard limit at the start.
func maxOpenFiles() (limit uint64, ok bool) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}

// width returns the width of the terminal of standard output, or else of standard error, because a pager may read the output.
func width() int {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
	}
	return defaultWidth
}
