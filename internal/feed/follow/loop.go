package follow

import (
	"context"
	"runtime/debug"
	"time"

	"oddsgraph/internal/feed"
)

const (
	// settleAfter is how long a subscription waits for the stream's first state before it reads over REST.
	streamHeadStart = 500 * time.Millisecond
	// pollEvery is how often a subscription reads over REST what the stream does not bring, and how long a read may take.
	pollInterval = 5 * time.Second
)

// body is what one kind of subscription does. Its methods are called one at a time and must not wait. An error ends the stream.
type body interface {
	// changed takes what the feed says of a watch that has changed.
	changed(w *feed.Watch) error
	// due returns the read that is to begin now, or nil and when to ask again, zero for never. poll is true once the stream
	// has had its time to bring the first state, every pollEvery after that, and for readers that join.
	nextRead(now time.Time, poll bool) (read, time.Time)
	// current reports whether what was sent last is the present state, so that no read is needed to say so.
	isCurrent() bool
	// resend sends the present state to the cohort that the outlet addresses.
	resend(reason Reason) error
}

// read reads over REST, beside the loop. apply takes the result, in the loop.
type read func(ctx context.Context) (apply func() error)

// channel is what the loop needs of an outlet.
type sender interface {
	sentCount() int
	setAudience(to Cohort)
	problem(err error) error
}

// loop runs one stream.
type loop struct {
	Source
	reader *feed.Reader
	// every is the least time between two events of a watch; 0 is none.
	minInterval time.Duration
	body        body
	out         sender

	// waiting are the watches that have changed, each once however often that was; due says from when on.
	changed   []*feed.Watch
	queued    map[*feed.Watch]bool
	notBefore map[*feed.Watch]time.Time

	results chan func() error
	reading bool
	// joined is since when readers wait for the present state, zero while none do. reread reports that a read has ended since.
	joinedAt      time.Time
	readSinceJoin bool
	// deadline is when the first event or problem is due.
	deadline time.Time
}

func (l *loop) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	l.queued, l.notBefore = make(map[*feed.Watch]bool), make(map[*feed.Watch]time.Time)
	l.results = make(chan func() error, 1)
	defer func() {
		end()
		if l.reading {
			<-l.results
		}
	}()
	limit := l.Timeout * 9 / 10 // the event has to be executed and sent, too
	l.deadline = time.Now().Add(limit)
	settle, late := time.NewTimer(min(streamHeadStart, limit/4)), time.NewTimer(limit)
	poll, wake := time.NewTicker(pollInterval), time.NewTimer(time.Hour)
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
			l.reading, l.readSinceJoin = false, true
			err = apply()
		case <-l.joiners():
			if l.joinedAt.IsZero() {
				l.joinedAt, l.readSinceJoin = time.Now(), false
			}
		case <-late.C:
			if l.out.sentCount() == 0 {
				err = l.out.problem(errFirstEventLate)
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
	if next, err = l.deliverChanges(now); err != nil {
		return next, err
	}
	if !l.joinedAt.IsZero() {
		patience := l.joinedAt.Add(min(pollInterval, l.Timeout/2))
		switch {
		case len(l.changed) == 0 && l.body.isCurrent(), l.readSinceJoin, !now.Before(patience):
			l.joinedAt, l.readSinceJoin = time.Time{}, false
			if err := serveJoiners(l.Group, l.out, l.body.resend); err != nil {
				return next, err
			}
		default:
			polling, next = true, sooner(next, patience)
		}
	}
	if !l.reading {
		get, at := l.body.nextRead(now, polling)
		if get == nil {
			return sooner(next, at), nil
		}
		l.startRead(ctx, get)
	}
	return next, nil
}

// pass tells the body of the watches that have changed and whose pace allows it, and returns when there are more.
func (l *loop) deliverChanges(now time.Time) (next time.Time, err error) {
	for _, w := range l.reader.Take() {
		if !l.queued[w] {
			l.queued[w] = true
			l.changed = append(l.changed, w)
		}
	}
	later := l.changed[:0]
	for _, w := range l.changed {
		if at := l.notBefore[w]; now.Before(at) {
			later = append(later, w)
			next = sooner(next, at)
			continue
		}
		delete(l.queued, w)
		sent := l.out.sentCount()
		if err == nil {
			err = l.body.changed(w)
		}
		if l.minInterval > 0 && l.out.sentCount() > sent { // a change that says nothing yet must not delay the first state
			l.notBefore[w] = now.Add(l.minInterval)
		}
	}
	l.changed = later
	return next, err
}

// joiners is signalled when readers wait for the present state.
func (l *loop) joiners() <-chan struct{} {
	if l.Group == nil {
		return nil
	}
	return l.Group.Waiting()
}

// serveJoiners sends the present state to some of the readers that wait for it. If others still wait, the group signals again.
func serveJoiners(group Group, out sender, resend func(Reason) error) error {
	to, resync, ok := group.TakeWaiting()
	if !ok {
		return nil
	}
	reason := Initial
	if resync {
		reason = Resync
	}
	out.setAudience(to)
	err := resend(reason)
	out.setAudience(0)
	group.Join(to)
	return err
}

// start begins a read. The loop waits for it before it ends.
func (l *loop) startRead(ctx context.Context, get read) {
	within := pollInterval
	if l.out.sentCount() == 0 {
		within = max(min(within, time.Until(l.deadline)), within/100)
	}
	l.reading = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		l.results <- recoverRead(ctx, get)
	}()
}

// guarded carries a read out. A panic in it becomes one of the loop.
func recoverRead(ctx context.Context, get read) (apply func() error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			apply = func() error { panic(readPanic{p, stack}) }
		}
	}()
	return get(ctx)
}
