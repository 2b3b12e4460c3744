package demo

import (
	"errors"
	"slices"
	"time"
)

// The kinds of faults of the stream. A fault spoils the matching frame for one client. FaultLostTail, FaultSkip, FaultRestart and
// FaultNewEpoch also affect other clients.
const (
	// FaultDrop drops the frame.
	FaultDrop FaultKind = "drop"
	// FaultDuplicate sends the frame twice.
	FaultDuplicate FaultKind = "duplicate"
	// FaultReorder holds the frame back until the next frame of its topic has been sent.
	FaultReorder FaultKind = "reorder"
	// FaultLostTail drops the frame. The venue does not move the token of the frame again until the list of faults is replaced or
	// the venue is reset. A frame with the whole state of a topic does not match.
	FaultLostTail FaultKind = "lost-tail"
	// FaultGarbage sends half of the frame.
	FaultGarbage FaultKind = "garbage"
	// FaultUnknownType sends a frame of an unknown type before the frame.
	FaultUnknownType FaultKind = "unknown-type"
	// FaultSlowSnapshot sends the frame after DelayMs. Other frames overtake it. Only a frame with the whole state of a topic
	// matches. The venue sends such a frame after a subscribe or a resync.
	FaultSlowSnapshot FaultKind = "slow-snapshot"
	// FaultStall drops the frame and all later frames of the venue and of the client for DelayMs, or until the connection ends if
	// DelayMs is 0.
	FaultStall FaultKind = "stall"
	// FaultClose closes the connection with Code (4003 when 0) instead of sending the frame.
	FaultClose FaultKind = "close"
	// FaultSkip skips a sequence number of the topic for all clients.
	FaultSkip FaultKind = "skip-seq"
	// FaultRestart restarts the venue: it starts a new epoch and closes all streams with Code (4003 when 0).
	FaultRestart FaultKind = "restart"
	// FaultNewEpoch restarts the venue without closing streams: it sends a new hello and the present state of each topic.
	FaultNewEpoch FaultKind = "new-epoch"
)

var (
	streamFaults = []FaultKind{
		FaultDrop, FaultDuplicate, FaultReorder, FaultLostTail, FaultGarbage, FaultUnknownType, FaultSlowSnapshot, FaultStall,
		FaultClose, FaultSkip, FaultRestart, FaultNewEpoch,
	}
	openingFaults = []FaultKind{FaultStatus, FaultHTML, FaultDelay, FaultHang, FaultReset, FaultRefused, FaultRedirect}
)

func (f *Fault) spoilsFrames() bool {
	return f.Path == StreamPath && slices.Contains(streamFaults, f.Kind)
}

// checkCode returns an error if a connection can't be closed with the code. It also accepts 0, which means no code.
func checkCode(code int) error {
	if code == 0 || code >= 3000 && code <= 4999 || code >= 1000 && code <= 1014 && (code < 1004 || code > 1006) {
		return nil
	}
	return errors.New("code is not a valid WebSocket close code")
}

func (f *Fault) matchesTopic(ch channel, id string) bool {
	return (f.Channel == "" || f.Channel == channelNames[ch]) && (f.TokenID == "" || f.TokenID == id)
}

// takeFrame returns the rule that spoils a frame, or nil, and counts the use of the rule. t is nil for a frame without a topic.
func (l *faultList) takeFrame(t *topic, fr frame) *Fault {
	return l.first(func(f *Fault) bool {
		if !f.spoilsFrames() || f.Kind == FaultSkip || f.Frame != "" && f.Frame != frameNames[fr.kind] ||
			f.Kind == FaultSlowSnapshot && !fr.whole || f.Kind == FaultLostTail && fr.whole {
			return false
		}
		if t == nil {
			return f.Frame != "" && f.Channel == "" && f.TokenID == ""
		}
		return f.matchesTopic(t.channel, t.id)
	})
}

