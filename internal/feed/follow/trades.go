package follow

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// MaxTrades is the maximum number of trades in an Initial event of Trades. UserTrades may add trades that arrive before the end of
// its first read.
const MaxTrades = 50

// closeWithin is the time for which new trades wait until REST has closed a gap before them. After this time, or if no read can
// succeed before, the trades are sent with the mark of a gap.
const closeWithin = 10 * time.Second

// TradesUpdate is an event with trades, oldest first.
type TradesUpdate struct {
	Trades []market.Trade
	// Known reports whether the trades from before the subscription are known, so that no trades means that there were none.
	Known bool
	// Gap reports whether earlier trades may be missing.
	Gap bool
}

// ReadTrades reads the latest public trades of tokens over REST, newest first, in the order of the tokens. It must read the venue
// itself. A nil page means that the venue does not know the token.
type ReadTrades func(ctx context.Context, tokenIDs []string) []reads.Result[*queries.TradePage]

// Trades follows the public trades of tokens. If the feed cannot watch a token that the venue knows, the subscription ends with an
// error; with tokens of several venues, it goes on without that token if it can watch others. The first event has the trades that the
// feed has, and does not wait for REST. If the venue's stream does not begin with the latest trades, read adds the trades from before
// the subscription, and those that the stream may have missed. read is nil if the venue has no list of trades.
func Trades(ctx context.Context, s Source, tokenIDs []string, read ReadTrades) Stream[TradesUpdate] {
	return stream(ctx, s, 0, func(out *publisher[TradesUpdate], reader *feed.Reader) (body, error) {
		b := &tapes{out: out, read: read, watched: make(map[*feed.Watch]*tape), unknown: newUnknowns(s.Names, "token", tokenIDs)}
		for _, id := range tokenIDs {
			t := &tape{item: item{key: id, venue: s.Names.Find(id)}}
			w, err := reader.Watch(messages.Topic{Channel: messages.ChannelTrades, ID: id}, nil)
			if b.items = append(b.items, t); err == nil {
				b.watched[w] = t
			} else if err = b.refuse(t, err); err != nil {
				return nil, err
			}
		}
		return b, nil
	})
}

type tapes struct {
	out     *publisher[TradesUpdate]
	read    ReadTrades
	watched map[*feed.Watch]*tape
	items   []*tape
	unknown *unknowns
	sent    bool
}

// tape is the state of one token.
type tape struct {
	item
	// trades contains the latest trades that the subscription has sent, oldest first.
	trades []market.Trade
	// tape is feed.State.Tape of the state that the subscription used last. known reports whether trades begins with trades from
	// before the subscription, from the venue's stream or from REST.
	tape, known bool
	// unlisted reports whether the venue has no list of trades.
	unlisted bool
	// gap reports whether trades may be missing after the last one of trades. Until closeBy, the trades in pending wait for a read
	// that fills the gap.
	gap     bool
	closeBy time.Time
	pending pending[market.Trade]
}

// latest returns the latest trades of all tokens, at most MaxTrades, oldest first.
func (b *tapes) latest() []market.Trade {
	var trades []market.Trade
	for _, t := range b.items {
		trades = append(trades, t.trades...)
	}
	slices.SortStableFunc(trades, func(a, b market.Trade) int { return a.Timestamp.Compare(b.Timestamp) })
	return slices.Clone(trades[max(0, len(trades)-MaxTrades):]) // the event would keep the whole array in memory
}

// send sends an event. Its trades are known if those of all tokens are known that the venue knows.
func (b *tapes) send(reason Reason, trades []market.Trade, gap bool) error {
	known := !slices.ContainsFunc(b.items, func(t *tape) bool { return !t.known && !b.unknown.reported[t.key] })
	return b.out.send(reason, "", Append, TradesUpdate{Trades: trades, Known: known, Gap: gap})
}

func (b *tapes) sendFirst() error {
	if b.sent {
		return nil
	}
	b.sent = true
	return b.send(Initial, b.latest(), false)
}

// refuse reports that a token cannot be watched. Tokens of several venues go on without it.
func (b *tapes) refuse(t *tape, err error) error {
	if !IsUnknown(err) {
		if b.unknown.refused[t.key] = err; !b.unknown.mixed {
			return b.unknown.problem(t.key)
		}
	}
	t.known = true // there is nothing to wait for
	return b.out.reportUnknown(b.unknown, t.key)
}

func (b *tapes) handleChange(w *feed.Watch) error {
	t := b.watched[w]
	if t == nil {
		return nil
	}
	s, items, err := w.Take()
	if err != nil {
		delete(b.watched, w)
		if err := b.refuse(t, err); err != nil {
			return err
		}
		return b.checkFirst()
	}
	before := *t
	t.live, t.resyncs, t.tape, t.known = s.Live, s.Resyncs, s.Tape, t.known || s.Tape
	if !b.sent {
		t.trades = s.Trades
		return b.checkFirst()
	}
	if s.Tape && !before.tape {
		items.Trades = s.Trades // the venue sends its latest trades for the first time
	}
	if b.read != nil && !t.unlisted && (items.Gap || s.Live && !before.live && !s.Tape) {
		t.pending.add(Resync)
		if t.known && !t.gap {
			t.gap, t.closeBy = true, time.Now().Add(closeWithin)
		}
	}
	if t.gap {
		t.pending.add("", items.Trades...)
		items = feed.Items{}
	}
	items.Trades = t.remember(items.Trades)
	switch {
	case t.gap && s.Live:
		return nil // until the read ends
	case s.Resyncs != before.resyncs, s.Tape && !before.tape:
		return b.send(Resync, items.Trades, items.Gap)
	case len(items.Trades) > 0 || items.Gap:
		return b.send(Changed, items.Trades, items.Gap)
	case s.Live != before.live:
		return b.send(Freshness, nil, false)
	}
	return nil
}

