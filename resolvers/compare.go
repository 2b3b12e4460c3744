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
	// books has an element for each leg. It is empty for a RELATED question, which is never compared.
	books []questions.LegBook
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
		l, m, b := r.leg(q, i), legs[i].Market, legs[i].Book
		c.judge(&l.Leg, l.Venue, m, b)
		c.books = append(c.books, questions.LegBook{Venue: l.Venue, TakerFeeRate: l.TakerFeeRate, Book: b.Value.Value})
		metas = append(metas, m.Value.Meta, b.Value.Meta)
	}
	c.meta = reads.Combine(metas...)
	return c
}

// judge adds the reasons of a leg.
func (c *comparison) judge(l *questions.Leg, venue string, m reads.Result[*market.Market], b reads.Result[*market.Book]) {
	theMarket, theBook, rules := m.Value.Value, b.Value.Value, rulesOf(l, m.Value)
	known := m.Err == nil && theMarket != nil && !m.Value.Stale
	for _, reason := range []struct {
		applies bool
		code    model.NotComparableCode
		text    string
	}{
		{m.Err != nil, model.NotComparableCodeVenueFailed, "the market could not be read"},
		{m.Err == nil && theMarket == nil, model.NotComparableCodeMarketUnknown, "there is no market of the token"},
		{m.Err == nil && theMarket != nil && m.Value.Stale, model.NotComparableCodeStale, "the market is older than its fresh time"},
		{known && rules == model.RulesStateChanged, model.NotComparableCodeRulesChanged, "the rules text is not the confirmed one"},
		{known && rules == model.RulesStateUnknown, model.NotComparableCodeRulesUnknown, "no rules text is confirmed, or the venue gives none"},
		{known && !isTraded(theMarket), model.NotComparableCodeMarketNotOpen, "the market is not open, or takes no orders now"},
		{b.Err != nil, model.NotComparableCodeVenueFailed, "the order book could not be read"},
		{b.Err == nil && theBook == nil, model.NotComparableCodeNoBook, "there is no order book of the token"},
		{b.Err == nil && theBook != nil && b.Value.Stale, model.NotComparableCodeStale, "the order book is older than its fresh time"},
	} {
		if reason.applies {
			c.reasons = append(c.reasons, model.NotComparable{Code: reason.code, Venue: &venue, Message: venue + ": " + reason.text})
		}
	}
}

func isTraded(m *market.Market) bool {
	return m.Status == market.StatusOpen && valueOr(m.AcceptingOrders, true)
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
	best := questions.Best(c.books, side)
	if best == nil {
		return nil, nil
	}
	return &model.QuestionQuote{Level: *best, Leg: r.leg(q, best.Leg), Comparable: len(c.reasons) == 0, Meta: c.meta}, nil
}

func (r *questionResolver) Spread(ctx context.Context, q *model.Question, anyway *bool) (*market.Decimal, error) {
	return questions.Merge(r.shown(ctx, q, 0, anyway).books, 1).Spread(), nil
}

func (r *questionResolver) Orderbook(ctx context.Context, q *model.Question, depth *int, anyway *bool) (*model.QuestionOrderbook, error) {
	d, err := bookDepth(depth, 20)
	if err != nil {
		return nil, err
	}
	c := r.shown(ctx, q, d, anyway)
	out := model.QuestionOrderbook{Book: questions.Merge(c.books, d), Missing: []string{}, Comparable: len(c.reasons) == 0, Meta: c.meta}
	for _, b := range c.books {
		if b.Book == nil {
			out.Missing = append(out.Missing, b.Venue)
		}
	}
	if len(out.Missing) == len(c.books) {
		return nil, nil
	}
	w := out.Spread()
	out.Crossed = w != nil && w.Sign() < 0
	return &out, nil
}
