package relay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market/messages"
)

// shard contains the topics of one shard that this replica watches. The relay holds mu when it passes events of the client or the
// owner to the feed, so that the feed gets the events of a topic in order.
type shard struct {
	mu sync.Mutex
	// local reports that the topics come from this replica's own client. If local is false, the topics come from the owner. local
	// stays true after the end of a lease, until another replica sends frames as the owner or until the shard has no topics.
	local bool
	// fence is the highest fence of the shard that this replica has seen. until is the time when this replica stops sending frames as
	// the owner; see LeaseFor.
	fence uint64
	until time.Time
	// heardAt is the time of the owner's last frame, or the time when this replica began to wait for the owner's frames.
	heardAt time.Time
	topics  map[messages.Topic]*watchedTopic
	// count is at least the highest number that this replica has given to a message of the shard. A topic that comes up continues
	// above count. So a topic that was removed and added again uses no number twice.
	count uint64
}

// watchedTopic is the state of a watched topic.
type watchedTopic struct {
	hash uint64
	// subscribed is true while this replica's own client watches the topic. up is true from the call of Feed.Up until the topic is
	// down, is refused or is added again.
	subscribed, up bool
	acknowledged   bool
	// fence is the fence of the shard at the last call of Relay.Up. n is the last number that was used; see Relay.Up. fence and n are
	// unused for topics that come from another replica.
	fence, n uint64
	// requestedAt is the time of the last request to the owner for a snapshot. It is the zero time if no snapshot was requested or if
	// the snapshot has arrived. repetitions counts the repetitions of the request.
	requestedAt time.Time
	repetitions int
}

// leased reports whether this replica may send frames of the shard. s.mu must be locked.
func (s *shard) leased(now time.Time) bool { return s.local && now.Before(s.until) }

// lockEach calls fn with each shard, while it holds the lock of the shard.
func (r *Relay) lockEach(fn func(i int, s *shard)) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		fn(i, s)
		s.mu.Unlock()
	}
}

// byShard groups public topics by their shard.
func byShard(topics []messages.Topic) map[int][]messages.Topic {
	groups := make(map[int][]messages.Topic)
	for _, t := range topics {
		groups[shardOf(t)] = append(groups[shardOf(t)], t)
	}
	return groups
}

// split calls forward with the user topics, if there are any. For each local shard, it calls apply with the public topics of the
// shard, while it holds the lock of the shard. It skips the topics of other shards.
func (r *Relay) split(topics []messages.Topic, forward func([]messages.Topic), apply func(int, *shard, []messages.Topic)) {
	var users, others []messages.Topic
	for _, t := range topics {
		if t.Channel == messages.ChannelUser {
			users = append(users, t)
		} else {
			others = append(others, t)
		}
	}
	if len(users) > 0 {
		forward(users)
	}
	for i, group := range byShard(others) {
		s := &r.shards[i]
		s.mu.Lock()
		if s.local {
			apply(i, s, group)
		}
		s.mu.Unlock()
	}
}

// onlyWatched returns the given topics without the topics that this replica does not watch. s.mu must be locked.
func (s *shard) onlyWatched(topics []messages.Topic) []messages.Topic {
	watched := make([]messages.Topic, 0, len(topics))
	for _, t := range topics {
		if s.topics[t] != nil {
			watched = append(watched, t)
		}
	}
	return watched
}

// Up passes the start of subscriptions to the feed. The stream client calls Up.
func (r *Relay) Up(topics []messages.Topic) {
	r.split(topics, r.feed.Up, func(i int, s *shard, topics []messages.Topic) {
		topics = s.onlyWatched(topics)
		for _, t := range topics {
			c := s.topics[t]
			// Skip a number, so that the other replicas detect a gap, because changes before the snapshot of this subscription may be
			// missing.
			c.n = max(c.n, s.count) + 1
			s.count = c.n
			c.up, c.acknowledged, c.fence = true, false, s.fence
		}
		r.feed.Up(topics)
		r.beat(i, s)
	})
}

