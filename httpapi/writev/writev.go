// Package writev sends what net/http writes of a response in two parts with one call of the system: its buffer, which is full
// when the body has begun, and the rest of the body.
package writev

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// buffered is the size in bytes of net/http's buffer. A body of that size fills it, since the header is in it before.
const buffered = 4 << 10

type connKey struct{}

// Server has the connections of a server gather what Write writes. It must serve what Listener returns.
func Server(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
}

// Listener returns l, of whose connections those by TCP can gather.
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

// Write writes the whole body of the response to the request of ctx, and nothing may have been written of it before but its
// header. It is w.Write where the connection can't gather.
func Write(ctx context.Context, w io.Writer, body []byte) (int, error) {
	if len(body) < buffered {
		return w.Write(body)
	}
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.body = len(body)
		defer func() { c.body = 0 }() // where nothing was written, as of a response to HEAD
	}
	return w.Write(body)
}

// conn is a connection. Its methods are those of a TCP connection; body and held belong to the goroutine that writes.
type conn struct {
	*net.TCPConn
	// accepted is the connection as the listener below accepted it, which may wrap TCPConn: closing goes through it.
	accepted net.Conn
	// body is the length of a body that is about to be written, behind a header: anything else than that is not the end of it.
	body int
	// held is what was not the end, and waits for what follows it.
	held *[]byte

	parts [2][]byte
	both  net.Buffers
}

// NetConn returns the connection itself, as tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.TCPConn }

// Close implements net.Conn.
func (c *conn) Close() error { return c.accepted.Close() }

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, buffered); return &b }}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if body := c.body; body > 0 && len(p) != body {
		c.body = 0
		c.held, _ = buffers.Get().(*[]byte)
		*c.held = append((*c.held)[:0], p...)
		return len(p), nil
	}
	if c.held == nil {
		return c.TCPConn.Write(p)
	}
	first := c.held
	c.held = nil
	defer buffers.Put(first)
	c.parts = [2][]byte{*first, p}
	c.both = c.parts[:]
	n, err := c.both.WriteTo(c.TCPConn)
	c.parts = [2][]byte{}
	return max(int(n)-len(*first), 0), err
}
