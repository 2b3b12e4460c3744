package follow

import (
	"context"
	"reflect"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// MarketUpdate is an event with a market. Change is the kind of the change, such as "STATUS". It is empty if the reason of the
// event is not Changed.
type MarketUpdate struct {
	Market *market.Market
	Meta   reads.Meta
	Change string
}

// ReadMarkets reads markets and returns them in the order of their ids. A market may be older than a change that the feed has
// passed to its Sink. Such a market must be marked as stale and must contain the status and winner of that change.
type ReadMarkets func(ctx context.Context, marketIDs []string) []reads.Result[*market.Market]

// Markets follows markets. The venue's stream announces changes. After a change, the market is read over REST.
func Markets(ctx context.Context, s Source, marketIDs []string, read ReadMarkets) Stream[MarketUpdate] {
	return stream(ctx, s, 0, func(out *publisher[MarketUpdate], reader *feed.Reader) (body, error) {
		b := &markets{out: out, read: read, watched: make(map[*feed.Watch]*marketItem), unknown: newUnknowns(s.Names, "market", marketIDs)}
		for _, id := range marketIDs {
			m := &marketItem{item: item{key: id, venue: s.Names.Find(id)}}
			b.items = append(b.items, m)
			// A market without a watch is polled.
			if w, err := reader.Watch(messages.Topic{Channel: messages.ChannelMarket, ID: id}, nil); err == nil {
				b.watched[w] = m
			}
		}
		return b, nil
	})
}

type markets struct {
	out     *publisher[MarketUpdate]
	read    ReadMarkets
	items   []*marketItem
	watched map[*feed.Watch]*marketItem
	unknown *unknowns
}

// marketItem is the state of one market. market and meta are those of the last event.
type marketItem struct {
	item
	market  *market.Market
	pending pending[*pendingChange]
}

// pendingChange is a change that the venue's stream has announced. applied reports whether the market in the last event includes
// the change. sent reports whether an event with the kind of the change was sent.
type pendingChange struct {
	market.MarketChange
	applied, sent bool
}

func (b *markets) handleChange(w *feed.Watch) error {
	m := b.watched[w]
	if m == nil {
		return nil
	}
	s, items, err := w.Take()
	switch {
	case IsUnknown(err):
		delete(b.watched, w)
		return b.out.reportUnknown(b.unknown, m.key)
	case err != nil && b.unknown.mixed: // the market is polled
		delete(b.watched, w)
		m.live = false
		return nil
	case err != nil:
		return err
	}
	for _, change := range items.Changes {
		m.pending.add("", &pendingChange{MarketChange: change})
	}
	if s.Live && (s.Resyncs != m.resyncs || !m.live) {
		m.pending.add(Resync)
	}
	down := m.live && !s.Live
	m.live, m.resyncs = s.Live, s.Resyncs
	if down {
		m.pending.invalidate()
		return b.markStale(m, reads.CauseStreamDown)
	}
	return nil
}

// markStale sends the last market again, marked as stale. It sends nothing if there was no event yet, or if the last event was
// already stale for the same cause or a more severe one.
func (b *markets) markStale(m *marketItem, cause reads.StaleCause) error {
	if !m.sent || m.meta.Stale && m.meta.Cause >= cause {
		return nil
	}
	m.meta.MarkStale(cause)
	return b.send(m, Freshness, "")
}

func (b *markets) send(m *marketItem, reason Reason, change string) error {
	m.sent, m.problem = true, nil
	return b.out.send(reason, m.key, Append, MarketUpdate{Market: m.market, Meta: m.meta, Change: change})
}

func (b *markets) nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time) {
	var wanted []*marketItem
	var wake time.Time
	for _, m := range b.items {
		if m.venue != venue || b.unknown.reported[m.key] {
			continue
		}
		if poll && !(m.sent && m.live) {
			m.pending.request()
		}
		if m.pending.ready(now) {
			m.pending.readStarted()
			wanted = append(wanted, m)
		} else {
			wake = earlierOf(wake, m.pending.retryAt())
		}
	}
	if len(wanted) == 0 {
		return nil, wake
	}
	return readItems(wanted, b.read, b.apply, b.out.problem), time.Time{}
}

// If a change arrives during a read, the body drops a stale result of that read. maxInvalidated is the maximum number of results in
// a row that the body drops in this way before the first event. It then sends the next result as the first event, even if that
// result is stale.
const maxInvalidated = 2

