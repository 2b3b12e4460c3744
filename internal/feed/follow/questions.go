package follow

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
)

const (
	// lookInterval is the time between two looks at a leg whose data are live and do not change.
	lookInterval = 500 * time.Millisecond
	// lateAfter is the time after which a look is late. What is no longer fresh is then shown as stale.
	lateAfter = time.Second
)

// lookBackoff is the time between two looks at a leg that fails.
var lookBackoff = market.Backoff{Min: 500 * time.Millisecond, Max: pollInterval}

// QuestionState is a question with the states of its legs, in their order.
type QuestionState struct {
	Question *questions.Question
	Legs     []reads.Leg
}

// AskedQuestion is a question that a Stream follows.
type AskedQuestion struct {
	// Find returns the present version of the question. An error ends the Stream. After a change, the Stream sends a RESYNC.
	Find func() (*questions.Question, error)
	// Look reads the state of a leg, as a query does.
	Look func(ctx context.Context, l *questions.Leg) reads.Leg
	// Every is the minimum time between two events, and between two looks at a leg.
	Every time.Duration
}

// Question follows a question on several venues. It looks at each leg by itself, so that after the first event of a version, no venue
// delays the legs of others.
func Question(ctx context.Context, s Source, asked AskedQuestion) Stream[QuestionState] {
	return func(yield func(Event[QuestionState], error) bool) {
		for first, again := Initial, true; again; first = Resync {
			again = false
			version := stream(ctx, s, 0, func(out *publisher[QuestionState], reader *feed.Reader) (body, error) {
				return asked.open(s, out, reader, first)
			})
			for e, err := range version {
				if again = errors.Is(err, errOtherVersion); !again && !yield(e, err) {
					return
				}
			}
		}
	}
}

// errOtherVersion ends the loop of a question that has changed.
var errOtherVersion = errors.New("the question has changed")

// question is the body of one version of a question. Each leg is at another venue.
type question struct {
	AskedQuestion
	out     *publisher[QuestionState]
	reader  *feed.Reader
	version *questions.Question
	legs    []*leg
	watched map[*feed.Watch]*leg
	first   Reason      // of the first event
	last    []reads.Leg // in the last event
	next    time.Time   // the earliest time of the next event
}

type leg struct {
	*questions.Leg
	venue int
	// state is what the last look has found. It is nil before the first look has ended.
	state *reads.Leg
	// topics are watched. A topic that the feed refuses or ends is asked for again after the next look.
	topics []messages.Topic
	// live reports whether the topics show all changes of state. changed reports whether a topic has changed since the last look began,
	// and asked whether the loop has asked for a look since then.
	live, changed, asked bool
	// lookedAt is when the last look began. The next one begins after the time interval, or after the shorter time pause if it is
	// asked for or a topic has changed. failures counts the looks in a row that have failed.
	lookedAt        time.Time
	pause, interval time.Duration
	failures        int
	looking         bool
}

func (a AskedQuestion) open(s Source, out *publisher[QuestionState], reader *feed.Reader, first Reason) (body, error) {
	version, err := a.Find()
	if err == nil && first == Resync && s.Group != nil { // readers that waited for the version before get this one from its start
		err = serveJoiners(s.Group, out, func(Reason) error { return nil })
	}
	if err != nil {
		return nil, err
	}
	q := &question{AskedQuestion: a, out: out, reader: reader, version: version, watched: make(map[*feed.Watch]*leg), first: first}
	for i := range version.Legs {
		l := &leg{Leg: &version.Legs[i], venue: s.Names.Find(version.Legs[i].Token)}
		q.legs = append(q.legs, l)
		q.follow(l)
	}
	return q, nil
}

// follow watches the topics of a leg that are known and not watched.
func (q *question) follow(l *leg) {
	topics := []messages.Topic{{Channel: messages.ChannelOrderbook, ID: l.Token}}
	if l.state != nil && l.state.Market.Value.Value != nil {
		topics = append(topics, messages.Topic{Channel: messages.ChannelMarket, ID: l.state.Market.Value.Value.MarketID})
	}
	for _, t := range topics {
		if slices.Contains(l.topics, t) {
			continue
		}
		if w, err := q.reader.Watch(t, nil); err == nil {
			q.watched[w], l.topics = l, append(l.topics, t)
		}
	}
}

// handleChange makes a look due. The look reads the new state, which the feed has passed to the cache.
func (q *question) handleChange(w *feed.Watch) error {
	_, _, err := w.Take()
	l := q.watched[w]
	switch {
	case l == nil:
	case err != nil:
		delete(q.watched, w)
		l.topics = slices.DeleteFunc(l.topics, func(t messages.Topic) bool { return t == w.Topic() })
		w.Close()
	default:
		l.changed = true
	}
	return nil
}

func (q *question) nextRead(now time.Time, poll bool, venue int) (readFunc, time.Time) {
	i := slices.IndexFunc(q.legs, func(l *leg) bool { return l.venue == venue })
	if i < 0 {
		return nil, time.Time{}
	}
	l := q.legs[i]
	l.asked = l.asked || poll
	wait := l.interval
	if l.changed || l.asked {
		wait = l.pause
	} else if l.lookedAt.IsZero() { // the loop asks for the first look after the head start of the stream
		return nil, time.Time{}
	}
	if at := l.lookedAt.Add(wait); now.Before(at) {
		return nil, at
	}
	l.changed, l.asked, l.looking, l.lookedAt = false, false, true, now
	return func(ctx context.Context) func() error {
		found := q.Look(ctx, l.Leg)
		return func() error {
			q.use(l, found, time.Now())
			return nil
		}
	}, time.Time{}
}

// use takes the result of a look.
func (q *question) use(l *leg, found reads.Leg, now time.Time) {
	if l.looking = false; now.Sub(l.lookedAt) >= lateAfter {
		found.Expire(now) // a part was read long before the other
	}
	l.state, l.live = &found, found.Live(now)
	q.follow(l)
	l.failures++
	switch {
	case l.live:
		l.failures, l.pause, l.interval = 0, q.Every, max(lookInterval, q.Every)
	case found.Faults() == [4]bool{}: // the venue's stream does not send the book
		l.failures, l.pause, l.interval = 0, q.Every, pollInterval
	default:
		l.pause = lookBackoff.Wait(l.failures, 1)
		l.interval = l.pause
	}
}

// flush sends an event if the question has changed.
func (q *question) flush(now, next time.Time) (time.Time, error) {
	if version, err := q.Find(); err != nil || !reflect.DeepEqual(version, q.version) {
		return next, cmp.Or(err, errOtherVersion)
	}
	state := make([]reads.Leg, len(q.legs))
	for i, l := range q.legs {
		if l.state == nil {
			return next, nil
		}
		state[i] = *l.state
		switch late := l.lookedAt.Add(lateAfter); {
		case !l.looking:
		case now.Before(late):
			next = earlierOf(next, late)
		default:
			state[i].Expire(now)
			next = earlierOf(next, now.Add(lookInterval))
		}
	}
	why := q.reason(state)
	if why == "" {
		return next, nil
	}
	if now.Before(q.next) {
		return earlierOf(next, q.next), nil
	}
	q.last, q.next = state, now.Add(q.Every)
	return next, q.send(why)
}

// reason returns the reason of an event with a state, or "" if the last event shows the same.
func (q *question) reason(state []reads.Leg) (why Reason) {
	if q.last == nil {
		return q.first
	}
	for i := range state {
		if !state[i].Equal(&q.last[i]) {
			return Changed
		}
		if state[i].Faults() != q.last[i].Faults() {
			why = Freshness
		}
	}
	return why
}

func (q *question) send(why Reason) error {
	return q.out.send(why, "", Replace, QuestionState{q.version, q.last})
}

func (q *question) isCurrent() bool {
	return !slices.ContainsFunc(q.legs, func(l *leg) bool { return !l.live || l.changed || l.looking })
}

func (q *question) resend(why Reason) error {
	if q.last == nil { // the first event is for all readers
		return nil
	}
	return q.send(why)
}
