//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spent

import (
	"errors"
	"os"
)

// lock fails, because this package cannot lock files on this operating system.
func lock(*os.File) error { return errors.ErrUnsupported }
