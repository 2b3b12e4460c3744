package quota_test

import (
	"net"
	"testing"
	"time"
)

// TestSendBuffersAreBounded checks that the kernel accepts at most 256 KiB for a client that does not read.
func TestSendBuffersAreBounded(t *testing.T) {
	client, served := connect(t)
	if err := client.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
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
