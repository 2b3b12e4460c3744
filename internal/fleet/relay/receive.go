package relay

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

var errMoved = errors.New("another replica now sends the topic's messages")

// refusal returns a frameRefused for a topic. The frame contains only the code of err and, if err is a market.Error, the message of
// err for clients.
func refusal(shard int, fence uint64, t messages.Topic, err error) *frame {
	f := &frame{kind: frameRefused, shard: shard, Fence: fence, Topics: []messages.Topic{t}, Code: market.CodeOf(err)}
	if e, ok := errors.AsType[*market.Error](err); ok {
		f.Text = e.Message
	}
	return f
}

// handle handles a text from the Bus. Only the goroutine of Relay.receive calls handle.
func (r *Relay) handle(text string) {
	kind, i, err := header(text)
	if err != nil {
		return
	}
	s := &r.shards[i]
	own := strings.HasPrefix(text[2:], r.own)
	if own && kind != frameHello {
		return
	}
	if kind == frameMessage { // most frames are messages, so skip them early if this replica watches no topic of the shard
		s.mu.Lock()
		skip := len(s.topics) == 0
		s.mu.Unlock()
		if skip {
			return
		}
	}
	f := &frame{kind: kind, shard: i}
	if err := json.Unmarshal([]byte(text[2:]), f); err != nil {
		r.log.Debug("a frame of another replica cannot be read", "error", err)
		return
	}
	switch kind {
	case frameHello:
		r.recordHello(f.From)
	case frameWant:
		r.wantedByOther(f, s)
	case frameResync:
		r.answer(f, s)
	case frameBeat, frameMessage, frameRefused:
		if !r.alone.Load() {
			r.handleOwnerFrame(f, s)
		}
	}
}

// recordHello records a hello of a replica.
func (r *Relay) recordHello(name string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.live[name]; known || len(r.live) < maxReplicas {
		r.live[name] = now
	}
	if name == r.cfg.Replica {
		r.ownHelloAt.Store(int64(now.Sub(r.started)))
	}
}

// wantedByOther records topics that another replica wants, if this replica owns their shard.
func (r *Relay) wantedByOther(f *frame, s *shard) {
	s.mu.Lock()
	owned := s.leased(time.Now())
	s.mu.Unlock()
	if !owned {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range f.Topics {
		r.keep(t)
	}
	r.signal()
}

// keep adds a wanted topic to Relay.remote, where it stays for WantFor. It ignores a topic that is not public, and any new topic if
// Relay.remote is full. Relay.mu must be locked.
func (r *Relay) keep(t messages.Topic) {
	if _, known := r.remote[t]; isPublic(t) && (known || len(r.remote) < r.cfg.Topics) {
		r.remote[t] = time.Now().Add(WantFor)
	}
}

// answer sends the snapshots that another replica has requested, if this replica owns the shard. It skips topics that are not up
// and topics without a complete state.
func (r *Relay) answer(f *frame, s *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leased(time.Now()) {
		return
	}
	for _, t := range f.Topics {
		c := s.topics[t]
		if c == nil || !c.up || c.fence != s.fence {
			continue
		}
		m := r.feed.Snapshot(t)
		if m == nil || m.Internal.Seq != 0 && m.Internal.Epoch != s.fence {
			continue // all replicas will get the next snapshot of the venue
		}
		r.publish(&frame{kind: frameMessage, shard: f.shard, Fence: s.fence, Message: m}, s.until)
	}
}

// handleOwnerFrame handles a frame of the shard's owner.
func (r *Relay) handleOwnerFrame(f *frame, s *shard) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Fence < s.fence {
		r.fenced.Add(1)
		return
	}
	if f.Fence > s.fence || s.local {
		r.endAll(s, errMoved)
		if s.local {
			s.local, s.until = false, time.Time{}
			r.signal() // wakes periodic.run, which unsubscribes from the topics
		}
		s.fence = f.Fence
	}
	s.heardAt = now
	switch f.kind {
	case frameBeat:
		r.follow(f, s)
	case frameMessage:
		m := f.Message
		if m == nil {
			return
		}
		if c := s.topics[m.Topic]; c != nil && c.up {
			m.ReceivedAt = now
			r.feed.Message(m)
			// If the feed still has no complete state, the message was not a usable snapshot, and the request stays open.
			if !c.requestedAt.IsZero() && r.feed.Snapshot(m.Topic) != nil {
				c.requestedAt = time.Time{}
			}
		}
	case frameRefused:
		for _, t := range f.Topics {
			if s.topics[t] != nil {
				r.feed.Refused(t, market.Errorf(f.Code, "%s", f.Text))
			}
		}
	}
}

// ask sends the topics in frames of a kind. All replicas receive the frames, and the owners of the topics' shards act on them.
func (r *Relay) ask(kind frameKind, topics []messages.Topic) {
	for i, group := range byShard(topics) {
		for len(group) > 0 {
			n := min(len(group), maxTopics)
			r.publish(&frame{kind: kind, shard: i, Topics: group[:n:n]}, time.Time{})
			group = group[n:]
		}
	}
}

// follow compares the topics in a beat of the owner with this replica's topics and reports the differences to the feed. It also
// requests the snapshots of topics that came up, and repeats unanswered requests. s.mu must be locked.
func (r *Relay) follow(f *frame, s *shard) {
	positions := make(map[uint64]position, len(f.Beat))
	for _, p := range f.Beat {
		positions[p.Hash] = p
	}
	var up, down, acknowledged, again []messages.Topic
	now := time.Now()
	last := make(map[messages.Topic]uint64, len(s.topics))
	for t, c := range s.topics {
		p, carried := positions[c.hash]
		if !carried {
			if c.up {
				c.up = false
				down = append(down, t)
			}
			continue
		}
		if !c.up {
			c.up, c.acknowledged = true, false
			up = append(up, t)
		}
		if p.Acknowledged && !c.acknowledged {
			acknowledged = append(acknowledged, t)
		}
		c.acknowledged = p.Acknowledged
		if !c.requestedAt.IsZero() && c.repetitions < maxAsks && now.Sub(c.requestedAt) > askAgain<<c.repetitions {
			c.requestedAt, c.repetitions = now, c.repetitions+1
			again = append(again, t)
		}
		last[t] = p.N
	}
	if len(down) > 0 {
		r.feed.Down(down, errMoved)
	}
	if len(up) > 0 {
		r.feed.Up(up)
		r.mu.Lock()
		for _, t := range up {
			r.resyncs[t] = struct{}{}
		}
		r.signal()
		r.mu.Unlock()
	}
	if len(acknowledged) > 0 {
		r.feed.Acknowledged(acknowledged)
	}
	r.feed.Sent(f.Fence, last)
	r.ask(frameResync, again)
}
