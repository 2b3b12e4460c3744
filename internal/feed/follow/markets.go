package follow

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// MarketUpdate is a market. Change is the kind of what has changed, in the stream's words; "" where the reason is not Changed.
type MarketUpdate struct {
	Market *market.Market
	Meta   market.Meta
	Change string
}

// ReadMarkets reads markets, aligned with their ids. What may be from before a change that the feed has announced must be marked
// stale, and must have the status and winner that the feed has announced.
type ReadMarkets func(ctx context.Context, marketIDs []string) []market.Result[market.Read[*market.Market]]

// Markets follows markets. The stream announces what has changed; REST says what a market is.
func Markets(ctx context.Context, s Source, marketIDs []string, read ReadMarkets) Stream[MarketUpdate] {
	return stream(ctx, s, 0, func(out *outlet[MarketUpdate], reader *feed.Reader) (body, error) {
		b := &markets{out: out, read: read, watched: make(map[*feed.Watch]*liveMarket), unknown: newUnknowns("market", len(marketIDs))}
		for _, id := range marketIDs {
			m := &liveMarket{id: id}
			b.items = append(b.items, m)
			if w, err := reader.Watch(market.Topic{Channel: market.ChannelMarket, ID: id}, nil); err == nil { // else it is polled
				b.watched[w] = m
			}
		}
		return b, nil
	})
}

type markets struct {
	out     *outlet[MarketUpdate]
	read    ReadMarkets
	items   []*liveMarket
	watched map[*feed.Watch]*liveMarket
	unknown *unknowns
}

// liveMarket is one market and what was sent of it.
type liveMarket struct {
	id         string
	sent, live bool
	resyncs    uint64
	market     *market.Market
	meta       market.Meta
	pending    pending[*announced]
	problem    error
}

// announced is a change that the stream has announced. folded reports that the market that was sent has what the stream says in
// it; sent that an event has told of the change.
type announced struct {
	market.MarketChange
	folded, sent bool
}

func (b *markets) changed(w *feed.Watch) error {
	m := b.watched[w]
	if m == nil {
		return nil
	}
	s, items, err := w.Take()
	switch {
	case isUnknown(err):
		delete(b.watched, w)
		return b.out.unknown(b.unknown, m.id)
	case err != nil:
		return err
	}
	for _, change := range items.Changes {
		m.pending.add("", &announced{MarketChange: change})
	}
	if s.Live && (s.Resyncs != m.resyncs || !m.live) {
		m.pending.add(Resync)
	}
	down := m.live && !s.Live
	m.live, m.resyncs = s.Live, s.Resyncs
	if down {
		m.pending.overtake()
		return b.outdate(m)
	}
	return nil
}

// outdate says once that a market may be out of date.
func (b *markets) outdate(m *liveMarket) error {
	if !m.sent || m.meta.Stale {
		return nil
	}
	m.meta.Stale = true
	return b.send(m, Freshness, "")
}

// send sends the market as it is known.
func (b *markets) send(m *liveMarket, reason Reason, change string) error {
	m.sent, m.problem = true, nil
	return b.out.send(reason, m.id, Append, MarketUpdate{Market: m.market, Meta: m.meta, Change: change})
}

func (b *markets) due(now time.Time, poll bool) (read, time.Time) {
	var wanted []*liveMarket
	var wake time.Time
	for _, m := range b.items {
		if b.unknown.gone[m.id] {
			continue
		}
		if poll && !(m.sent && m.live) {
			m.pending.poll()
		}
		if m.pending.due(now) {
			m.pending.begin()
			wanted = append(wanted, m)
		} else {
			wake = sooner(wake, m.pending.wake())
		}
	}
	if len(wanted) == 0 {
		return nil, wake
	}
	return func(ctx context.Context) func() error {
		ids := make([]string, len(wanted))
		for i, m := range wanted {
			ids[i] = m.id
		}
		results := b.read(ctx, ids)
		return func() error { return b.apply(wanted, results) }
	}, time.Time{}
}

