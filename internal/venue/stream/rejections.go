package stream

import (
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// class is the meaning of an error code. Many codes have the same class.
type class uint8

const (
	// classRefused is the class of all codes that have no other class.
	classRefused class = iota
	classUnknown
	classUnauthenticated
	classForbidden
	// classLater is the class of temporary errors. A later request may succeed.
	classLater
)

var classes = map[string]class{
	"NOT_FOUND": classUnknown, "404": classUnknown,

	"UNAUTHENTICATED": classUnauthenticated, "UNAUTHORIZED": classUnauthenticated, "AUTH_FAILED": classUnauthenticated,
	"AUTH_REQUIRED": classUnauthenticated, "INVALID_CREDENTIALS": classUnauthenticated, "401": classUnauthenticated,
	"FORBIDDEN": classForbidden, "403": classForbidden,

	"RATE_LIMITED": classLater, "RATE_LIMIT": classLater, "TOO_MANY_REQUESTS": classLater, "429": classLater,
	"UNAVAILABLE": classLater, "SERVICE_UNAVAILABLE": classLater, "503": classLater, "TIMEOUT": classLater,
	"INTERNAL": classLater, "INTERNAL_ERROR": classLater, "INTERNAL_SERVER_ERROR": classLater, "500": classLater,
}

func classify(code string) class {
	if strings.HasPrefix(code, "UNKNOWN_") {
		return classUnknown // UNKNOWN_TOKEN, UNKNOWN_MARKET
	}
	return classes[code]
}

type rejection struct {
	topic messages.Topic
	turn  uint64
	err   *market.Error
}

// handleRejection handles an error frame. down contains the topics that are down until the queue subscribes them again. refused
// contains the topics that the venue has refused.
func (q *sendQueue) handleRejection(e *Event, class class) (down []messages.Topic, refused []rejection) {
	r := q.awaited[e.Rid]
	if r == nil && e.Rid == "" && class != classLater {
		r = q.findRequest(e.IDs)
	}
	if r == nil {
		q.k.client.cfg.Observer.Drift("error without a matching request")
		if class == classLater {
			q.pauseFor(e.At, e.RetryAfter)
		}
		return nil, nil
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
	case class == classLater && r.Verb == VerbResync:
		subs[0].resyncSent = time.Time{}
		q.resync(subs[0], e.At.Add(q.retryDelay(subs[0], e.RetryAfter)))
	case class == classRefused && r.Verb == VerbResync:
		q.resubscribe(subs[0], subs[0].turn) // the venue does not support resyncs, but it sends a snapshot after a subscription
	case class == classLater:
		at := e.At.Add(q.retryDelay(subs[0], e.RetryAfter))
		for _, s := range subs {
			down = append(down, q.requeue(s, at))
			s.attempts = subs[0].attempts
		}
	default:
		return q.exclude(subs, e, class)
	}
	return down, nil
}

// findRequest finds the request that an error rejects if the error has no request id (rid). The argument ids contains the ids in
// the error. The request is a subscription to one of these ids that the venue has not answered yet. If there is no such request,
// findRequest returns nil.
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

// exclude rejects the topics that an error names. If subs contains only one topic, exclude rejects this topic in any case. If the
// error names none of several topics, exclude queues two requests, each with half of the topics. By repeated halving, the queue
// finds the bad topic.
func (q *sendQueue) exclude(subs []*sub, e *Event, class class) (down []messages.Topic, rejected []rejection) {
	named := make(map[string]bool, len(e.IDs))
	for _, id := range e.IDs {
		named[id] = true
	}
	var rest []*sub
	for _, s := range subs {
		if named[s.topic.ID] || len(subs) == 1 {
			rejected = append(rejected, rejection{s.topic, s.turn, rejectionError(class)})
			s.subscribed = false // remove must not unsubscribe the topic
			q.remove(s)
		} else {
			rest = append(rest, s)
		}
	}
	if len(rejected) > 0 {
		// The venue may have accepted the other topics. If the venue does not confirm these topics within ackWithin, the queue
		// subscribes them again.
		q.groups++
		for _, s := range rest {
			if !s.answered {
				s.group, s.notBefore = q.groups, e.At.Add(ackWithin)
				q.pending = append(q.pending, s)
			}
		}
		return nil, rejected
	}
	half := (len(rest) + 1) / 2
	for i, s := range rest {
		if i == 0 || i == half {
			q.groups++
		}
		s.group = q.groups
		down = append(down, q.requeue(s, e.At))
	}
	return down, nil
}

// requeue queues another subscription of a topic for a later time. Until then, the topic is down.
func (q *sendQueue) requeue(s *sub, at time.Time) messages.Topic {
	s.subscribed, s.answered, s.up, s.notBefore = false, false, false, at
	s.resyncAt, s.resyncSent = time.Time{}, time.Time{}
	q.pending = append(q.pending, s)
	return s.topic
}

// retryDelay returns the wait before a postponed request. The wait is a random backoff or the wait that the venue has requested,
// whichever is longer.
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

func rejectionError(c class) *market.Error {
	switch c {
	case classUnknown:
		return errUnknownTopic
	case classUnauthenticated:
		return errUnauthenticated
	case classForbidden:
		return errForbidden
	default:
		return errUnsupported
	}
}
