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
	"oddsgraph/internal/request"
)

// Reason says why an event is sent. The values are those of the enum in the GraphQL schema.
type Reason string

// The reasons of events.
const (
	// Initial marks the present state at the start of a subscription.
	Initial Reason = "INITIAL"
	// Changed marks a new value.
	Changed Reason = "CHANGE"
	// Resync marks the present state after a gap.
	Resync Reason = "RESYNC"
	// Freshness marks a repetition of the last value, which has become stale or fresh.
	Freshness Reason = "FRESHNESS"
)

// isState reports whether events with this reason contain the whole state.
func (r Reason) isState() bool { return r == Initial || r == Resync }

// Event is one event of a stream.
type Event[T any] struct {
	Envelope Envelope
	Reason   Reason
	Value    T
	// Problem is a failure that does not end the stream. If Problem is set, Reason and Value are zero.
	Problem error
}

// Stream yields events. If a stream fails, it yields the error last, with a zero Event.
type Stream[T any] = iter.Seq2[Event[T], error]

// Group is a group of readers that share a stream. More readers may join later. The methods of a Group must not wait.
type Group interface {
	// Waiting returns a channel that is signalled when readers wait for the present state.
	Waiting() <-chan struct{}
	// TakeWaiting returns a cohort of waiting readers, and signals Waiting again if more readers wait. resync is true if these
	// readers have missed events, and false if they are new. ok is false if no reader waits.
	TakeWaiting() (to Cohort, resync, ok bool)
	// Join makes the cohort receive all events from now on.
	Join(to Cohort)
}

// Source configures a Stream.
type Source struct {
	// Names and Feeds are those of the venues. The reads of one venue never wait for those of another. A list with ids of several
	// venues goes on if one of these venues refuses its part.
	Names market.Names
	Feeds []*feed.Feed
	// Group is the group of readers that get the events. It is nil if the stream has a single reader.
	Group Group
	// Timeout is the maximum time until the first event or problem.
	Timeout time.Duration
}

// errStopped ends a loop whose reader has stopped ranging over the stream.
var errStopped = errors.New("the reader has stopped")

// publisher yields the events of one stream.
type publisher[T any] struct {
	yield func(Event[T], error) bool
	// audience is the cohort that receives the next events. If audience is zero, all readers receive them.
	audience Cohort
	// sent counts events and problems.
	sent int
}

// send publishes an event for the readers in o.audience.
func (o *publisher[T]) send(reason Reason, topic string, mode Mode, value T) error {
	return o.post(Event[T]{Envelope: Envelope{Topic: topic, Mode: mode, State: reason.isState(), To: o.audience}, Reason: reason, Value: value})
}

// problem publishes a failure that does not end the stream, for the readers in o.audience.
func (o *publisher[T]) problem(err error) error {
	return o.post(Event[T]{Envelope: Envelope{Mode: Append, Problem: true, To: o.audience}, Problem: err})
}

// reportUnknown publishes a problem for an id that the venue does not know, once for each id. If all ids of the stream are now
// unknown, reportUnknown returns the problem as an error instead, which ends the stream.
func (o *publisher[T]) reportUnknown(u *unknowns, id string) error {
	if u.reported[id] {
		return nil
	}
	u.reported[id] = true
	if len(u.reported) == u.ids {
		return u.problem(id)
	}
	return o.problem(u.problem(id))
}

// repeatUnknown publishes the problems of the unknown ids again, for readers that join.
func (o *publisher[T]) repeatUnknown(u *unknowns) error {
	for _, id := range slices.Sorted(maps.Keys(u.reported)) {
		if err := o.problem(u.problem(id)); err != nil {
			return err
		}
	}
	return nil
}

func (o *publisher[T]) post(e Event[T]) error {
	o.sent++
	if !o.yield(e, nil) {
		return errStopped
	}
	return nil
}

// sentCount returns the number of events and problems that were sent.
func (o *publisher[T]) sentCount() int { return o.sent }

// setAudience sets the cohort of the next events.
func (o *publisher[T]) setAudience(to Cohort) { o.audience = to }

// stream returns a Stream. Each time a caller ranges over the Stream, open makes a new body and watches its topics, and a new loop
// runs the body. interval is loop.minInterval.
func stream[T any](ctx context.Context, s Source, interval time.Duration, open func(out *publisher[T], reader *feed.Reader) (body, error)) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		out := &publisher[T]{yield: yield}
		reader := feed.NewReader(request.From(ctx).Caller, s.Names, s.Feeds...)
		defer reader.Close()
		b, err := open(out, reader)
		if err == nil {
			l := &loop{Source: s, reader: reader, minInterval: interval, body: b, out: out}
			err = l.run(ctx)
		}
		if err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Event[T]{}, err)
		}
	}
}

// unknowns contains the ids of a stream that the venue does not know, or with which it refuses to begin.
type unknowns struct {
	names market.Names
	// mixed reports whether the ids are those of several venues.
	mixed    bool
	idNoun   string // the noun for an id in error messages, such as "token"
	ids      int    // the number of ids of the stream
	reported map[string]bool
	// refused has the errors of the ids that are known and refused.
	refused map[string]error
}

func newUnknowns(names market.Names, idNoun string, ids []string) *unknowns {
	mixed := slices.ContainsFunc(ids, func(id string) bool { return names.Find(id) != names.Find(ids[0]) })
	return &unknowns{names: names, mixed: mixed, idNoun: idNoun, ids: len(ids), reported: make(map[string]bool), refused: make(map[string]error)}
}

func (u *unknowns) problem(id string) error {
	err := u.refused[id]
	if err == nil {
		err = market.Errorf(market.CodeBadUserInput, "the venue does not know the %s %s", u.idNoun, id)
	}
	return market.AtVenue(u.names.Of(id), err)
}

// IsUnknown reports whether an error means that the venue does not know an id.
func IsUnknown(err error) bool {
	code := market.CodeOf(err)
	return code == market.CodeNotFound || code == market.CodeBadUserInput
}

// isPermanent reports whether another read of an account would return the same error: the venue has refused the client's
// credentials, or it does not serve the data. Such an error ends a subscription of an account.
func isPermanent(err error) bool {
	code := market.CodeOf(err)
	return code == market.CodeUnauthenticated || code == market.CodeForbidden || code == market.CodeUnsupported
}

// errFirstEventLate is the problem that a loop sends if it has sent nothing within nine tenths of Source.Timeout.
var errFirstEventLate error = market.Errorf(market.CodeUpstreamTimeout, "the venue did not answer in time")

// readPanic carries the value and the stack of a panic from the goroutine of a read to the goroutine of the loop.
type readPanic struct {
	value any
	stack []byte
}

// String returns the panic's value and stack.
func (p readPanic) String() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }
