package stream

import (
	"slices"
	"time"

	"oddsgraph/internal/market/messages"
)

// unsubscription removes topics of one channel from q.unsubscribes and returns a request that unsubscribes them.
func (q *sendQueue) unsubscription() *Request {
	b := q.batch(q.unsubscribes[0])
	rest := q.unsubscribes[:0]
	for _, t := range q.unsubscribes {
		if !b.add(t) {
			rest = append(rest, t)
		}
	}
	q.unsubscribes = rest
	return &Request{Verb: VerbUnsubscribe, Topics: b.topics}
}

// subscription removes topics of one channel that may share a request (see sub.group) from q.pending. It returns a request that
// subscribes them, or nil if no topic is due.
func (q *sendQueue) subscription(now time.Time) *Request {
	first := slices.IndexFunc(q.pending, func(s *sub) bool { return !now.Before(s.notBefore) })
	if first < 0 {
		return nil
	}
	group := q.pending[first].group
	b := q.batch(q.pending[first].topic)
	rest := q.pending[:0]
	for _, s := range q.pending {
		if s.group != group || now.Before(s.notBefore) || !b.add(s.topic) {
			rest = append(rest, s)
		}
	}
	q.pending = rest
	r := &Request{Verb: VerbSubscribe, Topics: b.topics}
	if r.Topics[0].Channel == messages.ChannelOrderbook {
		r.Depth = q.limits.Depth
	}
	return r
}

// batch collects topics for one request.
type batch struct {
	channel messages.Channel
	topics  []messages.Topic
	room    int
	most    int
}

func (q *sendQueue) batch(first messages.Topic) batch {
	b := batch{channel: first.Channel, room: q.limits.FrameBytes - frameOverhead, most: batchIDs}
	if first.Channel == messages.ChannelUser {
		b.most = 1
	}
	return b
}

// add adds a topic to the request. It returns false if the topic has another channel or does not fit into the request.
func (b *batch) add(t messages.Topic) bool {
	size := idSize(t)
	if t.Channel != b.channel || len(b.topics) == b.most || len(b.topics) > 0 && size > b.room {
		return false
	}
	b.topics = append(b.topics, t)
	b.room -= size
	return true
}
