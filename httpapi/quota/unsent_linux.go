package quota

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many unsent bytes the kernel holds for a connection before it takes no further segment of up to 64 KiB.
const maxUnsent = 16 << 10

// boundUnsent bounds what the kernel holds for a client that does not read. A kernel that does not know the option keeps its own
// bound, and one whose client has left needs none, so errors do not matter.
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
