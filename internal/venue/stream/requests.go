package stream

import (
	"encoding/json"
	"slices"
	"time"

	"oddsgraph/internal/market/messages"
)

func (q *sendQueue) takeUnsubscription() *Request {
	b := q.newBatch(q.unsubscribes[0])
	rest := q.unsubscribes[:0]
	for _, t := range q.unsubscribes {
		if !b.add(t) {
			rest = append(rest, t)
		}
	}
	q.unsubscribes = rest
	return &Request{Verb: VerbUnsubscribe, Topics: b.topics}
}

// takeSubscription removes topics that may share a request from q.pending. If none is due, it returns nil.
func (q *sendQueue) takeSubscription(now time.Time) *Request {
	i := slices.IndexFunc(q.pending, func(s *sub) bool { return !now.Before(s.notBefore) })
	if i < 0 {
		return nil
	}
	first := q.pending[i]
	b := q.newBatch(first.topic)
	if first.alone {
		b.maxTopics = 1
	}
	rest := q.pending[:0]
	for _, s := range q.pending {
		if s.alone && s != first || now.Before(s.notBefore) || !b.add(s.topic) {
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

type batch struct {
	channel messages.Channel
	topics  []messages.Topic
	// bytesLeft is the number of bytes that further ids may use. maxTopics is the maximum number of topics.
	bytesLeft, maxTopics int
}

func (q *sendQueue) newBatch(first messages.Topic) batch {
	b := batch{channel: first.Channel, bytesLeft: q.limits.FrameBytes - frameOverhead, maxTopics: batchIDs}
	if first.Channel == messages.ChannelUser {
		b.maxTopics = 1
	}
	return b
}

func (b *batch) add(t messages.Topic) bool {
	quoted, _ := json.Marshal(t.ID)
	size := len(quoted) + len(",")
	if t.Channel != b.channel || len(b.topics) == b.maxTopics || len(b.topics) > 0 && size > b.bytesLeft {
		return false
	}
	b.topics = append(b.topics, t)
	b.bytesLeft -= size
	return true
}

// frameOverhead is an upper bound of the size in bytes of a subscription without its ids.
const frameOverhead = 128

// window limits the number of frames in any period of length frameSpan.
type window struct {
	times []time.Time
	next  int
}

func newWindow(n int) window { return window{times: make([]time.Time, max(n, 1))} }

// opensAt returns the earliest time for the next frame. This time may be in the past.
func (w *window) opensAt() time.Time {
	if t := w.times[w.next]; !t.IsZero() {
		return t.Add(frameSpan)
	}
	return time.Time{}
}

func (w *window) isOpen(now time.Time) bool { return !now.Before(w.opensAt()) }

func (w *window) take(now time.Time) {
	w.times[w.next] = now
	w.next = (w.next + 1) % len(w.times)
}
