package quota

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is the number of unsent bytes in the kernel above which it takes no further segment of up to 64 KiB.
const maxUnsent = 16 << 10

// boundUnsent bounds the unsent bytes that the kernel holds for a client. Errors do not matter: an old kernel keeps its
// own bound, and a closed connection needs none.
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
