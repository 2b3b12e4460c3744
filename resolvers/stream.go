package resolvers

import (
	"context"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// Stream runs the subscription that a resolver has returned for the context of WithStream. It is not safe for concurrent use.
type Stream struct {
	group follow.Group
	// run is nil if the subscription's channel gets values without it.
	run func(each func(StreamEvent) bool)
	// account is the result of Account.
	account market.Address
}

// StreamEvent is an event of a subscription. If Problem is nil, the subscription's channel has a value.
type StreamEvent struct {
	Envelope follow.Envelope
	// Problem is an error to send instead of a value. If Ended is set, Problem is the error that has ended the subscription.
	Problem error
	// Ended reports that the subscription has ended.
	Ended bool
}

// WithStream returns a context for the resolver of a subscription that serves a group. The resolver returns at once, and its channel
// gets values only while Run runs.
func WithStream(ctx context.Context, group follow.Group) (context.Context, *Stream) {
	s := &Stream{group: group}
	return request.With(ctx, func(r *request.Request) { r.Subscription = s }), s
}

// Run runs the subscription until it ends, its context ends, or each returns false. It calls each for every event. If the event is a
// value, each must take it from the subscription's channel, and return false if the channel is closed.
func (s *Stream) Run(each func(StreamEvent) bool) {
	if s.run != nil {
		s.run(each)
		return
	}
	for each(StreamEvent{Envelope: follow.Envelope{Mode: follow.Append}}) {
	}
}

// Account returns the account of the subscription, or "" if the subscription concerns no account of the first venue. If the stream has
// a value, the venue has accepted the client's credentials for this account.
func (s *Stream) Account() market.Address { return s.account }

// streamOf returns the stream of ctx. If ctx has none, it returns a new stream that nobody runs.
func streamOf(ctx context.Context) *Stream {
	if s, ok := request.From(ctx).Subscription.(*Stream); ok {
		return s
	}
	return &Stream{}
}
