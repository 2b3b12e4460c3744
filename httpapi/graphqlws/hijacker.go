package graphqlws

import (
	"bufio"
	"net"
	"net/http"
)

const (
	// readBuffer and writeBuffer are the sizes of a socket's buffers in bytes. What is larger passes them by, in one more
	// system call; the server's own are eight times and twice as large, and idle sockets consist of little else.
	readBuffer, writeBuffer = 512, 2 << 10
	// sendBuffer bounds the bytes in the kernel that a client has not acknowledged; Linux doubles it. The listener bounds unsent bytes,
	// but not those that were sent to a client that acknowledges nothing.
	sendBuffer = 128 << 10
)

// hijacker is a response whose connection is taken over with small buffers, and remembered.
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
	line := conn
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		line = secured.NetConn()
	}
	if tcp, ok := line.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	rw.Writer = bufio.NewWriterSize(conn, writeBuffer)
	if rw.Reader.Buffered() == 0 {
		rw.Reader = bufio.NewReaderSize(conn, readBuffer)
	}
	return conn, rw, nil
}
