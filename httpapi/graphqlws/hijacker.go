package graphqlws

import (
	"bufio"
	"net"
	"net/http"
)

const (
	// readBuffer and writeBuffer are the sizes of a socket's buffers in bytes. A message that is larger than a buffer needs more
	// than one system call. The buffers of net/http have 4 KiB each and would be most of the memory of an idle socket.
	readBuffer, writeBuffer = 512, 2 << 10
	// sendBuffer is the size in bytes of the kernel's send buffer for one socket. Linux doubles this size. The buffer contains the
	// unsent bytes, and the sent bytes that the client has not acknowledged. The unsent bytes have another limit; see
	// quota.Listener.
	sendBuffer = 128 << 10
)

// hijacker is a ResponseWriter whose Hijack gives the connection smaller buffers and stores the connection in conn.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

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
