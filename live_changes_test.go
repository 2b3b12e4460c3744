package main

import (
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// slowProxy forwards TCP connections to an address and returns its own. What clients send arrives after a delay; what they are
// sent arrives at once.
func slowProxy(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go forwardLate(in, out, delay)
		}
	}()
	return l.Addr().String()
}

// forwardLate copies from in to out until in is closed, every part after a delay.
func forwardLate(in io.Reader, out io.WriteCloser, delay time.Duration) {
	type part struct {
		b  []byte
		at time.Time
	}
	parts := make(chan part, 1000)
	go func() {
		for p := range parts {
			time.Sleep(time.Until(p.at))
			_, _ = out.Write(p.b)
		}
		_ = out.Close()
	}()
	defer close(parts)
	for {
		b := make([]byte, 4096)
		n, err := in.Read(b)
		if n > 0 {
			parts <- part{b[:n], time.Now().Add(delay)}
		}
		if err != nil {
			return
		}
	}
}

// untilStatus waits until a subscription shows the status of a market.
func untilStatus(t *testing.T, sub *events, want string) {
	t.Helper()
	sub.until(t, "status "+want, func(v any) bool { return text(v, "market.status") == want })
}

// TestAMarketChangesBeforeItIsSubscribed: the stream is farther away than REST, so a market may change after REST has answered
// and before the venue has taken the subscription.
func TestAMarketChangesBeforeItIsSubscribed(t *testing.T) {
	t.Parallel()
	s, _ := startLiveRigged(t, func(w *wiring) {
		u, err := url.Parse(w.stream.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = slowProxy(t, u.Host, 300*time.Millisecond)
		w.stream.URL = u.String()
	})
	s.streaming(t)
	id := s.openMarkets(30)[25]
	sub := s.dial(t, anonymous).subscribe(t, subMarkets, vars{"ids": []string{id}})
	time.Sleep(150 * time.Millisecond) // the subscription is on its way
	if err := s.venue.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	untilStatus(t, sub, "CLOSED")

	// The same at a reconnect.
	s.venue.Restart(demo.CloseSlow)
	eventually(t, "the stream is open again", func() bool { return s.server.live.client.Stats().Reconnects > 0 })
	time.Sleep(150 * time.Millisecond)
	if err := s.venue.SetStatus(id, "OPEN"); err != nil {
		t.Fatal(err)
	}
	untilStatus(t, sub, "OPEN")
}

// TestASubscriptionIsIgnored: the venue does not answer a subscription of a market. It is sent again, and until it is confirmed the
// market is polled.
func TestASubscriptionIsIgnored(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.streaming(t)
	id, token := s.openMarkets(30)[25], s.openTokens(3)[2]
	k := s.dial(t, anonymous)
	prices := k.subscribe(t, subPrices, vars{"ids": []string{token}})
	prices.reason(t, "INITIAL")
	s.spoil(t, demo.Fault{Path: demo.StreamPath, Kind: demo.FaultStall, Channel: "prices", TokenID: token, Count: 1, DelayMs: 3000})
	s.move(t, token)
	time.Sleep(100 * time.Millisecond) // the venue reads nothing from now on
	sub := k.subscribe(t, subMarkets, vars{"ids": []string{id}})
	sub.reason(t, "INITIAL")
	if err := s.venue.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	untilStatus(t, sub, "CLOSED")
	eventually(t, "the missing confirmation is counted", func() bool { return s.server.live.feed.Stats().Unacknowledged > 0 })
	if err := s.venue.Reword(id, "other words"); err != nil {
		t.Fatal(err)
	}
	sub.until(t, "the new words", func(v any) bool { return text(v, "market.description") == "other words" })
}
