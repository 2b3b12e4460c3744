package stream

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

const (
	// batchIDs is the greatest number of ids in one request.
	batchIDs = 100
	// assumedFrames and assumedBytes are the venue's limits where it does not say.
	assumedFrames = 20
	assumedBytes  = 64 << 10
	// frameSpan is the span in which the venue's frames a second are sent: a bit more than one, since they don't arrive
	// as evenly as they leave.
	frameSpan = 1100 * time.Millisecond
	// resyncJitter spreads resyncs, resyncEvery is the least time between two of one topic, resyncWithin is how long the
	// snapshot may take before it can be asked for again.
	resyncJitter = 250 * time.Millisecond
	resyncEvery  = time.Second
	resyncWithin = 1500 * time.Millisecond
	// maxResyncEvery bounds the time between resyncs of a topic whose frames stay bad.
	maxResyncEvery = 30 * time.Second
	// ackWithin is how long the rest of a request of which some ids were refused may take to be acknowledged.
	ackWithin = 300 * time.Millisecond
	// maxAwaited bounds the requests that are remembered until they are answered.
	maxAwaited = 1024
)

// window lets so many frames through in frameSpan.
type window struct {
	times []time.Time
	next  int
}

func newWindow(n int) window { return window{times: make([]time.Time, max(n, 1))} }

// opens returns when the next frame may leave; the past when it may now.
func (w *window) opens() time.Time {
	if t := w.times[w.next]; !t.IsZero() {
		return t.Add(frameSpan)
	}
	return time.Time{}
}

func (w *window) open(now time.Time) bool { return !now.Before(w.opens()) }

func (w *window) take(now time.Time) {
	w.times[w.next] = now
	w.next = (w.next + 1) % len(w.times)
}

// sub is a topic on one socket.
type sub struct {
	topic market.Topic
	turn  uint64
	// asked tells that a subscription was sent and stands, as far as is known; heard that the venue has answered it. up
	// tells that the handler believes the topic to be up.
	asked, heard, up bool
	// gone tells that the topic is no longer carried, for the lists that it may still be in.
	gone bool
	// rid is the number of the request that subscribed the topic last.
	rid string
	// group is not 0 for topics that are to be asked for apart from others, to find the one that the venue refuses.
	group uint64
	// notBefore puts a subscription off, tries counts how often.
	notBefore time.Time
	tries     int

	// resyncAt is when to ask for a snapshot; zero when there is no need. resyncSent is when one was asked for that has
	// not come, resyncLast when the last one was. spoilt counts bad frames since the last good snapshot.
	resyncAt, resyncSent, resyncLast time.Time
	spoilt                           int
}

// outbox is what is to be sent on one socket, and what was. It belongs to the session's loop.
type outbox struct {
	k    *connection
	subs map[market.Topic]*sub
	// leaving are to be unsubscribed, pending to be subscribed, resyncs to be asked a snapshot of.
	leaving []market.Topic
	pending []*sub
	resyncs []*sub
	auth    *request
	// awaited are the requests that may still be refused, by rid.
	awaited map[string]*request
	rid     uint64
	groups  uint64

	window, resyncWindow window
	limits               hello
}

func (o *outbox) init(k *connection) {
	o.k = k
	o.subs = make(map[market.Topic]*sub)
	o.awaited = make(map[string]*request)
	o.limit(hello{})
}

// limit takes over what the venue says of its limits.
func (o *outbox) limit(h hello) {
	h.framesPerSecond = min(cmp.Or(h.framesPerSecond, assumedFrames), 1000)
	h.frameBytes = max(cmp.Or(h.frameBytes, assumedBytes), 2*market.MaxIDLength+frameOverhead)
	h.depth = askedDepth(o.k.client.cfg.Depth, h.depth)
	if h.framesPerSecond != o.limits.framesPerSecond {
		o.window, o.resyncWindow = newWindow(h.framesPerSecond), newWindow(h.framesPerSecond/2)
	}
	o.limits = h
}

// number returns the rid of the next request, and forgets the oldest ones.
func (o *outbox) number() string {
	o.rid++
	if o.rid > maxAwaited {
		delete(o.awaited, strconv.FormatUint(o.rid-maxAwaited, 10))
	}
	return strconv.FormatUint(o.rid, 10)
}

// carries tells whether messages of a topic are for the handler.
func (o *outbox) carries(t market.Topic) bool {
	s := o.subs[t]
	return s != nil && s.asked
}

