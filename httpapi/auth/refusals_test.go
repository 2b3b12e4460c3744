package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

func newClock() *tool.Clock { return tool.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) }

var bad, worse = TokenKey("bad"), CredentialsKey(mustParse(`{"apiKey":"worse"}`))

func mustParse(text string) *market.Credentials {
	c, err := market.ParseCredentials([]byte(text))
	if err != nil {
		panic(err)
	}
	return c
}

var addr = netip.MustParseAddr("192.0.2.1")

// credentials returns the key of the nth credentials.
func credentials(n int) Key { return CredentialsKey(mustParse(fmt.Sprintf(`{"apiKey":"%d"}`, n))) }

func TestRefusals(t *testing.T) {
	for _, key := range []Key{bad, worse} {
		c := newClock()
		r := NewRefusals(c)
		other := netip.MustParseAddr("192.0.2.2")
		for range refusalLimit {
			if err := r.Check(addr, key); err != nil {
				t.Fatal(err)
			}
			r.Refused(addr, key)
			c.Advance(10 * time.Second)
		}
		var known *market.Error
		if err := r.Check(addr, key); !errors.As(err, &known) || known.Code != market.CodeRateLimited || known.RetryAfter != 10*time.Second {
			t.Errorf("after %d refusals: got %+v, want RATE_LIMITED for 10 s", refusalLimit, known)
		}
		if r.Check(other, key) != nil || r.Check(addr, TokenKey("good")) != nil {
			t.Error("another address or key is refused")
		}
		c.Advance(10*time.Second - 1)
		if r.Check(addr, key) == nil {
			t.Error("the key is checked again before RetryAfter has passed")
		}
		c.Advance(1)
		if r.Check(addr, key) != nil {
			t.Error("the key is still refused after RetryAfter")
		}
		r.Refused(addr, key) // at 60 s: the refusals at 10, 20, 30 and 40 s still count, so this refusal is the fifth within a minute
		if r.Check(addr, key) == nil {
			t.Error("the key is not refused after five refusals within a minute")
		}
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
			r.Refused(parse(test.a), bad)
		}
		if blocked := r.Check(parse(test.b), bad) != nil; blocked != test.same {
			t.Errorf("refusals of the address %q block the address %q: %v, want %v", test.a, test.b, blocked, test.same)
		}
	}
}

// TestGuesses checks that a network whose guesses were refused must wait before it tries other credentials. Refused tokens and
// further refusals of the same credentials do not count. Accepted credentials are not affected until the venue refuses them.
func TestGuesses(t *testing.T) {
	c := newClock()
	r := NewRefusals(c)
	wants := func(addr netip.Addr, key Key, wait time.Duration) {
		t.Helper()
		var limited *market.Error
		if err := r.Check(addr, key); wait == 0 && err != nil {
			t.Errorf("got %v, want no error", err)
		} else if wait > 0 && (!errors.As(err, &limited) || limited.Code != market.CodeRateLimited || limited.RetryAfter.Round(10*time.Millisecond) != wait) {
			t.Errorf("got %+v, want RATE_LIMITED for %s", limited, wait)
		}
	}
	r.Accepted(credentials(100), "0x1")
	for n := range guessLimit {
		wants(addr, credentials(300), 0)
		r.Refused(addr, bad)
		r.Refused(addr, credentials(n))
		r.Refused(addr, credentials(n))
	}
	const one = refusalWindow / guessLimit
	wants(addr, credentials(300), one)
	wants(addr, credentials(100), 0)
	wants(addr, TokenKey("good"), 0)
	wants(netip.MustParseAddr("192.0.2.2"), credentials(300), 0)
	r.Refused(addr, credentials(100)) // now the venue refuses these credentials
	for n := range 9 {
		r.Refused(addr, credentials(400+n)) // a burst: these were checked before the limit was reached
	}
	wants(addr, credentials(100), 11*one)
	c.Advance(11*one + time.Millisecond)
	wants(addr, credentials(300), 0)
}

// TestRefusalsAreBounded checks that each LRU cache of Refusals has at most MaxRefusals entries. Three entries, one from each
// cache, must need at most RefusalBytes.
func TestRefusalsAreBounded(t *testing.T) {
	r := NewRefusals(newClock())
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3 * MaxRefusals {
		r.Refused(addr(i), worse)
		r.accepted.Add(TokenKey(fmt.Sprint(i)), market.Address("0x1"))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d addresses take %d KiB", r.pairs.Len(), grown>>10)
	if r.pairs.Len() != MaxRefusals || r.networks.Len() != MaxRefusals || r.accepted.Len() != MaxRefusals || grown > MaxRefusals*RefusalBytes {
		t.Errorf("the caches have %d pairs, %d networks, %d accepted keys and %d bytes; want %d entries each and at most %d bytes", r.pairs.Len(), r.networks.Len(), r.accepted.Len(), grown, MaxRefusals, MaxRefusals*RefusalBytes)
	}
	runtime.KeepAlive(r)
}

func TestConcurrentRefusals(t *testing.T) {
	r := NewRefusals(newClock())
	var wg sync.WaitGroup
	for range refusalLimit {
		wg.Go(func() {
			_ = r.Check(addr, bad)
			r.Refused(addr, bad)
		})
	}
	wg.Wait()
	if r.Check(addr, bad) == nil {
		t.Error("the key is not refused after concurrent refusals")
	}
}
