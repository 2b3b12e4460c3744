package quota

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is the number of unsent bytes in the kernel's buffer above which the kernel accepts no more data. The kernel accepts
// data in pieces of up to 64 KiB, so the buffer can contain up to maxUnsent + 64 KiB of unsent data.
const maxUnsent = 16 << 10

// boundUnsent limits the unsent bytes in the kernel's buffer of a connection. It ignores errors: in an old kernel, the size of the
// buffer is still a limit, and a closed connection needs no limit.
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
