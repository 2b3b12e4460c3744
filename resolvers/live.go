package resolvers

import (
	"context"
	"iter"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// maxPace is the greatest maxPerSecond.
const maxPace = 100

type groupKey struct{}

// WithGroup returns a context for an operation that is executed for a group. Without one a subscription has a single reader
// that reads all from the start.
func WithGroup(ctx context.Context, g follow.Group) context.Context {
	return context.WithValue(ctx, groupKey{}, g)
}

// source returns what a subscription follows.
func (r *Resolver) source(ctx context.Context) follow.Source {
	g, _ := ctx.Value(groupKey{}).(follow.Group)
	return follow.Source{Feed: r.Feed, Group: g, Timeout: r.Timeout}
}

// subscribe hands the events of a stream to the transport until the stream ends or ctx does. event makes the graph's type of
// an event.
func subscribe[E, M any](ctx context.Context, stream iter.Seq2[follow.Event[E], error], event func(reason model.UpdateReason, value E) M) <-chan M {
	out, turns := make(chan M), turnsOf(ctx)
	turns.begin()
	go func() { // owned by the transport: it ends ctx and drains the channel
		var last error
		defer func() {
			if p := recover(); p != nil {
				last = Recover(ctx, p)
			}
			turns.end(ctx, last)
			close(out)
		}()
		for e, err := range stream {
			switch {
			case err != nil:
				last = err
				return
			case e.Problem != nil:
				turns.problem(ctx, e.Problem)
				continue
			}
			m := event(model.UpdateReason(e.Reason), e.Value)
			turns.event()
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// read calls f until it has read all that it needs, for what a subscription itself reads, outside of its events. It is no demand
// of a client that polls, so it does not make the feed watch anything.
func (r *Resolver) read(ctx context.Context, f func(*loaders.Set)) {
	loaders.Read(market.WithoutDemand(ctx), r.Sources, f)
}

// readOne is read for one value.
func readOne[T any](ctx context.Context, r *Resolver, f func(*loaders.Set) (market.Read[*T], error)) (read market.Read[*T], err error) {
	r.read(ctx, func(set *loaders.Set) { read, err = f(set) })
	return read, err
}

// accountOf returns what a subscription follows an account by, as the caller of ctx sees it. A value that the venue does not have
// is nil.
func accountOf[T any](ctx context.Context, r *Resolver, a market.Address, loader func(*loaders.Set) *loaders.Loader[market.Address, T]) follow.Account[T] {
	return follow.Account[T]{Topic: r.accountTopic(ctx, a), Credentials: market.CredentialsFrom(ctx), Read: func(ctx context.Context) (market.Read[*T], error) {
		return readOne(ctx, r, func(set *loaders.Set) (market.Read[*T], error) { return loader(set).Get(a) })
	}}
}

// accountTopic returns the topic of an account as the caller of ctx sees it.
func (r *Resolver) accountTopic(ctx context.Context, a market.Address) market.Topic {
	return market.Topic{Channel: market.ChannelUser, ID: string(a), Scope: r.Scope(ctx, a)}
}

// interval checks a maxPerSecond argument and returns the least time between two events; 0 is none.
func interval(perSecond *int, limit int) (time.Duration, error) {
	if perSecond == nil {
		return 0, nil
	}
	if *perSecond < 1 || *perSecond > limit {
		return 0, badInput("maxPerSecond is %d; it must be 1 to %d", *perSecond, limit)
	}
	return time.Second / time.Duration(*perSecond), nil
}

// distinctIDs checks the ids of a subscription and returns each once.
func distinctIDs(argument string, ids []string) ([]string, error) {
	if len(ids) == 0 || len(ids) > maxIDs {
		return nil, badInput("%s holds %d ids; it must hold 1 to %d", argument, len(ids), maxIDs)
	}
	seen, out := make(map[string]bool, len(ids)), make([]string, 0, len(ids))
	for _, id := range ids {
		if err := market.CheckID(id); err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out, nil
}
