package quota

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

const (
	// One in reservedShare connections is reserved for clients with few connections. So health checks and new clients can connect.
	reservedShare = 20
	// A client with fewer than fewConnections open connections may use the reserved connections.
	fewConnections = 8
	// sendBuffer is the size in bytes of the kernel's buffer for unread bytes of one connection. Linux doubles the value for its own
	// data. By default, the buffer could grow to 4 MiB.
	sendBuffer = 256 << 10
)

// ConnectionLimits limit the connections of a Listener.
type ConnectionLimits struct {
	// Total limits all connections. PerClient limits the connections of one client address. Zero means that there is no limit.
	Total, PerClient int
	// Exempt reports whether an address, such as the address of a proxy, is exempt from PerClient. An exempt address may also use
	// the reserved connections. If Exempt is nil, no address is exempt.
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
	if total := l.limits.Total; total > 0 {
		if own >= fewConnections && !exempt {
			total -= total / reservedShare
		}
		if l.connections >= total {
			l.refused++
			return false
		}
	}
	if l.limits.PerClient > 0 && own >= l.limits.PerClient && !exempt {
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

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.release()
	return c.Conn.Close()
}
