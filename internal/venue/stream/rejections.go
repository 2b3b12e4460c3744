package stream

import (
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// meanings contains the venue's error codes that do not mean errUnsupported. A code of a temporary error means errLater.
var meanings = map[string]*market.Error{
	"NOT_FOUND": errUnknownTopic, "404": errUnknownTopic,

	"UNAUTHENTICATED": errUnauthenticated, "UNAUTHORIZED": errUnauthenticated, "AUTH_FAILED": errUnauthenticated,
	"AUTH_REQUIRED": errUnauthenticated, "INVALID_CREDENTIALS": errUnauthenticated, "401": errUnauthenticated,
	"FORBIDDEN": errForbidden, "403": errForbidden,

	"RATE_LIMITED": errLater, "RATE_LIMIT": errLater, "TOO_MANY_REQUESTS": errLater, "429": errLater,
	"UNAVAILABLE": errLater, "SERVICE_UNAVAILABLE": errLater, "503": errLater, "TIMEOUT": errLater,
	"INTERNAL": errLater, "INTERNAL_ERROR": errLater, "INTERNAL_SERVER_ERROR": errLater, "500": errLater,
}

func meaningOf(code string) *market.Error {
	if strings.HasPrefix(code, "UNKNOWN_") {
		return errUnknownTopic // UNKNOWN_TOKEN, UNKNOWN_MARKET
	}
	if err := meanings[code]; err != nil {
		return err
	}
	return errUnsupported
}

func (q *sendQueue) reject(e *Event, err *market.Error) {
	r := q.awaited[e.Rid]
	if r == nil && e.Rid == "" && err != errLater {
		r = q.findRequest(e.IDs)
	}
	if r == nil {
		q.k.client.cfg.Observer.Drift("error without a matching request")
		if err == errLater {
			q.pauseFor(e.At, e.RetryAfter)
		}
		return
	}
	delete(q.awaited, r.Rid)
	var subs []*sub
	for _, t := range r.Topics {
		if s := q.subs[t]; s != nil && s.subscribed {
			subs = append(subs, s)
		}
	}
	switch {
	case len(subs) == 0:
	case err == errLater && r.Verb == VerbResync:
		subs[0].resyncSent = time.Time{}
		q.resync(subs[0], e.At.Add(q.retryDelay(subs[0], e.RetryAfter)))
	case err == errUnsupported && r.Verb == VerbResync:
		q.resubscribe(subs[0], subs[0].turn) // the venue does not support resyncs, but it sends a snapshot after a subscription
	case err == errLater:
		at := e.At.Add(q.retryDelay(subs[0], e.RetryAfter))
		for _, s := range subs {
			s.attempts = subs[0].attempts
		}
		q.requeue(subs, at)
	default:
		q.exclude(subs, e, err)
	}
}

// findRequest returns the unanswered subscription to one of the ids that an error without a rid names, or nil.
func (q *sendQueue) findRequest(ids []string) *Request {
	for _, r := range q.awaited {
		if r.Verb == VerbSubscribe && slices.ContainsFunc(r.Topics, func(t messages.Topic) bool {
			s := q.subs[t]
			return slices.Contains(ids, t.ID) && s != nil && s.subscribed && !s.answered
		}) {
			return r
		}
	}
	return nil
}

// exclude refuses the topics that an error names, or the only topic of the request. If the error names none of several topics,
// each gets a request of its own, so that the next error names the bad topic.
func (q *sendQueue) exclude(subs []*sub, e *Event, err *market.Error) {
	isBad := func(s *sub) bool { return len(subs) == 1 || slices.Contains(e.IDs, s.topic.ID) }
	if !slices.ContainsFunc(subs, isBad) {
		for _, s := range subs {
			s.alone = true
		}
		q.requeue(subs, e.At)
		return
	}
	for _, s := range subs {
		switch {
		case isBad(s):
			s.subscribed = false // remove must not unsubscribe the topic
			q.remove(s)
			q.k.client.refuse(q.k, s.topic, s.turn, err)
		case !s.answered:
			// The venue may have accepted this topic. Without a confirmation within ackWithin, the queue subscribes it again.
			s.notBefore = e.At.Add(ackWithin)
			q.pending = append(q.pending, s)
		}
	}
}

// requeue queues another subscription of topics for a later time. Until then, the topics are down.
func (q *sendQueue) requeue(subs []*sub, at time.Time) {
	down := make([]messages.Topic, len(subs))
	for i, s := range subs {
		s.subscribed, s.answered, s.up, s.notBefore = false, false, false, at
		s.resyncAt, s.resyncSent = time.Time{}, time.Time{}
		down[i] = s.topic
	}
	q.pending = append(q.pending, subs...)
	q.k.client.handler.Down(market.QualifyAll(q.k.client.cfg.Venue, down), errPostponed)
}

// retryDelay returns the wait before a postponed request: a random backoff, or what the venue has requested if that is longer.
func (q *sendQueue) retryDelay(s *sub, requested time.Duration) time.Duration {
	s.attempts++
	c := &q.k.client.cfg
	return max(requested, c.Backoff.Wait(s.attempts, c.Rand()))
}

// pauseFor makes the queue send nothing for the time that the venue has requested, but at least for a second.
func (q *sendQueue) pauseFor(now time.Time, requested time.Duration) {
	until := now.Add(max(requested, time.Second))
	for i := range q.window.times {
		q.window.times[i] = market.Later(q.window.times[i], until.Add(-frameSpan))
	}
}
