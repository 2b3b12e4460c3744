//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package spent

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a file until the file is closed or the process ends. It fails with errTaken while another process has the lock.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errTaken
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}
