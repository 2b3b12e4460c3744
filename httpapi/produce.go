package httpapi

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/fanout"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// eventTime is how long what is read beside an event may hold it up.
const eventTime = 3 * time.Second

// subscribe starts a subscription, which lasts until ctx ends. What it returns waits for the next response, and gives nil after
// the last one; it must be called by one goroutine at a time. A first response without data says that the subscription could not
// begin. The clients of g pay for it.
func (e *engine) subscribe(ctx context.Context, op *operation, g *fanout.Group) (next func() *graphql.Response) {
	ended := false
	failed := func(v any) *graphql.Response {
		ended = true
		return e.refuse(ctx, e.recover(ctx, v))
	}
	defer func() {
		if v := recover(); v != nil {
			next = once(failed(v))
		}
	}()
	values := op.variables
	if op.simple { // they hold on to more than themselves
		var err error
		if values, err = variables(e.schema, op.definition, op.given); err != nil {
			return once(e.refuse(ctx, validationErrors(err)...))
		}
	}
	var guess guess
	ctx = resolvers.WithEventQueue(ctx, func() error { return guess.begin(ctx, e.identities) })
	stream, errs := op.plan.executable.Subscribe(ctx, values)
	if len(errs) > 0 {
		return once(&graphql.Response{Errors: e.presented(ctx, errs)})
	}
	return func() (resp *graphql.Response) {
		if ended {
			return nil
		}
		defer func() {
			if v := recover(); v != nil {
				resp = failed(v)
			}
		}()
		switch turn := resolvers.NextEvent(ctx); {
		case turn.Problem != nil:
			resp = e.problem(ctx, turn)
			e.identities.note(ctx, resp)
			return resp
		case stream.Next(ctx):
			guess.settle(true)
			return e.event(ctx, stream, g)
		}
		return nil
	}
}

// once returns a function that returns a response the first time.
func once(resp *graphql.Response) func() *graphql.Response {
	return func() (r *graphql.Response) {
		r, resp = resp, nil
		return r
	}
}

// event returns the response for the present event of a subscription. Each event has loaders of its own, and its time begins with
// its turn.
func (e *engine) event(ctx context.Context, stream *exec.Stream, g *fanout.Group) *graphql.Response {
	leave, err := e.turn(ctx, g)
	if err != nil {
		return e.refuse(ctx, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(e.cfg.Timeout, eventTime))
	defer cancel()
	ctx, set, _ := loaders.With(ctx, e.cfg.Sources)
	defer set.Done()
	room := room{most: e.cfg.MaxResponse}
	data, errs, ok := passes(ctx, time.Time{}, set, &room, awaitVenue, func() ([]byte, []exec.Error) {
		if leave == nil { // it was left while values were fetched
			if leave, err = e.producing.enter(ctx); err != nil {
				leave = func() {} // its time is over; a last pass makes errors of what is missing
			}
		}
		defer func() { leave(); leave = nil }()
		return stream.Execute(ctx, nil, &room)
	})
	if !ok {
		return e.refuse(ctx, context.Cause(ctx))
	}
	if room.refused != nil {
		g.Spend(room.most) // the event itself is short
	}
	return &graphql.Response{Data: data, Errors: e.presented(ctx, errs)}
}

// turn waits until one of the clients of a group may spend more and has a processor for an event. leave must be called once.
func (e *engine) turn(ctx context.Context, g *fanout.Group) (leave func(), err error) {
	for {
		if leave, err = e.producing.enter(ctx); err != nil {
			return nil, err
		}
		debt := g.Debt()
		if debt == 0 {
			return leave, nil
		}
		leave()
		select {
		case <-time.After(debt):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
