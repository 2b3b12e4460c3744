package resolvers

import (
	"context"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/questions"
	"oddsgraph/loaders"
)

func (r *subscriptionResolver) QuestionChanged(ctx context.Context, questionID string, depth, maxPerSecond *int) (<-chan model.QuestionUpdate, error) {
	d, err := bookDepth(depth, 5)
	if err != nil {
		return nil, err
	}
	every, err := interval(new(valueOr(maxPerSecond, 4)), 20)
	if err != nil {
		return nil, err
	}
	q, err := r.knownQuestion(ctx, questionID)
	if err != nil {
		return nil, err
	}
	var tokens []string
	for _, l := range q.Legs {
		tokens = append(tokens, l.Token)
	}
	look := func(ctx context.Context, watch func(messages.Channel, string)) (*model.Question, bool, error) {
		return r.look(ctx, questionID, d, watch)
	}
	return subscribe(ctx, follow.Question(ctx, r.source(ctx), tokens, every, look, changeOf), func(reason model.UpdateReason, q model.Question) model.QuestionUpdate {
		return model.QuestionUpdate{Reason: reason, Question: q}
	}), nil
}

func (r *Resolver) knownQuestion(ctx context.Context, id string) (*questions.Question, error) {
	q := r.questions(ctx).Find(id)
	if q == nil {
		return nil, badInput("there is no question %.100q", id)
	}
	return q, nil
}

// look reads a question of the present file, and watches what it reads. current is that of follow.Question.
func (r *Resolver) look(ctx context.Context, id string, depth int, watch func(messages.Channel, string)) (now *model.Question, current bool, err error) {
	q, err := r.knownQuestion(ctx, id)
	if err != nil {
		return nil, false, err
	}
	now, current = &model.Question{Question: q}, true
	r.read(ctx, func(set *loaders.Set) { now.State = readLegs(set, q, depth) })
	for i := range now.State {
		b, m := &now.State[i].Book, &now.State[i].Market
		current = current && b.Value.Source == market.SourceStream && !b.Value.Stale && m.Err == nil && !m.Value.Stale
		watch(messages.ChannelOrderbook, q.Legs[i].Token)
		if b.Value.Value != nil {
			b.Value.Value = b.Value.Value.Cut(depth)
		}
		if m.Value.Value != nil {
			watch(messages.ChannelMarket, m.Value.Value.MarketID)
		}
	}
	return now, current, nil
}

// changeOf returns the reason of an event with the state now, or "" if it would show the same as the event with the state last.
func changeOf(last, now *model.Question) (reason follow.Reason) {
	switch {
	case last == nil:
		return follow.Initial
	case last.Question != now.Question: // a new version of the file
		return follow.Resync
	}
	for i := range now.State {
		a, b := &last.State[i], &now.State[i]
		if a.Market.Value.Value != b.Market.Value.Value || !sameLevels(a.Book.Value.Value, b.Book.Value.Value) {
			return follow.Changed
		}
		if faultsOf(a) != faultsOf(b) {
			reason = follow.Freshness
		}
	}
	return reason
}

func faultsOf(l *model.LegState) [4]bool {
	return [...]bool{l.Book.Err != nil, l.Book.Value.Stale, l.Market.Err != nil, l.Market.Value.Stale}
}

func sameLevels(a, b *market.Book) bool {
	return a == b || a != nil && b != nil && a.Bids.Equal(b.Bids) && a.Asks.Equal(b.Asks)
}
