package stream

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

const (
	// batchIDs is the greatest number of ids in one request.
	batchIDs = 100
	// If the venue's hello contains no limits, the client sends at most assumedFrames frames a second and at most assumedBytes
	// bytes in a frame.
	assumedFrames = 20
	assumedBytes  = 64 << 10
	// The client sends at most as many frames in frameSpan as the venue accepts in a second. frameSpan is longer than a second,
	// because frames may arrive at shorter intervals than those at which they were sent.
	frameSpan = 1100 * time.Millisecond
	// resyncJitter bounds the random wait before a resync. resyncEvery is the least time between two resyncs of a topic.
	// resyncWithin is the time after which the client may request a missing snapshot again.
	resyncJitter = 250 * time.Millisecond
	resyncEvery  = time.Second
	resyncWithin = 1500 * time.Millisecond
	// Each bad frame doubles the least time between two resyncs of the topic. maxResyncEvery bounds this time.
	maxResyncEvery = 30 * time.Second
	// ackWithin bounds the wait for a confirmation after the venue has rejected only some topics of a request. The confirmation is
	// for the other topics of the request.
	ackWithin = 300 * time.Millisecond
	// maxAwaited bounds the number of unanswered requests that the queue remembers.
	maxAwaited = 1024
)

// sub is a topic on one socket.
type sub struct {
	topic messages.Topic
	turn  uint64
	// subscribed reports that a subscription was sent. answered reports that the venue has answered this subscription. up reports
	// that Handler.Up was called.
	subscribed, answered, up bool
	// removed reports that the topic was removed from the queue. The lists pending and resyncs may still contain a removed topic.
	removed bool
	// rid is the id of the topic's last subscription request.
	rid string
	// group is usually 0. Only topics of the same group share a request. If the venue rejects a request, the queue splits the
	// topics of the request into groups to find the bad topic.
	group uint64
	// notBefore is the earliest time of the next subscription. attempts is the number of times that the subscription was postponed.
	notBefore time.Time
	attempts  int

	// resyncAt is the time at which a snapshot will be requested. It is zero if no request is queued. resyncSent is the time of the
	// request for a snapshot that has not arrived. It is zero if no snapshot is awaited. resyncLast is the time of the last request
	// for a snapshot. badFrames is the number of bad frames since the last good snapshot.
	resyncAt, resyncSent, resyncLast time.Time
	badFrames                        int
	// numbered is the internal number of the last message.
	numbered uint64
}

// sendQueue contains the topics of one socket, the requests to send and the unanswered requests. Only the session's loop uses
// it.
type sendQueue struct {
	k    *connection
	subs map[messages.Topic]*sub
	// epoch is the epoch of the internal numbers on this socket.
	epoch uint64
	// unsubscribes contains the topics to unsubscribe. pending contains the topics to subscribe. resyncs contains the topics that
	// need a snapshot.
	unsubscribes []messages.Topic
	pending      []*sub
	resyncs      []*sub
	auth         *Request
	// awaited contains the requests that the venue may still reject, by rid.
	awaited map[string]*Request
	rid     uint64
	groups  uint64

	window, resyncWindow window
	limits               Hello
}

func (q *sendQueue) init(k *connection) {
	q.k = k
	q.subs = make(map[messages.Topic]*sub)
	q.awaited = make(map[string]*Request)
	q.epoch = k.client.count.epochs.Add(1)
	q.limit(Hello{})
}

// limit applies the venue's limits.
func (q *sendQueue) limit(h Hello) {
	h.FramesPerSecond = min(cmp.Or(h.FramesPerSecond, assumedFrames), 1000)
	h.FrameBytes = max(cmp.Or(h.FrameBytes, assumedBytes), 2*market.MaxIDLength+frameOverhead)
	h.Depth = cmp.Or(h.Depth, assumedDepth)
	if h.FramesPerSecond != q.limits.FramesPerSecond {
		q.window, q.resyncWindow = newWindow(h.FramesPerSecond), newWindow(h.FramesPerSecond/2)
	}
	q.limits = h
}

