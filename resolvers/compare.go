package resolvers

import (
	"context"
	"fmt"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

// defaultBook is the depth of the books that are read if the client wants no deeper one.
const defaultBook = 20

// comparison is the state of a question's legs, and what forbids to compare them.
type comparison struct {
	q       *questions.Question
	reasons []model.NotComparable
	// books has the book of each leg, or nil.
	books []*market.Book
	meta  reads.Meta
}

// compare reads the markets and the books of a question's legs, at least to a depth, or takes them from the event that contains the
// question. The legs of a RELATED question are not read. compare returns loaders.ErrPending if a value is missing. It reports no other
// error, because a leg that cannot be read is a reason.
func (r *Resolver) compare(ctx context.Context, q *model.Question, depth int) (c comparison, err error) {
	c.q, c.reasons = q.Question, []model.NotComparable{}
	switch q.Match {
	case questions.Related:
		c.add(model.NotComparableCodeRelated, nil, "the questions are only related")
		return c, nil
	case questions.Near:
		c.add(model.NotComparableCodeNear, nil, "the rules have differences")
	}
	state := q.State
	if state == nil {
		if state, err = readLegs(loaders.From(ctx), q.Question, depth); err != nil {
			return c, err
		}
	}
	var metas []reads.Meta
	for i := range q.Question.Legs {
		m, b := &state.Markets[i], &state.Books[i]
		leg := r.leg(q, i)
		for _, meta := range [...]reads.Meta{m.Value.Meta, b.Value.Meta} {
			endWhenStale(ctx, meta)
			metas = append(metas, meta)
		}
		c.judgeMarket(&leg, m)
		c.judgeBook(&leg, b)
	}
	c.meta = reads.Combine(metas...)
	return c, nil
}

// readLegs reads the markets and books of a question's legs. All values are requested in the same pass.
func readLegs(set *loaders.Set, q *questions.Question, depth int) (*model.QuestionState, error) {
	s := &model.QuestionState{Markets: make([]reads.Result[*market.Market], len(q.Legs)), Books: make([]reads.Result[*market.Book], len(q.Legs))}
	pending := false
	for i, l := range q.Legs {
		m, b := &s.Markets[i], &s.Books[i]
		m.Value, m.Err = freshMarket(set, l.Token)
		b.Value, b.Err = set.FreshBook(l.Token, max(depth, defaultBook))
		pending = pending || m.Err == loaders.ErrPending || b.Err == loaders.ErrPending
	}
	if pending {
		return nil, loaders.ErrPending
	}
	return s, nil
}

// endWhenStale makes a response with a comparison end with the fresh time of a value. Other responses are sent again for a while after
// this time.
func endWhenStale(ctx context.Context, m reads.Meta) {
	d := request.From(ctx).Dependencies
	switch {
	case m.Stale:
		d.Record(nil)
	case m.Handle != nil && m.Handle.FreshUntil() != 0:
		d.Until(time.Unix(0, m.Handle.FreshUntil()))
	}
}

// add adds a reason. leg is nil for a reason that concerns the question.
func (c *comparison) add(code model.NotComparableCode, leg *model.QuestionLeg, format string, args ...any) {
	reason := model.NotComparable{Code: code, Message: fmt.Sprintf(format, args...)}
	if leg != nil {
		reason.Venue, reason.Message = &leg.Venue, leg.Venue+": "+reason.Message
	}
	c.reasons = append(c.reasons, reason)
}

func (c *comparison) judgeMarket(l *model.QuestionLeg, m *reads.Result[*market.Market]) {
	read := m.Value
	switch {
	case m.Err != nil:
		c.add(model.NotComparableCodeVenueFailed, l, "the market could not be read")
	case read.Value == nil:
		c.add(model.NotComparableCodeMarketUnknown, l, "the venue does not know the token")
	case read.Stale:
		c.add(model.NotComparableCodeStale, l, "the market is older than its fresh time")
	default:
		switch rulesOf(&l.Leg, read) {
		case model.RulesStateChanged:
			c.add(model.NotComparableCodeRulesChanged, l, "the rules text is not the confirmed one")
		case model.RulesStateUnknown:
			c.add(model.NotComparableCodeRulesUnknown, l, "no rules text is confirmed, or the venue gives none")
		}
		switch accepts := read.Value.AcceptingOrders; {
		case read.Value.Status != market.StatusOpen:
			c.add(model.NotComparableCodeMarketNotOpen, l, "the market is %s", read.Value.Status)
		case accepts != nil && !*accepts:
			c.add(model.NotComparableCodeMarketNotOpen, l, "the market takes no orders now")
		}
	}
}

func (c *comparison) judgeBook(l *model.QuestionLeg, b *reads.Result[*market.Book]) {
	switch {
	case b.Err != nil:
		c.add(model.NotComparableCodeVenueFailed, l, "the book could not be read")
	case b.Value.Value == nil:
		c.add(model.NotComparableCodeNoBook, l, "there is no book")
	case b.Value.Stale:
		c.add(model.NotComparableCodeStale, l, "the book is older than its fresh time")
	}
	c.books = append(c.books, b.Value.Value)
}

// shown reports whether prices are shown: the legs are comparable, or the client wants them anyway.
func (c *comparison) shown(anyway *bool) bool {
	return len(c.reasons) == 0 || valueOr(anyway, false) && c.q.Match != questions.Related
}

func (r *questionResolver) Comparable(ctx context.Context, q *model.Question) (bool, error) {
	c, err := r.compare(ctx, q, 0)
	return err == nil && len(c.reasons) == 0, err
}

func (r *questionResolver) Reasons(ctx context.Context, q *model.Question) ([]model.NotComparable, error) {
	c, err := r.compare(ctx, q, 0)
	return c.reasons, err
}

func (r *questionResolver) Best(ctx context.Context, q *model.Question, side market.OrderSide, anyway *bool) (*model.QuestionQuote, error) {
	if side == market.SideUnknown {
		return nil, badInput("side must be BUY or SELL")
	}
	c, err := r.compare(ctx, q, 0)
	if err != nil || !c.shown(anyway) {
		return nil, err
	}
	best := questions.Best(c.q, c.books, side)
	if best == nil {
		return nil, nil
	}
	return &model.QuestionQuote{Level: *best, Leg: r.leg(q, best.Leg), Comparable: len(c.reasons) == 0, Meta: c.meta}, nil
}

func (r *questionResolver) Spread(ctx context.Context, q *model.Question, anyway *bool) (*market.Decimal, error) {
	c, err := r.compare(ctx, q, 0)
	if err != nil || !c.shown(anyway) {
		return nil, err
	}
	return questions.Merge(c.q, c.books, 1).Width(), nil
}

func (r *questionResolver) Orderbook(ctx context.Context, q *model.Question, depth *int, anyway *bool) (*model.QuestionOrderbook, error) {
	d, err := bookDepth(depth, 20)
	if err != nil {
		return nil, err
	}
	c, err := r.compare(ctx, q, d)
	if err != nil || !c.shown(anyway) {
		return nil, err
	}
	merged := questions.Merge(c.q, c.books, d)
	out := model.QuestionOrderbook{Missing: []string{}, Comparable: len(c.reasons) == 0, Meta: c.meta}
	for i, b := range c.books {
		if b == nil {
			out.Missing = append(out.Missing, r.leg(q, i).Venue)
		}
	}
	if len(out.Missing) == len(c.books) {
		return nil, nil
	}
	out.Bids, out.Asks = r.levels(q, merged.Bids), r.levels(q, merged.Asks)
	if w := merged.Width(); w != nil {
		out.Crossed = w.Sign() < 0
	}
	return &out, nil
}

func (r *Resolver) levels(q *model.Question, list []questions.Level) []model.QuestionLevel {
	out := make([]model.QuestionLevel, len(list))
	for i, l := range list {
		out[i] = model.QuestionLevel{Level: l, Venue: r.leg(q, l.Leg).Venue}
	}
	return out
}
