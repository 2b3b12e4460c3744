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

func guess(t *testing.T, r *Refusals, key Key) (end func(accepted bool)) {
	t.Helper()
	end, err := r.Guess(addr, key)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

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

// TestGuesses checks that running guesses count, and guesses that were refused within the last minute. Refused tokens and accepted
// credentials must not count. Accepted credentials must count again after the venue has refused them.
func TestGuesses(t *testing.T) {
	c := newClock()
	r := NewRefusals(c)
	for n := range 10 {
		r.Refused(addr, bad)
		guess(t, r, credentials(n))(false)
		r.Refused(addr, credentials(n))
	}
	guess(t, r, credentials(100))(true)
	var ends []func(bool)
	for n := range guessLimit - 10 {
		ends = append(ends, guess(t, r, credentials(200+n)))
	}
	if _, err := r.Guess(addr, credentials(300)); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	guess(t, r, credentials(100))(true) // these credentials were accepted above
	if _, err := r.Guess(netip.MustParseAddr("192.0.2.2"), credentials(300)); err != nil {
		t.Errorf("a guess from another address: got %v, want no error", err)
	}
	ends[0](false)
	guess(t, r, credentials(300))(false)
	for _, end := range ends[1:] {
		end(false)
	}
	for n := range 10 {
		r.Refused(addr, credentials(400+n))
	}
	var limited *market.Error
	if _, err := r.Guess(addr, credentials(500)); !errors.As(err, &limited) || limited.RetryAfter <= 0 || limited.RetryAfter > refusalWindow {
		t.Errorf("a guess after %d refused guesses: got %v, want RATE_LIMITED with RetryAfter", guessLimit, err)
	}
	r.Refused(addr, credentials(100)) // now the venue refuses these credentials
	if _, err := r.Guess(addr, credentials(100)); err == nil {
		t.Error("credentials that the venue accepted and later refused do not count as a guess")
	}
	c.Advance(refusalWindow)
	guess(t, r, credentials(500))(false)
}

// TestRetryOfGuesses checks that RetryAfter is the time until the oldest refusal no longer counts. After that time, another guess
// must be accepted.
func TestRetryOfGuesses(t *testing.T) {
	c := newClock()
	r := NewRefusals(c)
	for n := range guessLimit {
		r.Refused(addr, credentials(n))
		c.Advance(time.Second)
	}
	var limited *market.Error
	if _, err := r.Guess(addr, worse); !errors.As(err, &limited) || limited.RetryAfter != refusalWindow-guessLimit*time.Second {
		t.Fatalf("after refusals at intervals of a second: got %+v, want RetryAfter %s", limited, refusalWindow-guessLimit*time.Second)
	}
	c.Advance(limited.RetryAfter)
	if _, err := r.Guess(addr, worse); err != nil {
		t.Errorf("a guess after RetryAfter: got %v, want no error", err)
	}
}

// TestOneGuessOfManyReads checks that many reads with equal credentials count as one guess.
func TestOneGuessOfManyReads(t *testing.T) {
	r := NewRefusals(newClock())
	var ends []func(bool)
	for range 2 * guessLimit {
		ends = append(ends, guess(t, r, worse))
	}
	for _, end := range ends {
		r.Refused(addr, worse)
		end(false)
	}
	for n := range guessLimit - 1 {
		guess(t, r, credentials(n))
	}
	guess(t, r, credentials(0)) // a guess with these credentials is already running
	if _, err := r.Guess(addr, CredentialsKey(mustParse(`{"apiKey":"another"}`))); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
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
		r.accepted.Add(TokenKey(fmt.Sprint(i)), struct{}{})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d addresses take %d KiB", r.pairs.Len(), grown>>10)
	if r.pairs.Len() != MaxRefusals || r.guesses.Len() != MaxRefusals || r.accepted.Len() != MaxRefusals || grown > MaxRefusals*RefusalBytes {
		t.Errorf("the caches have %d pairs, %d networks, %d accepted keys and %d bytes; want %d entries each and at most %d bytes", r.pairs.Len(), r.guesses.Len(), r.accepted.Len(), grown, MaxRefusals, MaxRefusals*RefusalBytes)
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
