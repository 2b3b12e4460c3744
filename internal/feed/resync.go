package feed

import (
	"time"

	"oddsgraph/internal/market/messages"
)

// awaitConfirmation starts a timer that sends the subscription of a market again. The timer is stopped when the venue confirms the
// subscription. Until the confirmation, the market is not live, and its subscribers poll. t.mu must be locked.
func (t *topic) awaitConfirmation() {
	t.await(min(ackTimeout<<min(t.missedConfirmations, 10), maxAckTimeout), func() {
		t.missedConfirmations++
		t.feed.counts.unacknowledged.Add(1)
		t.feed.cfg.Log.Info("the venue has not confirmed a subscription: sending it again", "topic", t.key.ID, "times", t.missedConfirmations)
		if err := t.feed.upstream.Watch(t.key, nil); err != nil {
			t.feed.cfg.Log.Warn("cannot send a subscription again", "topic", t.key.ID, "error", err)
		}
		t.awaitConfirmation()
	})
}

// acknowledged handles the venue's confirmation of a market's subscription. Topics of other channels become live with their
// snapshots.
func (t *topic) acknowledged() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended && t.phase != down && t.key.Channel == messages.ChannelMarket {
		t.confirm()
	}
}

// confirm makes a market live. It is called for the venue's confirmation, and for a change that arrives before the confirmation.
// Such a change may belong to the previous subscription, so a later confirmation counts as a resync. The venue may not have sent
// the changes from before the confirmation, so confirm tells Sink that earlier reads of the market may be out of date. t.mu must be
// locked.
func (t *topic) confirm() {
	if t.incomplete || t.phase == following {
		t.countResync()
	}
	t.startFollowing()
	t.confirmed, t.missedConfirmations = true, 0
	t.feed.cfg.Sink.StreamMarket(&t.session.Session, t.key.ID, nil)
	t.publish()
}

// handleGap marks the topic as stale and requests a snapshot. A market has no snapshots and stays live. For a market, handleGap
// instead counts a resync and tells Sink that earlier reads of the market may be out of date. t.mu must be locked.
func (t *topic) handleGap() {
	t.feed.counts.gaps.Add(1)
	if t.state.Known && !t.incomplete {
		about := []any{"channel", t.key.Channel, "seq", t.state.Seq, "resyncs", t.state.Resyncs}
		if t.key.Scope == "" { // the log does not name accounts
			about = append(about, "topic", t.key.ID)
		}
		t.feed.cfg.Log.Info("a topic has a gap: requesting a snapshot", about...)
	}
	if t.key.Channel == messages.ChannelMarket {
		t.countResync() // queries can read the market over REST, so no snapshot is needed
		t.feed.cfg.Sink.StreamStale(t.key)
		t.feed.cfg.Sink.StreamMarket(&t.session.Session, t.key.ID, nil)
		t.publish()
		return
	}
	t.incomplete = t.incomplete || t.state.Known
	t.phase = resyncing
	t.markStale()
	t.publish()
	t.feed.upstream.Resync(t.key)
	t.awaitSnapshot()
}

// awaitSnapshot starts a timer that calls snapshotOverdue after snapshotTimeout. t.mu must be locked.
func (t *topic) awaitSnapshot() { t.await(snapshotTimeout, t.snapshotOverdue) }

// await calls overdue after d, unless stopWaiting or await is called before. t.mu must be locked, and is locked when overdue is
// called.
func (t *topic) await(d time.Duration, overdue func()) {
	t.stopWaiting()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waitTimer == timer {
			overdue()
		}
	})
	t.waitTimer = timer
}

// stopWaiting ends the wait for a snapshot or confirmation. t.mu must be locked.
func (t *topic) stopWaiting() {
	if t.waitTimer != nil {
		t.waitTimer.Stop()
		t.waitTimer = nil
	}
}

// snapshotOverdue tries another way to a complete state: buffered trades, a REST read, another request for a snapshot, or a new
// connection. t.mu must be locked.
func (t *topic) snapshotOverdue() {
	t.lateSnapshots++
	quiet := t.key.Channel == messages.ChannelPrices && t.phase == opening && t.failedResyncs+1 >= maxFailedResyncs
	switch {
	case t.lateSnapshots > 1 && t.startFromTrades():
		return
	case t.currentRead != nil, t.lateSnapshots > 1 && t.startRead(), t.readTooOld:
	case quiet && t.feed.cfg.Origin == nil:
		return // the venue may send a price only after a change; until then, queries read the price over REST
	case quiet, t.resyncFailed():
	default:
		t.feed.upstream.Resync(t.key)
	}
	t.awaitSnapshot()
}

// resyncFailed counts a failed resync. After too many failures, it drops the connection and returns true. A new connection
// interrupts all topics of the old one. Each drop therefore doubles the number of failures that the next drop requires, at most
// maxDoublings times. t.mu must be locked.
func (t *topic) resyncFailed() bool {
	if t.failedResyncs++; t.failedResyncs < maxFailedResyncs<<min(t.reconnects, maxDoublings) {
		return false
	}
	t.failedResyncs = 0
	t.reconnects++
	t.feed.counts.reconnects.Add(1)
	t.feed.cfg.Log.Warn("a topic gets no snapshot: dropping its connection", "channel", t.key.Channel, "times", t.reconnects)
	t.feed.upstream.Reconnect(t.key)
	return true
}

// countResync counts a resync: a complete state has replaced an incomplete state. t.mu must be locked.
func (t *topic) countResync() {
	t.incomplete = false
	t.state.Resyncs++
	t.feed.counts.resyncs.Add(1)
}
