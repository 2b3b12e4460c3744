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

// segments returns the number of TCP segments with data that a connection has sent.
func segments(t *testing.T, c net.Conn) (n uint32) {
	t.Helper()
	raw, err := c.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if raw.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Data_segs_out
		}
	}) != nil || err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOneWriteForAResponse checks that a response is one TCP segment. The loopback interface sends each write as one segment.
func TestOneWriteForAResponse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = writev.Write(r.Context(), w, text(size))
	})}
	writev.Server(s)
	known := s.ConnContext
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		conns <- c
		return known(ctx, c)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(writev.Listener(l)) }()
	defer func() { _ = s.Close(); <-served }()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	var conn net.Conn
	for _, size := range []int{100, 5000, 12_000} {
		var before uint32
		if conn != nil {
			before = segments(t, conn)
		}
		resp, err := client.Get("http://" + l.Addr().String() + "/?size=" + strconv.Itoa(size))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if conn == nil {
			conn = <-conns
		}
		if n := segments(t, conn) - before; n != 1 {
			t.Errorf("%d bytes left in %d segments", size, n)
		}
	}
}
