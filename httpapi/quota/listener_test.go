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

// door is a Listener that accepts connections from peers.
type door struct {
	*quota.Listener
	peers    *peers
	accepted chan net.Conn
}

func newDoor(t *testing.T, l quota.ConnectionLimits) *door {
	p := &peers{make(chan net.Conn)}
	d := &door{quota.Listen(p, l), p, make(chan net.Conn)}
	var g sync.WaitGroup
	g.Go(func() {
		for {
			c, err := d.Accept()
			if err != nil {
				return
			}
			d.accepted <- c
		}
	})
	t.Cleanup(func() { _ = p.Close(); g.Wait() })
	return d
}

// knock connects from an address and returns the connection. It returns nil if the Listener closed the connection.
func (d *door) knock(t *testing.T, address string) net.Conn {
	t.Helper()
	refused := d.Stats().Refused
	p := &peer{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1234)), closed: make(chan struct{})}
	d.peers.accept <- p
	select {
	case c := <-d.accepted:
		return c
	case <-p.closed:
	}
	if got := d.Stats().Refused; got != refused+1 {
		t.Errorf("%d refused connections were counted, want %d", got, refused+1)
	}
	return nil
}

func TestConnectionsPerClient(t *testing.T) {
	proxy := netip.MustParseAddr("192.0.2.9")
	d := newDoor(t, quota.ConnectionLimits{PerClient: 2, Exempt: func(a netip.Addr) bool { return a == proxy }})
	first := d.knock(t, "2001:db8::1")
	if first == nil || d.knock(t, "2001:db8::2") == nil {
		t.Fatal("two connections of one network were refused")
	}
	if d.knock(t, "2001:db8::3") != nil {
		t.Error("a third connection of one network was accepted")
	}
	if d.knock(t, "192.0.2.1") == nil {
		t.Error("another client was refused")
	}
	for range 5 {
		if d.knock(t, "192.0.2.9") == nil {
			t.Fatal("an exempt address was refused")
		}
	}
	_ = first.Close()
	_ = first.Close() // the second Close must not free another connection
	if d.knock(t, "2001:db8::3") == nil {
		t.Error("a closed connection left no room")
	}
	if d.knock(t, "2001:db8::3") != nil {
		t.Error("closing twice made room for two")
	}
}

func TestRoomForHealthChecks(t *testing.T) {
	d := newDoor(t, quota.ConnectionLimits{Total: 40})
	var open []net.Conn
	for range 40 {
		if c := d.knock(t, "192.0.2.1"); c != nil {
			open = append(open, c)
		}
	}
	if len(open) != 38 {
		t.Errorf("one client holds %d connections of 40, want all but the last twentieth", len(open))
	}
	for range 2 {
		if d.knock(t, "192.0.2.2") == nil {
			t.Error("a client with few connections was refused")
		}
	}
	if d.knock(t, "192.0.2.3") != nil {
		t.Error("more connections were accepted than the total")
	}
	for _, c := range open {
		_ = c.Close()
	}
	if s := d.Stats(); s.Open > 5 {
		t.Errorf("%+v after all were closed", s)
	}
}
