package quota

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// If more than maxUnsent unsent bytes are in the kernel's buffer, the kernel accepts no further segment. A segment has up to 64
// KiB.
const maxUnsent = 16 << 10

// boundUnsent bounds the unsent bytes in the kernel's buffer of a connection. It ignores errors: an old kernel has another
// bound, and a closed connection needs none.
func boundUnsent(c net.Conn) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}