// skippedSeqs returns how many sequence numbers a fault skips now for a topic: 0 or 1. t is nil for a topic without subscribers.
func (v *Venue) skippedSeqs(t *topic) uint64 {
	if t == nil || !v.faults.hasFrameRules.Load() {
		return 0
	}
	if v.faults.first(func(f *Fault) bool { return f.spoilsFrames() && f.Kind == FaultSkip && f.matchesTopic(t.channel, t.id) }) != nil {
		return 1
	}
	return 0
}

// skippedTokenSeqs does what skippedSeqs does, for a channel of a token. If tokens share an instrument, a fault for one of the
// tokens skips a sequence number for all of them, because their books and prices have the same sequence numbers.
func (v *Venue) skippedTokenSeqs(t *token, ch channel) uint64 {
	if ch == channelTrades {
		return v.skippedSeqs(t.topics[ch])
	}
	for _, shown := range t.market.tokens {
		if shown.instrument == t.instrument {
			if n := v.skippedSeqs(shown.topics[ch]); n > 0 {
				return n
			}
		}
	}
	return 0
}

// unknownFrame has a type that clients do not know.
var unknownFrame = frame{data: []byte(`{"type":"weather_update","seq":1,"temperature":21.5}`), kind: frameUnknown}

// deliver queues a frame for a client and applies the first active fault that matches. t is nil for a frame without a topic.
func (v *Venue) deliver(c *streamConn, t *topic, f frame) {
	c.mu.Lock()
	defer c.signal()
	defer c.mu.Unlock()
	if c.deaf() {
		return // an ignored frame must not use up a fault
	}
	var fault *Fault
	if v.faults.hasFrameRules.Load() {
		fault = v.faults.takeFrame(t, f)
	}
	if fault == nil {
		c.add(f)
	} else if !v.addSpoiled(c, t, f, fault) {
		return
	}
	if held, ok := c.held[t]; ok {
		c.forgetLocked(t)
		c.add(held)
	}
}

// addSpoiled queues a frame as the fault requires. It reports whether the calling function may then queue the frame that
// FaultReorder holds back for the topic. The caller holds c.mu.
func (v *Venue) addSpoiled(c *streamConn, t *topic, f frame, fault *Fault) bool {
	switch fault.Kind {
	case FaultLostTail:
		if t != nil && t.token != nil {
			t.token.frozen = true
		}
		return false
	case FaultDrop:
		return false
	case FaultDuplicate:
		c.add(f)
		c.add(f)
	case FaultReorder:
		if _, ok := c.held[t]; t != nil && !ok {
			if c.held == nil {
				c.held = make(map[*topic]frame)
			}
			c.held[t] = f
			v.stream.heldFrames.Add(1)
			return false
		}
		c.add(f)
	case FaultGarbage:
		f.data = f.data[:len(f.data)/2]
		c.add(f)
	case FaultUnknownType:
		c.add(unknownFrame)
		c.add(f)
	case FaultSlowSnapshot:
		c.delayed = append(c.delayed, delayedFrame{time.Now().Add(fault.delay()), f})
	case FaultStall:
		c.stalledUntil = time.Now().AddDate(100, 0, 0)
		if fault.DelayMs > 0 {
			c.stalledUntil = time.Now().Add(fault.delay())
		}
	case FaultClose:
		c.finish(fault.closeCode(), "", true)
	case FaultRestart:
		v.stream.due.Store(&restart{fault.closeCode()})
	case FaultNewEpoch:
		v.stream.due.Store(&restart{})
	}
	return true
}

func (f *Fault) closeCode() int {
	if f.Code == 0 {
		return CloseShed
	}
	return f.Code
}

func (c *streamConn) forgetLocked(t *topic) {
	if _, ok := c.held[t]; ok {
		delete(c.held, t)
		c.v.stream.heldFrames.Add(-1)
	}
}

func (c *streamConn) forget(t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(t)
}

// forgetAll removes all held and delayed frames.
func (c *streamConn) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(false)
}

// unfreeze ends the effect of FaultLostTail on all tokens.
func (v *Venue) unfreeze() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, in := range v.listing.instruments {
		in.frozen = false
	}
}
