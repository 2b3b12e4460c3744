package demo

import (
	"strconv"
	"sync/atomic"
)

// StreamStats has counts of the stream. Connections, Topics and Subscriptions are the present numbers. The other fields count since
// the venue opened or was reset.
type StreamStats struct {
	Connections int64 `json:"connections"`
	// Opened counts the connections that were opened.
	Opened int64 `json:"opened"`
	// Topics counts, by channel, the topics with subscribers.
	Topics map[string]int64 `json:"topics"`
	// Subscriptions counts, by channel, the pairs of a connection and a topic.
	Subscriptions map[string]int64 `json:"subscriptions"`
	// Subscribes counts, by channel, the identifiers that were subscribed, including repeated subscribes.
	Subscribes map[string]int64 `json:"subscribes"`
	// Resyncs counts, by channel, the subscribed identifiers in resync requests.
	Resyncs map[string]int64 `json:"resyncs"`
	// Frames counts the frames sent, by type.
	Frames map[string]int64 `json:"frames"`
	// Closes counts the connections that the venue closed with a close frame, by code.
	Closes map[string]int64 `json:"closes"`
}

type streamCounts struct {
	opened              atomic.Int64
	subscribes, resyncs [channels]atomic.Int64
	frames              [frameKinds]atomic.Int64
	closes              [5000]atomic.Int64
}

func (c *streamCounts) countClose(code int) { c.closes[code].Add(1) }

func (c *streamCounts) reset() {
	c.opened.Store(0)
	for ch := range channels {
		c.subscribes[ch].Store(0)
		c.resyncs[ch].Store(0)
	}
	for k := range c.frames {
		c.frames[k].Store(0)
	}
	for code := range c.closes {
		c.closes[code].Store(0)
	}
}

// streamStats returns the counts. The maps omit zeros.
func (v *Venue) streamStats() StreamStats {
	counts := &v.stream.counts
	s := StreamStats{
		Opened: counts.opened.Load(), Connections: int64(len(v.stream.all())),
		Topics: map[string]int64{}, Subscriptions: map[string]int64{}, Subscribes: map[string]int64{}, Resyncs: map[string]int64{},
		Frames: map[string]int64{}, Closes: map[string]int64{},
	}
	set := func(m map[string]int64, name string, n int64) {
		if n > 0 {
			m[name] = n
		}
	}
	v.mu.RLock()
	for ch, name := range channelNames {
		set(s.Topics, name, int64(v.stream.openTopics[ch]))
		set(s.Subscriptions, name, int64(v.stream.subs[ch]))
	}
	v.mu.RUnlock()
	for ch, name := range channelNames {
		set(s.Subscribes, name, counts.subscribes[ch].Load())
		set(s.Resyncs, name, counts.resyncs[ch].Load())
	}
	for kind, name := range frameNames {
		set(s.Frames, name, counts.frames[kind].Load())
	}
	for code := range counts.closes {
		set(s.Closes, strconv.Itoa(code), counts.closes[code].Load())
	}
	return s
}
