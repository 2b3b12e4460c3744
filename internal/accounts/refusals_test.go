package accounts

import (
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestRefusals(t *testing.T) {
	c := newClock()
	r := NewRefusals(c)
	addr, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	start := c.Now()
	for i := range refusalLimit {
		if until, blocked := r.Blocked(addr); blocked {
			t.Fatalf("blocked until %v after %d refusals", until, i)
		}
		r.Refused(addr)
		c.advance(10 * time.Second)
	}
	if until, blocked := r.Blocked(addr); !blocked || !until.Equal(start.Add(time.Minute)) {
		t.Errorf("%v %v", until, blocked)
	}
	err := r.Check(addr)
	var known *market.Error
	if !errors.As(err, &known) || known.Code != market.CodeRateLimited || known.RetryAfter != 10*time.Second {
		t.Errorf("%+v", known)
	}
	if _, blocked := r.Blocked(other); blocked || r.Check(other) != nil {
		t.Error("the neighbour is blocked")
	}
	c.advance(10*time.Second - 1)
	if _, blocked := r.Blocked(addr); !blocked {
		t.Error("heard too early")
	}
	c.advance(1)
	if _, blocked := r.Blocked(addr); blocked || r.Check(addr) != nil {
		t.Error("blocked for more than a minute")
	}
	r.Refused(addr) // the fifth within a minute again: those at 10, 20, 30 and 40 s still count
	if until, blocked := r.Blocked(addr); !blocked || !until.Equal(start.Add(70*time.Second)) {
		t.Errorf("%v %v", until, blocked)
	}
	c.advance(time.Minute)
	for range refusalLimit - 1 { // of before nothing counts
		r.Refused(addr)
	}
	if _, blocked := r.Blocked(addr); blocked {
		t.Error("four refusals block")
	}
}

func TestRefusalsByNetwork(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.3", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"", "", true},
		{"", "192.0.2.1", false},
	} {
		r := NewRefusals(newClock())
		parse := func(s string) (addr netip.Addr) {
			if s != "" {
				addr = netip.MustParseAddr(s)
			}
			return addr
		}
		for range refusalLimit {
			r.Refused(parse(test.a))
		}
		if _, blocked := r.Blocked(parse(test.b)); blocked != test.same {
			t.Errorf("%s blocks %s: %v", test.a, test.b, blocked)
		}
	}
}

// TestRefusalsAreBounded counts more addresses than are remembered: the oldest are forgotten, and whoever asks whether he
// is blocked keeps nobody in memory.
func TestRefusalsAreBounded(t *testing.T) {
	r := NewRefusals(newClock())
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	block := func(i int) {
		for range refusalLimit {
			r.Refused(addr(i))
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	block(0)
	for i := 1; i < maxAddresses; i++ {
		r.Refused(addr(i))
		if _, blocked := r.Blocked(addr(0)); !blocked {
			t.Fatalf("forgotten after %d others", i)
		}
	}
	for i := range 4 * maxAddresses {
		r.Refused(addr(maxAddresses + i))
	}
	if _, blocked := r.Blocked(addr(0)); blocked {
		t.Error("the oldest is remembered")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d addresses take %d KiB", r.lru.Len(), grown>>10)
	if r.lru.Len() != maxAddresses || grown > 16<<20 {
		t.Errorf("%d addresses, %d bytes", r.lru.Len(), grown)
	}
	runtime.KeepAlive(r)
}

func TestRefusalsAtOnce(t *testing.T) {
	r := NewRefusals(newClock())
	addr := netip.MustParseAddr("192.0.2.1")
	var wg sync.WaitGroup
	for range refusalLimit {
		wg.Go(func() { r.Refused(addr); r.Blocked(addr) })
	}
	wg.Wait()
	if _, blocked := r.Blocked(addr); !blocked {
		t.Error("refusals were lost")
	}
}
