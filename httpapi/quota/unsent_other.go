//go:build !linux

package quota

import "net"

// boundUnsent does nothing on systems other than Linux.
func boundUnsent(net.Conn) {}