// apply handles the result of a read for one market.
func (b *markets) apply(m *marketItem, r reads.Result[*market.Market]) error {
	now := r.Value
	switch {
	case r.Err != nil:
		m.pending.readFailed(time.Now(), r.Err)
		if !m.sent {
			m.problem = r.Err
			return nil
		}
		return b.sendAnnounced(m, reads.CauseOf(r.Err))
	case now.Value == nil:
		m.pending.settle()
		if m.sent {
			return nil
		}
		return b.out.reportUnknown(b.unknown, m.key)
	case now.Stale && m.pending.invalidated() && (m.sent || m.pending.failures < maxInvalidated):
		m.pending.retryNow() // a change arrived during the read
		return nil
	case now.Stale && m.sent:
		m.pending.delay(time.Now(), 0)
		return b.sendStale(m, now)
	case now.Stale:
		m.market, m.meta = now.Value, now.Meta
		m.pending.delay(time.Now(), 0)
		return b.send(m, Initial, "")
	}
	pendingReason, changes := m.pending.settle()
	if m.sent && pendingReason != Resync {
		return b.sendChanges(m, now, changes)
	}
	if !m.sent {
		pendingReason = Initial
	}
	m.market, m.meta = now.Value, now.Meta
	return b.send(m, pendingReason, "")
}

// sendChanges sends an event for each change that was not sent yet. If all changes were sent earlier, but the market differs from
// the market in the last event or is no longer stale, sendChanges sends one event.
func (b *markets) sendChanges(m *marketItem, now reads.Value[*market.Market], changes []*pendingChange) error {
	before, stale, sent := m.market, m.meta.Stale, false
	m.market, m.meta = now.Value, now.Meta
	for _, change := range changes {
		if change.sent {
			continue
		}
		sent = true
		if err := b.send(m, Changed, change.Kind); err != nil {
			return err
		}
	}
	switch {
	case sent:
		return nil
	case !reflect.DeepEqual(before, now.Value):
		return b.send(m, Changed, changeKind(before, now.Value))
	case stale && !m.meta.Stale:
		return b.send(m, Freshness, "")
	}
	return nil
}

// sendStale sends the market of a stale read if this market differs from the market in the last event. If not, sendStale calls
// sendAnnounced. The changes stay pending, because the market may be older than some of them.
func (b *markets) sendStale(m *marketItem, now reads.Value[*market.Market]) error {
	if reflect.DeepEqual(m.market, now.Value) {
		return b.sendAnnounced(m, now.Cause)
	}
	kind := changeKind(m.market, now.Value)
	m.market, m.meta = now.Value, now.Meta
	for _, change := range m.pending.changes {
		change.applied = true
		change.sent = change.sent || change.Kind == kind && kind != "METADATA"
	}
	return b.send(m, Changed, kind)
}

// sendAnnounced adds announced statuses and winners to the market in the last event, before REST returns them. For each change that
// alters the market, it sends an event that is marked as stale. At the end it calls markStale. All changes stay pending.
func (b *markets) sendAnnounced(m *marketItem, cause reads.StaleCause) error {
	for _, change := range m.pending.changes {
		if change.applied {
			continue
		}
		change.applied = true
		now := m.market.With(change.MarketChange)
		if reflect.DeepEqual(now, m.market) {
			continue
		}
		change.sent = true
		m.market = now
		m.meta.MarkStale(max(cause, reads.CauseChanged))
		if err := b.send(m, Changed, change.Kind); err != nil {
			return err
		}
	}
	return b.markStale(m, cause)
}

// changeKind returns the kind of the difference between two reads of a market.
func changeKind(before, now *market.Market) string {
	switch {
	case before.Status != now.Status && now.Status == market.StatusResolved:
		return "RESOLVED"
	case before.Status != now.Status:
		return "STATUS"
	case !sameDecimal(before.TickSize, now.TickSize):
		return "TICK_SIZE"
	}
	return "METADATA"
}

func (b *markets) isCurrent() bool {
	for _, m := range b.items {
		if !b.unknown.reported[m.key] && (!m.live || m.pending.wanted) {
			return false
		}
	}
	return true
}

func (b *markets) resend(reason Reason) error {
	if err := b.out.repeatUnknown(b.unknown); err != nil {
		return err
	}
	return resendItems(b.items, func(m *marketItem) error { return b.send(m, reason, "") }, b.out.problem)
}
