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
	batchIDs = 100
	// assumedFrames (frames per second) and assumedBytes (bytes in a frame) replace limits that the venue's hello does not contain.
	assumedFrames = 20
	assumedBytes  = 64 << 10
	// In any period of length frameSpan, the client sends at most as many frames as the venue accepts in a second. frameSpan is longer
	// than a second, because the network may deliver frames in less time than the client took to send them.
	frameSpan = 1100 * time.Millisecond
	// resyncJitter is the maximum random wait before a resync. resyncWithin is the time for which the client waits for a requested
	// snapshot.
	resyncJitter = 250 * time.Millisecond
	resyncWithin = 1500 * time.Millisecond
	// If the venue rejects some topics of a request, ackWithin is the maximum wait for the confirmation of the other topics.
	ackWithin  = 300 * time.Millisecond
	maxAwaited = 1024
)

// resyncBackoff is the minimum time between two resyncs of a topic. Each bad frame since the last good snapshot counts as a failure.
var resyncBackoff = market.Backoff{Min: time.Second, Max: 30 * time.Second}

type sub struct {
	topic messages.Topic
	turn  uint64 // the value of entry.turn when the sub was made
	// subscribed: a subscription was sent. answered: the venue has answered it, with a confirmation, a message or a bad frame.
	// up: Handler.Up was called, and Handler.Down was not called since. removed: the sub is no longer in sendQueue.subs, but
	// sendQueue.pending and sendQueue.resyncs may still contain it.
	subscribed, answered, up, removed bool
	// rid is the id of the last request that subscribed to the topic.
	rid string
	// alone reports whether the topic shares no subscription request with others; see exclude.
	alone bool
	// notBefore is the earliest time of the next subscription. attempts is the number of requests for the topic that the venue has
	// postponed since the topic's last message.
	notBefore time.Time
	attempts  int

	// resyncAt is when a queued request for a snapshot is due, resyncSent when a request was sent whose snapshot has not arrived, and
	// resyncLast when the last request was sent.
	resyncAt, resyncSent, resyncLast time.Time
	badFrames                        int // since the last good snapshot
	// lastInternal is the Seq of the topic's last messages.Internal. A message and a bad frame use one number each.
	lastInternal uint64
}

// sendQueue has the subscriptions of one socket, and the requests to send and last sent. Only session.loop uses it.
type sendQueue struct {
	k    *connection
	subs map[messages.Topic]*sub
	// epoch is the Epoch of the messages.Internal numbers on this socket.
	epoch        uint64
	unsubscribes []messages.Topic // the topics to unsubscribe
	pending      []*sub           // the topics to subscribe
	resyncs      []*sub           // the topics that need a snapshot
	auth         *Request
	// awaited has the subscriptions and resyncs among the last maxAwaited requests, by rid, except those that got an error frame.
	awaited map[string]*Request
	rid     uint64

	window window
	limits Hello
}

func (q *sendQueue) init(k *connection) {
	q.k = k
	q.subs = make(map[messages.Topic]*sub)
	q.awaited = make(map[string]*Request)
	q.epoch = k.client.count.epochs.Add(1)
	q.setLimits(Hello{})
}

// setLimits sets the venue's limits, or the assumed ones. It increases FrameBytes if the longest id would not fit into a frame.
func (q *sendQueue) setLimits(h Hello) {
	h.FramesPerSecond = min(cmp.Or(h.FramesPerSecond, assumedFrames), 1000)
	h.FrameBytes = max(cmp.Or(h.FrameBytes, assumedBytes), 2*market.MaxIDLength+frameOverhead)
	h.Depth = cmp.Or(h.Depth, AssumedDepth)
	if h.FramesPerSecond != q.limits.FramesPerSecond {
		q.window = newWindow(h.FramesPerSecond)
	}
	q.limits = h
}

func (q *sendQueue) nextRid() string {
	q.rid++
	if q.rid > maxAwaited {
		delete(q.awaited, strconv.FormatUint(q.rid-maxAwaited, 10))
	}
	return strconv.FormatUint(q.rid, 10)
}

func (q *sendQueue) isSubscribed(t messages.Topic) bool {
	s := q.subs[t]
	return s != nil && s.subscribed
}

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

// clear removes all topics without unsubscribing them.
func (q *sendQueue) clear() {
	for _, s := range q.subs {
		q.remove(s)
	}
	q.unsubscribes = nil
}

func (q *sendQueue) remove(s *sub) {
	if s.subscribed {
		q.unsubscribes = append(q.unsubscribes, s.topic)
	}
	s.removed, s.subscribed = true, false
	delete(q.subs, s.topic)
}

func (q *sendQueue) add(s *sub) {
	q.subs[s.topic] = s
	q.pending = append(q.pending, s)
}

// resubscribe queues a new subscription of a topic, after an unsubscription if the topic is subscribed.
func (q *sendQueue) resubscribe(s *sub, turn uint64) {
	q.remove(s)
	q.add(&sub{topic: s.topic, turn: turn, up: s.up, resyncLast: s.resyncLast, badFrames: s.badFrames, lastInternal: s.lastInternal})
}