// up returns the topics that the handler believes to be up.
func (o *outbox) up() []market.Topic {
	c := o.k.client
	c.mu.Lock()
	defer c.mu.Unlock()
	var topics []market.Topic
	for t, s := range o.subs {
		if e := o.k.topics[t]; s.up && e != nil && e.wanted {
			topics = append(topics, t)
		}
	}
	return topics
}

// drop forgets all topics.
func (o *outbox) drop() {
	for _, s := range o.subs {
		o.leave(s)
	}
	o.leaving = nil
}

// leave takes a topic out of everything but the venue's list, which it is put down for.
func (o *outbox) leave(s *sub) {
	if s.asked {
		o.leaving = append(o.leaving, s.topic)
	}
	s.gone, s.asked = true, false
	delete(o.subs, s.topic)
}

// join puts a topic down to be subscribed.
func (o *outbox) join(s *sub) {
	o.subs[s.topic] = s
	o.pending = append(o.pending, s)
}

// anew puts a topic down to be unsubscribed and subscribed.
func (o *outbox) anew(s *sub, turn uint64) {
	o.leave(s)
	o.join(&sub{topic: s.topic, turn: turn, up: s.up, resyncLast: s.resyncLast, spoilt: s.spoilt})
}

// sync takes over what was watched, unwatched and asked to be resynced since the last call. It reports whether another
// socket is asked for.
func (o *outbox) sync(now time.Time) (drop bool) {
	c := o.k.client
	c.mu.Lock()
	dirty, resyncs, drop := o.k.dirty, o.k.resyncs, o.k.drop
	o.k.dirty, o.k.resyncs, o.k.drop = nil, nil, false
	for _, t := range dirty {
		e, s := o.k.topics[t], o.subs[t]
		if e != nil && !e.wanted {
			c.release(e)
			e = nil
		}
		switch {
		case s == nil && e != nil:
			o.join(&sub{topic: t, turn: e.turn})
		case s != nil && e == nil:
			o.leave(s)
		case s != nil && e.turn != s.turn:
			o.anew(s, e.turn)
		}
	}
	c.mu.Unlock()
	for _, t := range resyncs {
		if s := o.subs[t]; s != nil {
			o.resync(s, now)
		}
	}
	return drop
}

// resync puts a topic down for a snapshot, unless one is due anyway.
func (o *outbox) resync(s *sub, now time.Time) {
	if !s.asked || !s.resyncAt.IsZero() || !s.resyncSent.IsZero() && now.Before(s.resyncSent.Add(resyncWithin)) {
		return
	}
	at := now
	if !s.resyncLast.IsZero() {
		every := min(resyncEvery<<min(s.spoilt, 10), maxResyncEvery)
		if next := s.resyncLast.Add(every); next.After(at) {
			at = next
		}
	}
	s.resyncAt = at.Add(time.Duration(o.k.client.cfg.Rand() * float64(resyncJitter)))
	o.resyncs = append(o.resyncs, s)
}

// spoilt asks for a snapshot of a topic of which a frame could not be used. That frame may have been the snapshot that was
// asked for, so there is none to wait for.
func (o *outbox) spoilt(t market.Topic, now time.Time) {
	if s := o.subs[t]; s != nil && s.asked {
		s.heard, s.resyncSent = true, time.Time{}
		o.resync(s, now)
		s.spoilt++
	}
}

// hear takes note of a message and reports whether it is for the handler.
func (o *outbox) hear(m *market.Message) bool {
	s := o.subs[m.Topic]
	if s == nil || !s.asked {
		return false
	}
	s.heard, s.tries = true, 0
	switch m.Kind {
	case market.MessageBookSnapshot, market.MessageTradesSnapshot, market.MessageUserSnapshot, market.MessagePrice, market.MessageMarket:
		s.resyncAt, s.resyncSent, s.spoilt = time.Time{}, time.Time{}, 0
	}
	return true
}

// workAt returns when there is something to send; zero when there is nothing. open tells that topics may be subscribed.
func (o *outbox) workAt(open bool) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	// A time long ago, but not zero: now.
	const past = 1
	if o.auth != nil || open && len(o.leaving) > 0 {
		sooner(time.Unix(past, 0))
	}
	if open {
		o.compact()
		for _, s := range o.pending {
			sooner(later(s.notBefore, time.Unix(past, 0)))
		}
		for _, s := range o.resyncs {
			sooner(later(s.resyncAt, o.resyncWindow.opens()))
		}
	}
	if at.IsZero() {
		return at
	}
	return later(at, o.window.opens())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// compact takes out what has become pointless.
