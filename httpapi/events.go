package httpapi

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/fanout"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// eventReadTimeout bounds the time that an event waits for the venue.
const eventReadTimeout = 3 * time.Second

// subscribe executes a subscription until it or ctx ends, or until each returns false. It calls each with the envelope and the
// response of each event. last is the response without data that ended the subscription, or nil. unknown is true if the subscription
// has ended because the venue does not know its ids.
func (e *engine) subscribe(ctx context.Context, g *fanout.Group, op *operation, each func(follow.Envelope, *graphql.Response) bool) (last *graphql.Response, unknown bool) {
	defer e.catch(ctx, func(r *graphql.Response) { last, unknown = r, false })
	streamCtx, running := resolvers.WithStream(ctx, g)
	stream, errs := op.plan.executable.Subscribe(streamCtx, op.variables)
	if len(errs) > 0 {
		return &graphql.Response{Errors: e.presented(ctx, errs)}, false
	}
	running.Run(func(event resolvers.StreamEvent) bool {
		var resp *graphql.Response
		if event.Problem != nil {
			resp = e.problem(ctx, stream.Path(), event)
			e.identities.countRefusal(ctx, resp)
		} else {
			resp = e.next(ctx, stream, running.Account())
		}
		if resp == nil {
			return false
		}
		if resp.Data == nil {
			last, unknown = resp, event.Ended && follow.IsUnknown(event.Problem)
			return false
		}
		return each(event.Envelope, resp)
	})
	return last, unknown
}

// next returns the response for the next event of a stream, or nil if ctx has ended. account is the account of the subscription,
// or "".
func (e *engine) next(ctx context.Context, stream *exec.Stream, account market.Address) (resp *graphql.Response) {
	defer e.catch(ctx, func(r *graphql.Response) { resp = r })
	if !stream.Next(ctx) {
		return nil
	}
	defer stream.Drop()
	if account != "" {
		e.identities.countAcceptance(ctx, account)
	}
	return e.event(ctx, stream)
}

// event returns the response for the event to which stream.Next has moved. Each event has its own loaders. The timeout of the event
// begins when eventLimiter admits the event.
func (e *engine) event(ctx context.Context, stream *exec.Stream) *graphql.Response {
	release, err := e.eventLimiter.Acquire(ctx)
	if err != nil {
		return e.errorResponse(ctx, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(e.cfg.Timeout, eventReadTimeout))
	defer cancel()
	ctx, set, _ := loaders.With(ctx, e.cfg.Sources)
	defer set.Done()
	memory := reservation{limit: e.cfg.MaxResponse}
	data, errs, ok := runPasses(ctx, time.Time{}, set, nil, &memory, func() ([]byte, []exec.Error) {
		if release == nil { // eventLimiter does not count the event while values are fetched
			if release, err = e.eventLimiter.Acquire(ctx); err != nil {
				release = func() {} // ctx has ended, so this execution only returns errors for missing keys and needs no limiter
			}
		}
		defer func() { release(); release = nil }()
		return stream.Execute(ctx, nil, &memory)
	})
	if !ok {
		return e.errorResponse(ctx, context.Cause(ctx))
	}
	return &graphql.Response{Data: data, Errors: e.presented(ctx, errs)}
}
