package follow

import (
	"context"
	"runtime/debug"
	"time"

	"oddsgraph/internal/feed"
)

const (
	// settleAfter is how long a subscription waits for the stream's first state before it reads over REST.
	settleAfter = 500 * time.Millisecond
	// pollEvery is how often a subscription reads over REST what the stream does not bring, and how long a read may take.
	pollEvery = 5 * time.Second
)

// body is what one kind of subscription does. Its methods are called one at a time and must not wait. An error ends the stream.
type body interface {
	// changed takes what the feed says of a watch that has changed.
	changed(w *feed.Watch) error
	// due returns the read that is to begin now, or nil and when to ask again, zero for never. poll is true once the stream
	// has had its time to bring the first state, every pollEvery after that, and for readers that join.
	due(now time.Time, poll bool) (read, time.Time)
	// current reports whether what was sent last is the present state, so that no read is needed to say so.
	current() bool
	// resend sends the present state to the cohort that the outlet addresses.
	resend(reason Reason) error
}

// read reads over REST, beside the loop. apply takes the result, in the loop.
type read func(ctx context.Context) (apply func() error)

// channel is what the loop needs of an outlet.
type channel interface {
	count() int
	address(to Cohort)
	problem(err error) error
}

// loop runs one stream.
type loop struct {
	Source
	reader *feed.Reader
	// every is the least time between two events of a watch; 0 is none.
	every time.Duration
	body  body
	out   channel

	// waiting are the watches that have changed, each once however often that was; due says from when on.
	waiting []*feed.Watch
	queued  map[*feed.Watch]bool
	due     map[*feed.Watch]time.Time

	results chan func() error
	reading bool
	// joined is since when readers wait for the present state, zero while none do. reread reports that a read has ended since.
	joined time.Time
	reread bool
	// deadline is when the first event or problem is due.
	deadline time.Time
}

func (l *loop) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	l.queued, l.due = make(map[*feed.Watch]bool), make(map[*feed.Watch]time.Time)
	l.results = make(chan func() error, 1)
	defer func() {
		end()
		if l.reading {
			<-l.results
		}
	}()
	limit := l.Timeout * 9 / 10 // the event has to be executed and sent, too
	l.deadline = time.Now().Add(limit)
	settle, late := time.NewTimer(min(settleAfter, limit/4)), time.NewTimer(limit)
	poll, wake := time.NewTicker(pollEvery), time.NewTimer(time.Hour)
	defer func() {
		settle.Stop()
		late.Stop()
		poll.Stop()
		wake.Stop()
	}()
	for {
		polling := false
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-l.reader.Changed():
		case <-wake.C:
		case <-settle.C:
			polling = true
		case <-poll.C:
			polling = true
		case apply := <-l.results:
			l.reading, l.reread = false, true
			err = apply()
		case <-l.joiners():
			if l.joined.IsZero() {
				l.joined, l.reread = time.Now(), false
			}
		case <-late.C:
			if l.out.count() == 0 {
				err = l.out.problem(errLate)
			}
		}
		var next time.Time
		if err == nil {
			next, err = l.step(ctx, time.Now(), polling)
		}
		if err != nil {
			return err
		}
		if !next.IsZero() {
			wake.Reset(max(time.Until(next), 0))
		}
	}
}

// step does what there is to do now, and returns when there will be more; zero where that is not known.
func (l *loop) step(ctx context.Context, now time.Time, polling bool) (next time.Time, err error) {
	if next, err = l.pass(now); err != nil {
		return next, err
	}
	serve := false
	if !l.joined.IsZero() {
		patience := l.joined.Add(min(pollEvery, l.Timeout/2))
		switch {
		case len(l.waiting) == 0 && l.body.current(), l.reread, !now.Before(patience):
			serve = true
		default:
			polling, next = true, sooner(next, patience)
		}
	}
	if serve {
		if err := l.serve(); err != nil {
			return next, err
		}
	}
	if !l.reading {
		get, at := l.body.due(now, polling)
		if get == nil {
			return sooner(next, at), nil
		}
		l.start(ctx, get)
	}
	return next, nil
}

// pass tells the body of the watches that have changed and whose pace allows it, and returns when there are more.
func (l *loop) pass(now time.Time) (next time.Time, err error) {
	for _, w := range l.reader.Take() {
		if !l.queued[w] {
			l.queued[w] = true
			l.waiting = append(l.waiting, w)
		}
	}
	later := l.waiting[:0]
	for _, w := range l.waiting {
		if at := l.due[w]; now.Before(at) {
			later = append(later, w)
			next = sooner(next, at)
			continue
		}
		delete(l.queued, w)
		sent := l.out.count()
		if err == nil {
			err = l.body.changed(w)
		}
		if l.every > 0 && l.out.count() > sent { // a change that says nothing yet must not delay the first state
			l.due[w] = now.Add(l.every)
		}
	}
	l.waiting = later
	return next, err
}

// joiners is signalled when readers wait for the present state.
func (l *loop) joiners() <-chan struct{} {
	if l.Group == nil {
		return nil
	}
	return l.Group.Waiting()
}

// serve sends the present state to some of the readers that wait for it. If others still wait, the group signals again.
func (l *loop) serve() error {
	l.joined, l.reread = time.Time{}, false
	to, resync, ok := l.Group.TakeWaiting()
	if !ok {
		return nil
	}
	reason := Initial
	if resync {
		reason = Resync
	}
	l.out.address(to)
	err := l.body.resend(reason)
	l.out.address(0)
	l.Group.Join(to)
	return err
}

// start begins a read. The loop waits for it before it ends.
func (l *loop) start(ctx context.Context, get read) {
	within := pollEvery
	if l.out.count() == 0 {
		within = max(min(within, time.Until(l.deadline)), within/100)
	}
	l.reading = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		l.results <- guarded(ctx, get)
	}()
}

// guarded carries a read out. A panic in it becomes one of the loop.
func guarded(ctx context.Context, get read) (apply func() error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			apply = func() error { panic(panicked{p, stack}) }
		}
	}()
	return get(ctx)
}