func (o *outbox) compact() {
	o.pending = slices.DeleteFunc(o.pending, func(s *sub) bool { return s.gone || s.asked && s.heard })
	o.resyncs = slices.DeleteFunc(o.resyncs, func(s *sub) bool { return s.gone || s.resyncAt.IsZero() })
}

// next takes out the request that is to be sent now; nil when there is none.
func (o *outbox) next(now time.Time, open bool) *request {
	if r := o.auth; r != nil {
		o.auth = nil
		return r
	}
	if !open {
		return nil
	}
	if len(o.leaving) > 0 {
		return o.unsubscription()
	}
	o.compact()
	if r := o.subscription(now); r != nil {
		return r
	}
	if !o.resyncWindow.open(now) {
		return nil
	}
	for i, s := range o.resyncs {
		if !now.Before(s.resyncAt) {
			o.resyncs = slices.Delete(o.resyncs, i, i+1)
			o.resyncWindow.take(now)
			return &request{verb: verbResync, topics: []market.Topic{s.topic}}
		}
	}
	return nil
}

// unsubscription takes topics of one channel out of leaving.
func (o *outbox) unsubscription() *request {
	b := o.batch(o.leaving[0])
	rest := o.leaving[:0]
	for _, t := range o.leaving {
		if !b.add(t) {
			rest = append(rest, t)
		}
	}
	o.leaving = rest
	return &request{verb: verbUnsubscribe, topics: b.topics}
}

// subscription takes topics of one channel, and of one group, out of pending. Topics stay in the order in which they
// were watched.
func (o *outbox) subscription(now time.Time) *request {
	first := slices.IndexFunc(o.pending, func(s *sub) bool { return !now.Before(s.notBefore) })
	if first < 0 {
		return nil
	}
	group := o.pending[first].group
	b := o.batch(o.pending[first].topic)
	rest := o.pending[:0]
	for _, s := range o.pending {
		if s.group != group || now.Before(s.notBefore) || !b.add(s.topic) {
			rest = append(rest, s)
		}
	}
	o.pending = rest
	r := &request{verb: verbSubscribe, topics: b.topics}
	if r.topics[0].Channel == market.ChannelOrderbook {
		r.depth = o.limits.depth
	}
	return r
}

// batch collects topics for one request.
type batch struct {
	channel market.Channel
	topics  []market.Topic
	room    int
	most    int
}

func (o *outbox) batch(first market.Topic) batch {
	b := batch{channel: first.Channel, room: o.limits.frameBytes - frameOverhead, most: batchIDs}
	if first.Channel == market.ChannelUser {
		b.most = 1
	}
	return b
}

// add reports whether a topic fits. The first one always does.
func (b *batch) add(t market.Topic) bool {
	size := idSize(t)
	if t.Channel != b.channel || len(b.topics) == b.most || len(b.topics) > 0 && size > b.room {
		return false
	}
	b.topics = append(b.topics, t)
	b.room -= size
	return true
}

// sent takes note of a request that is being written.
func (o *outbox) sent(r *request, now time.Time) {
	o.awaited[r.rid] = r
	for _, t := range r.topics {
		s := o.subs[t]
		switch r.verb {
		case verbSubscribe:
			s.asked, s.heard, s.up, s.rid = true, false, true, r.rid
		case verbResync:
			s.resyncAt, s.resyncSent, s.resyncLast = time.Time{}, now, now
		}
	}
}

// acknowledge returns the topics whose latest subscription an answer confirms: those of the request that it names, or those
// that it lists where it names none.
func (o *outbox) acknowledge(e *event) (topics []market.Topic) {
	listed := e.topics
	if r := o.awaited[e.rid]; r != nil && r.verb == verbSubscribe {
		listed = r.topics
	}
	for _, t := range listed {
		if s := o.subs[t]; s != nil && s.asked && (e.rid == "" || s.rid == e.rid) {
			s.heard = true
			topics = append(topics, t)
		}
	}
	return topics
}

// class sorts the codes of error frames.
type class uint8

