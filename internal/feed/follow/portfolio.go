package follow

import (
	"context"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/reads/valuation"
)

// PortfolioUpdate is an event with an account's positions and their values.
type PortfolioUpdate struct {
	// Changed contains the positions that are new, or whose size, average price or valuation has changed since the last event. A
	// valuation also counts as changed if it has become stale or fresh. In Initial and Resync events, Changed contains all positions.
	// Closed contains the positions that no longer exist.
	Changed []Holding
	Closed  []*market.Position
	Summary *valuation.Portfolio
}

// Holding is a position with its valuation. Valuation is nil if no price is known.
type Holding struct {
	Position  *market.Position
	Quotes    *valuation.Quotes
	Valuation *valuation.Valuation
	Meta      reads.Meta
}

// PortfolioSource reads an account's positions and computes their values.
type PortfolioSource struct {
	Account[[]market.Position]
	// Value returns the quotes and valuations of positions in the order of the positions. meta describes the read of the positions.
	// If a price cannot be read, Value fails, because the sum of the values would lack a position.
	Value func(ctx context.Context, positions []market.Position, meta reads.Meta) ([]valuation.Quotes, []*valuation.Valuation, error)
	// Key returns a unique key for a position.
	Key func(*market.Position) string
}

// Portfolio follows an account's positions and their prices. interval is the minimum time between two reads of the positions and
// prices.
func Portfolio(ctx context.Context, s Source, p PortfolioSource, interval time.Duration) Stream[PortfolioUpdate] {
	return stream(ctx, s, 0, func(out *publisher[PortfolioUpdate], reader *feed.Reader) (body, error) {
		b := &portfolio{PortfolioSource: p, out: out, reader: reader, every: interval, prices: make(map[string]*feed.Watch)}
		b.account, _ = reader.Watch(p.Topic, p.Credentials) // without a watch, the positions are read over REST
		return b, nil
	})
}

type portfolio struct {
	PortfolioSource
	out     *publisher[PortfolioUpdate]
	reader  *feed.Reader
	every   time.Duration
	account *feed.Watch // nil if the feed could not watch the account
	// prices contains the watches of prices, by token id.
	prices map[string]*feed.Watch
	// headStartOver reports whether streamHeadStart is over. nextUpdate is the earliest time of the next read.
	headStartOver bool
	nextUpdate    time.Time
	pending       pending[struct{}]
	problem       error

	// sent reports whether an event was sent. live and resyncs are Live and Resyncs of the account's state at the last event. live is
	// false if that event had positions from REST or was marked as stale. streamed reports whether the venue's stream had sent the
	// positions of the account when the last event was sent.
	sent, live, streamed bool
	resyncs              uint64
	last                 valuedPositions
	valuations           map[string]*valuation.Valuation
	summary              *valuation.Portfolio
}

// valuedPositions contains positions, and their quotes and valuations in the same order. meta describes the read of the positions.
type valuedPositions struct {
	positions  []market.Position
	quotes     []valuation.Quotes
	valuations []*valuation.Valuation
	meta       reads.Meta
}

func (b *portfolio) handleChange(w *feed.Watch) error {
	s, _, err := w.Take()
	if w == b.account {
		if err != nil {
			return err
		}
		if !b.sent && !b.headStartOver && !hasPositions(s) {
			return nil // the venue's stream may soon send the positions
		}
	}
	b.pending.invalidate()
	b.pending.request() // pending.add would end the delay after a failed read
	return nil
}

// hasPositions reports whether the positions in a state of the account are known.
func hasPositions(s feed.State) bool {
	return s.Known && s.Account != nil && s.Account.Positions != nil
}

func (b *portfolio) nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time) {
	if venue > 0 {
		return nil, time.Time{} // one read at a time is enough for an account
	}
	if poll {
		b.headStartOver = true
		b.pending.request()
	}
	if !b.pending.ready(now) {
		return nil, b.pending.retryAt()
	}
	if now.Before(b.nextUpdate) {
		return nil, b.nextUpdate
	}
	b.nextUpdate = now.Add(b.every)
	b.pending.readStarted()
	var s feed.State
	if b.account != nil {
		s, _ = b.account.State() // if the watch has ended, handleChange returns the error
	}
	return func(ctx context.Context) func() error {
		v, err := b.value(ctx, s)
		return func() error { return b.apply(s, v, err) }
	}, time.Time{}
}

// value returns the positions with their quotes and valuations. If the account's topic is not live or its positions are unknown,
// value reads the positions over REST.
func (b *portfolio) value(ctx context.Context, s feed.State) (v valuedPositions, err error) {
	if hasPositions(s) && s.Live {
		v.positions, v.meta = s.Account.Positions, s.Meta
	} else {
		read, err := b.Read(ctx)
		if err == nil && read.Value == nil {
			err = errNoAnswer
		}
		if err != nil {
			return v, err
		}
		v.positions, v.meta = *read.Value, read.Meta
	}
	v.quotes, v.valuations, err = b.Value(ctx, v.positions, v.meta)
	return v, err
}

