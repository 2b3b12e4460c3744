package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
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
	look := func(ctx context.Context, known *model.Question) (follow.Look[model.Question], error) {
		return r.look(ctx, questionID, d, known)
	}
	return subscribe(ctx, follow.Question(ctx, r.source(ctx), booksOf(q), every, look, changeOf), func(reason model.UpdateReason, q model.Question) model.QuestionUpdate {
		return model.QuestionUpdate{Reason: reason, Question: q}
	}), nil
}

// booksOf returns the topics of the books of a question.
func booksOf(q *questions.Question) (topics []messages.Topic) {
	for _, l := range q.Legs {
		topics = append(topics, messages.Topic{Channel: messages.ChannelOrderbook, ID: l.Token})
	}
	return topics
}

func (r *Resolver) knownQuestion(ctx context.Context, id string) (*questions.Question, error) {
	q := r.questions(ctx).Find(id)
	if q == nil {
		return nil, badInput("there is no question %.100q", id)
	}
	return q, nil
}

// look implements follow.Question for a question of the present file.
func (r *Resolver) look(ctx context.Context, id string, depth int, known *model.Question) (found follow.Look[model.Question], err error) {
	q, err := r.knownQuestion(ctx, id)
	if err != nil {
		return found, err
	}
	now := &model.Question{Question: q}
	read := func(set *loaders.Set) { now.State = readLegs(set, q, depth) }
	if known == nil {
		r.read(ctx, read)
	} else {
		loaders.Glance(request.WithoutPoll(ctx), r.Sources, read)
	}
	found = follow.Look[model.Question]{State: now, Topics: booksOf(q), Fresh: true, Live: true}
	for i := range now.State {
		b, m := &now.State[i].Book, &now.State[i].Market
		if known != nil && known.Question == q {
			useKnown(b, &known.State[i].Book)
			useKnown(m, &known.State[i].Market)
		}
		found.Fresh = found.Fresh && b.Err == nil && !b.Value.Stale && m.Err == nil && !m.Value.Stale
		h := m.Value.Handle // a market without a fresh time would be read by each look
		found.Live = found.Live && found.Fresh && b.Value.Source == market.SourceStream && h != nil && h.FreshUntil() > time.Now().UnixNano()
		if b.Value.Value != nil {
			b.Value.Value = b.Value.Value.Cut(depth)
		}
		if m.Value.Value != nil {
			found.Topics = append(found.Topics, messages.Topic{Channel: messages.ChannelMarket, ID: m.Value.Value.MarketID})
		}
	}
	return found, nil
}

// useKnown replaces a read that the cache could not answer by a known one, which is stale now.
func useKnown[T any](read, known *reads.Result[T]) {
	if read.Err == loaders.ErrNotCached {
		*read = *known
		read.Value.MarkStale(reads.CauseExpired)
	}
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
