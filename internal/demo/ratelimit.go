package demo

import (
	"net"
	"strconv"
	"sync"
)

// window is the length of time over which a limiter counts requests.
const window = minute

// maxClients is the maximum number of clients that a limiter remembers. When another client arrives, the limiter forgets the
// clients that sent no request in the window. If it still remembers maxClients clients, it refuses the request.
const maxClients = 10_000

// limiter allows each client perMinute requests in any 60 seconds. It records the times of admitted requests.
type limiter struct {
	perMinute int // 0 means no limit

	mu       sync.Mutex
	admitted map[string][]millis // oldest first, at most perMinute each
}

// allow counts a request of a client. ok reports whether the request is admitted. remaining is the number of further requests that
// the client may send now. wait is the time until the client's oldest request leaves the window, or a whole window if the limiter
// remembers too many clients.
func (l *limiter) allow(client string, now millis) (ok bool, remaining int, wait millis) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted == nil {
		l.admitted = make(map[string][]millis)
	}
	sent, known := l.admitted[client]
	gone := 0
	for gone < len(sent) && now-sent[gone] >= window {
		gone++
	}
	sent = append(sent[:0], sent[gone:]...)
	if !known && len(l.admitted) >= maxClients {
		l.forget(now)
		if len(l.admitted) >= maxClients {
			return false, 0, window
		}
	}
	if ok = len(sent) < l.perMinute; ok {
		sent = append(sent, now)
	}
	l.admitted[client] = sent
	return ok, l.perMinute - len(sent), sent[0] + window - now
}

// forget removes the clients without requests in the window.
func (l *limiter) forget(now millis) {
	for client, sent := range l.admitted {
		if len(sent) == 0 || now-sent[len(sent)-1] >= window {
			delete(l.admitted, client)
		}
	}
}

// limit counts a request for its client. At a user endpoint, the client is the API key if the credentials are valid. Otherwise it
// is the IP address. limit reports whether the client may send the request. If the client may not send it, limit turns the answer
// into an error. If there is a limit, limit adds rate-limit headers to the answer. X-RateLimit-Reset is the Unix time in seconds
// when the oldest request leaves the window.
func (v *Venue) limit(c *call, a *answer) bool {
	l, client := &v.limits.public, ""
	if c.account != nil {
		l, client = &v.limits.key, c.account.key
	} else if client, _, _ = net.SplitHostPort(c.r.RemoteAddr); client == "" {
		client = c.r.RemoteAddr
	}
	if l.perMinute <= 0 {
		return true
	}
	now := v.now()
	ok, remaining, wait := l.allow(client, now)
	a.header.Set("X-RateLimit-Limit", strconv.Itoa(l.perMinute))
	a.header.Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
	a.header.Set("X-RateLimit-Reset", strconv.FormatInt(int64(ceilSeconds(now+wait)), 10))
	if !ok {
		a.header.Set("Retry-After", strconv.FormatInt(int64(ceilSeconds(wait)), 10))
		a.fail(errLimited)
	}
	return ok
}

func ceilSeconds(t millis) millis { return (t + second - 1) / second }
