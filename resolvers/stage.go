package resolvers

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/compiled"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
)

// Group is whom a subscription is executed for: readers that came at different times. Its methods don't wait.
type Group interface {
	// Post tells of the next event before it is handed over.
	Post(e market.Envelope)
	// Waiting is signalled while readers wait for the present state.
	Waiting() <-chan struct{}
	// Take returns an audience of them, and signals Waiting again where there are more; resync tells that they have missed something, else they have seen nothing yet.
	Take() (to market.Audience, resync, ok bool)
	// Admit lets an audience have what is posted from now on.
	Admit(to market.Audience)
}

type groupKey struct{}

// WithGroup returns a context for an operation that is executed for a group. Without one a subscription has a single reader
// that reads all from the start.
func WithGroup(ctx context.Context, g Group) context.Context {
	return context.WithValue(ctx, groupKey{}, g)
}

// stage is where a subscription shows its events.
type stage struct {
	ctx   context.Context
	group Group // nil for a single reader
	// to is whom events are for.
	to market.Audience
}

func newStage(ctx context.Context) *stage {
	g, _ := ctx.Value(groupKey{}).(Group)
	return &stage{ctx: ctx, group: g}
}

// waiting is signalled when readers wait for the present state.
func (s *stage) waiting() <-chan struct{} {
	if s.group == nil {
		return nil
	}
	return s.group.Waiting()
}

// show lets present send the present state to some that wait for it. If others still wait, waiting is signalled again.
func (s *stage) show(present func(reason model.UpdateReason) (bool, error)) (wanted bool, err error) {
	to, resync, ok := s.group.Take()
	if !ok {
		return true, nil
	}
	reason := model.UpdateReasonInitial
	if resync {
		reason = model.UpdateReasonResync
	}
	s.to = to
	wanted, err = present(reason)
	s.to = 0
	s.group.Admit(to)
	return wanted, err
}

// outlet hands the events of a subscription over to the transport.
type outlet[T any] struct {
	*stage
	events chan T
}

// send hands over an event and waits until the transport takes it; it returns false when nobody wants events any more.
// mode is what may become of the event when a reader is slow, unless its reason makes it a whole state.
func (o *outlet[T]) send(event T, topic string, mode market.Mode, reason model.UpdateReason) bool {
	note(o.ctx)
	if o.group != nil {
		whole := reason == model.UpdateReasonInitial || reason == model.UpdateReasonResync
		o.group.Post(market.Envelope{Topic: topic, Mode: mode, State: whole, To: o.to})
	}
	select {
	case o.events <- event:
		return true
	case <-o.ctx.Done():
		return false
	}
}

// problems are errors of a subscription that belong to no field of an event. Each leaves with the event that is sent after
// it was reported, or with the end of the subscription.
type problems struct {
	mu sync.Mutex
	// sent counts the events that were handed over, taken the responses that were made of them.
	sent, taken int
	list        []problem
	// next is told of the next event; nil where nobody waits for it.
	next func()
}

type problem struct {
	err error
	// after is the number of events that were sent before it.
	after int
}

type problemsKey struct{}

// WithProblems returns a context for an operation whose subscription can report errors beside its events.
func WithProblems(ctx context.Context) context.Context {
	return context.WithValue(ctx, problemsKey{}, &problems{})
}

// TakeProblems returns the errors that go with the next response of a subscription. It is called once for each response,
// and once when there is none left, to make one of what is returned then.
func TakeProblems(ctx context.Context) []error {
	p, ok := ctx.Value(problemsKey{}).(*problems)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []error
	p.taken++
	for len(p.list) > 0 && (p.list[0].after < p.taken || p.taken > p.sent) {
		taken = append(taken, p.list[0].err)
		p.list = p.list[1:]
	}
	return taken
}

// note counts an event.
func note(ctx context.Context) {
	if p, ok := ctx.Value(problemsKey{}).(*problems); ok {
		p.mu.Lock()
		p.sent++
		sent := p.next
		p.next = nil
		p.mu.Unlock()
		if sent != nil {
			sent()
		}
	}
}

// WhenSent has f called once, when the event of the next response of a subscription is sent, or at once if it waits already.
// f must not wait.
func WhenSent(ctx context.Context, f func()) {
	p, ok := ctx.Value(problemsKey{}).(*problems)
	if !ok {
		return
	}
	p.mu.Lock()
	waits := p.sent > p.taken
	if p.next = f; waits {
		p.next = nil
	}
	p.mu.Unlock()
	if waits {
		f()
	}
}

func addProblem(ctx context.Context, err error) {
	if p, ok := ctx.Value(problemsKey{}).(*problems); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		err = &gqlerror.Error{Err: err, Message: "subscription failed", Path: compiled.StreamPath(ctx)}
		p.list = append(p.list, problem{err, p.sent})
	}
}
