package follow

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

const (
	// streamHeadStart is the maximum time that a new subscription waits for the venue's stream before it reads over REST.
	streamHeadStart = 500 * time.Millisecond
	// pollInterval is the time between REST reads of values that the venue's stream does not send. After a subscription's first event
	// or problem (see Event.Problem), it is also the timeout of each read.
	pollInterval = 5 * time.Second
)

// body implements one kind of subscription. The loop calls one method at a time. The methods must not wait. If a method returns an
// error, the subscription ends.
type body interface {
	// handleChange handles a change of a watch.
	handleChange(w *feed.Watch) error
	// nextRead returns the read of a venue to start now. If no read is due, it returns nil and the time when the loop must call nextRead
	// again. If this time is zero, the loop need not schedule another call. If poll is true, nextRead also requests the values that the
	// venue's stream does not send. poll is true at the end of streamHeadStart, every pollInterval, and while readers wait to join.
	nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time)
	// isCurrent reports whether the last event contains the present state. If it does, the loop needs no REST read to serve readers
	// that join.
	isCurrent() bool
	// resend sends the state of the last event to publisher.audience.
	resend(reason Reason) error
}

// flusher is a body that collects updates and sends them later. The loop calls flush after each call of loop.step. The parameter
// next is the time that loop.step returned. flush returns next, or an earlier time when the loop must call flush again.
type flusher interface {
	flush(now, next time.Time) (time.Time, error)
}

// readFunc reads over REST. The loop calls it on a new goroutine. Afterwards the loop calls the returned function apply on the
// goroutine of loop.run. apply handles the result.
type readFunc func(ctx context.Context) (apply func() error)

// sender is the part of a publisher that the loop uses.
type sender interface {
	sentCount() int
	setAudience(to Cohort)
	problem(err error) error
}

// result is the result of a read of a venue.
type result struct {
	venue int
	apply func() error
}

// loop runs one subscription.
type loop struct {
	Source
	reader *feed.Reader
	// minInterval is the minimum time between two events of a watch. It may be 0.
	minInterval time.Duration
	body        body
	out         sender

	// changed contains the watches with changes that were not passed to the body yet.
	changed []*feed.Watch
	queued  map[*feed.Watch]bool // the watches in changed
	// notBefore contains the earliest time of the next call of body.handleChange for each watch.
	notBefore map[*feed.Watch]time.Time

	results chan result
	// reading reports for each venue whether a read is running.
	reading []bool
	// joinedAt is the time when the first of the waiting readers wanted to join. It is zero if no reader waits.
	joinedAt time.Time
	// readSinceJoin reports whether a read has ended since joinedAt.
	readSinceJoin bool
	// deadline is the latest time of the first event or problem. late is deadline until then, and zero afterwards.
	deadline, late time.Time
	// poll is the time of the next poll, and nextPoll the time of the poll after that.
	poll, nextPoll time.Time
}

func (l *loop) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	l.queued, l.notBefore = make(map[*feed.Watch]bool), make(map[*feed.Watch]time.Time)
	l.reading = make([]bool, len(l.Feeds))
	l.results = make(chan result, len(l.reading))
	defer func() {
		end()
		for _, reading := range l.reading {
			if reading {
				<-l.results
			}
		}
	}()
	limit := l.Timeout * 9 / 10 // the rest of the time is for the execution and delivery of the event
	start := time.Now()
	l.deadline = start.Add(limit)
	l.poll, l.nextPoll, l.late = start.Add(min(streamHeadStart, limit/4)), start.Add(pollInterval), l.deadline
	at := earlierOf(l.poll, l.late)
	wake := time.NewTimer(time.Until(at)) // one timer for everything, because there are many loops
	defer wake.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-l.reader.Changed():
		case <-wake.C:
			at = time.Time{}
		case r := <-l.results:
			l.reading[r.venue], l.readSinceJoin = false, true
			err = r.apply()
		case <-l.joiners():
			if l.joinedAt.IsZero() {
				l.joinedAt, l.readSinceJoin = time.Now(), false
			}
		}
		now := time.Now()
		if err == nil {
			err = l.reportLate(now)
		}
		var next time.Time
		if err == nil {
			next, err = l.step(ctx, now, l.polls(now))
		}
		if f, ok := l.body.(flusher); ok && err == nil {
			next, err = f.flush(time.Now(), next)
		}
		if err != nil {
			return err
		}
		if next = earlierOf(earlierOf(next, l.poll), l.late); !next.Equal(at) {
			at = next
			wake.Reset(max(time.Until(at), 0))
		}
	}
}

