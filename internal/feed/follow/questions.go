package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/request"
)

const (
	// lookInterval is the time between two looks at a question whose data are live and do not change.
	lookInterval = 500 * time.Millisecond
	// lateAfter is the time after which a look is late.
	lateAfter = time.Second
)

// lookBackoff is the delay after looks at a question whose data are not live, because each of them may call the venues.
var lookBackoff = market.Backoff{Min: 500 * time.Millisecond, Max: pollInterval}

// Look is what a look at a question finds. Topics are followed until the next look.
type Look[T any] struct {
	State  *T
	Topics []messages.Topic
	// Fresh reports whether no value is stale and no read has failed. Live reports whether, in addition, the venues' streams report the
	// changes, so that a further look calls no venue.
	Fresh, Live bool
}

// Question follows a question on several venues. It looks at it as a query does: while the data are live, after each change of a topic,
// otherwise after lookBackoff. While a look is late, and after one that was not fresh, it glances instead, so that no venue delays what
// is known of the others. every is the minimum time between two looks or glances.
//
// look reads all data if known is nil. Otherwise it is a glance: it must not wait, and takes from known what the cache does not have. An
// error ends the stream. reason returns the reason of an event with the state now, or "" if no event is needed; last is the state in the
// last event, or nil. topics are followed before the first look.
func Question[T any](ctx context.Context, s Source, topics []messages.Topic, every time.Duration,
	look func(ctx context.Context, known *T) (Look[T], error), reason func(last, now *T) Reason) Stream[T] {
	return func(yield func(Event[T], error) bool) {
		headStart := min(streamHeadStart, s.Timeout/4)
		q := &question[T]{
			Source: s, out: &publisher[T]{yield: yield}, reader: feed.NewReader(request.From(ctx).Caller, s.Names, s.Feeds...), look: look, reason: reason,
			watches: make(map[messages.Topic]*feed.Watch), looks: make(chan func() error, 1),
			at: time.Now().Add(headStart), within: s.Timeout * 3 / 4,
		}
		defer q.reader.Close()
		q.found.Live = true // the streams may report all data before the first look
		q.follow(topics)
		if err := q.run(ctx, min(every, headStart), every); err != nil && !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Event[T]{}, err)
		}
	}
}

type question[T any] struct {
	Source
	out     *publisher[T]
	reader  *feed.Reader
	watches map[messages.Topic]*feed.Watch // a watch is nil if its topic cannot be followed, and then looks read over REST
	look    func(ctx context.Context, known *T) (Look[T], error)
	reason  func(last, now *T) Reason

	last    *T      // in the last event
	found   Look[T] // by the last look
	changed bool    // a topic has changed since the last look began
	joining bool    // readers wait to join
	// at is the time of the next look. It has the time within, and is late at lateAt. failures counts the looks in a row that were not live.
	at, lateAt time.Time
	within     time.Duration
	failures   int
	// looks receives the function that uses the result of a look, if looking is true.
	looks   chan func() error
	looking bool
}

func (q *question[T]) run(ctx context.Context, first, every time.Duration) error {
	ctx, end := context.WithCancel(ctx)
	defer func() {
		end()
		if q.looking {
			<-q.looks
		}
	}()
	tick := time.NewTicker(first)
	defer tick.Stop()
	var waiting <-chan struct{}
	if q.Group != nil {
		waiting = q.Group.Waiting()
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case use := <-q.looks:
			q.looking = false
			err = use()
		case <-tick.C:
			tick.Reset(every)
			err = q.step(ctx, time.Now())
		case <-waiting:
			if q.joining = true; q.last == nil || q.found.Live && !q.looking {
				err = q.join()
			}
		}
		if err != nil {
			return err
		}
	}
}

// step starts a look or glances, if either is due.
func (q *question[T]) step(ctx context.Context, now time.Time) error {
	for _, w := range q.reader.Take() {
		_, _, _ = w.Take()
		q.changed = true
	}
	switch {
	case q.looking && now.Before(q.lateAt):
	case !q.looking && (q.joining || q.changed && q.found.Live || !now.Before(q.at)):
		q.start(ctx, now)
	case q.last != nil && (q.looking || !q.found.Fresh):
		return q.glance(ctx, q.last)
	}
	return nil
}

// start starts a look on its own goroutine, for which run waits.
func (q *question[T]) start(ctx context.Context, now time.Time) {
	within := q.within
	q.looking, q.changed, q.lateAt, q.within = true, false, now.Add(lateAfter), pollInterval
	go func() {
		lookCtx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		q.looks <- recoverRead(lookCtx, func(lookCtx context.Context) func() error {
			found, err := q.look(lookCtx, nil)
			return func() error { return q.use(ctx, found, err) }
		})
	}()
}

func (q *question[T]) use(ctx context.Context, found Look[T], err error) error {
	if err != nil || ctx.Err() != nil {
		return err
	}
	q.found = found
	q.follow(found.Topics)
	now := time.Now()
	if q.failures++; found.Live {
		q.failures, q.at = 0, now.Add(lookInterval)
	} else {
		q.at = now.Add(lookBackoff.Wait(q.failures, 1))
	}
	if q.last != nil && !now.Before(q.lateAt) { // glances may have shown newer values than those that the look has read first
		return q.glance(ctx, found.State)
	}
	return q.show(found.State)
}

func (q *question[T]) glance(ctx context.Context, known *T) error {
	found, err := q.look(ctx, known)
	if err != nil {
		return err
	}
	return q.show(found.State)
}

// show sends an event with a state if one is needed, and serves the readers that wait to join.
func (q *question[T]) show(state *T) error {
	if why := q.reason(q.last, state); why != "" {
		q.last = state
		if err := q.out.send(why, "", Replace, *state); err != nil {
			return err
		}
	}
	if q.joining {
		return q.join()
	}
	return nil
}

func (q *question[T]) join() error {
	q.joining = false
	return serveJoiners(q.Group, q.out, func(why Reason) error {
		if q.last == nil { // the first event is for all readers
			return nil
		}
		return q.out.send(why, "", Replace, *q.last)
	})
}

// follow watches topics, and no others.
func (q *question[T]) follow(topics []messages.Topic) {
	for t, w := range q.watches {
		if !slices.Contains(topics, t) {
			if delete(q.watches, t); w != nil {
				w.Close()
			}
		}
	}
	for _, t := range topics {
		if _, ok := q.watches[t]; !ok {
			q.watches[t], _ = q.reader.Watch(t, nil)
		}
	}
}