// nextRid returns the id of the next request. If maxAwaited requests are remembered, nextRid forgets the oldest of these requests.
func (q *sendQueue) nextRid() string {
	q.rid++
	if q.rid > maxAwaited {
		delete(q.awaited, strconv.FormatUint(q.rid-maxAwaited, 10))
	}
	return strconv.FormatUint(q.rid, 10)
}

// carries reports whether this socket is subscribed to a topic. Only then the Handler gets messages of the topic.
func (q *sendQueue) carries(t messages.Topic) bool {
	s := q.subs[t]
	return s != nil && s.subscribed
}

// upTopics returns the watched topics for which Handler.Up was called.
func (q *sendQueue) upTopics() []messages.Topic {
	c := q.k.client
	c.mu.Lock()
	defer c.mu.Unlock()
	var topics []messages.Topic
	for t, s := range q.subs {
		if e := q.k.topics[t]; s.up && e != nil && e.wanted {
			topics = append(topics, t)
		}
	}
	return topics
}

// clear removes all topics. It does not unsubscribe them.
func (q *sendQueue) clear() {
	for _, s := range q.subs {
		q.remove(s)
	}
	q.unsubscribes = nil
}

// remove removes a topic and queues its unsubscription.
func (q *sendQueue) remove(s *sub) {
	if s.subscribed {
		q.unsubscribes = append(q.unsubscribes, s.topic)
	}
	s.removed, s.subscribed = true, false
	delete(q.subs, s.topic)
}

// add queues the subscription of a topic.
func (q *sendQueue) add(s *sub) {
	q.subs[s.topic] = s
	q.pending = append(q.pending, s)
}

// resubscribe queues the unsubscription of a topic and a new subscription.
func (q *sendQueue) resubscribe(s *sub, turn uint64) {
	q.remove(s)
	q.add(&sub{topic: s.topic, turn: turn, up: s.up, resyncLast: s.resyncLast, badFrames: s.badFrames, numbered: s.numbered})
}

// sync applies the calls of Watch, Unwatch and Resync since the last sync. It reports whether Reconnect was called.
func (q *sendQueue) sync(now time.Time) (drop bool) {
	c := q.k.client
	c.mu.Lock()
	dirty, resyncs, drop := q.k.dirty, q.k.resyncs, q.k.drop
	q.k.dirty, q.k.resyncs, q.k.drop = nil, nil, false
	for _, t := range dirty {
		e, s := q.k.topics[t], q.subs[t]
		if e != nil && !e.wanted {
			c.release(e)
			e = nil
		}
		switch {
		case s == nil && e != nil:
			q.add(&sub{topic: t, turn: e.turn})
		case s != nil && e == nil:
			q.remove(s)
		case s != nil && e.turn != s.turn:
			q.resubscribe(s, e.turn)
		}
	}
	c.mu.Unlock()
	for _, t := range resyncs {
		if s := q.subs[t]; s != nil {
			q.resync(s, now)
		}
	}
	return drop
}

// resync queues a request for a snapshot. It does nothing if a request is already queued or a requested snapshot may still arrive.
func (q *sendQueue) resync(s *sub, now time.Time) {
	if !s.subscribed || !s.resyncAt.IsZero() || !s.resyncSent.IsZero() && now.Before(s.resyncSent.Add(resyncWithin)) {
		return
	}
	at := now
	if !s.resyncLast.IsZero() {
		every := min(resyncEvery<<min(s.badFrames, 10), maxResyncEvery)
		if next := s.resyncLast.Add(every); next.After(at) {
			at = next
		}
	}
	s.resyncAt = at.Add(time.Duration(q.k.client.cfg.Rand() * float64(resyncJitter)))
	q.resyncs = append(q.resyncs, s)
}

// badFrame queues a resync after an unusable frame. The frame may have been a requested snapshot, so the queue no longer waits for
// a snapshot. The frame may also have been a change, so badFrame skips one internal number.
func (q *sendQueue) badFrame(t messages.Topic, now time.Time) {
	if s := q.subs[t]; s != nil && s.subscribed {
		s.answered, s.resyncSent = true, time.Time{}
		q.resync(s, now)
		s.badFrames++
		s.numbered++
	}
}

