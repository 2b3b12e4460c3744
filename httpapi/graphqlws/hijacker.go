package graphqlws

import (
	"bufio"
	"net"
	"net/http"
)

const (
	// readBuffer and writeBuffer are the sizes of a socket's buffers in bytes. A larger message needs another system call. The read
	// buffer of net/http is eight times as large, and its write buffer is twice as large. The two buffers of net/http would be most
	// of the memory of an idle socket.
	readBuffer, writeBuffer = 512, 2 << 10
	// sendBuffer bounds the bytes in the kernel that a client has not acknowledged. Linux doubles the value. The listener bounds
	// only unsent bytes. It does not bound the bytes that were sent to a client that acknowledges nothing.
	sendBuffer = 128 << 10
)

// hijacker gives a hijacked connection smaller buffers and stores the connection in conn.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = conn
	inner := conn
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		inner = wrapped.NetConn()
	}
	if tcp, ok := inner.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	rw.Writer = bufio.NewWriterSize(conn, writeBuffer)
	if rw.Reader.Buffered() == 0 {
		rw.Reader = bufio.NewReaderSize(conn, readBuffer)
	}
	return conn, rw, nil
}
