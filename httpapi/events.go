package httpapi

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// eventReadTimeout bounds the time that an event waits for the venue.
const eventReadTimeout = 3 * time.Second

// subscribe starts a subscription. The subscription ends when ctx ends, or earlier. next waits for the next
// response and returns it. After the last response, next returns nil. A response without data is the last response. unknown is true
// if the subscription has ended because the venue does not know its ids. next is not safe for concurrent use.
func (e *engine) subscribe(ctx context.Context, op *operation) (next func() (resp *graphql.Response, unknown bool)) {
	ended := false
	failed := func(v any) *graphql.Response {
		ended = true
		return e.errorResponse(ctx, e.recover(ctx, v))
	}
	defer func() {
		if v := recover(); v != nil {
			next = returnOnce(failed(v))
		}
	}()
	ctx = resolvers.WithEventQueue(ctx)
	stream, errs := op.plan.executable.Subscribe(ctx, op.variables)
	if len(errs) > 0 {
		return returnOnce(&graphql.Response{Errors: e.presented(ctx, errs)})
	}
	return func() (resp *graphql.Response, unknown bool) {
		if ended {
			return nil, false
		}
		defer func() {
			if v := recover(); v != nil {
				resp, unknown = failed(v), false
			}
		}()
		switch event := resolvers.NextEvent(ctx); {
		case event.Problem != nil:
			resp = e.problem(ctx, event)
			e.identities.countRefusal(ctx, resp)
			return resp, event.Ended && follow.IsUnknown(event.Problem)
		case stream.Next(ctx):
			return e.event(ctx, stream), false
		}
		return nil, false
	}
}

func returnOnce(resp *graphql.Response) func() (*graphql.Response, bool) {
	return func() (r *graphql.Response, unknown bool) {
		r, resp = resp, nil
		return r, false
	}
}

// event returns the response for the event to which stream.Next has moved. Each event has its own loaders. The timeout of the event
// begins when eventLimiter admits the event.
func (e *engine) event(ctx context.Context, stream *exec.Stream) *graphql.Response {
	release, err := e.eventLimiter.acquire(ctx)
	if err != nil {
		return e.errorResponse(ctx, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(e.cfg.Timeout, eventReadTimeout))
	defer cancel()
	ctx, set, _ := loaders.With(ctx, e.cfg.Sources)
	defer set.Done()
	memory := reservation{limit: e.cfg.MaxResponse}
	data, errs, ok := runPasses(ctx, time.Time{}, set, &memory, func() ([]byte, []exec.Error) {
		if release == nil { // eventLimiter does not count the event while values are fetched
			if release, err = e.eventLimiter.acquire(ctx); err != nil {
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
