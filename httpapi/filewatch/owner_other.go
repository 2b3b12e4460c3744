//go:build !unix

package filewatch

import "io/fs"

// owner returns -1, because the system has no user ids.
func owner(fs.FileInfo) int { return -1 }
