package follow

import (
	"time"

	"oddsgraph/internal/feed"
)

// batch is a body of a loop. It collects the updates of the embedded states and sends them as lists. An event contains one update
// for each key that has changed since the previous event. batch.every is the minimum time between two events.
type batch[T any] struct {
	*states[T]
	out   *publisher[[]Event[update[T]]]
	every time.Duration
	// waiting contains one merged update for each key that has changed since the last event, in the order of the first changes. index
	// maps a key to the index of its update in waiting.
	waiting []Event[update[T]]
	index   map[string]int
	// sent reports whether flush has sent an event. Before the first event, next is the time by which flush must send this event.
	// Afterwards, next is the time before which flush must not send another event. next is zero until flush first sees an update.
	sent bool
	next time.Time
}

// openBatch is like stateSpec.open, but the events of the stream contain lists of updates.
func (k stateSpec[T]) openBatch(s Source, keys []string, every time.Duration) func(*publisher[[]Event[update[T]]], *feed.Reader) (body, error) {
	return func(out *publisher[[]Event[update[T]]], reader *feed.Reader) (body, error) {
		b := &batch[T]{out: out, every: every, index: make(map[string]int)}
		b.states = k.newStates(s, keys, &publisher[update[T]]{yield: b.collect}, reader)
		return b, nil
	}
}

// collect is the yield function for b.states. It adds an update to waiting, or merges the update with the waiting update of the
// same key. It publishes a problem at once.
func (b *batch[T]) collect(e Event[update[T]], _ error) bool {
	if e.Problem != nil {
		return b.out.problem(e.Problem) == nil
	}
	i, ok := b.index[e.Value.Key]
	if !ok {
		b.index[e.Value.Key] = len(b.waiting)
		b.waiting = append(b.waiting, e)
		return true
	}
	before := b.waiting[i]
	if before.Reason.isState() || e.Reason == Freshness {
		e.Reason = before.Reason
	}
	e.Value.Previous, e.Value.Continues = before.Value.Previous, before.Value.Continues
	b.waiting[i] = e
	return true
}

// flush sends the waiting updates if b.every has passed since the last event. It sends the first event as soon as b.complete
// returns true, but waits at most b.every after the first update.
func (b *batch[T]) flush(now, next time.Time) (time.Time, error) {
	if len(b.waiting) == 0 {
		return next, nil
	}
	if b.next.IsZero() {
		b.next = now.Add(b.every)
	}
	if now.Before(b.next) && (b.sent || !b.complete()) {
		return earlierOf(next, b.next), nil
	}
	reason := Initial
	if b.sent {
		reason = Freshness
		for _, e := range b.waiting {
			if e.Reason != Freshness {
				reason = Changed
			}
		}
	}
	list := b.waiting
	b.waiting, b.sent, b.next = nil, true, now.Add(b.every)
	clear(b.index)
	return next, b.out.send(reason, "", Delta, list)
}

// complete reports whether each key has a value or a problem, or is unknown to the venue.
func (b *batch[T]) complete() bool {
	for _, it := range b.items {
		if !it.sent && it.problem == nil && !b.unknown.reported[it.key] {
			return false
		}
	}
	return true
}

// resend sends one event with the last value of each key to publisher.audience. Keys without a value are not in the event. The
// waiting updates stay until flush sends them.
func (b *batch[T]) resend(reason Reason) error {
	waiting, index := b.waiting, b.index
	b.waiting, b.index = nil, make(map[string]int)
	err := b.states.resend(reason)
	all := b.waiting
	b.waiting, b.index = waiting, index
	if err != nil || len(all) == 0 {
		return err
	}
	return b.out.send(reason, "", Delta, all)
}
