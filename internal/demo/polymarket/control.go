package polymarket

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"oddsgraph/internal/demo"
)

// Stats counts requests since the simulator opened or was reset. The maps Requests and Keys are indexed by path patterns such as
// "POST /books". The map Statuses is indexed by status texts such as "OK".
type Stats struct {
	Requests map[string]int64 `json:"requests"`
	// Keys counts the identifiers in the requests. A request without a list of identifiers counts as 1.
	Keys     map[string]int64 `json:"keys"`
	Statuses map[string]int64 `json:"statuses"`
	Stream   StreamStats      `json:"stream"`
}

// StreamStats counts open sockets, sockets opened so far, and subscriptions. A subscription is a pair of an open socket and a
// token.
type StreamStats struct {
	Connections   int64 `json:"connections"`
	Opened        int64 `json:"opened"`
	Subscriptions int64 `json:"subscriptions"`
}

// Stats returns the counts.
func (v *Venue) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Stats{Requests: maps.Clone(v.requests), Keys: maps.Clone(v.keys), Statuses: maps.Clone(v.statuses)}
	s.Stream = StreamStats{Connections: int64(len(v.conns)), Opened: v.openedSockets}
	for c := range v.conns {
		s.Stream.Subscriptions += int64(len(c.assets))
	}
	return s
}

func (v *Venue) count(pattern string, keys, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests[pattern]++
	v.keys[pattern] += int64(keys)
	v.statuses[http.StatusText(status)]++
}

// Reset zeroes the counts.
func (v *Venue) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.requests)
	clear(v.keys)
	clear(v.statuses)
	v.openedSockets = 0
}

// DemoID returns the demo venue's identifier of a token or a market, or the given id if there is none.
func (v *Venue) DemoID(id string) string {
	if demoID, ok := v.DemoTokenID(id); ok {
		return demoID
	}
	m := v.byCondition[id]
	if m == nil {
		m = v.byCondition[id+"00"] // Gamma's form of a condition id of protocol V2
	}
	if m == nil {
		return id
	}
	return m.demoMarket
}

// window is the length of time over which a limiter counts requests.
const window = 10 * time.Second

type limiter struct {
	mu       sync.Mutex
	admitted map[string][]time.Time // by path: times at which the limiter admits the last requests, oldest first
}

// admit returns the time that a request must wait, so that no more than limit requests are answered in a window.
func (l *limiter) admit(path string, limit int, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted == nil {
		l.admitted = map[string][]time.Time{}
	}
	times := l.admitted[path]
	for len(times) > 0 && now.Sub(times[0]) >= window {
		times = times[1:]
	}
	at := now
	if len(times) >= limit {
		at = times[len(times)-limit].Add(window)
	}
	l.admitted[path] = append(times, at)
	return at.Sub(now)
}

var _ demo.Watcher = (*Venue)(nil)
