package demo

import (
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// The kinds of faults of the stream. Unless they say otherwise they befall the frame that fits, for one client.
const (
	// FaultDrop loses the frame.
	FaultDrop FaultKind = "drop"
	// FaultDuplicate sends the frame twice.
	FaultDuplicate FaultKind = "duplicate"
	// FaultReorder sends the frame after the next one of its topic.
	FaultReorder FaultKind = "reorder"
	// FaultLostTail loses the frame, and its token, price and book alike, stays quiet until the faults are set anew.
	FaultLostTail FaultKind = "lost-tail"
	// FaultGarbage sends half of the frame.
	FaultGarbage FaultKind = "garbage"
	// FaultUnknownType sends a frame of a type that nobody knows before the frame.
	FaultUnknownType FaultKind = "unknown-type"
	// FaultSlowSnapshot sends the frame after DelayMs, while others overtake it. Only frames that state the whole of a topic
	// fit: what follows a subscribe or a resync.
	FaultSlowSnapshot FaultKind = "slow-snapshot"
	// FaultStall sends and takes nothing more on the connection, which stays open, for DelayMs; 0 is for ever.
	FaultStall FaultKind = "stall"
	// FaultClose closes the connection with Code (4003 when 0) instead.
	FaultClose FaultKind = "close"
	// FaultSkip leaves out a sequence number of the topic, for all clients.
	FaultSkip FaultKind = "skip-seq"
	// FaultRestart restarts the venue: a new epoch, and all streams are closed with Code (4003 when 0).
	FaultRestart FaultKind = "restart"
	// FaultNewEpoch restarts the venue behind its open streams: a new hello and the present state of each topic.
	FaultNewEpoch FaultKind = "new-epoch"
)

var (
	streamFaults = []FaultKind{
		FaultDrop, FaultDuplicate, FaultReorder, FaultLostTail, FaultGarbage, FaultUnknownType, FaultSlowSnapshot, FaultStall,
		FaultClose, FaultSkip, FaultRestart, FaultNewEpoch,
	}
	// openingFaults befall the opening of a stream.
	openingFaults = []FaultKind{FaultStatus, FaultHTML, FaultDelay, FaultHang, FaultReset, FaultRefused, FaultRedirect}
)

// streams reports whether the rule is about frames.
func (f *Fault) streams() bool { return f.Path == StreamPath && slices.Contains(streamFaults, f.Kind) }

// checkCode reports whether a connection can't be closed with a code; 0 is none.
func checkCode(code int) error {
	if code == 0 || code >= 3000 && code <= 4999 || code >= 1000 && code <= 1014 && (code < 1004 || code > 1006) {
		return nil
	}
	return errors.New("code is none that a connection can be closed with")
}

// about reports whether the rule fits frames of a topic on a channel.
func (f *Fault) about(ch channel, id string) bool {
	return (f.Channel == "" || f.Channel == channelNames[ch]) && (f.TokenID == "" || f.TokenID == id)
}

// takeFrame returns the rule that spoils a frame of a topic, or of none, and counts it.
func (l *faultList) takeFrame(t *topic, fr frame) *Fault {
	return l.first(func(f *Fault) bool {
		if !f.streams() || f.Kind == FaultSkip || f.Frame != "" && f.Frame != frameNames[fr.kind] ||
			f.Kind == FaultSlowSnapshot && !fr.whole || f.Kind == FaultLostTail && fr.whole {
			return false
		}
		if t == nil {
			return f.Frame != "" && f.Channel == "" && f.TokenID == ""
		}
		return f.about(t.channel, t.id)
	})
}

// skippedTopic returns how many numbers of a topic, if anybody listens to it, are left out now: 0 or 1.
func (v *Venue) skippedTopic(t *topic) uint64 {
	if t == nil || !v.faults.streaming.Load() {
		return 0
	}
	if v.faults.first(func(f *Fault) bool { return f.streams() && f.Kind == FaultSkip && f.about(t.channel, t.id) }) != nil {
		return 1
	}
	return 0
}

// skipped is skippedTopic for the tokens that share an instrument, and so its numbers.
func (v *Venue) skipped(t *token, ch channel) uint64 {
	if ch == channelTrades {
		return v.skippedTopic(t.topics[ch])
	}
	for _, shown := range t.market.tokens {
		if shown.instrument == t.instrument {
			if n := v.skippedTopic(shown.topics[ch]); n > 0 {
				return n
			}
		}
	}
	return 0
}

// unknownFrame is of a type that nobody knows.
var unknownFrame = frame{data: []byte(`{"type":"weather_update","seq":1,"temperature":21.5}`), kind: frameUnknown}

// deliver hands a frame of a topic, or of none, to a client, as the faults in force will have it.
func (v *Venue) deliver(c *streamConn, t *topic, f frame) {
	c.mu.Lock()
	defer c.signal()
	defer c.mu.Unlock()
	if c.deaf() {
		return // and nothing is left to spoil
	}
	var fault *Fault
	if v.faults.streaming.Load() {
		fault = v.faults.takeFrame(t, f)
	}
	kind := FaultKind("")
	if fault != nil {
		kind = fault.Kind
	}
	switch kind {
	case "":
		c.add(f)
	case FaultLostTail:
		if t != nil && t.token != nil {
			t.token.frozen = true
		}
		return
	case FaultDrop:
		return
	case FaultDuplicate:
		c.add(f)
		c.add(f)
	case FaultReorder:
		if _, ok := c.held[t]; t != nil && !ok {
			if c.held == nil {
				c.held = make(map[*topic]frame)
			}
			c.held[t] = f
			v.stream.held.Add(1)
			return
		}
		c.add(f)
	case FaultGarbage:
		f.data = f.data[:len(f.data)/2]
		c.add(f)
	case FaultUnknownType:
		c.add(unknownFrame)
		c.add(f)
	case FaultSlowSnapshot:
		c.delayed = append(c.delayed, delayedFrame{time.Now().Add(time.Duration(fault.DelayMs) * time.Millisecond), f})
	case FaultStall:
		c.stalled = time.Now().AddDate(100, 0, 0)
		if fault.DelayMs > 0 {
			c.stalled = time.Now().Add(time.Duration(fault.DelayMs) * time.Millisecond)
		}
	case FaultClose:
		c.finish(fault.closeCode(), "", true)
	case FaultRestart:
		v.stream.due.Store(&restart{fault.closeCode()})
	case FaultNewEpoch:
		v.stream.due.Store(&restart{})
	}
	if held, ok := c.held[t]; ok {
		c.forgetLocked(t)
		c.add(held)
	}
}

// closeCode returns the code that the fault closes with.
func (f *Fault) closeCode() int {
	if f.Code == 0 {
		return CloseShed
	}
	return f.Code
}

// forgetLocked lets go of the frame that is held back for a topic.
func (c *streamConn) forgetLocked(t *topic) {
	if _, ok := c.held[t]; ok {
		delete(c.held, t)
		c.v.stream.held.Add(-1)
	}
}

// forget is forgetLocked for those who don't hold the lock.
func (c *streamConn) forget(t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(t)
}

// forgetAll lets go of all frames that are held back or delayed.
func (c *streamConn) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(false)
}