func (b *portfolio) apply(s feed.State, v valuedPositions, err error) error {
	switch {
	case isPermanent(err):
		return err
	case err != nil:
		b.pending.readFailed(time.Now(), err)
		switch {
		case b.sent:
			return b.markStale(reads.CauseOf(err)) // new prices must not be combined with positions that may be out of date
		case b.problem == nil:
			b.problem = err
			return b.out.problem(err)
		}
		return nil
	}
	overtaken := b.pending.invalidated()
	b.pending.settle()
	b.pending.wanted = overtaken
	b.watchPrices(v)
	return b.update(s, v)
}

// markStale sends the last summary again, marked as stale. The event also contains the valuations that were fresh, or stale for a
// milder cause. markStale sends nothing if the last event was already stale for the same cause or a more severe one.
func (b *portfolio) markStale(cause reads.StaleCause) error {
	if b.last.meta.Stale && b.last.meta.Cause >= cause {
		return nil
	}
	b.last.meta.MarkStale(cause)
	b.live = false
	sum := *b.summary
	sum.Meta.MarkStale(max(sum.Meta.Cause, cause))
	b.summary = &sum
	u := PortfolioUpdate{Summary: b.summary}
	for i, v := range b.last.valuations {
		if v == nil || v.Meta.Stale && v.Meta.Cause >= cause {
			continue
		}
		stale := *v
		stale.Meta.MarkStale(cause)
		b.last.valuations[i] = &stale
		b.valuations[b.Key(&b.last.positions[i])] = &stale
		u.Changed = append(u.Changed, b.last.holding(i))
	}
	return b.out.send(Freshness, "", Delta, u)
}

func (v *valuedPositions) holding(i int) Holding {
	return Holding{Position: &v.positions[i], Quotes: &v.quotes[i], Valuation: v.valuations[i], Meta: v.meta}
}

// update sends the differences from the last event. An Initial or Resync event contains all positions instead. If b.reason returns
// an empty reason, update sends nothing.
func (b *portfolio) update(s feed.State, v valuedPositions) error {
	before := make(map[string]*market.Position, len(b.last.positions))
	for i := range b.last.positions {
		before[b.Key(&b.last.positions[i])] = &b.last.positions[i]
	}
	now := make(map[string]*valuation.Valuation, len(v.positions))
	changed := make([]bool, len(v.positions)) // a position also counts as changed if it has become stale or fresh
	same, fresher := true, b.last.meta.Stale && !v.meta.Stale
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
	u := PortfolioUpdate{Summary: valuation.Sum(v.positions, v.valuations, v.meta)}
	for _, gone := range before {
		u.Closed = append(u.Closed, gone)
	}
	slices.SortFunc(u.Closed, func(x, y *market.Position) int { return strings.Compare(b.Key(x), b.Key(y)) })
	reason := b.reason(s, same && len(before) == 0, fresher)
	if reason == "" {
		return nil
	}
	for i := range v.positions {
		if changed[i] || reason.isState() {
			u.Changed = append(u.Changed, v.holding(i))
		}
	}
	b.sent, b.problem = true, nil
	b.last, b.valuations, b.summary = v, now, u.Summary
	if hasPositions(s) {
		b.live, b.streamed, b.resyncs = s.Live, true, s.Resyncs
	} else {
		b.live, b.streamed = false, false
	}
	return b.out.send(reason, "", Delta, u)
}

// reason returns the reason of the next event. It returns an empty reason if nothing has changed. unchanged reports whether
// positions and valuations are the same as in the last event. freshnessChanged reports whether values have become stale or fresh.
func (b *portfolio) reason(s feed.State, unchanged, freshnessChanged bool) Reason {
	streamed := hasPositions(s)
	live := streamed && s.Live
	switch {
	case !b.sent:
		return Initial
	case streamed && s.Resyncs != b.resyncs, live && !b.streamed:
		return Resync
	case !unchanged:
		return Changed
	case live != b.live, freshnessChanged:
		return Freshness
	}
	return ""
}

// watchPrices watches the prices of the held tokens. It does not watch settled tokens, because their prices do not change.
func (b *portfolio) watchPrices(v valuedPositions) {
	held := make(map[string]bool, len(v.positions))
	full := false // whether the feed has refused a watch; prices without a watch are read over REST
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
			if _, err := w.State(); market.CodeOf(err) == market.CodeRateLimited { // the feed needs the topic for other clients
				w.Close()
				delete(b.prices, token)
			}
			continue
		}
		if full {
			continue
		}
		w, err := b.reader.Watch(messages.Topic{Channel: messages.ChannelPrices, ID: token}, nil)
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

func (b *portfolio) isCurrent() bool { return b.live && !b.pending.wanted }

func (b *portfolio) resend(reason Reason) error {
	switch {
	case b.sent:
		u := PortfolioUpdate{Summary: b.summary, Changed: make([]Holding, len(b.last.positions))}
		for i := range u.Changed {
			u.Changed[i] = b.last.holding(i)
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

func sameValuation(a, b *valuation.Valuation) bool {
	return a == b || a != nil && b != nil && a.Basis == b.Basis && a.Price.Cmp(b.Price) == 0
}