// accept updates the state of a message's topic and sets the internal number of the message. It reports whether the session must
// pass the message to the Handler.
func (q *sendQueue) accept(m *messages.Message) bool {
	s := q.subs[m.Topic]
	if s == nil || !s.subscribed {
		return false
	}
	s.numbered++
	m.Internal = messages.Internal{Epoch: q.epoch, Seq: s.numbered}
	s.answered, s.attempts = true, 0
	switch m.Kind {
	case messages.KindBookSnapshot, messages.KindTradesSnapshot, messages.KindUserSnapshot, messages.KindPrice, messages.KindMarket:
		s.resyncAt, s.resyncSent, s.badFrames = time.Time{}, time.Time{}, 0
	}
	return true
}

// workAt returns the time at which the next request can be sent, or the zero time if there is no request. open reports whether the
// session has reached phaseOpen. Topics may be subscribed only in this phase.
func (q *sendQueue) workAt(open bool) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	// past is a time long ago, in seconds since 1970. It is not the zero time.
	const past = 1
	if q.auth != nil || open && len(q.unsubscribes) > 0 {
		sooner(time.Unix(past, 0))
	}
	if open {
		q.compact()
		for _, s := range q.pending {
			sooner(later(s.notBefore, time.Unix(past, 0)))
		}
		for _, s := range q.resyncs {
			sooner(later(s.resyncAt, q.resyncWindow.opens()))
		}
	}
	if at.IsZero() {
		return at
	}
	return later(at, q.window.opens())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// compact cleans up two lists. It removes topics from pending if they no longer need a subscription, and from resyncs if they no
// longer need a snapshot.
func (q *sendQueue) compact() {
	q.pending = slices.DeleteFunc(q.pending, func(s *sub) bool { return s.removed || s.subscribed && s.answered })
	q.resyncs = slices.DeleteFunc(q.resyncs, func(s *sub) bool { return s.removed || s.resyncAt.IsZero() })
}

// next removes and returns the request to send now, or nil.
func (q *sendQueue) next(now time.Time, open bool) *Request {
	if r := q.auth; r != nil {
		q.auth = nil
		return r
	}
	if !open {
		return nil
	}
	if len(q.unsubscribes) > 0 {
		return q.unsubscription()
	}
	q.compact()
	if r := q.subscription(now); r != nil {
		return r
	}
	if !q.resyncWindow.open(now) {
		return nil
	}
	for i, s := range q.resyncs {
		if !now.Before(s.resyncAt) {
			q.resyncs = slices.Delete(q.resyncs, i, i+1)
			q.resyncWindow.take(now)
			if !q.k.client.cfg.Protocol.Resyncs {
				s.resyncLast = now
				q.resubscribe(s, s.turn)
				q.k.client.count.resyncs.Add(1)
				return q.unsubscription()
			}
			return &Request{Verb: VerbResync, Topics: []messages.Topic{s.topic}}
		}
	}
	return nil
}

// markSent records that the session has started to write a request.
func (q *sendQueue) markSent(r *Request, now time.Time) {
	q.awaited[r.Rid] = r
	for _, t := range r.Topics {
		s := q.subs[t]
		switch r.Verb {
		case VerbSubscribe:
			s.subscribed, s.answered, s.up, s.rid = true, false, true, r.Rid
		case VerbResync:
			s.resyncAt, s.resyncSent, s.resyncLast = time.Time{}, now, now
		}
	}
}

// acknowledge returns the topics whose last subscription the event confirms. If the event has a rid, these are topics of the
// request with this rid. If the event has no rid, these are the topics that the event lists.
func (q *sendQueue) acknowledge(e *Event) (topics []messages.Topic) {
	listed := e.Topics
	if r := q.awaited[e.Rid]; r != nil && r.Verb == VerbSubscribe {
		listed = r.Topics
	}
	for _, t := range listed {
		if s := q.subs[t]; s != nil && s.subscribed && (e.Rid == "" || s.rid == e.Rid) {
			s.answered = true
			topics = append(topics, t)
		}
	}
	return topics
}