// Acknowledged passes confirmed subscriptions to the feed.
func (r *Relay) Acknowledged(topics []messages.Topic) {
	r.split(topics, r.feed.Acknowledged, func(i int, s *shard, topics []messages.Topic) {
		topics = s.onlyWatched(topics)
		for _, t := range topics {
			s.topics[t].acknowledged = true
		}
		r.feed.Acknowledged(topics)
		r.beat(i, s)
	})
}

// Down passes the end of subscriptions to the feed.
func (r *Relay) Down(topics []messages.Topic, err error) {
	r.split(topics, func(users []messages.Topic) { r.feed.Down(users, err) }, func(i int, s *shard, topics []messages.Topic) {
		topics = s.onlyWatched(topics)
		for _, t := range topics {
			s.topics[t].up = false
		}
		r.feed.Down(topics, err)
		r.beat(i, s)
	})
}

// Message passes a message to the feed. If the topic is public, Message numbers the message and, if this replica owns the shard,
// also sends it to the other replicas. It drops messages of public topics that are not up.
func (r *Relay) Message(m *messages.Message) {
	if m.Topic.Channel == messages.ChannelUser {
		r.feed.Message(m)
		return
	}
	i := shardOf(m.Topic)
	s := &r.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.topics[m.Topic]
	if !s.local || c == nil || !c.up {
		return
	}
	c.n++
	s.count = max(s.count, c.n)
	numbered := *m
	numbered.Internal = messages.Internal{Epoch: c.fence, Seq: c.n}
	r.feed.Message(&numbered)
	if c.fence == s.fence && s.leased(time.Now()) {
		r.publish(&frame{kind: frameMessage, shard: i, Fence: s.fence, Message: &numbered}, s.until)
	}
}

// Heartbeat passes the venue's sequence numbers to the feed. It skips the public topics of shards that are not local. Heartbeat
// sends nothing to the other replicas, because beats tell them the last number of each topic.
func (r *Relay) Heartbeat(epoch string, seqs map[messages.Topic]uint64) {
	pass := func(topics []messages.Topic) {
		group := make(map[messages.Topic]uint64, len(topics))
		for _, t := range topics {
			group[t] = seqs[t]
		}
		r.feed.Heartbeat(epoch, group)
	}
	r.split(slices.Collect(maps.Keys(seqs)), pass, func(_ int, _ *shard, topics []messages.Topic) { pass(topics) })
}

// Refused tells the feed that the venue has rejected a topic. If this replica owns the shard of a public topic, Refused also tells
// the other replicas.
func (r *Relay) Refused(t messages.Topic, err error) {
	r.split([]messages.Topic{t}, func([]messages.Topic) { r.feed.Refused(t, err) }, func(i int, s *shard, _ []messages.Topic) {
		if c := s.topics[t]; c != nil {
			c.up, c.subscribed = false, false
		}
		r.feed.Refused(t, err)
		if s.leased(time.Now()) {
			r.publish(refusal(i, s.fence, t, err), s.until)
		}
	})
}

// beat sends a beat if this replica owns the shard. A beat contains the last number of each topic that came up under the present
// lease and is still up. s.mu must be locked.
func (r *Relay) beat(i int, s *shard) {
	if !s.leased(time.Now()) {
		return
	}
	f := &frame{kind: frameBeat, shard: i, Fence: s.fence}
	for _, c := range s.topics {
		if c.up && c.fence == s.fence {
			f.Beat = append(f.Beat, position{c.hash, c.n, c.acknowledged})
		}
	}
	r.publish(f, s.until)
}

// endAll tells the feed that all topics of the shard are down. It skips topics that were down already. s.mu must be locked.
func (r *Relay) endAll(s *shard, err error) {
	var down []messages.Topic
	for t, c := range s.topics {
		if c.up {
			c.up = false
			down = append(down, t)
		}
	}
	if len(down) > 0 {
		r.feed.Down(down, err)
	}
}