// polls reports whether a poll is due, and plans the next one.
func (l *loop) polls(now time.Time) bool {
	if now.Before(l.poll) {
		return false
	}
	for l.poll = l.nextPoll; !now.Before(l.poll); {
		l.poll = l.poll.Add(pollInterval)
	}
	l.nextPoll = l.poll.Add(pollInterval)
	return true
}

// reportLate sends errFirstEventLate at l.late if nothing was sent before.
func (l *loop) reportLate(now time.Time) error {
	if l.late.IsZero() || now.Before(l.late) {
		return nil
	}
	l.late = time.Time{}
	if l.out.sentCount() > 0 {
		return nil
	}
	if i := slices.Index(l.reading, true); i > 0 { // the first venue is not late
		return l.out.problem(market.AtVenue(l.Names[i], errFirstEventLate))
	}
	return l.out.problem(errFirstEventLate)
}

// step passes changes to the body, serves readers that join, and starts the reads that are due, at most one for each venue. It returns
// the time of the next step, or zero if the next step can wait for the next change.
func (l *loop) step(ctx context.Context, now time.Time, polling bool) (next time.Time, err error) {
	if next, err = l.deliverChanges(now); err != nil {
		return next, err
	}
	if !l.joinedAt.IsZero() {
		latest := l.joinedAt.Add(min(pollInterval, l.Timeout/2))
		switch {
		case len(l.changed) == 0 && l.body.isCurrent(), l.readSinceJoin, !now.Before(latest):
			l.joinedAt, l.readSinceJoin = time.Time{}, false
			if err := serveJoiners(l.Group, l.out, l.body.resend); err != nil {
				return next, err
			}
		default:
			polling, next = true, earlierOf(next, latest)
		}
	}
	for venue, reading := range l.reading {
		if reading {
			continue
		}
		if get, at := l.body.nextRead(now, polling, venue); get != nil {
			l.startRead(ctx, venue, get)
		} else {
			next = earlierOf(next, at)
		}
	}
	return next, nil
}

// deliverChanges calls body.handleChange for each changed watch whose notBefore has passed. next is the earliest notBefore of the
// other changed watches, or zero if there are none.
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
			next = earlierOf(next, at)
			continue
		}
		delete(l.queued, w)
		sent := l.out.sentCount()
		if err == nil {
			err = market.AtVenue(l.Names.Of(w.Topic().ID), l.body.handleChange(w))
		}
		if l.minInterval > 0 && l.out.sentCount() > sent { // if the body sent nothing, the next change is not delayed
			l.notBefore[w] = now.Add(l.minInterval)
		}
	}
	l.changed = later
	return next, err
}

// joiners returns the channel that is signalled when readers wait to join. It returns nil if the subscription has no group.
func (l *loop) joiners() <-chan struct{} {
	if l.Group == nil {
		return nil
	}
	return l.Group.Waiting()
}

// serveJoiners calls resend for a cohort of the readers that wait to join, and then joins the cohort to the group.
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

// startRead starts a read on its own goroutine. run waits for this goroutine before it returns. The timeout of the read is
// pollInterval. Before the first event or problem, the timeout depends on the deadline instead.
func (l *loop) startRead(ctx context.Context, venue int, get readFunc) {
	within := pollInterval
	if l.out.sentCount() == 0 {
		within = time.Until(l.deadline) * 9 / 10 // a read that fails must report its own error before run reports errFirstEventLate
	}
	l.reading[venue] = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		l.results <- result{venue, recoverRead(ctx, get)}
	}()
}

// recoverRead runs a read. If the read panics, the returned function apply panics with a readPanic. The loop calls apply on its own
// goroutine.
func recoverRead(ctx context.Context, get readFunc) (apply func() error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			apply = func() error { panic(readPanic{p, stack}) }
		}
	}()
	return get(ctx)
}
