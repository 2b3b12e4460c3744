package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Reason says why an event is sent, in the words of the graph.
type Reason string

// The reasons of events.
const (
	// Initial is the state at the time of the subscription.
	Initial Reason = "INITIAL"
	// Changed follows a change.
	Changed Reason = "CHANGE"
	// Resync is the state after a gap.
	Resync Reason = "RESYNC"
	// Freshness repeats a value whose freshness has changed.
	Freshness Reason = "FRESHNESS"
)

// whole reports whether an event for a reason is a whole state.
func (r Reason) whole() bool { return r == Initial || r == Resync }

// Event is one event of a stream.
type Event[T any] struct {
	Reason Reason
	Value  T
	// Problem is set instead of the rest for something that failed and is tried again.
	Problem error
}

// Stream yields events until it ends. An error is the last thing that it yields, and comes without an event.
type Stream[T any] = iter.Seq2[Event[T], error]

// Group is who a stream is for: readers that came at different times. Its methods do not wait.
type Group interface {
	// Announce gives the envelope of the next event before the stream yields the event.
	Announce(e Envelope)
	// Waiting is signalled while readers wait for the present state.
	Waiting() <-chan struct{}
	// TakeWaiting returns a cohort of waiting readers, and signals Waiting again if there are more. resync says that they
	// have missed events; otherwise they are new.
	TakeWaiting() (to Cohort, resync, ok bool)
	// Join also sends the cohort all events announced from now on.
	Join(to Cohort)
}

// Source is what the streams of one subscription follow.
type Source struct {
	Feed *feed.Feed
	// Group is who the events are for; nil for a single reader.
	Group Group
	// Timeout is how long the first event or problem may take.
	Timeout time.Duration
}

// errStopped ends a loop whose reader wants no more events.
var errStopped = errors.New("the reader has stopped")

// outlet hands the events of one stream over.
type outlet[T any] struct {
	group Group
	yield func(Event[T], error) bool
	// to is who events are for; 0 is everybody.
	to Cohort
	// sent counts events and problems.
	sent int
}

// send hands an event over. mode is what may become of it when a reader is slow, unless it is a whole state.
func (o *outlet[T]) send(reason Reason, topic string, mode Mode, value T) error {
	return o.post(Event[T]{Reason: reason, Value: value}, Envelope{Topic: topic, Mode: mode, State: reason.whole(), To: o.to})
}

// problem reports a failure.
func (o *outlet[T]) problem(err error) error {
	return o.post(Event[T]{Problem: err}, Envelope{Mode: Append, To: o.to})
}

// unknown reports an id that the venue does not know, once, and to readers that join. The error ends the stream.
func (o *outlet[T]) unknown(u *unknowns, id string) error {
	problem, last := u.add(id)
	if problem == nil || last {
		return problem
	}
	return o.problem(problem)
}

// repeat reports the unknown ids again, to a cohort.
func (o *outlet[T]) repeat(u *unknowns) error {
	for _, id := range slices.Sorted(maps.Keys(u.gone)) {
		if err := o.problem(u.problem(id)); err != nil {
			return err
		}
	}
	return nil
}

func (o *outlet[T]) post(e Event[T], envelope Envelope) error {
	o.sent++
	if o.group != nil {
		o.group.Announce(envelope)
	}
	if !o.yield(e, nil) {
		return errStopped
	}
	return nil
}

// count returns how many events and problems were sent.
func (o *outlet[T]) count() int { return o.sent }

// address sets who events are for from now on.
func (o *outlet[T]) address(to Cohort) { o.to = to }

// stream runs a body's loop for each range over it. open makes the body, which watches what it needs by the reader.
func stream[T any](ctx context.Context, s Source, every time.Duration, open func(out *outlet[T], reader *feed.Reader) (body, error)) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		out := &outlet[T]{group: s.Group, yield: yield}
		reader := s.Feed.NewReaderFor(reqctx.CallerFrom(ctx))
		defer reader.Close()
		b, err := open(out, reader)
		if err == nil {
			l := &loop{Source: s, reader: reader, every: every, body: b, out: out}
			err = l.run(ctx)
		}
		if err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Event[T]{}, err)
		}
	}
}

// unknowns counts the ids that the venue does not know: each is reported once, and the stream ends when it knows none.
type unknowns struct {
	kind string
	left int
	gone map[string]bool
}

func newUnknowns(kind string, ids int) *unknowns {
	return &unknowns{kind: kind, left: ids, gone: make(map[string]bool)}
}

// add notes an id. problem is nil for one that was noted before; last reports that there is none left.
func (u *unknowns) add(id string) (problem error, last bool) {
	if u.gone[id] {
		return nil, false
	}
	u.gone[id] = true
	u.left--
	return u.problem(id), u.left == 0
}

func (u *unknowns) problem(id string) error {
	return market.Errorf(market.CodeBadUserInput, "the venue does not know the %s %s", u.kind, id)
}

// isUnknown reports whether an error says that the venue does not know an id.
func isUnknown(err error) bool {
	code := market.CodeOf(err)
	return code == market.CodeNotFound || code == market.CodeBadUserInput
}

// isRefused reports whether the venue refused the caller, which ends a stream.
func isRefused(err error) bool {
	code := market.CodeOf(err)
	return code == market.CodeUnauthenticated || code == market.CodeForbidden
}

// errLate is reported where nothing has come within the timeout.
var errLate error = market.Errorf(market.CodeUpstreamTimeout, "the venue did not answer in time")

// panicked carries a panic of a read, with its stack, to the goroutine of the loop.
type panicked struct {
	value any
	stack []byte
}

// String returns what the panic was and where.
func (p panicked) String() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }
