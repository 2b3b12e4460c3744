package follow

import (
	"context"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// PortfolioUpdate is a change of an account's positions or of what they are worth.
type PortfolioUpdate struct {
	// Changed are the positions that are new or that differ from the event before, or all of them; Closed are those that are
	// gone.
	Changed []Holding
	Closed  []*market.Position
	Summary *market.Portfolio
}

// Holding is a position with what it was valued by. Valuation is nil where no price is known.
type Holding struct {
	Position  *market.Position
	Quotes    *market.Quotes
	Valuation *market.Valuation
	Meta      market.Meta
}

// PortfolioSource is what a portfolio is read by.
type PortfolioSource struct {
	Account[[]market.Position]
	// Value prices positions by one set of prices. It fails where the price of one can't be read, so that nothing is summed
	// over a part.
	Value func(ctx context.Context, positions []market.Position, held market.Meta) ([]market.Quotes, []*market.Valuation, error)
	// Key tells positions apart.
	Key func(*market.Position) string
}

// Portfolio follows an account's positions and their prices, with at least every between two events.
func Portfolio(ctx context.Context, s Source, p PortfolioSource, every time.Duration) Stream[PortfolioUpdate] {
	return stream(ctx, s, 0, func(out *outlet[PortfolioUpdate], reader *feed.Reader) (body, error) {
		b := &portfolio{PortfolioSource: p, out: out, reader: reader, every: every, prices: make(map[string]*feed.Watch)}
		b.account, _ = reader.Watch(p.Topic, p.Credentials) // without room it is read over REST
		return b, nil
	})
}

type portfolio struct {
	PortfolioSource
	out     *outlet[PortfolioUpdate]
	reader  *feed.Reader
	every   time.Duration
	account *feed.Watch // nil without room on the stream
	// prices are the watches of the tokens that are held.
	prices map[string]*feed.Watch
	// settled reports that the stream has had its time to bring the account; next is when the next update may be.
	settled bool
	next    time.Time
	pending pending[struct{}]
	problem error

	// sent reports that there was an event; live, streamed and resyncs are those of the account's state that it showed.
	sent, live, streamed bool
	resyncs              uint64
	shown                valued
	valuations           map[string]*market.Valuation
	summary              *market.Portfolio
}

// valued are positions with what they are worth, aligned.
type valued struct {
	positions  []market.Position
	quotes     []market.Quotes
	valuations []*market.Valuation
	held       market.Meta
}

func (b *portfolio) changed(w *feed.Watch) error {
	s, _, err := w.Take()
	if w == b.account {
		if err != nil {
			return err
		}
		if !b.sent && !b.settled && !tellsPositions(s) {
			return nil // the first state is on its way
		}
	}
	b.pending.overtake()
	b.pending.poll() // a failure delays this too: the next price comes soon enough
	return nil
}

// tellsPositions reports whether a state of the account says which positions it has.
func tellsPositions(s feed.State) bool {
	return s.Known && s.Account != nil && s.Account.Positions != nil
}

func (b *portfolio) due(now time.Time, poll bool) (read, time.Time) {
	if poll {
		b.settled = true
		b.pending.poll()
	}
	if !b.pending.due(now) {
		return nil, b.pending.wake()
	}
	if now.Before(b.next) {
		return nil, b.next
	}
	b.next = now.Add(b.every)
	b.pending.begin()
	var s feed.State
	if b.account != nil {
		s, _ = b.account.State() // its end is a change
	}
	return func(ctx context.Context) func() error {
		v, err := b.value(ctx, s)
		return func() error { return b.apply(s, v, err) }
	}, time.Time{}
}

// value reads the positions, where the stream does not say them, and what they are worth.
func (b *portfolio) value(ctx context.Context, s feed.State) (v valued, err error) {
	if tellsPositions(s) && s.Live {
		v.positions, v.held = s.Account.Positions, s.Meta
	} else {
		read, err := b.Read(ctx)
		if err == nil && read.Value == nil {
			err = errNoAnswer
		}
		if err != nil {
			return v, err
		}
		v.positions, v.held = *read.Value, read.Meta
	}
	v.quotes, v.valuations, err = b.Value(ctx, v.positions, v.held)
	return v, err
}

func (b *portfolio) apply(s feed.State, v valued, err error) error {
	switch {
	case isRefused(err):
		return err
	case err != nil:
		b.pending.keep(time.Now(), err)
		switch {
		case b.sent:
			return b.outdate() // nothing is valued that may be out of date
		case b.problem == nil:
			b.problem = err
			return b.out.problem(err)
		}
		return nil
	}
	overtaken := b.pending.overtaken()
	b.pending.settle()
	b.pending.wanted = overtaken
	b.follow(v)
	return b.update(s, v)
}

// outdate says once that what was sent may be out of date.
func (b *portfolio) outdate() error {
	if b.shown.held.Stale {
		return nil
	}
	b.shown.held.Stale, b.live = true, false
	sum := *b.summary
	sum.Meta.Stale = true
	b.summary = &sum
	u := PortfolioUpdate{Summary: b.summary}
	for i, v := range b.shown.valuations {
		if v == nil || v.Meta.Stale {
			continue
		}
		stale := *v
		stale.Meta.Stale = true
		b.shown.valuations[i] = &stale
		b.valuations[b.Key(&b.shown.positions[i])] = &stale
		u.Changed = append(u.Changed, b.shown.holding(i))
	}
	return b.out.send(Freshness, "", Delta, u)
}

func (v *valued) holding(i int) Holding {
	return Holding{Position: &v.positions[i], Quotes: &v.quotes[i], Valuation: v.valuations[i], Meta: v.held}
}

// update sends what differs from what was sent.
func (b *portfolio) update(s feed.State, v valued) error {
	before := make(map[string]*market.Position, len(b.shown.positions))
	for i := range b.shown.positions {
		before[b.Key(&b.shown.positions[i])] = &b.shown.positions[i]
	}
	now := make(map[string]*market.Valuation, len(v.positions))
	changed := make([]bool, len(v.positions)) // also in nothing but their freshness
	same, fresher := true, b.shown.held.Stale && !v.held.Stale
	for i := range v.positions {
		p, worth := &v.positions[i], v.valuations[i]
		key := b.Key(p)
		now[key] = worth
		switch old := before[key]; {
		case old == nil || !samePosition(old, p) || !sameValuation(b.valuations[key], worth):
			changed[i], same = true, false
		case worth != nil && worth.Meta.Stale != b.valuations[key].Meta.Stale:
			changed[i], fresher = true, true
		}
		delete(before, key)
	}
	u := PortfolioUpdate{Summary: market.Sum(v.positions, v.valuations, v.held)}
	for _, gone := range before {
		u.Closed = append(u.Closed, gone)
	}
	slices.SortFunc(u.Closed, func(x, y *market.Position) int { return strings.Compare(b.Key(x), b.Key(y)) })
	reason := b.reason(s, same && len(before) == 0, fresher)
	if reason == "" {
		return nil
	}
	for i := range v.positions {
		if changed[i] || reason.whole() {
			u.Changed = append(u.Changed, v.holding(i))
		}
	}
	b.sent, b.problem = true, nil
	b.shown, b.valuations, b.summary = v, now, u.Summary
	if tellsPositions(s) {
		b.live, b.streamed, b.resyncs = s.Live, true, s.Resyncs
	} else {
		b.live, b.streamed = false, false
	}
	return b.out.send(reason, "", Delta, u)
}

// reason returns why an update is sent; "" where it is not.
func (b *portfolio) reason(s feed.State, same, fresher bool) Reason {
	streamed := tellsPositions(s)
	live := streamed && s.Live
	switch {
	case !b.sent:
		return Initial
	case streamed && s.Resyncs != b.resyncs, live && !b.streamed:
		return Resync
	case !same:
		return Changed
	case live != b.live, fresher:
		return Freshness
	}
	return ""
}

// follow watches the prices of the tokens that are held, and no others. Settled tokens do not move.
func (b *portfolio) follow(v valued) {
	held := make(map[string]bool, len(v.positions))
	full := false // without room the others are read over REST
	for i := range v.positions {
		token := v.positions[i].TokenID
		if o := v.quotes[i].Outcome; token == "" && o != nil {
			token = o.TokenID
		}
		if m := v.quotes[i].Market.Value; token == "" || m != nil && m.SettlementPrice(v.quotes[i].Outcome) != nil {
			continue
		}
		held[token] = true
		if w := b.prices[token]; w != nil {
			if _, err := w.State(); market.CodeOf(err) == market.CodeRateLimited { // others need the room on the stream
				w.Close()
				delete(b.prices, token)
			}
			continue
		}
		if full {
			continue
		}
		w, err := b.reader.Watch(market.Topic{Channel: market.ChannelPrices, ID: token}, nil)
		if full = err != nil; !full {
			b.prices[token] = w
		}
	}
	for token, w := range b.prices {
		if !held[token] {
			w.Close()
			delete(b.prices, token)
		}
	}
}

func (b *portfolio) current() bool { return b.live && !b.pending.wanted }

func (b *portfolio) resend(reason Reason) error {
	switch {
	case b.sent:
		u := PortfolioUpdate{Summary: b.summary, Changed: make([]Holding, len(b.shown.positions))}
		for i := range u.Changed {
			u.Changed[i] = b.shown.holding(i)
		}
		return b.out.send(reason, "", Delta, u)
	case b.problem != nil:
		return b.out.problem(b.problem)
	}
	return nil
}

func samePosition(a, b *market.Position) bool {
	return a.Size.Cmp(b.Size) == 0 && sameDecimal(a.AvgPrice, b.AvgPrice)
}

func sameValuation(a, b *market.Valuation) bool {
	return a == b || a != nil && b != nil && a.Basis == b.Basis && a.Price.Cmp(b.Price) == 0
}