// sync queues requests for the calls of Watch, Unwatch and Resync since the last sync.
func (q *sendQueue) sync(now time.Time) {
	c := q.k.client
	c.mu.Lock()
	dirty, resyncs := q.k.dirty, q.k.resyncs
	q.k.dirty, q.k.resyncs = nil, nil
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
}

// resync queues a request for a snapshot, unless one is queued or a requested snapshot may still arrive.
func (q *sendQueue) resync(s *sub, now time.Time) {
	if !s.subscribed || !s.resyncAt.IsZero() || !s.resyncSent.IsZero() && now.Before(s.resyncSent.Add(resyncWithin)) {
		return
	}
	at := market.Later(now, s.resyncLast.Add(resyncBackoff.Wait(s.badFrames+1, 1)))
	s.resyncAt = at.Add(time.Duration(q.k.client.cfg.Rand() * float64(resyncJitter)))
	q.resyncs = append(q.resyncs, s)
}

// handleBadFrame queues a resync after an unusable frame. The frame may have been a requested snapshot, so the queue no longer waits
// for it, or a change, so one internal number is skipped.
func (q *sendQueue) handleBadFrame(t messages.Topic, now time.Time) {
	if s := q.subs[t]; s != nil && s.subscribed {
		s.answered, s.resyncSent = true, time.Time{}
		q.resync(s, now)
		s.badFrames++
		s.lastInternal++
	}
}

// accept sets the internal number of a message. It returns false for a message of a topic that is not subscribed. A snapshot cancels
// a queued resync.
func (q *sendQueue) accept(m *messages.Message) bool {
	s := q.subs[m.Topic]
	if s == nil || !s.subscribed {
		return false
	}
	s.lastInternal++
	m.Internal = messages.Internal{Epoch: q.epoch, Seq: s.lastInternal}
	s.answered, s.attempts = true, 0
	switch m.Kind {
	case messages.KindBookSnapshot, messages.KindTradesSnapshot, messages.KindUserSnapshot, messages.KindPrice, messages.KindMarket:
		s.resyncAt, s.resyncSent, s.badFrames = time.Time{}, time.Time{}, 0
	}
	return true
}

// workAt returns the time at which the next request can be sent, or the zero time if there is no request. open reports whether the
// session is in phaseOpen. Before this phase, only auth may be sent.
func (q *sendQueue) workAt(now time.Time, open bool) (at time.Time) {
	if q.auth != nil || open && len(q.unsubscribes) > 0 {
		at = now
	}
	if open {
		q.compact()
		for _, s := range q.pending {
			at = earlier(at, market.Later(s.notBefore, now))
		}
		for _, s := range q.resyncs {
			at = earlier(at, s.resyncAt)
		}
	}
	if at.IsZero() {
		return at
	}
	return market.Later(at, q.window.opensAt())
}

func (q *sendQueue) compact() {
	q.pending = slices.DeleteFunc(q.pending, func(s *sub) bool { return s.removed || s.subscribed && s.answered })
	q.resyncs = slices.DeleteFunc(q.resyncs, func(s *sub) bool { return s.removed || s.resyncAt.IsZero() })
}

func (q *sendQueue) next(now time.Time, open bool) *Request {
	if r := q.auth; r != nil {
		q.auth = nil
		return r
	}
	if !open {
		return nil
	}
	if len(q.unsubscribes) > 0 {
		return q.takeUnsubscription()
	}
	q.compact()
	if r := q.takeSubscription(now); r != nil {
		return r
	}
	for i, s := range q.resyncs {
		if !now.Before(s.resyncAt) {
			q.resyncs = slices.Delete(q.resyncs, i, i+1)
			return &Request{Verb: VerbResync, Topics: []messages.Topic{s.topic}}
		}
	}
	return nil
}

// markSent notes a sent request. It calls Handler.Up for the topics of a subscription.
func (q *sendQueue) markSent(r *Request, now time.Time) {
	switch r.Verb {
	case VerbSubscribe:
		q.awaited[r.Rid] = r
		for _, t := range r.Topics {
			s := q.subs[t]
			s.subscribed, s.answered, s.up, s.rid = true, false, true, r.Rid
		}
		q.k.client.handler.Up(market.QualifyAll(q.k.client.cfg.Venue, r.Topics))
	case VerbResync:
		q.awaited[r.Rid] = r
		s := q.subs[r.Topics[0]]
		s.resyncAt, s.resyncSent, s.resyncLast = time.Time{}, now, now
		q.k.client.count.resyncs.Add(1)
	}
}

// acknowledge returns the topics that a confirmation confirms. These are the topics that the venue lists, because it may reject the
// others later, or those of the subscription e.Rid if it lists none. Topics that a later request has subscribed again are skipped.
func (q *sendQueue) acknowledge(e *Event) (topics []messages.Topic) {
	listed := e.Topics
	if r := q.awaited[e.Rid]; len(listed) == 0 && r != nil && r.Verb == VerbSubscribe {
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
