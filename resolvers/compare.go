package resolvers

import (
	"context"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
)

// defaultBook is the depth of the books that are read if the client wants no deeper one.
const defaultBook = 20

// readLeg reads the book to a depth, and the market of a leg. While a value is missing, the pass is discarded.
func readLeg(set *loaders.Set, l *questions.Leg, depth int) (leg reads.Leg) {
	b, m := &leg.Book, &leg.Market
	b.Value, b.Err = set.FreshBook(l.Token, depth)
	m.Value, m.Err = freshMarket(set, l.Token)
	return leg
}

// freshMarket reads the market of a token with its rules.
func freshMarket(set *loaders.Set, tokenID string) (reads.Value[*market.Market], error) {
	read, err := set.Markets.GetFresh(byToken(tokenID))
	if err == nil && read.Value != nil && read.Value.Summary {
		return set.Markets.GetFresh(byID(read.Value.MarketID))
	}
	return read, err
}

// rulesOf compares the rules text of a market with the confirmed one.
func rulesOf(l *questions.Leg, read reads.Value[*market.Market]) model.RulesState {
	switch {
	case read.Stale || read.Value == nil || read.Value.Description == "" || l.RulesSHA256 == "":
		return model.RulesStateUnknown
	case questions.RulesHash(read.Value.Description) == l.RulesSHA256:
		return model.RulesStateConfirmed
	}
	return model.RulesStateChanged
}

// comparison says what forbids to compare the legs of a question.
type comparison struct {
	reasons []model.NotComparable
	// books has the book of each leg, or nil. It is empty for a RELATED question, which is never compared.
	books []*market.Book
	meta  reads.Meta
}

// compare compares the legs as the event that contains the question has them. Without an event, it reads them. A leg that cannot be read
// is a reason.
func (r *Resolver) compare(ctx context.Context, q *model.Question, depth int) comparison {
	c := comparison{reasons: []model.NotComparable{}}
	switch q.Match {
	case questions.Related:
		c.reasons = append(c.reasons, model.NotComparable{Code: model.NotComparableCodeRelated, Message: "the questions are only related"})
		return c
	case questions.Near:
		c.reasons = append(c.reasons, model.NotComparable{Code: model.NotComparableCodeNear, Message: "the rules have differences"})
	}
	legs := q.State
	if legs == nil {
		for i := range q.Question.Legs {
			legs = append(legs, readLeg(loaders.From(ctx), &q.Question.Legs[i], max(depth, defaultBook)))
		}
	}
	var metas []reads.Meta
	for i := range legs {
		l, m, b := r.leg(q, i), &legs[i].Market, &legs[i].Book
		if usable(&c, l.Venue, "market", model.NotComparableCodeMarketUnknown, m) {
			c.judge(&l, m.Value)
		}
		usable(&c, l.Venue, "order book", model.NotComparableCodeNoBook, b)
		c.books = append(c.books, b.Value.Value)
		metas = append(metas, m.Value.Meta, b.Value.Meta)
	}
	c.meta = reads.Combine(metas...)
	return c
}

// usable reports whether a value can be compared. If not, it adds the reason, which is absent if the venue does not have the value.
func usable[T any](c *comparison, venue, what string, absent model.NotComparableCode, read *reads.Result[*T]) bool {
	switch {
	case read.Err != nil:
		c.add(model.NotComparableCodeVenueFailed, venue, "the "+what+" could not be read")
	case read.Value.Value == nil:
		c.add(absent, venue, "there is no "+what+" of the token")
	case read.Value.Stale:
		c.add(model.NotComparableCodeStale, venue, "the "+what+" is older than its fresh time")
	default:
		return true
	}
	return false
}

func (c *comparison) judge(l *model.QuestionLeg, m reads.Value[*market.Market]) {
	switch rulesOf(&l.Leg, m) {
	case model.RulesStateChanged:
		c.add(model.NotComparableCodeRulesChanged, l.Venue, "the rules text is not the confirmed one")
	case model.RulesStateUnknown:
		c.add(model.NotComparableCodeRulesUnknown, l.Venue, "no rules text is confirmed, or the venue gives none")
	}
	if m.Value.Status != market.StatusOpen || !valueOr(m.Value.AcceptingOrders, true) {
		c.add(model.NotComparableCodeMarketNotOpen, l.Venue, "the market is not open, or takes no orders now")
	}
}

func (c *comparison) add(code model.NotComparableCode, venue, message string) {
	c.reasons = append(c.reasons, model.NotComparable{Code: code, Venue: &venue, Message: venue + ": " + message})
}

func (r *questionResolver) Comparable(ctx context.Context, q *model.Question) (bool, error) {
	return len(r.compare(ctx, q, 0).reasons) == 0, nil
}

func (r *questionResolver) Reasons(ctx context.Context, q *model.Question) ([]model.NotComparable, error) {
	return r.compare(ctx, q, 0).reasons, nil
}

// shown is like compare. Without anyway, it returns no books if the legs are not comparable.
func (r *Resolver) shown(ctx context.Context, q *model.Question, depth int, anyway *bool) comparison {
	c := r.compare(ctx, q, depth)
	if len(c.reasons) > 0 && !valueOr(anyway, false) {
		c.books = nil
	}
	return c
}

func (r *questionResolver) Best(ctx context.Context, q *model.Question, side market.OrderSide, anyway *bool) (*model.QuestionQuote, error) {
	if side == market.SideUnknown {
		return nil, badInput("side must be BUY or SELL")
	}
	c := r.shown(ctx, q, 0, anyway)
	best := questions.Best(q.Question, c.books, side)
	if best == nil {
		return nil, nil
	}
	return &model.QuestionQuote{Level: *best, Leg: r.leg(q, best.Leg), Comparable: len(c.reasons) == 0, Meta: c.meta}, nil
}

func (r *questionResolver) Spread(ctx context.Context, q *model.Question, anyway *bool) (*market.Decimal, error) {
	return questions.Merge(q.Question, r.shown(ctx, q, 0, anyway).books, 1).Spread(), nil
}

func (r *questionResolver) Orderbook(ctx context.Context, q *model.Question, depth *int, anyway *bool) (*model.QuestionOrderbook, error) {
	d, err := bookDepth(depth, 20)
	if err != nil {
		return nil, err
	}
	c := r.shown(ctx, q, d, anyway)
	out := model.QuestionOrderbook{Missing: []string{}, Comparable: len(c.reasons) == 0, Meta: c.meta}
	for i, b := range c.books {
		if b == nil {
			out.Missing = append(out.Missing, r.leg(q, i).Venue)
		}
	}
	if len(out.Missing) == len(c.books) {
		return nil, nil
	}
	merged := questions.Merge(q.Question, c.books, d)
	out.Bids, out.Asks = r.levels(q, merged.Bids), r.levels(q, merged.Asks)
	w := merged.Spread()
	out.Crossed = w != nil && w.Sign() < 0
	return &out, nil
}

func (r *Resolver) levels(q *model.Question, list []questions.Level) []model.QuestionLevel {
	out := make([]model.QuestionLevel, len(list))
	for i, l := range list {
		out[i] = model.QuestionLevel{Level: l, Venue: r.leg(q, l.Leg).Venue}
	}
	return out
}