const (
	// classRefused: no, for a reason that is not known here.
	classRefused class = iota
	classUnknown
	classUnauthenticated
	classForbidden
	// classLater: not now.
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

// refusal is a topic that the venue does not give.
type refusal struct {
	topic market.Topic
	turn  uint64
	err   *market.Error
}

// refused takes an error frame about a request. down are topics that are not subscribed any more, but will be.
func (o *outbox) refused(e *event, class class) (down []market.Topic, refused []refusal) {
	r := o.awaited[e.rid]
	if r == nil && e.rid == "" && class != classLater {
		r = o.unanswered(e.ids)
	}
	if r == nil {
		o.k.client.cfg.Observer.Drift("error about nothing")
		if class == classLater {
			o.hold(e.at, e.retryAfter)
		}
		return nil, nil
	}
	delete(o.awaited, r.rid)
	var subs []*sub
	for _, t := range r.topics {
		if s := o.subs[t]; s != nil && s.asked {
			subs = append(subs, s)
		}
	}
	switch {
	case len(subs) == 0:
	case class == classLater && r.verb == verbResync:
		subs[0].resyncSent = time.Time{}
		o.resync(subs[0], e.at.Add(o.putOff(subs[0], e.retryAfter)))
	case class == classRefused && r.verb == verbResync:
		o.anew(subs[0], subs[0].turn) // a venue without resyncs sends a snapshot with a subscription
	case class == classLater:
		at := e.at.Add(o.putOff(subs[0], e.retryAfter))
		for _, s := range subs {
			down = append(down, o.again(s, at))
			s.tries = subs[0].tries
		}
	default:
		return o.exclude(subs, e, class)
	}
	return down, nil
}

// unanswered returns the subscription to one of some ids that the venue has said nothing of yet, for errors that name no
// request.
func (o *outbox) unanswered(ids []string) *request {
	for _, r := range o.awaited {
		if r.verb == verbSubscribe && slices.ContainsFunc(r.topics, func(t market.Topic) bool {
			s := o.subs[t]
			return slices.Contains(ids, t.ID) && s != nil && s.asked && !s.heard
		}) {
			return r
		}
	}
	return nil
}

// exclude takes out the topics that the venue names; of a request that is refused without a name each half is asked for
// by itself, until the refused topic is alone.
func (o *outbox) exclude(subs []*sub, e *event, class class) (down []market.Topic, refused []refusal) {
	named := make(map[string]bool, len(e.ids))
	for _, id := range e.ids {
		named[id] = true
	}
	var rest []*sub
	for _, s := range subs {
		if named[s.topic.ID] || len(subs) == 1 {
			refused = append(refused, refusal{s.topic, s.turn, refusalError(class)})
			s.asked = false // so the venue has nothing to unsubscribe
			o.leave(s)
		} else {
			rest = append(rest, s)
		}
	}
	if len(refused) > 0 {
		// The venue may have taken the others; if it says so they need not be asked for again.
		o.groups++
		for _, s := range rest {
			if !s.heard {
				s.group, s.notBefore = o.groups, e.at.Add(ackWithin)
				o.pending = append(o.pending, s)
			}
		}
		return nil, refused
	}
	half := (len(rest) + 1) / 2
	for i, s := range rest {
		if i == 0 || i == half {
			o.groups++
		}
		s.group = o.groups
		down = append(down, o.again(s, e.at))
	}
	return down, nil
}

// again puts a topic down to be subscribed at a time. Until then it is not up.
func (o *outbox) again(s *sub, at time.Time) market.Topic {
	s.asked, s.heard, s.up, s.notBefore = false, false, false, at
	s.resyncAt, s.resyncSent = time.Time{}, time.Time{}
	o.pending = append(o.pending, s)
	return s.topic
}

// putOff returns how long to wait after the venue has asked for patience.
func (o *outbox) putOff(s *sub, asked time.Duration) time.Duration {
	c := &o.k.client.cfg
	bound := min(time.Duration(math.Ldexp(float64(c.BackoffMin), min(s.tries, 10))), c.BackoffMax)
	s.tries++
	return max(asked, bound/2+time.Duration(c.Rand()*float64(bound/2)))
}

// hold sends nothing for a while.
func (o *outbox) hold(now time.Time, asked time.Duration) {
	until := now.Add(max(asked, time.Second))
	for i := range o.window.times {
		o.window.times[i] = later(o.window.times[i], until.Add(-frameSpan))
	}
}

func refusalError(c class) *market.Error {
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
