//go:build unix

package filewatch

import (
	"io/fs"
	"syscall"
)

// owner returns the user id of a file's owner. It returns -1 if the id is unknown.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
