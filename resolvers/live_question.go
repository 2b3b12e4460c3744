package resolvers

import (
	"context"
	"iter"
	"reflect"
	"sync"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
)

func (r *subscriptionResolver) QuestionChanged(ctx context.Context, questionID string, depth, maxPerSecond *int) (<-chan model.QuestionUpdate, error) {
	d := valueOr(depth, 5)
	if d < 1 || d > queries.MaxBookDepth {
		return nil, badInput("depth is %d; it must be 1 to %d", d, queries.MaxBookDepth)
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
		return follow.Question(ctx, r.source(ctx), tokens, d, every, r.freshBooks, r.freshMarkets)
	})
	return subscribe(ctx, stream, func(reason model.UpdateReason, q model.Question) model.QuestionUpdate {
		return model.QuestionUpdate{Reason: reason, Question: q}
	}), nil
}

func unknownQuestion(id string) error { return badInput("there is no question %.100q", id) }

// follow follows a question of the file. When the file has another question with this id, follow starts again with a RESYNC. When it
// has none, the stream ends with an error.
func (f *QuestionFile) follow(ctx context.Context, id string, open func(context.Context, *questions.Question) follow.Stream[follow.QuestionUpdate]) follow.Stream[model.Question] {
	return func(yield func(follow.Event[model.Question], error) bool) {
		for again := false; ctx.Err() == nil; again = true {
			q, next := f.watch(id)
			if q == nil {
				yield(follow.Event[model.Question]{}, unknownQuestion(id))
				return
			}
			part, stop := context.WithCancel(ctx)
			var wait sync.WaitGroup
			wait.Go(func() { f.cancelOnChange(part, stop, q, next) })
			more := forward(open(part, q), q, again, yield)
			changed := part.Err() != nil
			stop()
			wait.Wait()
			if !more || !changed {
				return
			}
		}
	}
}

// watch returns the present question with an id, or nil, and a channel that is closed when the file changes.
func (f *QuestionFile) watch(id string) (*questions.Question, <-chan struct{}) {
	v := f.version.Load()
	return v.Find(id), v.next
}

// cancelOnChange calls stop when the file has another question with the id of q, or none. It returns when ctx ends.
func (f *QuestionFile) cancelOnChange(ctx context.Context, stop func(), q *questions.Question, next <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
		var now *questions.Question
		if now, next = f.watch(q.ID); !reflect.DeepEqual(now, q) {
			stop()
			return
		}
	}
}

// forward yields the events of a stream of q, and reports whether the reader wants more. again makes the first event a RESYNC.
func forward(stream iter.Seq2[follow.Event[follow.QuestionUpdate], error], q *questions.Question, again bool, yield func(follow.Event[model.Question], error) bool) bool {
	for e, err := range stream {
		out := follow.Event[model.Question]{Envelope: e.Envelope, Reason: e.Reason, Problem: e.Problem}
		if err == nil && e.Problem == nil {
			out.Value = model.Question{Question: q, State: &model.QuestionState{Books: e.Value.Books, Markets: e.Value.Markets}}
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

func (r *Resolver) freshBooks(ctx context.Context, tokenIDs []string) []reads.Result[*market.Book] {
	results := make([]reads.Result[*market.Book], len(tokenIDs))
	r.read(ctx, func(set *loaders.Set) {
		for i, id := range tokenIDs {
			results[i].Value, results[i].Err = set.FreshBook(id, queries.MaxBookDepth)
		}
	})
	return results
}

func (r *Resolver) freshMarkets(ctx context.Context, tokenIDs []string) []reads.Result[*market.Market] {
	results := make([]reads.Result[*market.Market], len(tokenIDs))
	r.read(ctx, func(set *loaders.Set) {
		for i, id := range tokenIDs {
			results[i].Value, results[i].Err = freshMarket(set, id)
		}
	})
	return results
}
