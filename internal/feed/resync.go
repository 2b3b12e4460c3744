package feed

import (
	"time"

	"oddsgraph/internal/market/messages"
)

// awaitConfirmation starts a timer that sends a market's subscription again if the venue does not confirm the subscription.
// Until the confirmation the market is not live, and its subscribers poll. The caller holds the lock.
func (t *topic) awaitConfirmation() {
	t.stopWaiting()
	wait := t.waitID
	t.waitTimer = time.AfterFunc(min(ackTimeout<<min(t.unconfirmed, 10), maxAckTimeout), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waitID != wait {
			return
		}
		t.unconfirmed++
		t.feed.counts.unacknowledged.Add(1)
		t.feed.cfg.Log.Info("the venue has not confirmed a subscription: sending it again", "topic", t.key.ID, "times", t.unconfirmed)
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

// confirm makes a market live. The stream did not send the changes before the confirmation. So confirm tells Sink that earlier
// reads of the market may be out of date. The first message of a market also confirms its subscription. If the venue's confirmation
// arrives after that message, confirm is called again, because the message may have belonged to the previous subscription. The
// caller holds the lock.
func (t *topic) confirm() {
	if t.incomplete || t.phase == following {
		t.countResync()
	}
	t.startFollowing()
	t.confirmed, t.unconfirmed = true, 0
	t.feed.cfg.Sink.StreamMarket(&t.session.Session, t.key.ID, nil)
	t.publish()
}

// handleGap marks the topic as stale and requests a snapshot. The caller holds the lock.
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
		t.countResync() // queries read the market over REST, so it is enough to report a change
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

// awaitSnapshot starts a timer that requests another snapshot if none arrives in time. The caller holds the lock.
func (t *topic) awaitSnapshot() {
	t.stopWaiting()
	wait := t.waitID
	t.waitTimer = time.AfterFunc(snapshotTimeout, func() { t.snapshotOverdue(wait) })
}

// stopWaiting ends the wait for a snapshot or confirmation. The caller holds the lock.
func (t *topic) stopWaiting() {
	t.waitID++
	if t.waitTimer != nil {
		t.waitTimer.Stop()
		t.waitTimer = nil
	}
}

func (t *topic) snapshotOverdue(wait int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waitID != wait {
		return
	}
	t.lateSnapshots++
	quiet := t.key.Channel == messages.ChannelPrices && t.phase == opening && t.failedResyncs+1 >= maxFailedResyncs
	switch {
	case t.lateSnapshots > 1 && t.startFromTrades():
		return
	case t.reading != nil, t.lateSnapshots > 1 && t.startRead(), t.readTooOld:
	case quiet && t.feed.cfg.Origin == nil:
		return // a price arrives only when it changes; until then, queries read over REST
	case quiet, t.resyncFailed():
	default:
		t.feed.upstream.Resync(t.key)
	}
	t.awaitSnapshot()
}

// resyncFailed counts a failed resync. After too many failures, it drops the connection and returns true. A drop affects all topics
// of the connection, so the next drop needs twice as many failures. The caller holds the lock.
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

// countResync counts that a new state has replaced an incomplete state. The caller holds the lock.
func (t *topic) countResync() {
	t.incomplete = false
	t.state.Resyncs++
	t.feed.counts.resyncs.Add(1)
}
