package server

import (
	"maps"
	"sync"
)

// What [Counts] counts.
const (
	Requests   = "requests"   // calls, by path
	Keys       = "keys"       // identifiers in calls, by path; a call without a list of identifiers counts as 1
	Statuses   = "statuses"   // answers, by HTTP status
	Opened     = "opened"     // streams that were opened
	Subscribes = "subscribes" // identifiers that were subscribed, by channel, including repeated subscribes
	Resyncs    = "resyncs"    // subscribed identifiers in requests for a new snapshot, by channel
	Frames     = "frames"     // frames sent, by type
	Closes     = "closes"     // streams that the venue closed with a close frame, by code
)

// Stats are the counts since the venue opened or was reset. The maps omit zeros.
type Stats struct {
	Requests map[string]int64 `json:"requests"`
	Keys     map[string]int64 `json:"keys"`
	Statuses map[string]int64 `json:"statuses"`
	Stream   StreamStats      `json:"stream"`
}

// StreamStats has counts of the stream. Connections, Topics and Subscriptions are the present numbers: of streams, of topics with
// subscribers by channel, and of pairs of a stream and a topic by channel.
type StreamStats struct {
	Connections   int64            `json:"connections"`
	Opened        int64            `json:"opened"`
	Topics        map[string]int64 `json:"topics"`
	Subscriptions map[string]int64 `json:"subscriptions"`
	Subscribes    map[string]int64 `json:"subscribes"`
	Resyncs       map[string]int64 `json:"resyncs"`
	Frames        map[string]int64 `json:"frames"`
	Closes        map[string]int64 `json:"closes"`
}

// Counts counts what a venue gets and sends. The zero value is ready to use, and safe for concurrent use.
type Counts struct {
	mu sync.Mutex
	n  map[string]map[string]int64
}

// Add adds to the count of a name.
func (c *Counts) Add(what, name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[what] == nil {
		if c.n == nil {
			c.n = make(map[string]map[string]int64)
		}
		c.n[what] = make(map[string]int64)
	}
	c.n[what][name] += int64(n)
}

// Reset zeroes the counts.
func (c *Counts) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = nil
}

// Stats returns the counts, and the number of open streams.
func (c *Counts) Stats(open *Sockets) Stats {
	streams := len(open.All())
	c.mu.Lock()
	defer c.mu.Unlock()
	of := func(what string) map[string]int64 {
		if c.n[what] == nil {
			return map[string]int64{}
		}
		return maps.Clone(c.n[what])
	}
	return Stats{
		Requests: of(Requests), Keys: of(Keys), Statuses: of(Statuses),
		Stream: StreamStats{
			Connections: int64(streams), Opened: c.n[Opened][""], Topics: map[string]int64{}, Subscriptions: map[string]int64{},
			Subscribes: of(Subscribes), Resyncs: of(Resyncs), Frames: of(Frames), Closes: of(Closes),
		},
	}
}
