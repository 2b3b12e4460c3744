package follow

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// MaxTrades is the greatest number of trades of a first event.
const MaxTrades = 50

// TradesUpdate are trades, oldest first. Gap reports that some may be missing before them.
type TradesUpdate struct {
	Trades []market.Trade
	Gap    bool
}

// Trades follows the public tape of tokens. REST has no tape, so an error ends the stream where there is no room for a token.
func Trades(ctx context.Context, s Source, tokenIDs []string) Stream[TradesUpdate] {
	return stream(ctx, s, 0, func(out *outlet[TradesUpdate], reader *feed.Reader) (body, error) {
		b := &tapes{out: out, watched: make(map[*feed.Watch]*tape), unknown: newUnknowns("token", len(tokenIDs))}
		for _, id := range tokenIDs {
			w, err := reader.Watch(market.Topic{Channel: market.ChannelTrades, ID: id}, nil)
			if err != nil {
				return nil, err
			}
			b.watched[w] = &tape{}
		}
		return b, nil
	})
}

type tapes struct {
	out     *outlet[TradesUpdate]
	watched map[*feed.Watch]*tape
	unknown *unknowns
	sent    bool
}

// tape is one token's and what was sent of it.
type tape struct {
	sent, live bool
	resyncs    uint64
	// trades are the latest ones, oldest first.
	trades []market.Trade
}

func (t *tape) note(s feed.State) {
	t.sent, t.live, t.resyncs, t.trades = true, s.Live, s.Resyncs, s.Trades
}

// latest returns the newest trades of all tokens, oldest first.
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

// begin sends the first event, with the tapes that are known.
func (b *tapes) begin() error {
	if b.sent {
		return nil
	}
	b.sent = true
	for w, t := range b.watched {
		if s, _, err := w.Take(); err == nil && s.Known {
			t.note(s)
		}
	}
	return b.send(Initial, b.latest(), false)
}

func (b *tapes) changed(w *feed.Watch) error {
	t := b.watched[w]
	if t == nil {
		return nil
	}
	if !b.sent {
		return b.opening()
	}
	s, items, err := w.Take()
	switch {
	case isUnknown(err):
		delete(b.watched, w)
		return b.out.unknown(b.unknown, w.Topic().ID)
	case err != nil || !s.Known:
		return err
	case !t.sent:
		items.Trades = s.Trades // its first state came after the first event
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
	t.note(s)
	return b.send(reason, items.Trades, items.Gap)
}

// opening sends the first event when no tape is on its way any more. All are looked at, since those that have ended are reported
// only once.
func (b *tapes) opening() error {
	waits := false
	for w := range b.watched {
		switch s, err := w.State(); {
		case isUnknown(err):
			delete(b.watched, w)
			if err := b.out.unknown(b.unknown, w.Topic().ID); err != nil {
				return err
			}
		case err != nil:
			return err
		case !s.Known:
			waits = true
		}
	}
	if waits {
		return nil
	}
	return b.begin()
}

// due sends the first event when the stream has had its time.
func (b *tapes) due(_ time.Time, poll bool) (read, time.Time) {
	if !poll || b.sent {
		return nil, time.Time{}
	}
	return func(context.Context) func() error { return b.begin }, time.Time{}
}

func (b *tapes) current() bool { return b.sent }

func (b *tapes) resend(reason Reason) error {
	if err := b.out.repeat(b.unknown); err != nil || !b.sent {
		return err
	}
	return b.send(reason, b.latest(), reason == Resync)
}
