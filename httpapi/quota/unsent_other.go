//go:build !linux

package quota

import "net"

// boundUnsent does nothing: only Linux has the option.
func boundUnsent(net.Conn) {}
