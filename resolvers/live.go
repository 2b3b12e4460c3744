package resolvers

import (
	"context"
	"iter"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

const maxPerSecondLimit = 100

func (r *Resolver) source(ctx context.Context) follow.Source {
	return follow.Source{Names: r.Names, Feeds: r.Feeds, Group: streamOf(ctx).group, Timeout: r.Timeout}
}

// subscribe makes the Stream of ctx run stream, which sends the values of its events to the returned channel. The function event
// converts an event to its GraphQL type.
func subscribe[E, M any](ctx context.Context, stream iter.Seq2[follow.Event[E], error], event func(reason model.UpdateReason, value E) M) <-chan M {
	out := make(chan M, 1)
	streamOf(ctx).run = func(each func(StreamEvent) bool) {
		if err := runStream(ctx, stream, func(e follow.Event[E]) bool {
			if e.Problem != nil {
				return each(StreamEvent{Envelope: e.Envelope, Problem: e.Problem})
			}
			out <- event(model.UpdateReason(e.Reason), e.Value) // each takes it from there
			return each(StreamEvent{Envelope: e.Envelope})
		}); err != nil {
			each(StreamEvent{Problem: err, Ended: true})
		}
	}
	return out
}

// runStream calls each for the events of a stream until each returns false. It returns the error that has ended the stream. A panic
// counts as an error.
func runStream[E any](ctx context.Context, stream iter.Seq2[follow.Event[E], error], each func(follow.Event[E]) bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recover(ctx, p)
		}
	}()
	for e, err := range stream {
		if err != nil {
			return err
		}
		if !each(e) {
			return nil
		}
	}
	return nil
}

// read calls f until no value is pending. Subscriptions call read for the REST reads that their events need. These reads do not
// count as polls of a client; see Request.NoPoll.
func (r *Resolver) read(ctx context.Context, f func(*loaders.Set)) {
	loaders.Read(request.WithoutPoll(ctx), r.Sources, f)
}

// readOne is like read, for one value.
func readOne[T any](ctx context.Context, r *Resolver, f func(*loaders.Set) (reads.Value[*T], error)) (read reads.Value[*T], err error) {
	r.read(ctx, func(set *loaders.Set) { read, err = f(set) })
	return read, err
}

// accountOf returns the topic, the credentials and the read function of an account, for the client of ctx. The read function
// returns a nil value if the venue has no value for the account.
func accountOf[T any](ctx context.Context, r *Resolver, a market.Address, loader func(*loaders.Set) *loaders.Loader[market.Address, T]) follow.Account[T] {
	topic, credentials := r.accountTopic(ctx, a)
	return follow.Account[T]{Topic: topic, Credentials: credentials, Read: func(ctx context.Context) (reads.Value[*T], error) {
		return readOne(ctx, r, func(set *loaders.Set) (reads.Value[*T], error) { return loader(set).Get(a) })
	}}
}

// accountTopic returns the topic of an account, and the credentials with which to watch it. Clients with different credentials have
// different topics. A further venue gets no credentials, so it cannot accept them either; see Stream.Account.
func (r *Resolver) accountTopic(ctx context.Context, a market.Address) (messages.Topic, *market.Credentials) {
	v, credentials := r.venueOf(string(a)), request.CredentialsFrom(ctx)
	if v == &r.Venues[0] {
		streamOf(ctx).account = a
	} else {
		ctx, credentials = request.WithCredentials(ctx, nil), nil
	}
	return messages.Topic{Channel: messages.ChannelUser, ID: string(a), Scope: v.Scope(ctx, a)}, credentials
}

// interval returns the minimum time between two events for an argument maxPerSecond, or 0 if the argument is nil. The parameter
// limit is the greatest value that the argument may have.
func interval(perSecond *int, limit int) (time.Duration, error) {
	if perSecond == nil {
		return 0, nil
	}
	if *perSecond < 1 || *perSecond > limit {
		return 0, badInput("maxPerSecond is %d; it must be 1 to %d", *perSecond, limit)
	}
	return time.Second / time.Duration(*perSecond), nil
}

// ListOf returns the name of the argument with the ids of a subscription field, if a subscription to several ids gets the same
// events as one subscription to each id. For all other fields, ListOf returns "". One of these fields is tradesAdded, because its
// first event contains the trades of all tokens.
func ListOf(field string) string {
	switch field {
	case "priceChanged":
		return "tokenIds"
	case "marketChanged":
		return "marketIds"
	}
	return ""
}

// DistinctIDs returns the ids of a subscription without duplicates, or nil if they are invalid.
func DistinctIDs(ids []string) []string {
	ids, _ = distinctIDs("ids", ids)
	return ids
}

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