// unfreeze lets the engine move all tokens again.
func (v *Venue) unfreeze() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, in := range v.listing.instruments {
		in.frozen = false
	}
}

// StreamStats tells of the stream, partly since the venue opened or was reset.
type StreamStats struct {
	// Connections are open now, Opened were opened since.
	Connections int64 `json:"connections"`
	Opened      int64 `json:"opened"`
	// Topics have subscribers now, by channel, and Subscriptions are pairs of a connection and a topic.
	Topics        map[string]int64 `json:"topics"`
	Subscriptions map[string]int64 `json:"subscriptions"`
	// Subscribes counts the identifiers that were subscribed to since, by channel, also those that were already; Resyncs
	// those of which a snapshot was asked for.
	Subscribes map[string]int64 `json:"subscribes"`
	Resyncs    map[string]int64 `json:"resyncs"`
	// Frames counts what was sent since, by type.
	Frames map[string]int64 `json:"frames"`
	// Closes counts the connections that the venue closed since, by code.
	Closes map[string]int64 `json:"closes"`
}

// streamCounts is what of those is counted since.
type streamCounts struct {
	opened              atomic.Int64
	subscribes, resyncs [channels]atomic.Int64
	frames              [frameKinds]atomic.Int64
	closes              [5000]atomic.Int64
}

func (c *streamCounts) closed(code int) { c.closes[code].Add(1) }

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

// streamStats returns the counts. What is 0 is left out of the maps.
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
		set(s.Topics, name, int64(v.stream.open[ch]))
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
