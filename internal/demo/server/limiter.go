package server

import (
	"sync"
	"time"
)

// maxClients is the maximum number of clients that a Limiter remembers. When another client arrives, it forgets the clients that made
// no call in the span. If it still remembers maxClients clients, it refuses the call.
const maxClients = 10_000

// Limiter limits the calls of each client, or to each path, in any period of the length Span. It is safe for concurrent use.
type Limiter struct {
	Span time.Duration

	mu    sync.Mutex
	times map[string][]time.Time // of the last calls, oldest first
}

// Take counts a call of a client. wait is the time until the call may be answered; 0 means now. If queue is true, a call that must
// wait counts at that time, or else it does not count. left is the number of further calls that the client may make now, and reset
// the time until its oldest call leaves the span.
func (l *Limiter) Take(client string, limit int, now time.Time, queue bool) (wait time.Duration, left int, reset time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times == nil {
		l.times = make(map[string][]time.Time)
	}
	times, known := l.times[client]
	for len(times) > 0 && now.Sub(times[0]) >= l.Span {
		times = times[1:]
	}
	if !known && len(l.times) >= maxClients {
		l.forget(now)
		if len(l.times) >= maxClients {
			return l.Span, 0, l.Span
		}
	}
	at := now
	if len(times) >= limit {
		at = times[len(times)-limit].Add(l.Span)
	}
	if queue || at.Equal(now) {
		times = append(times, at)
	}
	l.times[client] = times
	return at.Sub(now), max(limit-len(times), 0), times[0].Add(l.Span).Sub(now)
}

func (l *Limiter) forget(now time.Time) {
	for client, times := range l.times {
		if len(times) == 0 || now.Sub(times[len(times)-1]) >= l.Span {
			delete(l.times, client)
		}
	}
}

// Bucket is a token bucket that holds the tokens of one second. The zero value is full.
type Bucket struct {
	mu    sync.Mutex
	spent float64
	at    time.Time
}

// Take removes tokens from the bucket if the bucket has enough tokens, and reports whether it did.
func (b *Bucket) Take(tokens, perSecond int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-now.Sub(b.at).Seconds()*float64(perSecond), 0)
	b.at = now
	if b.spent+float64(tokens) > float64(perSecond) {
		return false
	}
	b.spent += float64(tokens)
	return true
}
