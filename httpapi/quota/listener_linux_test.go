package quota_test

import (
	"net"
	"testing"
	"time"

	"oddsgraph/httpapi/quota"
)

// TestSendBuffersAreBounded checks that the kernel accepts at most 256 KiB for a client that does not read.
func TestSendBuffersAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := quota.Listen(inner, quota.ConnectionLimits{})
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	taken := 0
	for part := make([]byte, 16<<10); ; {
		_ = served.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)) // on a slow machine, fewer bytes are written in this time
		n, err := served.Write(part)
		if taken += n; err != nil || taken > 16<<20 {
			break
		}
	}
	// About 80 KiB wait in the server's send buffer. The other bytes are in the client's receive buffer.
	if taken > 256<<10 {
		t.Errorf("the kernel accepted %d bytes for a client that does not read, want at most %d", taken, 256<<10)
	}
	t.Logf("the kernel accepted %d bytes", taken)
}
