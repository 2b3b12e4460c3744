package follow

import (
	"context"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// stateSpec describes a subscription whose values are replaced as a whole.
type stateSpec[T any] struct {
	topic func(key string) messages.Topic
	// personal reports whether the values belong to an account. The subscription of an account ends when the account's topic ends
	// or a read fails with an error for which isPermanent returns true.
	personal    bool
	credentials *market.Credentials
	// companion returns a second topic of the key. The subscription keeps the second topic live for queries. companion may be nil.
	companion func(key string) messages.Topic
	// state returns the value in s. ok is false if the value is unknown.
	state func(s feed.State) (value T, ok bool)
	// unread returns the number of changes of an account's list that the feed could not apply. It is nil for public values.
	unread func(s feed.State) uint64
	// offer offers a value from REST to the topic, and reports whether the topic is now live with it. It returns the value for the
	// event. offer may be nil.
	offer func(w *feed.Watch, value T, meta reads.Meta) (out T, live bool)
	equal func(a, b T) bool
	// older reports whether the venue's sequence number of a is lower than that of b. older may be nil.
	older func(a, b T) bool
	read  func(ctx context.Context, keys []string) []reads.Result[T]
	// absent reports whether a value means that the venue does not know the key. absent may be nil. keyNoun is the noun for a key in
	// error messages, such as "token".
	absent  func(value T) bool
	keyNoun string
	mode    Mode
}

// update is the value of an event that the body states sends.
type update[T any] struct {
	Key   string
	Value T
	Meta  reads.Meta
	// Continues reports whether the readers got an earlier event of the key. If so, Previous is the value in the last such event.
	// Continues is false in the first event of a key and in events for readers that join.
	Previous  T
	Continues bool
}

// states is the body of a subscription whose values are replaced as a whole. It has one value for each key.
type states[T any] struct {
	stateSpec[T]
	out     *publisher[update[T]]
	items   []*state[T]
	watched map[*feed.Watch]*state[T]
	unknown *unknowns
}

// state is the state of one key.
type state[T any] struct {
	item
	// value is the value in the last event. streamed reports whether this value came from the venue's stream.
	value    T
	streamed bool
	// onStream reports whether the topic is live and has the value. If so, no REST read is needed.
	onStream bool
	pending  pending[struct{}]
	watch    *feed.Watch // nil without a watch
	// unread is stateSpec.unread of the last state, and readUnread its value at the start of the last read. If they differ, another
	// read is needed, but not before nextRead.
	unread, readUnread uint64
	nextRead           time.Time
}

// unreadInterval is the minimum time between two reads of an account because of changes that the feed could not apply.
const unreadInterval = time.Second

// open returns a function that makes a body for keys.
func (k stateSpec[T]) open(s Source, keys []string) func(*publisher[update[T]], *feed.Reader) (body, error) {
	return func(out *publisher[update[T]], reader *feed.Reader) (body, error) {
		return k.newStates(s, keys, out, reader), nil
	}
}

// newStates returns a body for the keys, and watches the topics of the keys.
func (k stateSpec[T]) newStates(s Source, keys []string, out *publisher[update[T]], reader *feed.Reader) *states[T] {
	b := &states[T]{stateSpec: k, out: out, watched: make(map[*feed.Watch]*state[T], len(keys)), unknown: newUnknowns(s.Names, k.keyNoun, keys)}
	for _, key := range keys {
		it := &state[T]{item: item{key: key, venue: s.Names.Find(key)}}
		b.items = append(b.items, it)
		if w, err := reader.Watch(k.topic(key), k.credentials); err == nil { // without a watch, the value is read over REST
			b.watched[w], it.watch = it, w
			if k.companion != nil {
				reader.KeepLive(k.companion(key))
			}
		}
	}
	return b
}

func (b *states[T]) handleChange(w *feed.Watch) error {
	it := b.watched[w]
	if it == nil {
		return nil
	}
	s, _, err := w.Take()
	switch {
	case err != nil && !b.personal && IsUnknown(err):
		delete(b.watched, w)
		return b.reportUnknown(it)
	case err != nil && !b.personal && (b.unknown.mixed || market.CodeOf(err) == market.CodeRateLimited): // the feed needs the topic for other clients
		delete(b.watched, w)
		w.Close()
		it.onStream, it.watch = false, nil
		return nil
	case err != nil:
		return err
	}
	if b.unread != nil {
		it.unread = b.unread(s)
	}
	if !s.Known {
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
		return b.markStale(it, reads.CauseStreamDown)
	default:
		return nil // REST reads update the value
	}
}

// overtakenFor is the longest time for which a value from REST may be newer than the values of the venue's stream. A lower sequence
// number from the venue's stream after this time means that the venue has restarted its numbers.
const overtakenFor = time.Minute

// sendStreamed sends a value of a live topic. It sends nothing if the last event already came from the live topic with an equal
// value, and no resync has happened since. It also sends nothing if the last event has a newer value from REST that arrived less
// than overtakenFor ago, because the venue's stream will send newer values.
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

// markStale sends the last value again, marked as stale. It sends nothing if there was no event yet, or if the last event was
// already stale for the same cause or a more severe one.
func (b *states[T]) markStale(it *state[T], cause reads.StaleCause) error {
	if !it.sent || it.meta.Stale && it.meta.Cause >= cause {
		return nil
	}
	meta := it.meta
	meta.MarkStale(cause)
	return b.send(it, Freshness, it.value, meta)
}

func (b *states[T]) send(it *state[T], reason Reason, value T, meta reads.Meta) error {
	u := update[T]{Key: it.key, Value: value, Meta: meta, Previous: it.value, Continues: it.sent}
	it.sent, it.value, it.meta, it.problem = true, value, meta, nil
	return b.out.send(reason, it.key, b.mode, u)
}

func (b *states[T]) reportUnknown(it *state[T]) error {
	it.onStream = false
	return b.out.reportUnknown(b.unknown, it.key)
}

func (b *states[T]) nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time) {
	var wanted []*state[T]
	var wake time.Time
	for _, it := range b.items {
		if it.venue != venue || it.onStream || b.unknown.reported[it.key] {
			continue
		}
		if poll || it.unread != it.readUnread {
			it.pending.request()
		}
		switch at := market.Later(it.pending.retryAt(), it.nextRead); {
		case !it.pending.wanted:
		case now.Before(at):
			wake = earlierOf(wake, at)
		default:
			it.pending.readStarted()
			it.readUnread = it.unread
			if b.unread != nil {
				it.nextRead = now.Add(unreadInterval)
			}
			wanted = append(wanted, it)
		}
	}
	if len(wanted) == 0 {
		return nil, wake
	}
	return readItems(wanted, b.read, b.apply, b.out.problem), time.Time{}
}

// apply handles the result of a read for one key.
func (b *states[T]) apply(it *state[T], r reads.Result[T]) error {
	value, meta := r.Value.Value, r.Value.Meta
	switch {
	case it.onStream: // the venue's stream has sent the value during the read
		it.pending.settle()
		return nil
	case b.personal && isPermanent(r.Err):
		return r.Err
	case r.Err != nil:
		it.pending.readFailed(time.Now(), r.Err)
		if it.sent {
			return b.markStale(it, reads.CauseOf(r.Err))
		}
		it.problem = r.Err
		return nil
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
	if b.offer != nil {
		var live bool
		if value, live = b.offer(it.watch, value, meta); live {
			it.pending.settle()
			return nil // the topic sends the value
		}
	}
	if meta.Stale {
		it.pending.delay(time.Now(), 0) // the venue may soon return a newer value
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

func (b *states[T]) sendPolled(it *state[T], reason Reason, value T, meta reads.Meta) error {
	it.live, it.streamed = false, false
	return b.send(it, reason, value, meta)
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
