package resolvers

import (
	"context"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
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
	if r.QuestionFile == nil || r.QuestionFile.version.Load().Find(questionID) == nil {
		return nil, unknownQuestion(questionID)
	}
	stream := r.QuestionFile.follow(ctx, questionID, func(ctx context.Context, q *questions.Question) follow.Stream[follow.QuestionUpdate] {
		var tokens []string
		for _, l := range q.Legs {
			tokens = append(tokens, l.Token)
		}
		readBooks := readEach(r.Resolver, func(set *loaders.Set, id string) (reads.Value[*market.Book], error) {
			return set.FreshBook(id, queries.MaxBookDepth)
		})
		return follow.Question(ctx, r.source(ctx), tokens, d, every, readBooks, readEach(r.Resolver, freshMarket))
	})
	return subscribe(ctx, stream, func(reason model.UpdateReason, q model.Question) model.QuestionUpdate {
		return model.QuestionUpdate{Reason: reason, Question: q}
	}), nil
}

func unknownQuestion(id string) error { return badInput("there is no question %.100q", id) }

// follow follows a question of the file. When the file changes, follow starts again with a RESYNC. When the file has no such question,
// the stream ends with an error.
func (f *QuestionFile) follow(ctx context.Context, id string, open func(context.Context, *questions.Question) follow.Stream[follow.QuestionUpdate]) follow.Stream[model.Question] {
	return func(yield func(follow.Event[model.Question], error) bool) {
		for again := false; ctx.Err() == nil; again = true {
			v := f.version.Load()
			q := v.Find(id)
			if q == nil {
				yield(follow.Event[model.Question]{}, unknownQuestion(id))
				return
			}
			part, stop := context.WithCancel(ctx)
			detach := context.AfterFunc(v.used, stop)
			more := forward(open(part, q), q, again, yield) && part.Err() != nil
			detach()
			stop()
			if !more {
				return
			}
		}
	}
}

// forward yields the events of a stream of q, and reports whether the reader wants more. again makes the first event a RESYNC.
func forward(stream follow.Stream[follow.QuestionUpdate], q *questions.Question, again bool, yield func(follow.Event[model.Question], error) bool) bool {
	for e, err := range stream {
		out := follow.Event[model.Question]{Envelope: e.Envelope, Reason: e.Reason, Problem: e.Problem}
		if err == nil && e.Problem == nil {
			out.Value = model.Question{Question: q, State: new(model.QuestionState(e.Value))}
		}
		if again && e.Reason == follow.Initial {
			out.Reason = follow.Resync
		}
		if !yield(out, err) {
			return false
		}
	}
	return true
}

// readEach returns a function that reads the values of ids with get and returns them in the order of the ids.
func readEach[T any](r *Resolver, get func(*loaders.Set, string) (reads.Value[T], error)) func(context.Context, []string) []reads.Result[T] {
	return func(ctx context.Context, ids []string) []reads.Result[T] {
		results := make([]reads.Result[T], len(ids))
		r.read(ctx, func(set *loaders.Set) {
			for i, id := range ids {
				results[i].Value, results[i].Err = get(set, id)
			}
		})
		return results
	}
}
