//go:build !unix

package probe

func cpu() int64 { return 0 }
