//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spent

import (
	"errors"
	"os"
)

// lock fails: this system has no locks that end with the process.
func lock(*os.File) error { return errors.ErrUnsupported }
