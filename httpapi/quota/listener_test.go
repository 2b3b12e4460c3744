package quota_test

import (
	"net"
	"net/netip"
	"sync"
	"testing"

	"oddsgraph/httpapi/quota"
)

// peers is a listener that accepts connections from a channel.
type peers struct{ accept chan net.Conn }

func (p *peers) Accept() (net.Conn, error) {
	c, ok := <-p.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p *peers) Close() error   { close(p.accept); return nil }
func (p *peers) Addr() net.Addr { return nil }

type peer struct {
	net.Conn
	addr   net.Addr
	closed chan struct{}
	once   sync.Once
}

func (p *peer) RemoteAddr() net.Addr { return p.addr }
func (p *peer) Close() error         { p.once.Do(func() { close(p.closed) }); return nil }

// testListener is a Listener that accepts connections from peers.
type testListener struct {
	*quota.Listener
	peers    *peers
	accepted chan net.Conn
}

func newTestListener(t *testing.T, limits quota.ConnectionLimits) *testListener {
	p := &peers{make(chan net.Conn)}
	l := &testListener{quota.Listen(p, limits), p, make(chan net.Conn)}
	var g sync.WaitGroup
	g.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			l.accepted <- c
		}
	})
	t.Cleanup(func() { _ = p.Close(); g.Wait() })
	return l
}

// connect connects from an address and returns the connection. It returns nil if the Listener closed the connection.
func (l *testListener) connect(t *testing.T, address string) net.Conn {
	t.Helper()
	refused := l.Stats().Refused
	p := &peer{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1234)), closed: make(chan struct{})}
	l.peers.accept <- p
	select {
	case c := <-l.accepted:
		return c
	case <-p.closed:
	}
	if got := l.Stats().Refused; got != refused+1 {
		t.Errorf("%d refused connections were counted, want %d", got, refused+1)
	}
	return nil
}

func TestConnectionsPerClient(t *testing.T) {
	proxy := netip.MustParseAddr("192.0.2.9")
	l := newTestListener(t, quota.ConnectionLimits{PerClient: 2, Exempt: func(a netip.Addr) bool { return a == proxy }})
	first := l.connect(t, "2001:db8::1")
	if first == nil || l.connect(t, "2001:db8::2") == nil {
		t.Fatal("two connections of one network were refused")
	}
	if l.connect(t, "2001:db8::3") != nil {
		t.Error("a third connection of one network was accepted")
	}
	if l.connect(t, "192.0.2.1") == nil {
		t.Error("another client was refused")
	}
	for range 5 {
		if l.connect(t, "192.0.2.9") == nil {
			t.Fatal("an exempt address was refused")
		}
	}
	_ = first.Close()
	_ = first.Close() // the second Close must not free another connection
	if l.connect(t, "2001:db8::3") == nil {
		t.Error("a connection was refused although another connection of the network had been closed")
	}
	if l.connect(t, "2001:db8::3") != nil {
		t.Error("the second Close of a connection freed another connection")
	}
}

// TestTotalConnections checks that a client leaves some of all connections to new clients.
func TestTotalConnections(t *testing.T) {
	proxy := netip.MustParseAddr("192.0.2.9")
	l := newTestListener(t, quota.ConnectionLimits{Total: 40, Exempt: func(a netip.Addr) bool { return a == proxy }})
	for _, client := range []struct {
		address string
		want    int
	}{{"192.0.2.1", 30}, {"192.0.2.2", 7}, {"192.0.2.9", 3}, {"192.0.2.3", 0}} {
		n := 0
		for ; n < 50 && l.connect(t, client.address) != nil; n++ {
		}
		if n != client.want {
			t.Errorf("%s got %d of 40 connections, want %d", client.address, n, client.want)
		}
	}
	if s := l.Stats(); s.Open != 40 {
		t.Errorf("%d connections are open, want 40", s.Open)
	}
}
