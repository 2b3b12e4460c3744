package app

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oddsgraph/httpapi/quota"
	"oddsgraph/tests/tool"
)

// TestUnsentBytesOfOneConnection checks that the kernel holds at most unsentBytes for a client that reads nothing.
func TestUnsentBytesOfOneConnection(t *testing.T) {
	tool.CheckTier(t)
	for _, receive := range []int{4 << 10, 128 << 10, 1 << 20} {
		for _, chunk := range []int{4 << 10, 1 << 20} {
			unsent := fillConnection(t, receive, chunk)
			t.Logf("receive buffer of %d bytes, writes of %d bytes: the kernel holds %d unsent bytes", receive, chunk, unsent)
			if unsent == 0 || unsent > unsentBytes {
				t.Errorf("receive buffer of %d bytes, writes of %d bytes: the kernel holds %d unsent bytes, want 1 to %d", receive, chunk, unsent, unsentBytes)
			}
		}
	}
}

// fillConnection writes blocks of chunk bytes to a client that reads nothing. receive is the size of the client's receive buffer in
// bytes. After a write has timed out, fillConnection returns how many bytes the kernel has not sent.
func fillConnection(t *testing.T, receive, chunk int) int {
	t.Helper()
	s, err := listen("--listen", "127.0.0.1:0", quota.ConnectionLimits{}, nil, slog.New(slog.DiscardHandler), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.(*net.TCPConn).SetReadBuffer(receive)
	c, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	for block := make([]byte, chunk); err == nil; {
		_, err = c.Write(block)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return unsentOf(t, c)
}

// unsentOf returns how many bytes of a connection the kernel has not sent.
func unsentOf(t *testing.T, c net.Conn) (n int) {
	raw, err := c.(interface{ NetConn() net.Conn }).NetConn().(syscall.Conn).SyscallConn()
	if err == nil {
		if controlErr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD) }); controlErr != nil {
			err = controlErr
		}
	}
	if err != nil {
		t.Error(err)
	}
	return n
}
