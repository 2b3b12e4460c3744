//go:build !linux

package quota

import "net"

// boundUnsent does nothing, because only Linux has the option TCP_NOTSENT_LOWAT.
func boundUnsent(net.Conn) {}