// keys returns the keys of t.trades.
func (t *tape) keys() map[string]bool {
	keys := make(map[string]bool, len(t.trades))
	for i := range t.trades {
		keys[t.trades[i].Key()] = true
	}
	return keys
}

// remember adds trades to t.trades, and returns those that t.trades did not contain.
func (t *tape) remember(trades []market.Trade) (fresh []market.Trade) {
	known := t.keys()
	for i := range trades {
		if !known[trades[i].Key()] {
			fresh = append(fresh, trades[i])
		}
	}
	if len(fresh) == 0 {
		return nil // without a copy of t.trades, which often shares the memory of the feed
	}
	all := slices.Concat(t.trades, fresh)
	t.trades = all[max(0, len(all)-MaxTrades):]
	return fresh
}

// checkFirst sends the first event if the feed follows all tokens that the venue knows.
func (b *tapes) checkFirst() error {
	for _, t := range b.watched {
		if !t.live && !t.known {
			return nil
		}
	}
	return b.sendFirst()
}

// nextRead also makes the loop send the first event after streamHeadStart. The readFunc that it returns then does not call the venue.
func (b *tapes) nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time) {
	if !b.sent {
		if !poll || venue > 0 {
			return nil, time.Time{}
		}
		return func(context.Context) func() error { return b.sendFirst }, time.Time{}
	}
	var wanted []*tape
	var wake time.Time
	for _, t := range b.items {
		if t.venue != venue || b.read == nil || t.unlisted || b.unknown.reported[t.key] {
			continue
		}
		if !t.known {
			t.pending.request()
		}
		if t.pending.ready(now) {
			t.pending.readStarted()
			wanted = append(wanted, t)
		} else {
			wake = earlierOf(wake, t.pending.retryAt())
		}
	}
	if len(wanted) == 0 {
		return nil, wake
	}
	return readItems(wanted, b.read, b.apply, b.out.problem), time.Time{}
}

// apply handles the result of a read for one token. A failure is no problem of the subscription, because the stream still sends the new trades.
func (b *tapes) apply(t *tape, r reads.Result[*queries.TradePage]) error {
	page, now := r.Value, time.Now()
	switch {
	case isPermanent(r.Err):
		t.unlisted = true
		return b.giveUp(t)
	case r.Err != nil:
		t.pending.readFailed(now, r.Err)
	case page.Value == nil:
		t.known = true
		return b.out.reportUnknown(b.unknown, t.key)
	case page.Stale:
		t.pending.delay(now, 0)
	default:
		return b.addRows(t, page.Value)
	}
	if t.gap && !t.pending.retry.Before(t.closeBy) {
		return b.giveUp(t)
	}
	return nil
}

// addRows adds the trades of a page to those that the subscription has sent, and then those that have waited for the page. If the
// page does not reach back to a trade that was sent before the gap, trades may be missing.
func (b *tapes) addRows(t *tape, page *queries.TradePage) error {
	_, waiting := t.pending.settle()
	again := t.pending.reason == Resync // another gap began during the read
	waiting = append(waiting, t.pending.changes...)
	if again && t.gap {
		t.pending.changes = waiting
		return nil
	}
	t.pending = pending[market.Trade]{wanted: again}
	rows := slices.Clone(page.Trades[:min(len(page.Trades), MaxTrades)])
	slices.Reverse(rows) // now oldest first
	if !t.known {
		t.known = !again
		sent := t.trades
		t.trades = rows
		t.remember(sent)
		return b.send(Resync, t.trades, false)
	}
	sent := t.keys()
	first := slices.IndexFunc(rows, func(x market.Trade) bool { return sent[x.Key()] })
	all := page.Next == "" && len(page.LeftOut) == 0 && len(page.Trades) <= MaxTrades && (len(rows) > 0 || len(sent) == 0)
	fresh := t.remember(rows[max(first, 0):]) // earlier rows are older than the trades that were sent
	t.gap = false
	return b.send(Resync, append(fresh, t.remember(waiting)...), first < 0 && !all)
}

// giveUp sends the trades that have waited for a read, with the mark of a gap.
func (b *tapes) giveUp(t *tape) error {
	waiting := t.pending.changes
	t.pending = pending[market.Trade]{}
	if !t.gap {
		return nil
	}
	t.gap = false
	return b.send(Resync, t.remember(waiting), true)
}

func (b *tapes) isCurrent() bool { return b.sent }

func (b *tapes) resend(reason Reason) error {
	if err := b.out.repeatUnknown(b.unknown); err != nil || !b.sent {
		return err
	}
	return b.send(reason, b.latest(), reason == Resync)
}
