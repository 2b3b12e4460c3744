package feed

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// answerBackoff says how long a topic waits for a snapshot or for the confirmation of its subscription.
var answerBackoff = market.Backoff{Min: 2 * time.Second, Max: 2 * time.Minute}

// beginsWithSnapshot reports whether the venue sends a snapshot after the subscription of the topic. Books begin with a snapshot at
// every venue. A price has none, because each message replaces it, and a market has none, because queries read it over REST.
func (t *topic) beginsWithSnapshot() bool {
	return t.key.Channel == messages.ChannelOrderbook || slices.Contains(t.feed.cfg.Snapshots, t.key.Channel)
}

// isEventsOnly reports whether the venue sends only events of the topic, and no state: changes of a market, or trades without a
// snapshot. Such a topic is complete when the venue has confirmed its subscription.
func (t *topic) isEventsOnly() bool {
	return t.key.Channel == messages.ChannelMarket || t.key.Channel == messages.ChannelTrades && !t.beginsWithSnapshot()
}

// acknowledged handles the venue's confirmation of the subscription.
func (t *topic) acknowledged() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.phase == down {
		return
	}
	t.confirmed = true
	if t.isEventsOnly() {
		t.complete()
	}
}

// complete makes a topic live without a snapshot. It is called when the venue has confirmed the subscription, and for an event that
// arrives before the confirmation. Such an event may belong to the previous subscription, so a later confirmation counts as a
// resync: events may be missing before it. t.mu must be locked.
func (t *topic) complete() {
	t.incomplete = t.incomplete || t.phase == following
	next, items := t.state, Items{}
	if t.key.Channel == messages.ChannelTrades {
		items.Gap = t.incomplete || t.discarded != nil
		for _, m := range t.buffered {
			if !seen(&next, m) {
				items.Gap = items.Gap || !follows(&next, m)
				items.add(apply(&next, m))
			}
		}
	}
	t.completed = true
	t.commit(next, items)
}

// handleGap marks the topic as stale and requests a snapshot. A topic that has only events stays live. For such a topic, handleGap
// counts a resync and reports that events may be missing. t.mu must be locked.
func (t *topic) handleGap() {
	t.feed.counts.gaps.Add(1)
	if t.state.Known && !t.incomplete {
		t.feed.cfg.Log.Info("a topic has a gap", t.describe("seq", t.state.Seq, "resyncs", t.state.Resyncs)...)
	}
	if t.isEventsOnly() {
		t.countResync()
		if t.key.Channel == messages.ChannelMarket {
			t.feed.cfg.Sink.StreamMarket(t.key.ID, nil)
		} else {
			t.queue(Items{Gap: true})
		}
		t.publish()
		return
	}
	t.incomplete = t.incomplete || t.state.Known
	t.phase = resyncing
	t.markStale()
	t.publish()
	t.feed.upstream.Resync(t.key)
	t.await()
}

// await starts the timer of a topic that waits for a snapshot or for the confirmation of its subscription. Meanwhile subscribers
// and queries read over REST. A price waits for its next message instead: the venue may send none for hours. The same applies to an
// account of a venue that sends no snapshots of accounts. t.mu must be locked.
func (t *topic) await() {
	t.stopWaiting()
	if !t.beginsWithSnapshot() && !t.isEventsOnly() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(answerBackoff.Wait(t.attempts-promptAttempts+2, 1), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waitTimer == timer {
			t.overdue()
		}
	})
	t.waitTimer = timer
}

// stopWaiting ends the wait for a snapshot or a confirmation. t.mu must be locked.
func (t *topic) stopWaiting() {
	if t.waitTimer != nil {
		t.waitTimer.Stop()
		t.waitTimer = nil
	}
}

// overdue sends the subscription of this topic again, because neither its snapshot nor its confirmation has arrived. It does not
// touch the connection, which other topics share. An account gets a request for a snapshot instead, because a new subscription
// would need its credentials. t.mu must be locked.
func (t *topic) overdue() {
	if t.key.Channel == messages.ChannelTrades && t.confirmed {
		t.complete() // a venue may send trades without a snapshot
		return
	}
	t.attempts++
	t.feed.counts.resubscribed.Add(1)
	level := t.feed.cfg.Log.Debug // the first subscription of a market may be sent before the client knows the market's tokens
	if t.attempts > 1 {
		level = t.feed.cfg.Log.Info
	}
	level("the venue has not answered a subscription: sending it again", t.describe("times", t.attempts)...)
	if t.key.Channel == messages.ChannelUser {
		t.feed.upstream.Resync(t.key)
	} else if err := t.feed.upstream.Watch(t.key, nil); err != nil {
		t.feed.cfg.Log.Warn("cannot send a subscription again", t.describe("error", err)...)
	}
	t.await()
}

// describe returns the attributes of the topic for the log, followed by other attributes. The log does not name accounts.
func (t *topic) describe(more ...any) []any {
	about := []any{"channel", t.key.Channel}
	if t.key.Scope == "" {
		about = append(about, "topic", t.key.ID)
	}
	return append(about, more...)
}

// countResync counts a resync: a complete state has replaced an incomplete state. t.mu must be locked.
func (t *topic) countResync() {
	t.incomplete = false
	t.state.Resyncs++
	t.feed.counts.resyncs.Add(1)
}