// apply takes what was read of markets.
func (b *markets) apply(wanted []*liveMarket, results []market.Result[market.Read[*market.Market]]) error {
	var failed error // the first new failure is reported, once
	for i, m := range wanted {
		problem := m.problem
		if err := b.take(m, results[i].Value, results[i].Err); err != nil {
			return err
		}
		if problem == nil && failed == nil {
			failed = m.problem
		}
	}
	if failed != nil {
		return b.out.problem(failed)
	}
	return nil
}

// mostOvertaken is how often in a row a read may be overtaken before its value is the first one that is sent.
const mostOvertaken = 2

// take takes what was read of one market.
func (b *markets) take(m *liveMarket, now market.Read[*market.Market], err error) error {
	switch {
	case err != nil:
		m.pending.keep(time.Now(), err)
		if !m.sent {
			m.problem = err
			return nil
		}
		return b.announce(m)
	case now.Value == nil:
		m.pending.settle()
		if m.sent {
			return nil
		}
		return b.out.unknown(b.unknown, m.id)
	case now.Stale && m.pending.overtaken() && (m.sent || m.pending.failures < mostOvertaken):
		m.pending.again() // a change came while the market was read
		return nil
	case now.Stale && m.sent:
		m.pending.await(time.Now(), now.Meta)
		return b.foreshow(m, now)
	case now.Stale:
		m.market, m.meta = now.Value, now.Meta
		m.pending.await(time.Now(), now.Meta)
		return b.send(m, Initial, "")
	}
	owed, changes := m.pending.settle()
	before, stale := m.market, m.meta.Stale
	m.meta = now.Meta
	switch {
	case !m.sent, owed == Resync:
		m.market = now.Value
		if !m.sent {
			owed = Initial
		}
		return b.send(m, owed, "")
	case before == nil:
		return nil
	}
	return b.tell(m, now.Value, changes, before, stale)
}

// tell sends a CHANGE for each change that has none, or for what a read has found.
func (b *markets) tell(m *liveMarket, now *market.Market, changes []*announced, before *market.Market, stale bool) error {
	told := false
	m.market = now
	for _, change := range changes {
		if change.sent {
			continue
		}
		told = true
		if err := b.send(m, Changed, change.Kind); err != nil {
			return err
		}
	}
	switch {
	case told:
		return nil
	case !reflect.DeepEqual(before, now):
		return b.send(m, Changed, differs(before, now))
	case stale && !m.meta.Stale:
		return b.send(m, Freshness, "")
	}
	return nil
}

// foreshow sends what a stale value shows already. The changes stay pending, since it may be from before some of them.
func (b *markets) foreshow(m *liveMarket, now market.Read[*market.Market]) error {
	if m.market == nil || reflect.DeepEqual(m.market, now.Value) {
		return b.announce(m)
	}
	kind := differs(m.market, now.Value)
	m.market, m.meta = now.Value, now.Meta
	for _, change := range m.pending.changes {
		change.folded = true
		change.sent = change.sent || change.Kind == kind && kind != "METADATA"
	}
	return b.send(m, Changed, kind)
}

// announce sends what the stream itself says of the pending changes, while REST cannot: a status or a winner. The changes stay
// pending. What needs REST only makes the market stale.
func (b *markets) announce(m *liveMarket) error {
	for _, change := range m.pending.changes {
		if change.folded {
			continue
		}
		change.folded = true
		now := m.market.With(change.MarketChange)
		if reflect.DeepEqual(now, m.market) {
			continue
		}
		change.sent = true
		m.market, m.meta.Stale = now, true
		if err := b.send(m, Changed, change.Kind); err != nil {
			return err
		}
	}
	return b.outdate(m)
}

// differs says what has changed between two reads of a market.
func differs(before, now *market.Market) string {
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

func (b *markets) current() bool {
	for _, m := range b.items {
		if !b.unknown.gone[m.id] && (!m.live || m.pending.wanted) {
			return false
		}
	}
	return true
}

func (b *markets) resend(reason Reason) error {
	if err := b.out.repeat(b.unknown); err != nil {
		return err
	}
	var failed error
	for _, m := range b.items {
		if !m.sent {
			failed = cmp.Or(failed, m.problem)
		} else if err := b.send(m, reason, ""); err != nil {
			return err
		}
	}
	if failed != nil {
		return b.out.problem(failed)
	}
	return nil
}
