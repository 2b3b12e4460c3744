package resolvers

import (
	"context"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// Stream runs the subscription that a resolver has returned for the context of WithStream. It is not safe for concurrent use.
type Stream struct {
	// run is nil if the subscription's channel gets values without it.
	run func(each func(StreamEvent) bool)
	// account is the account of the subscription, or "".
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

type streamKey struct{}

// WithStream returns a context for the resolver of a subscription. The resolver returns at once, and its channel gets values only
// while Run runs.
func WithStream(ctx context.Context) (context.Context, *Stream) {
	s := &Stream{}
	return context.WithValue(ctx, streamKey{}, s), s
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

// Account returns the account of the subscription, or "" if the subscription concerns no account. If the stream has a value, the
// venue has accepted the client's credentials for this account.
func (s *Stream) Account() market.Address { return s.account }

// streamOf returns the stream of ctx. If ctx has none, it returns a new stream that nobody runs.
func streamOf(ctx context.Context) *Stream {
	if s, ok := ctx.Value(streamKey{}).(*Stream); ok {
		return s
	}
	return &Stream{}
}

// atField adds the path of ctx's field to an error.
func atField(ctx context.Context, err error) error {
	return &gqlerror.Error{Err: err, Message: "subscription failed", Path: exec.StreamPath(ctx)}
}
