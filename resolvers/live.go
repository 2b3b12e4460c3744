package resolvers

import (
	"context"
	"maps"
	"slices"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

const (
	// settleAfter is how long a subscription waits for the stream's first state before it reads over REST.
	settleAfter = 500 * time.Millisecond
	// pollEvery is how often a subscription reads over REST what the stream does not bring.
	pollEvery = 5 * time.Second
	// maxPace is the greatest maxPerSecond.
	maxPace = 100
)

// subscribe runs a subscription until ctx ends or run returns; an error ends it for the client.
func subscribe[T any](ctx context.Context, run func(out *outlet[T]) error) <-chan T {
	out := &outlet[T]{stage: newStage(ctx), events: make(chan T)}
	go func() { // owned by the transport: it ends ctx and drains the channel
		defer close(out.events)
		defer func() {
			if p := recover(); p != nil {
				addProblem(ctx, Recover(ctx, p))
			}
		}()
		if err := run(out); err != nil && ctx.Err() == nil {
			addProblem(ctx, err)
		}
	}()
	return out.events
}

// fetch reads over REST, away from the loop of a subscription, and returns what sends it, which is called in the loop. Its
// context ends before the next poll.
type fetch func(ctx context.Context) (apply func() (bool, error))

// follower is the loop of a subscription: it hears of changes, keeps to a pace for each topic, and reads over REST what
// does not come, without waiting for it. Its functions are called one at a time, those of one fetch apart, and stop the
// loop by an error.
type follower struct {
	reader *feed.Reader
	stage  *stage
	// every is the least time between two calls of changed for a watch; 0 is none.
	every time.Duration
	// changed is told that a watch has changed. It returns false when nobody wants events any more.
	changed func(w *feed.Watch) (bool, error)
	// present sends again what was sent last, as the present state, to an audience that has not seen it.
	present func(reason model.UpdateReason) (bool, error)
	// due returns what is to be read now, nil for nothing. It is called when the stream has had its time to bring the first
	// states, every pollEvery after that (both with polling true), and whenever something has changed or was read.
	due func(polling bool) fetch
}

func (f *follower) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	settle, poll, pace := time.NewTimer(settleAfter), time.NewTicker(pollEvery), time.NewTimer(time.Hour)
	defer settle.Stop()
	defer poll.Stop()
	defer pace.Stop()
	reading, read := false, make(chan func() (bool, error), 1)
	defer func() {
		end()
		if reading {
			<-read
		}
	}()
	start := func(polling bool) {
		if reading || f.due == nil {
			return
		}
		if get := f.due(polling); get != nil {
			reading = true
			go func() { // the loop waits for it
				read <- fetched(ctx, get)
			}()
		}
	}
	due := make(map[*feed.Watch]time.Time)
	// waiting are the watches that have changed, each once however often that was.
	var waiting []*feed.Watch
	queued := make(map[*feed.Watch]bool)
	for {
		var wanted = true
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-f.reader.Changed():
			for _, w := range f.reader.Take() {
				if !queued[w] {
					queued[w] = true
					waiting = append(waiting, w)
				}
			}
		case <-pace.C:
		case <-settle.C:
			start(true)
		case <-poll.C:
			start(true)
		case apply := <-read:
			reading = false
			wanted, err = apply()
		case <-f.stage.waiting():
			wanted, err = f.stage.show(f.present)
		}
		now, next := time.Now(), time.Duration(-1)
		later := waiting[:0]
		for _, w := range waiting {
			if left := due[w].Sub(now); left > 0 {
				later = append(later, w)
				if next < 0 || left < next {
					next = left
				}
				continue
			}
			delete(queued, w)
			if f.every > 0 {
				due[w] = now.Add(f.every)
			}
			if wanted && err == nil {
				wanted, err = f.changed(w)
			}
		}
		if waiting = later; next >= 0 {
			pace.Reset(next)
		}
		if err != nil || !wanted {
			return err
		}
		start(false)
	}
}

// fetched carries out a fetch. A panic in it is one of the loop.
func fetched(ctx context.Context, get fetch) (apply func() (bool, error)) {
	defer func() {
		if p := recover(); p != nil {
			err := Recover(ctx, p)
			apply = func() (bool, error) { return false, err }
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	return get(ctx)
}

// interval checks a maxPerSecond argument and returns the least time between two events; 0 is none.
func interval(perSecond *int, limit int) (time.Duration, error) {
	if perSecond == nil {
		return 0, nil
	}
	if *perSecond < 1 || *perSecond > limit {
		return 0, badInput("maxPerSecond is %d; it must be 1 to %d", *perSecond, limit)
	}
	return time.Second / time.Duration(*perSecond), nil
}

// distinctIDs checks the ids of a subscription and returns each once.
func distinctIDs(argument string, ids []string) ([]string, error) {
	if len(ids) == 0 || len(ids) > maxIDs {
		return nil, badInput("%s holds %d ids; it must hold 1 to %d", argument, len(ids), maxIDs)
	}
	seen, out := make(map[string]bool, len(ids)), make([]string, 0, len(ids))
	for _, id := range ids {
		if err := market.CheckID(id); err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out, nil
}

// reads returns loaders for what a subscription itself reads, outside of its events. It is no demand of a client that
// polls, so it does not make the feed watch anything.
func (r *Resolver) reads(ctx context.Context) *loaders.Set {
	return loaders.New(market.WithoutDemand(ctx), r.Sources)
}

// unknowns keeps count of the ids of a subscription that the venue does not know: each is reported once, and when there is
// none left that it knows, the subscription ends.
type unknowns struct {
	ctx  context.Context
	kind string
	left int
	gone map[string]bool
}

func newUnknowns(ctx context.Context, kind string, ids []string) *unknowns {
	return &unknowns{ctx: ctx, kind: kind, left: len(ids), gone: make(map[string]bool)}
}

// add reports an id. The error ends the subscription.
func (u *unknowns) add(id string) error {
	if u.gone[id] {
		return nil
	}
	u.gone[id] = true
	err := badInput("the venue does not know the %s %s", u.kind, id)
	if u.left--; u.left == 0 {
		return err
	}
	addProblem(u.ctx, err)
	return nil
}

// repeat reports the ids again, to somebody who was not told yet.
func (u *unknowns) repeat() {
	for _, id := range slices.Sorted(maps.Keys(u.gone)) {
		addProblem(u.ctx, badInput("the venue does not know the %s %s", u.kind, id))
	}
}

// unknownTo reports whether an error says that the venue does not know what was asked for.
func unknownTo(err error) bool {
	code := market.CodeOf(err)
	return code == market.CodeNotFound || code == market.CodeBadUserInput
}
