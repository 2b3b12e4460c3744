//go:build !unix

package app

// maxOpenFiles returns false, because the system has no limit of open files.
func maxOpenFiles() (limit uint64, ok bool) { return 0, false }

// width returns the width of the output.
func width() int { return defaultWidth }
