package follow

import (
	"cmp"
	"context"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// kind is in what streams of states differ.
type kind[T any] struct {
	topic func(key string) market.Topic
	// personal values are an account's: the stream ends with their topic, and where the venue refuses the caller. credentials
	// are the caller's.
	personal    bool
	credentials *market.Credentials
	// beside is a topic that is kept live for queries with each one that is followed; nil for none.
	beside func(key string) market.Topic
	// state returns the value of a state of the feed; ok is false where the stream does not say it.
	state func(s feed.State) (value T, ok bool)
	same  func(a, b T) bool
	read  func(ctx context.Context, keys []string) []market.Result[market.Read[T]]
	// absent reports that there is no such value; nil where that is a value too. unknown is what the venue then does not know.
	absent  func(value T) bool
	unknown string
	mode    Mode
}

// update is an event of a stream of states.
type update[T any] struct {
	Key   string
	Value T
	Meta  market.Meta
	// Before is the value of the event before, if there was one and this one goes on from it.
	Before T
	Goes   bool
}

// states follows values that are replaced as a whole, one for each key.
type states[T any] struct {
	kind[T]
	out     *outlet[update[T]]
	items   []*state[T]
	watched map[*feed.Watch]*state[T]
	unknown *unknowns
}

// state is one value and what was sent of it.
type state[T any] struct {
	key string
	// sent reports that there was an event: value and meta are its. live and resyncs are those of the state that it showed;
	// streamed reports that it came from the stream.
	sent, live, streamed bool
	resyncs              uint64
	value                T
	meta                 market.Meta
	// covered reports that the stream brings the value now, so that no read is needed.
	covered bool
	pending pending[struct{}]
	// problem is why there was no event yet; it was reported.
	problem error
}

// open returns a body that follows keys.
func (k kind[T]) open(keys []string) func(*outlet[update[T]], *feed.Reader) (body, error) {
	return func(out *outlet[update[T]], reader *feed.Reader) (body, error) {
		b := &states[T]{kind: k, out: out, watched: make(map[*feed.Watch]*state[T], len(keys)), unknown: newUnknowns(k.unknown, len(keys))}
		for _, key := range keys {
			it := &state[T]{key: key}
			b.items = append(b.items, it)
			if w, err := reader.Watch(k.topic(key), k.credentials); err == nil { // else it is read over REST
				b.watched[w] = it
				if k.beside != nil {
					reader.KeepLive(k.beside(key))
				}
			}
		}
		return b, nil
	}
}

func (b *states[T]) changed(w *feed.Watch) error {
	it := b.watched[w]
	if it == nil {
		return nil
	}
	s, _, err := w.Take()
	switch {
	case err != nil && !b.personal && isUnknown(err):
		delete(b.watched, w)
		return b.lose(it)
	case err != nil && !b.personal && market.CodeOf(err) == market.CodeRateLimited: // others need the room on the stream
		delete(b.watched, w)
		w.Close()
		it.covered = false
		return nil
	case err != nil:
		return err
	case !s.Known:
		return nil
	}
	value, ok := b.state(s)
	it.covered = ok && s.Live
	switch {
	case it.covered:
		return b.streamed(it, s, value)
	case it.sent && it.live: // what was sent last is out of date from now on
		it.live = false
		it.pending.overtake()
		return b.outdate(it)
	default:
		return nil // REST says what happens meanwhile
	}
}

// streamed sends a live state if it differs from what was sent.
func (b *states[T]) streamed(it *state[T], s feed.State, value T) error {
	it.pending.overtake()
	same := it.sent && b.same(it.value, value)
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

// outdate says once that a value may be out of date.
func (b *states[T]) outdate(it *state[T]) error {
	if !it.sent || it.meta.Stale {
		return nil
	}
	meta := it.meta
	meta.Stale = true
	return b.send(it, Freshness, it.value, meta)
}

func (b *states[T]) send(it *state[T], reason Reason, value T, meta market.Meta) error {
	u := update[T]{Key: it.key, Value: value, Meta: meta, Before: it.value, Goes: it.sent}
	it.sent, it.value, it.meta, it.problem = true, value, meta, nil
	return b.out.send(reason, it.key, b.mode, u)
}

// lose reports a key that the venue does not know.
func (b *states[T]) lose(it *state[T]) error {
	it.covered = false
	return b.out.unknown(b.unknown, it.key)
}

func (b *states[T]) due(now time.Time, poll bool) (read, time.Time) {
	var wanted []*state[T]
	var wake time.Time
	for _, it := range b.items {
		if it.covered || b.unknown.gone[it.key] {
			continue
		}
		if poll {
			it.pending.poll()
		}
		if it.pending.due(now) {
			it.pending.begin()
			wanted = append(wanted, it)
		} else {
			wake = sooner(wake, it.pending.wake())
		}
	}
	if len(wanted) == 0 {
		return nil, wake
	}
	return func(ctx context.Context) func() error {
		keys := make([]string, len(wanted))
		for i, it := range wanted {
			keys[i] = it.key
		}
		results := b.read(ctx, keys)
		return func() error {
			var failed error // the first new failure is reported, once
			for i, it := range wanted {
				problem := it.problem
				if err := b.apply(it, results[i]); err != nil {
					return err
				}
				if problem == nil && failed == nil {
					failed = it.problem
				}
			}
			if failed != nil {
				return b.out.problem(failed)
			}
			return nil
		}
	}, time.Time{}
}

// apply takes what REST says of a value.
func (b *states[T]) apply(it *state[T], r market.Result[market.Read[T]]) error {
	value, meta := r.Value.Value, r.Value.Meta
	switch {
	case it.covered: // the stream has brought it meanwhile
		it.pending.settle()
		return nil
	case b.personal && isRefused(r.Err):
		return r.Err
	case r.Err != nil:
		return b.failed(it, r.Err)
	case it.pending.overtaken():
		it.pending.again()
		return nil
	case b.absent != nil && b.absent(value):
		it.pending.settle()
		if it.sent {
			return nil
		}
		return b.lose(it)
	}
	if meta.Stale {
		it.pending.await(time.Now(), meta) // it is being refreshed
	} else {
		it.pending.settle()
	}
	same := it.sent && b.same(it.value, value)
	switch {
	case !it.sent:
		return b.polled(it, Initial, value, meta)
	case !same:
		return b.polled(it, Changed, value, meta)
	case meta.Stale && it.pending.failures > 2:
		return b.outdate(it)
	case !meta.Stale && it.meta.Stale:
		return b.polled(it, Freshness, value, meta)
	}
	return nil
}

// polled sends a value that was read over REST.
func (b *states[T]) polled(it *state[T], reason Reason, value T, meta market.Meta) error {
	it.live, it.streamed = false, false
	return b.send(it, reason, value, meta)
}

// failed takes a read that failed.
func (b *states[T]) failed(it *state[T], err error) error {
	it.pending.keep(time.Now(), err)
	if it.sent {
		return b.outdate(it)
	}
	it.problem = err
	return nil
}

func (b *states[T]) current() bool {
	for _, it := range b.items {
		if !it.covered && !b.unknown.gone[it.key] {
			return false
		}
	}
	return true
}

func (b *states[T]) resend(reason Reason) error {
	if err := b.out.repeat(b.unknown); err != nil {
		return err
	}
	var failed error
	for _, it := range b.items {
		if !it.sent {
			failed = cmp.Or(failed, it.problem)
			continue
		}
		if err := b.out.send(reason, it.key, b.mode, update[T]{Key: it.key, Value: it.value, Meta: it.meta}); err != nil {
			return err
		}
	}
	if failed != nil {
		return b.out.problem(failed)
	}
	return nil
}
