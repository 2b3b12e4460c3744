package stream

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// waits returns the times between consecutive calls of Dial.
func (b *bench) waits() []time.Duration {
	at := b.venue.dialled()
	out := make([]time.Duration, 0, len(at))
	for i := 1; i < len(at); i++ {
		out = append(out, at[i]-at[i-1])
	}
	return out
}

// TestBackoff checks that the maximum wait before a reconnect doubles from 1 s to 30 s. After a connection that was open for at
// least a minute, the maximum must be 1 s again. With the random number 0.5 of inBubble, each wait is three
// quarters of its maximum.
func TestBackoff(t *testing.T) {
	s, ms := time.Second, time.Millisecond
	inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("connection refused") }, func(b *bench) {
		b.advance(80 * s)
		b.equal("waits", b.waits(), []time.Duration{750 * ms, 1500 * ms, 3 * s, 6 * s, 12 * s, 22500 * ms, 22500 * ms})
		b.equal("reasons", slices.Compact(b.reasons()), []string{"dial"})
		b.equal("state", b.Stats().State, StateDisconnected)
		b.equal("warnings", strings.Count(b.log.String(), "level=WARN"), 1)

		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(15 * s)
		b.conn(0).drop(1006) // the connection was open for less than a minute
		b.advance(23 * s)
		b.equal("the wait is still at least 22.5 s", b.waits()[len(b.waits())-1] >= 22500*ms, true)
		b.advance(time.Minute)
		n := len(b.waits())
		b.conn(1).drop(1006)
		b.advance(750*ms - 1)
		b.equal("waits before the short wait has ended", len(b.waits()), n)
		b.advance(1)
		b.equal("waits after the short wait", len(b.waits()), n+1)
		b.equal("reconnects", b.Stats().Reconnects, 2)
	})
}

// TestWaitEnds checks that the wait before a reconnect ends with the context of Run.
func TestWaitEnds(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		b.conn(0).drop(closeLimited)
		b.settle()
		before := time.Now()
		b.stop()
		b.equal("time until Run returns", time.Since(before), time.Duration(0))
	})
}

// TestCloseCodes checks how long the client waits after each close code, and which reason it reports. It also checks other losses
// of the connection.
func TestCloseCodes(t *testing.T) {
	for _, test := range []struct {
		err    error
		wait   time.Duration
		reason string
	}{
		{&CloseError{1000}, 750 * time.Millisecond, "closed"},
		{&CloseError{1006}, 750 * time.Millisecond, "closed"},
		{&CloseError{closeCredentials}, 750 * time.Millisecond, "credentials"},
		{&CloseError{closeSlow}, 750 * time.Millisecond, "slow"},
		{&CloseError{closeRestart}, 5 * time.Second, "restart"},
		{&CloseError{closeLimited}, time.Minute, "limited"},
		{fmt.Errorf("reading: %w", &CloseError{closeLimited}), time.Minute, "limited"},
		{io.ErrUnexpectedEOF, 750 * time.Millisecond, "closed"},
	} {
		inBubble(t, nil, func(b *bench) {
			b.watch(book("T1"))
			b.advance(10 * time.Second)
			b.calls.take()
			b.conn(0).end(test.err)
			b.advance(test.wait - 1)
			b.calls.expect(t, "down orderbook:T1")
			b.advance(1)
			b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 e1/1")
			b.equal("reasons", b.reasons(), []string{test.reason})
			b.equal("reconnects", b.Stats().Reconnects, 1)
		})
	}
}

// TestHandshakeRetryAfter checks that the client waits for HandshakeError.RetryAfter after a rejected handshake.
func TestHandshakeRetryAfter(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.refuse = &HandshakeError{Status: 429, RetryAfter: 20 * time.Second} }, func(b *bench) {
		b.advance(45 * time.Second)
		b.equal("waits", b.waits(), []time.Duration{20 * time.Second, 20 * time.Second})
	})
}

// TestOutage checks the subscriptions after an outage. During the outage, the test watches and unwatches topics.
func TestOutage(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"), book("T2"), price("T1"))
		b.settle()
		b.calls.take()
		b.venue.set(func() { b.venue.refuse = errors.New("away") })
		b.conn(0).drop(1006)
		b.advance(10 * time.Second)
		b.calls.expect(t, "down orderbook:T1 orderbook:T2 prices:T1")
		b.Unwatch(book("T1"))
		b.watch(book("T3"), book("T4"))
		b.Unwatch(book("T4"))
		b.Unwatch(price("T1"))
		b.watch(price("T1"))
		b.Resync(book("T2"))
		b.equal("topics", b.Stats().Topics, 3)
		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(time.Minute)
		calls := b.calls.take()
		slices.Sort(calls)
		b.equal("calls", calls, []string{"message orderbook:T2 e1/1", "message orderbook:T3 e1/1", "message prices:T1 e1/1",
			"up orderbook:T2 orderbook:T3", "up prices:T1"})
		b.equal("unsubscribed", len(b.venue.sent("unsubscribe")), 0)
		b.equal("resyncs", len(b.venue.sent("resync")), 0)
	})
}
