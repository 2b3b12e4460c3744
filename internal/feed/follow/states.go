package follow

import (
	"context"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// stateSpec describes one kind of state.
type stateSpec[T any] struct {
	topic func(key string) messages.Topic
	// personal reports whether the values belong to an account. Such a stream ends when its topic ends or the venue refuses the
	// caller. credentials are the caller's credentials.
	personal    bool
	credentials *market.Credentials
	// companion returns another topic that is kept live for queries. companion may be nil.
	companion func(key string) messages.Topic
	// state returns the value in a state of the feed. ok is false if the value is unknown.
	state func(s feed.State) (value T, ok bool)
	equal func(a, b T) bool
	// older reports whether a has a lower sequence number of the venue than b. older may be nil.
	older func(a, b T) bool
	read  func(ctx context.Context, keys []string) []market.Result[market.Read[T]]
	// absent reports whether a value means that the venue does not know the key. absent may be nil. unknown is the noun for a key
	// in error messages, for example "token".
	absent  func(value T) bool
	unknown string
	mode    Mode
}

// update is an event of a stream of states.
type update[T any] struct {
	Key   string
	Value T
	Meta  market.Meta
	// Previous is the value in the last event. Continues is false in the first event of a key, and in an event that sends the
	// present value again to a reader that joins later. It is true in all other events.
	Previous  T
	Continues bool
}

// states implements body for values that are replaced as a whole, with one value for each key.
type states[T any] struct {
	stateSpec[T]
	out     *publisher[update[T]]
	items   []*state[T]
	watched map[*feed.Watch]*state[T]
	unknown *unknowns
}

// state is the state of one value.
type state[T any] struct {
	item
	// value is the last value sent. streamed reports whether this value came from the stream.
	value    T
	streamed bool
	// onStream reports whether the stream sends the value now, so that no read is needed.
	onStream bool
	pending  pending[struct{}]
}

// open returns a function that makes a body for keys.
func (k stateSpec[T]) open(keys []string) func(*publisher[update[T]], *feed.Reader) (body, error) {
	return func(out *publisher[update[T]], reader *feed.Reader) (body, error) {
		return k.newStates(keys, out, reader), nil
	}
}

// newStates returns the states of keys, and watches their topics.
func (k stateSpec[T]) newStates(keys []string, out *publisher[update[T]], reader *feed.Reader) *states[T] {
	b := &states[T]{stateSpec: k, out: out, watched: make(map[*feed.Watch]*state[T], len(keys)), unknown: newUnknowns(k.unknown, len(keys))}
	for _, key := range keys {
		it := &state[T]{item: item{key: key}}
		b.items = append(b.items, it)
		if w, err := reader.Watch(k.topic(key), k.credentials); err == nil { // otherwise the value is read over REST
			b.watched[w] = it
			if k.companion != nil {
				reader.KeepLive(k.companion(key))
			}
		}
	}
	return b
}

func (b *states[T]) changed(w *feed.Watch) error {
	it := b.watched[w]
	if it == nil {
		return nil
	}
	s, _, err := w.Take()
	switch {
	case err != nil && !b.personal && IsUnknown(err):
		delete(b.watched, w)
		return b.reportUnknown(it)
	case err != nil && !b.personal && market.CodeOf(err) == market.CodeRateLimited: // the feed has no topic left for this caller
		delete(b.watched, w)
		w.Close()
		it.onStream = false
		return nil
	case err != nil:
		return err
	case !s.Known:
		return nil
	}
	value, ok := b.state(s)
	it.onStream = ok && s.Live
	switch {
	case it.onStream:
		return b.sendStreamed(it, s, value)
	case it.sent && it.live: // the last event is now out of date
		it.live = false
		it.pending.invalidate()
		return b.markStale(it, market.CauseStreamDown)
	default:
		return nil // REST reads update the value meanwhile
	}
}

// overtakenFor is the longest time for which a value that was read over REST may be ahead of the stream. After that, a lower number
// from the stream means that the venue has restarted its numbers.
const overtakenFor = time.Minute

// sendStreamed sends a live state if it differs from the last event. A state that is older than the last value from REST is not
// sent, because the stream will catch up.
func (b *states[T]) sendStreamed(it *state[T], s feed.State, value T) error {
	it.pending.invalidate()
	if it.sent && !it.streamed && b.older != nil && b.older(value, it.value) && time.Since(it.meta.ReceivedAt) < overtakenFor {
		return nil
	}
	same := it.sent && b.equal(it.value, value)
	reason := Changed
	switch {
	case !it.sent:
		reason = Initial
	case s.Resyncs != it.resyncs, !it.streamed:
		reason = Resync
	case !same:
	case !it.live:
		reason = Freshness
	default:
		return nil
	}
	it.live, it.streamed, it.resyncs = true, true, s.Resyncs
	return b.send(it, reason, value, s.Meta)
}

// markStale sends an event that marks the value as stale. It sends nothing if the last event was already stale for the same or a
// more severe cause.
func (b *states[T]) markStale(it *state[T], cause market.StaleCause) error {
	if !it.sent || it.meta.Stale && it.meta.Cause >= cause {
		return nil
	}
	meta := it.meta
	meta.MarkStale(cause)
	return b.send(it, Freshness, it.value, meta)
}

func (b *states[T]) send(it *state[T], reason Reason, value T, meta market.Meta) error {
	u := update[T]{Key: it.key, Value: value, Meta: meta, Previous: it.value, Continues: it.sent}
	it.sent, it.value, it.meta, it.problem = true, value, meta, nil
	return b.out.send(reason, it.key, b.mode, u)
}

// reportUnknown reports a key that the venue does not know.
func (b *states[T]) reportUnknown(it *state[T]) error {
	it.onStream = false
	return b.out.reportUnknown(b.unknown, it.key)
}

func (b *states[T]) nextRead(now time.Time, poll bool) (read, time.Time) {
	var wanted []*state[T]
	var wake time.Time
	for _, it := range b.items {
		if it.onStream || b.unknown.reported[it.key] {
			continue
		}
		if poll {
			it.pending.request()
		}
		if it.pending.ready(now) {
			it.pending.readStarted()
			wanted = append(wanted, it)
		} else {
			wake = sooner(wake, it.pending.retryAt())
		}
	}
	if len(wanted) == 0 {
		return nil, wake
	}
	return readItems(wanted, b.read, b.apply, b.out.problem), time.Time{}
}

// apply handles the read of one value.
func (b *states[T]) apply(it *state[T], r market.Result[market.Read[T]]) error {
	value, meta := r.Value.Value, r.Value.Meta
	switch {
	case it.onStream: // the stream has sent the value during the read
		it.pending.settle()
		return nil
	case b.personal && isRefused(r.Err):
		return r.Err
	case r.Err != nil:
		return b.readFailed(it, r.Err)
	case it.pending.invalidated():
		it.pending.retryNow()
		return nil
	case b.absent != nil && b.absent(value):
		it.pending.settle()
		if it.sent {
			return nil
		}
		return b.reportUnknown(it)
	}
	if meta.Stale {
		it.pending.awaitRenewal(time.Now(), meta) // the value is being refreshed
	} else {
		it.pending.settle()
	}
	same := it.sent && b.equal(it.value, value)
	switch {
	case !it.sent:
		return b.sendPolled(it, Initial, value, meta)
	case !same:
		return b.sendPolled(it, Changed, value, meta)
	case meta.Stale && it.pending.failures > 2:
		return b.markStale(it, meta.Cause)
	case !meta.Stale && it.meta.Stale:
		return b.sendPolled(it, Freshness, value, meta)
	}
	return nil
}

// sendPolled sends a value that was read over REST.
func (b *states[T]) sendPolled(it *state[T], reason Reason, value T, meta market.Meta) error {
	it.live, it.streamed = false, false
	return b.send(it, reason, value, meta)
}

// readFailed handles a failed read.
func (b *states[T]) readFailed(it *state[T], err error) error {
	it.pending.readFailed(time.Now(), err)
	if it.sent {
		return b.markStale(it, market.CauseOf(err))
	}
	it.problem = err
	return nil
}

func (b *states[T]) isCurrent() bool {
	for _, it := range b.items {
		if !it.onStream && !b.unknown.reported[it.key] {
			return false
		}
	}
	return true
}

func (b *states[T]) resend(reason Reason) error {
	if err := b.out.repeatUnknown(b.unknown); err != nil {
		return err
	}
	return resendItems(b.items, func(it *state[T]) error {
		return b.out.send(reason, it.key, b.mode, update[T]{Key: it.key, Value: it.value, Meta: it.meta})
	}, b.out.problem)
}
