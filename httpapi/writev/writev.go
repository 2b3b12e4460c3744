// Package writev writes the header and the body of a response with one system call. net/http needs two system calls if the body is
// larger than its buffer.
package writev

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// bufferSize is the size of net/http's buffer in bytes. A body of this size does not fit into the buffer together with the header.
const bufferSize = 4 << 10

type connKey struct{}

// Server makes Write work for the connections of a server. The server must use the listener that Listener returns.
func Server(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
}

// Listener wraps l so that Write can join writes on the accepted TCP connections.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	inner := c
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		inner = wrapped.NetConn()
	}
	if tcp, ok := inner.(*net.TCPConn); ok {
		return &conn{TCPConn: tcp, accepted: c}, nil
	}
	return c, nil
}

// Write writes the whole body of the response to w. ctx is the context of the request. No part of the body may be written before
// the call of Write. If the body fits into net/http's buffer, or if no listener of this package accepted the connection, Write only
// calls w.Write.
func Write(ctx context.Context, w io.Writer, body []byte) (int, error) {
	if len(body) < bufferSize {
		return w.Write(body)
	}
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.bodySize = len(body)
		// conn.Write does not reset bodySize if net/http writes no body, as in the response to a HEAD request.
		defer func() { c.bodySize = 0 }()
	}
	return w.Write(body)
}

// conn is a connection that can join two writes. Only the goroutine that writes uses bodySize and firstWrite.
type conn struct {
	*net.TCPConn
	// accepted is the connection that the wrapped listener returned.
	accepted net.Conn
	// bodySize is the length in bytes of the body that is being written. A write of this length is usually the whole body without a
	// header, so conn sends it at once.
	bodySize int
	// firstWrite is the first write of net/http: the header and the beginning of the body. conn sends firstWrite together with the
	// next write.
	firstWrite *[]byte

	parts  [2][]byte
	joined net.Buffers
}

// NetConn returns the TCP connection, as tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.TCPConn }

// Close implements net.Conn.
func (c *conn) Close() error { return c.accepted.Close() }

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize); return &b }}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if body := c.bodySize; body > 0 && len(p) != body {
		c.bodySize = 0
		c.firstWrite, _ = buffers.Get().(*[]byte)
		*c.firstWrite = append((*c.firstWrite)[:0], p...)
		return len(p), nil
	}
	if c.firstWrite == nil {
		return c.TCPConn.Write(p)
	}
	first := c.firstWrite
	c.firstWrite = nil
	defer buffers.Put(first)
	c.parts = [2][]byte{*first, p}
	c.joined = c.parts[:]
	n, err := c.joined.WriteTo(c.TCPConn)
	c.parts = [2][]byte{}
	return max(int(n)-len(*first), 0), err
}
