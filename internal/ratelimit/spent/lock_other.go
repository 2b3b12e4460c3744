//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spent

import (
	"errors"
	"os"
)

// lock fails, because this system has no locks that the kernel releases at the end of the process.
func lock(*os.File) error { return errors.ErrUnsupported }
