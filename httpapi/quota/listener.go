package quota

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// sendBuffer is the size in bytes of the kernel's buffer for unread bytes of one connection. Linux doubles the value for its own data.
// By default, the buffer could grow to 4 MiB.
const sendBuffer = 256 << 10

// ConnectionLimits limit the connections of a Listener.
type ConnectionLimits struct {
	// Total limits all connections, and Fair decides how many of them a client address may have. PerClient also limits the connections
	// of one client address. Zero means that there is no limit.
	Total, PerClient int
	// Exempt reports whether an address, such as the address of a proxy, is exempt from PerClient and Fair. If Exempt is nil, no
	// address is exempt.
	Exempt func(netip.Addr) bool
}

// Listener accepts connections within its limits and closes all other connections at once. It limits the kernel's send buffer of
// each TCP connection. On Linux, it also limits the unsent bytes in that buffer. It is safe for concurrent use.
type Listener struct {
	net.Listener
	limits ConnectionLimits

	mu sync.Mutex
	// connections counts the open connections, and clients counts them for each client.
	connections int
	clients     map[netip.Prefix]int
	refused     uint64
}

// Listen returns a Listener for the connections that l accepts. For connections that are not TCP, it checks only Total.
func Listen(l net.Listener, limits ConnectionLimits) *Listener {
	return &Listener{Listener: l, limits: limits, clients: make(map[netip.Prefix]int)}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := clientNetwork(c.RemoteAddr())
		if l.take(client) {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetWriteBuffer(sendBuffer) // an error does no harm, because the connection also works with a larger buffer
			}
			boundUnsent(c)
			return &connection{Conn: c, release: sync.OnceFunc(func() { l.release(client) })}, nil
		}
		_ = c.Close()
	}
}

// ConnectionStats counts the connections of a Listener.
type ConnectionStats struct {
	// Open is the number of open connections. Refused is the number of connections that were closed at once since the start.
	Open    int
	Refused uint64
}

// Stats returns the present counts.
func (l *Listener) Stats() ConnectionStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ConnectionStats{l.connections, l.refused}
}

func (l *Listener) take(client netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.clients[client]
	exempt := !client.IsValid() || l.limits.Exempt != nil && l.limits.Exempt(client.Addr())
	free := l.limits.Total - l.connections
	if l.limits.Total > 0 && (free <= 0 || !exempt && !Fair(own, 1, free)) || l.limits.PerClient > 0 && own >= l.limits.PerClient && !exempt {
		l.refused++
		return false
	}
	l.connections++
	l.clients[client]++
	return true
}

func (l *Listener) release(client netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connections--
	if l.clients[client]--; l.clients[client] == 0 {
		delete(l.clients, client)
	}
}

// clientNetwork returns the Network of a TCP peer. It returns the zero prefix for any other peer.
func clientNetwork(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return Network(tcp.AddrPort().Addr().Unmap())
}

// connection is a connection that the Listener counts until Close.
type connection struct {
	net.Conn
	release func()
}

// NetConn returns the wrapped connection, as tls.Conn does.
func (c *connection) NetConn() net.Conn { return c.Conn }

// CloseWrite tells the client that no more data follow. net/http calls it before it closes a connection whose request it has not
// read completely. So the client can read the response, although the close discards the rest of the request.
func (c *connection) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *connection) Close() error {
	defer c.release()
	return c.Conn.Close()
}
