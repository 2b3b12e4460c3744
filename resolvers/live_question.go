package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
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
	asked := r.askedQuestion(ctx, questionID, d, every)
	if _, err := asked.Find(); err != nil {
		return nil, err
	}
	return subscribe(ctx, follow.Question(ctx, r.source(ctx), asked), func(reason model.UpdateReason, s follow.QuestionState) model.QuestionUpdate {
		return model.QuestionUpdate{Reason: reason, Question: model.Question{Question: s.Question, State: s.Legs}}
	}), nil
}

func (r *Resolver) askedQuestion(ctx context.Context, id string, depth int, every time.Duration) follow.AskedQuestion {
	find := func() (*questions.Question, error) {
		q := r.questions(ctx).Find(id)
		if q == nil {
			return nil, badInput("there is no question %.100q", id)
		}
		return q, nil
	}
	look := func(ctx context.Context, l *questions.Leg) (leg reads.Leg) {
		r.read(ctx, func(set *loaders.Set) { leg = readLeg(set, l, depth) })
		if b := &leg.Book.Value; b.Value != nil {
			b.Value = b.Value.Cut(depth)
		}
		return leg
	}
	return follow.AskedQuestion{Find: find, Look: look, Every: every}
}
