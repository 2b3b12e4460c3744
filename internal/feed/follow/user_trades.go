package follow

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

const (
	// checkAfter is how long after an answer that may be too old the trades are read again at least; it doubles up to
	// maxCheckAfter.
	checkAfter    = 2 * time.Second
	maxCheckAfter = 5 * time.Minute
)

// UserTrades follows an account's own trades. The reads return its newest trades, newest first, at most MaxTrades, and must ask
// the venue: what was remembered may lack trades that the stream told of before it was followed. key tells trades apart.
func UserTrades(ctx context.Context, s Source, a Account[market.TradePage], key func(*market.Trade) string) Stream[TradesUpdate] {
	return stream(ctx, s, 0, func(out *outlet[TradesUpdate], reader *feed.Reader) (body, error) {
		_, _ = reader.Watch(a.Topic, a.Credentials) // without room it is read over REST
		return &userTrades{out: out, read: a.Read, key: key, seen: newRecent(4 * MaxTrades)}, nil
	})
}

type userTrades struct {
	out  *outlet[TradesUpdate]
	read func(ctx context.Context) (market.Read[*market.TradePage], error)
	key  func(*market.Trade) string
	// state is the account's latest.
	state feed.State
	// sent reports that there was an event; live and resyncs are those of the state that it went with.
	sent, live bool
	resyncs    uint64
	// seen are the keys of the trades that were sent, latest the newest of those, oldest first.
	seen   *recent
	latest []market.Trade
	// pending holds the trades that the stream brought while a read is pending.
	pending pending[market.Trade]
	problem error
	// joined is when the account was last joined to its stream or had a gap. Only an answer that the venue made later has all
	// trades from before. began is when the read under way began, check when the next one is due because the last answer may
	// have been made earlier; zero where none is. checks counts those in a row.
	joined, began, check time.Time
	checks               int
}

func (b *userTrades) changed(w *feed.Watch) error {
	s, items, err := w.Take()
	if err != nil {
		return err
	}
	b.state = s
	if !s.Known || s.Account == nil {
		return nil
	}
	switch {
	case s.Live && (s.Resyncs != b.resyncs || !b.live):
		b.live, b.resyncs, b.joined = true, s.Resyncs, time.Now()
		b.pending.add(Resync, items.Trades...)
		return nil
	case items.Gap:
		b.joined = time.Now()
		b.pending.add(Resync, items.Trades...)
	case b.pending.wanted || !b.sent:
		b.pending.add("", items.Trades...)
	case len(items.Trades) > 0:
		if err := b.send(Changed, items.Trades, false); err != nil {
			return err
		}
	}
	if b.live && !s.Live {
		b.live = false
		if b.sent {
			return b.send(Freshness, nil, false)
		}
	}
	return nil
}

// send sends those trades that were not sent before.
func (b *userTrades) send(reason Reason, trades []market.Trade, gap bool) error {
	fresh := make([]market.Trade, 0, len(trades))
	for i := range trades {
		if b.seen.add(b.key(&trades[i])) {
			fresh = append(fresh, trades[i])
		}
	}
	all := append(b.latest, fresh...)
	b.latest = slices.Clone(all[max(0, len(all)-MaxTrades):])
	if reason == Changed && len(fresh) == 0 && !gap {
		return nil
	}
	b.sent, b.problem = true, nil
	return b.out.send(reason, "", Append, TradesUpdate{Trades: fresh, Gap: gap})
}

func (b *userTrades) due(now time.Time, poll bool) (read, time.Time) {
	checks := !b.check.IsZero() && !now.Before(b.check)
	if poll && !(b.sent && b.live) || checks {
		b.pending.poll()
		b.check = time.Time{} // what is pending stays so until an answer has come
	}
	if !b.pending.due(now) {
		return nil, sooner(b.pending.wake(), b.check)
	}
	b.began = now
	b.pending.begin()
	return func(ctx context.Context) func() error {
		page, err := b.read(ctx)
		return func() error { return b.apply(page, err) }
	}, time.Time{}
}

// apply sends what REST says, with those of the covered trades that it does not know yet. Trades that came later follow by
// themselves, unless a further read is owed.
func (b *userTrades) apply(page market.Read[*market.TradePage], err error) error {
	if err == nil && page.Value == nil {
		err = errNoAnswer
	}
	switch {
	case isRefused(err):
		return err
	case err != nil:
		b.pending.keep(time.Now(), err)
		if b.sent || b.problem != nil {
			return nil
		}
		b.problem = err
		return b.out.problem(err)
	case page.Stale && b.sent:
		b.pending.await(time.Now(), page.Meta)
		return nil
	}
	b.date(page.Handle.Age())
	full := len(page.Value.Trades) >= MaxTrades || page.Value.Next != ""
	trades := slices.Clone(page.Value.Trades[:min(len(page.Value.Trades), MaxTrades)]) // a venue may ignore the limit
	slices.Reverse(trades)                                                             // oldest first
	missing := b.sent && full && !slices.ContainsFunc(trades, func(t market.Trade) bool { return b.seen.has(b.key(&t)) })
	known := make(map[string]bool, len(trades))
	for i := range trades {
		known[b.key(&trades[i])] = true
	}
	owed, fills := b.pending.settle()
	if page.Stale {
		b.pending.add(Resync)
	}
	for i := range fills {
		if !known[b.key(&fills[i])] {
			trades = append(trades, fills[i])
		}
	}
	reason := Changed
	switch {
	case !b.sent:
		reason = Initial
	case owed == Resync:
		reason = Resync
	}
	if err := b.send(reason, trades, missing); err != nil || b.pending.owed != "" {
		return err
	}
	later := b.pending.changes // the stream brought them while REST was read
	b.pending = pending[market.Trade]{}
	return b.send(Changed, later, false)
}

// date has the trades read again if the answer that has come may be from before the account was joined to its stream.
func (b *userTrades) date(age market.Age) {
	if age.Most == 0 || !b.began.Add(-age.Most).Before(b.joined) {
		b.checks = 0
		return
	}
	b.check = time.Now().Add(max(age.Renewed, min(checkAfter<<min(b.checks, 10), maxCheckAfter)))
	b.checks++
}

func (b *userTrades) current() bool { return b.live && !b.pending.wanted }

func (b *userTrades) resend(reason Reason) error {
	switch {
	case b.sent:
		return b.out.send(reason, "", Append, TradesUpdate{Trades: b.latest, Gap: reason == Resync})
	case b.problem != nil:
		return b.out.problem(b.problem)
	}
	return nil
}

// recent remembers the last keys that it was given.
type recent struct {
	keys map[string]bool
	ring []string
	next int
}

func newRecent(size int) *recent {
	return &recent{keys: make(map[string]bool, size), ring: make([]string, size)}
}

// add reports whether a key is new.
func (r *recent) add(key string) bool {
	if r.keys[key] {
		return false
	}
	delete(r.keys, r.ring[r.next])
	r.ring[r.next] = key
	r.next = (r.next + 1) % len(r.ring)
	r.keys[key] = true
	return true
}

func (r *recent) has(key string) bool { return r.keys[key] }
