package demo

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFanOut changes the price of a token with 1,000 subscribers and waits until all of them have read the change.
func BenchmarkFanOut(b *testing.B) {
	const clients = 1000
	s := open(b, Config{Markets: 40}, func(l *streamLimits) { *l = standardLimits })
	tok := openTokens(b, s.Venue, 1)[0]
	var read atomic.Int64
	var readers sync.WaitGroup
	for range clients {
		l := s.dial(b)
		l.subscribe("orderbook", 0, tok.id)
		l.take("orderbook_snapshot")
		readers.Go(func() {
			for {
				if _, _, err := l.ws.Read(context.Background()); err != nil {
					return
				}
				read.Add(1)
			}
		})
	}
	b.ReportAllocs()
	sent := int64(0)
	for b.Loop() {
		s.nudge(b, tok)
		for sent += clients; read.Load() < sent; {
			time.Sleep(20 * time.Microsecond)
		}
	}
	b.StopTimer()
	s.Close()
	readers.Wait()
}

// BenchmarkPublish measures how long the venue takes to queue a change for 1,000 subscribers.
func BenchmarkPublish(b *testing.B) {
	v := New(Config{Markets: 40, Clock: newClock()})
	v.stream.limits.queue, v.stream.limits.queueBytes = 1<<30, 1<<50
	tok := openTokens(b, v, 1)[0]
	var conns []*streamConn
	for range 1000 {
		c := &streamConn{v: v, wake: make(chan struct{}, 1), drained: make(chan struct{}, 1), subs: map[topicKey]*subscription{}}
		v.join(c, topicKey{channelOrderbook, tok.id}, subject{token: tok}, maxDepth)
		conns = append(conns, c)
	}
	s := &testVenue{Venue: v}
	b.ReportAllocs()
	for b.Loop() {
		s.nudge(b, tok)
		b.StopTimer()
		for _, c := range conns {
			for _, ok, _, _ := c.next(); ok; _, ok, _, _ = c.next() {
			}
		}
		b.StartTimer()
	}
}
