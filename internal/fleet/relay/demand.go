package relay

import (
	"context"
	"time"

	"oddsgraph/internal/market/messages"
)

// wantedHere returns the given topics without the topics that this replica watches only for other replicas.
func (p *periodic) wantedHere(topics []messages.Topic) []messages.Topic {
	wanted := make([]messages.Topic, 0, len(topics))
	for _, t := range topics {
		if h := p.holds[t]; h == nil || !h.IsOnlyWatch() {
			wanted = append(wanted, t)
		}
	}
	return wanted
}

// want passes topics to Bus.Want.
func (p *periodic) want(ctx context.Context, topics []messages.Topic) {
	members := make(map[int][]string)
	for i, group := range byShard(topics) {
		for _, t := range group {
			members[i] = append(members[i], topicText(t))
		}
	}
	if err := p.bus.Want(ctx, members); err != nil {
		p.wantAt = time.Time{} // the next round tries again
	}
}

// demand tells the Bus which topics this replica wants, and reads which topics of this replica's shards any replica wants. It does
// so once every wantEvery. After an error, it tries again in the next round.
func (p *periodic) demand(ctx context.Context, now time.Time) {
	if now.Before(p.wantAt) {
		return
	}
	p.wantAt = now.Add(wantEvery)
	p.mu.Lock()
	topics := make([]messages.Topic, 0, len(p.watched))
	for t := range p.watched {
		topics = append(topics, t)
	}
	p.mu.Unlock()
	if topics = p.wantedHere(topics); len(topics) > 0 {
		p.want(ctx, topics)
	}
	var owned []int
	for i, held := range p.held {
		if held {
			owned = append(owned, i)
		}
	}
	if len(owned) > 0 {
		p.readDemand(ctx, owned)
	}
}

// readDemand reads which topics of the given shards any replica wants, and stores them in Relay.remote.
func (p *periodic) readDemand(ctx context.Context, shards []int) {
	members, err := p.bus.Wanted(ctx, shards)
	if err != nil {
		p.wantAt = time.Time{}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, member := range members {
		if t, ok := topicOf(member); ok {
			p.keep(t)
		}
	}
}

// syncHolds removes two kinds of topics from Relay.remote: topics that no replica wants any more, and topics of shards that this
// replica does not own. Then it opens and closes Holds, so that each topic that remains in Relay.remote has a Hold, and no other
// topic has one. If the feed has closed a topic or has no room for it, syncHolds forgets the topic.
func (p *periodic) syncHolds(now time.Time) {
	open := make(map[messages.Topic]bool)
	p.mu.Lock()
	for t, until := range p.remote {
		if now.After(until) || !p.held[shardOf(t)] {
			delete(p.remote, t)
			continue
		}
		open[t] = true
	}
	p.mu.Unlock()
	for t, h := range p.holds {
		ended := h.Ended()
		if !open[t] || ended {
			h.Close()
			delete(p.holds, t)
		}
		if ended {
			p.forget(t)
			delete(open, t)
		}
	}
	for t := range open {
		if p.holds[t] != nil {
			continue
		}
		h, err := p.feed.Hold(t)
		if err != nil {
			p.log.Debug("there is no room for a topic of another replica", "error", err)
			p.forget(t)
			continue
		}
		p.holds[t] = h
	}
}

// forget removes a topic from Relay.remote. Other replicas can request the topic again.
func (p *periodic) forget(t messages.Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.remote, t)
}
