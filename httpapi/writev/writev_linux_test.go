package writev_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"oddsgraph/httpapi/writev"
)

// segments returns the number of TCP segments with data that a connection has received.
func segments(t *testing.T, c net.Conn) (n uint32) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if raw.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Data_segs_in
		}
	}) != nil || err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOneWriteForAResponse checks that a response is one TCP segment. The loopback interface sends each write as one segment.
func TestOneWriteForAResponse(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = writev.Write(r.Context(), w, text(size))
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
	defer client.CloseIdleConnections()
	for _, size := range []int{100, 5000, 12_000} {
		before := segments(t, c)
		resp, err := client.Get("http://" + addr + "/?size=" + strconv.Itoa(size))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if n := segments(t, c) - before; n != 1 {
			t.Errorf("a body of %d bytes arrived in %d TCP segments, want 1", size, n)
		}
	}
}
