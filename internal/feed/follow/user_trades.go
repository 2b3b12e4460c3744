package follow

import (
	"context"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// UserTrades follows the trades of an account. a.Read returns the latest trades, newest first. UserTrades uses at most MaxTrades of
// them. a.Read must not use a cache, because a cached response may lack trades that the venue's stream sent before the subscription
// began. key returns a unique key for a trade.
func UserTrades(ctx context.Context, s Source, a Account[queries.TradePage], key func(*market.Trade) string) Stream[TradesUpdate] {
	return stream(ctx, s, 0, func(out *publisher[TradesUpdate], reader *feed.Reader) (body, error) {
		_, _ = reader.Watch(a.Topic, a.Credentials) // without a watch, the trades are read over REST
		sent, err := lru.New[string, struct{}](4 * MaxTrades)
		return &userTrades{out: out, read: a.Read, key: key, sentKeys: sent}, err
	})
}

type userTrades struct {
	out  *publisher[TradesUpdate]
	read func(ctx context.Context) (reads.Value[*queries.TradePage], error)
	key  func(*market.Trade) string
	// sent reports whether an event was sent. live is feed.State.Live of the last state with an account. resyncs is State.Resyncs of
	// the last such state that was live.
	sent, live bool
	resyncs    uint64
	// sentKeys contains the keys of the latest trades that were sent.
	sentKeys *lru.Cache[string, struct{}]
	// latest contains the last MaxTrades trades that were sent, oldest first.
	latest []market.Trade
	// pending contains the trades that the venue's stream has sent since a read became necessary.
	pending pending[market.Trade]
	problem error
	// unread is feed.Unread.Trades of the last state. readStart is the start of the current read. recheckAt is the time of the read
	// after unread has changed, or zero.
	unread               uint64
	readStart, recheckAt time.Time
}

func (b *userTrades) handleChange(w *feed.Watch) error {
	s, items, err := w.Take()
	if err != nil {
		return err
	}
	if n := s.Unread.Trades; n != b.unread { // the feed does not pass on fills of an account that it does not know
		b.unread, b.recheckAt = n, market.Later(time.Now(), b.readStart.Add(unreadInterval))
	}
	if !s.Known || s.Account == nil {
		return nil
	}
	switch {
	case s.Live && (s.Resyncs != b.resyncs || !b.live):
		b.live, b.resyncs = true, s.Resyncs
		b.pending.add(Resync, items.Trades...)
		return nil
	case items.Gap:
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

// send sends an event with the trades that were not sent before. If there is neither a new trade nor a gap, send sends no Changed
// event.
func (b *userTrades) send(reason Reason, trades []market.Trade, gap bool) error {
	fresh := make([]market.Trade, 0, len(trades))
	for i := range trades {
		if known, _ := b.sentKeys.ContainsOrAdd(b.key(&trades[i]), struct{}{}); !known {
			fresh = append(fresh, trades[i])
		}
	}
	all := append(b.latest, fresh...)
	b.latest = slices.Clone(all[max(0, len(all)-MaxTrades):])
	if reason == Changed && len(fresh) == 0 && !gap {
		return nil
	}
	b.sent, b.problem = true, nil
	return b.out.send(reason, "", Append, TradesUpdate{Trades: fresh, Known: true, Gap: gap})
}

func (b *userTrades) nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time) {
	if venue > 0 {
		return nil, time.Time{} // one read at a time is enough for an account
	}
	recheck := !b.recheckAt.IsZero() && !now.Before(b.recheckAt)
	if poll && !(b.sent && b.live) || recheck {
		b.pending.request()
		b.recheckAt = time.Time{} // pending keeps the request until a response arrives
	}
	if !b.pending.ready(now) {
		return nil, earlierOf(b.pending.retryAt(), b.recheckAt)
	}
	b.readStart = now
	b.pending.readStarted()
	return func(ctx context.Context) func() error {
		page, err := b.read(ctx)
		return func() error { return b.apply(page, err) }
	}, time.Time{}
}

// apply sends the trades of a response and the pending trades that the response lacks. It then sends the trades that arrived during
// the read. If another read is needed, the trades that arrived during the read stay pending instead.
func (b *userTrades) apply(page reads.Value[*queries.TradePage], err error) error {
	if err == nil && page.Value == nil {
		err = errNoAnswer
	}
	switch {
	case isPermanent(err):
		return err
	case err != nil:
		b.pending.readFailed(time.Now(), err)
		if b.sent || b.problem != nil {
			return nil
		}
		b.problem = err
		return b.out.problem(err)
	case page.Stale && b.sent:
		b.pending.delay(time.Now(), 0)
		return nil
	}
	full := len(page.Value.Trades) >= MaxTrades || page.Value.Next != ""
	trades := slices.Clone(page.Value.Trades[:min(len(page.Value.Trades), MaxTrades)]) // a venue may ignore the limit
	slices.Reverse(trades)                                                             // now oldest first
	missing := b.sent && full && !slices.ContainsFunc(trades, func(t market.Trade) bool { return b.sentKeys.Contains(b.key(&t)) })
	known := make(map[string]bool, len(trades))
	for i := range trades {
		known[b.key(&trades[i])] = true
	}
	pendingReason, fills := b.pending.settle()
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
	case pendingReason == Resync:
		reason = Resync
	}
	if err := b.send(reason, trades, missing); err != nil || b.pending.reason != "" {
		return err
	}
	later := b.pending.changes // trades that arrived during the read
	b.pending = pending[market.Trade]{}
	return b.send(Changed, later, false)
}

func (b *userTrades) isCurrent() bool { return b.live && !b.pending.wanted }

func (b *userTrades) resend(reason Reason) error {
	switch {
	case b.sent:
		return b.out.send(reason, "", Append, TradesUpdate{Trades: b.latest, Known: true, Gap: reason == Resync})
	case b.problem != nil:
		return b.out.problem(b.problem)
	}
	return nil
}
