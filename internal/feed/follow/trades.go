package follow

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// MaxTrades is the maximum number of trades in an Initial event of Trades. UserTrades may add trades that arrive before the end of
// its first read.
const MaxTrades = 50

// TradesUpdate is an event with trades, oldest first. Gap reports whether earlier trades may be missing.
type TradesUpdate struct {
	Trades []market.Trade
	Gap    bool
}

// Trades follows the public trades of tokens. If the feed cannot watch a token that the venue knows, the subscription ends with an
// error, because the trades are not read over REST.
func Trades(ctx context.Context, s Source, tokenIDs []string) Stream[TradesUpdate] {
	return stream(ctx, s, 0, func(out *publisher[TradesUpdate], reader *feed.Reader) (body, error) {
		b := &tapes{out: out, watched: make(map[*feed.Watch]*tape), unknown: newUnknowns("token", len(tokenIDs))}
		for _, id := range tokenIDs {
			w, err := reader.Watch(messages.Topic{Channel: messages.ChannelTrades, ID: id}, nil)
			if err != nil {
				return nil, err
			}
			b.watched[w] = &tape{}
		}
		return b, nil
	})
}

type tapes struct {
	out     *publisher[TradesUpdate]
	watched map[*feed.Watch]*tape
	unknown *unknowns
	sent    bool
}

// tape is the state of one token. live, resyncs and trades are parts of the feed.State that the subscription used last. sent
// reports whether the subscription has used a state.
type tape struct {
	sent, live bool
	resyncs    uint64
	// trades contains the latest trades, oldest first.
	trades []market.Trade
}

func (t *tape) record(s feed.State) {
	t.sent, t.live, t.resyncs, t.trades = true, s.Live, s.Resyncs, s.Trades
}

// latest returns the latest trades of all tokens, at most MaxTrades, oldest first.
func (b *tapes) latest() []market.Trade {
	var trades []market.Trade
	for _, t := range b.watched {
		trades = append(trades, t.trades...)
	}
	slices.SortStableFunc(trades, func(a, b market.Trade) int { return a.Timestamp.Compare(b.Timestamp) })
	return trades[max(0, len(trades)-MaxTrades):]
}

func (b *tapes) send(reason Reason, trades []market.Trade, gap bool) error {
	return b.out.send(reason, "", Append, TradesUpdate{Trades: trades, Gap: gap})
}

// sendFirst sends the first event with the trades of all tokens whose trades are known. It does nothing if this event was sent
// before.
func (b *tapes) sendFirst() error {
	if b.sent {
		return nil
	}
	b.sent = true
	for w, t := range b.watched {
		if s, _, err := w.Take(); err == nil && s.Known {
			t.record(s)
		}
	}
	return b.send(Initial, b.latest(), false)
}

func (b *tapes) handleChange(w *feed.Watch) error {
	t := b.watched[w]
	if t == nil {
		return nil
	}
	if !b.sent {
		return b.checkFirst()
	}
	s, items, err := w.Take()
	switch {
	case IsUnknown(err):
		delete(b.watched, w)
		return b.out.reportUnknown(b.unknown, w.Topic().ID)
	case err != nil || !s.Known:
		return err
	case !t.sent:
		items.Trades = s.Trades // the trades of this token were unknown when the first event was sent
	}
	reason := Changed
	switch {
	case !t.sent, s.Resyncs != t.resyncs:
		reason = Resync
	case s.Live && (len(items.Trades) > 0 || items.Gap):
	case s.Live != t.live:
		reason = Freshness
	default:
		return nil
	}
	t.record(s)
	return b.send(reason, items.Trades, items.Gap)
}

// checkFirst sends the first event if the feed has the trades of all tokens that the venue knows. It reports the other tokens as
// unknown.
func (b *tapes) checkFirst() error {
	missing := false
	for w := range b.watched {
		switch s, err := w.State(); {
		case IsUnknown(err):
			delete(b.watched, w)
			if err := b.out.reportUnknown(b.unknown, w.Topic().ID); err != nil {
				return err
			}
		case err != nil:
			return err
		case !s.Known:
			missing = true
		}
	}
	if missing {
		return nil
	}
	return b.sendFirst()
}

// nextRead makes the loop send the first event after streamHeadStart. The returned readFunc only leads to a call of sendFirst, and
// does not call the venue.
func (b *tapes) nextRead(_ time.Time, poll bool) (readFunc, time.Time) {
	if !poll || b.sent {
		return nil, time.Time{}
	}
	return func(context.Context) func() error { return b.sendFirst }, time.Time{}
}

func (b *tapes) isCurrent() bool { return b.sent }

func (b *tapes) resend(reason Reason) error {
	if err := b.out.repeatUnknown(b.unknown); err != nil || !b.sent {
		return err
	}
	return b.send(reason, b.latest(), reason == Resync)
}
