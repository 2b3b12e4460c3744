package relay

import (
	"context"
	"hash/fnv"
	"time"

	"oddsgraph/internal/market/messages"
)

// renew renews the leases of this replica, requests the leases of shards whose owner is silent, and releases the leases of shards
// that other replicas must take. It skips shards without topics.
func (p *periodic) renew(ctx context.Context, now time.Time) {
	if p.alone.Load() || p.ownHelloAt.Load() == 0 || now.Sub(p.started) < 2*helloEvery {
		return // this replica is alone, or does not know the other replicas yet
	}
	if !p.ready {
		p.ready = true
		p.resetSilence(now)
	}
	replicas := p.replicas(now)
	var release []int
	shards := make(map[int]uint64)
	p.lockEach(func(i int, s *shard) {
		rank := p.rank(i, replicas)
		switch {
		case len(s.topics) == 0:
		case p.held[i] && p.mustHandOver(i, rank, now):
			release = append(release, i)
			p.held[i], p.restUntil[i] = false, now.Add(restFor)
			s.until, s.heardAt = time.Time{}, now
		case p.held[i], now.After(p.restUntil[i]) && now.Sub(s.heardAt) >= takeAfter+time.Duration(rank)*waitForRank:
			shards[i] = s.fence
		}
	})
	if len(release) > 0 {
		_ = p.bus.Release(ctx, p.cfg.Replica, release) // without Release, the leases expire
	}
	if len(shards) == 0 {
		return
	}
	fences, err := p.bus.Lease(ctx, p.cfg.Replica, shards)
	if err != nil {
		if p.failingSince.IsZero() {
			p.failingSince = now
		}
		return // a lease that is not renewed ends at shard.until
	}
	p.failingSince = time.Time{}
	var taken []int
	for i := range shards {
		fence, granted := fences[i]
		if granted && p.applyLease(i, fence, now.Add(LeaseFor-leaseMargin)) {
			taken = append(taken, i)
		}
		p.held[i] = granted
	}
	if len(taken) > 0 {
		p.readDemand(ctx, taken)
	}
}

// resetSilence acts as if the owner of each shard had just sent a frame.
func (p *periodic) resetSilence(now time.Time) {
	p.lockEach(func(_ int, s *shard) { s.heardAt = now })
}

// mustHandOver reports whether this replica must hand over a shard, because another replica has ranked before this replica for
// longer than handOverAfter.
func (p *periodic) mustHandOver(i, rank int, now time.Time) bool {
	switch {
	case rank == 0:
		p.outrankedSince[i] = time.Time{}
	case p.outrankedSince[i].IsZero():
		p.outrankedSince[i] = now
	case now.Sub(p.outrankedSince[i]) > handOverAfter:
		p.outrankedSince[i] = time.Time{}
		return true
	}
	return false
}

// applyLease applies a granted lease and reports whether the lease is new. If so, applyLease subscribes to all topics of the
// shard again, so that the venue sends their snapshots. It calls refuse for the topics that do not fit into this replica's stream
// client.
func (p *periodic) applyLease(i int, fence uint64, until time.Time) bool {
	s := &p.shards[i]
	s.mu.Lock()
	if s.local && fence == s.fence {
		s.until = until
		s.mu.Unlock()
		return false
	}
	p.takeovers.Add(1)
	p.outrankedSince[i] = time.Time{}
	if !s.local {
		p.endAll(s, errMoved)
	}
	s.local, s.fence, s.until = true, fence, until
	var full []messages.Topic
	for t, c := range s.topics {
		if c.subscribed = p.client.Watch(t, nil) == nil; !c.subscribed {
			full = append(full, t)
		}
	}
	s.mu.Unlock()
	for _, t := range full {
		p.refuse(t, errFull)
	}
	return true
}

// refuse ends a topic to which this replica's client cannot subscribe, so that readers poll the topic. If this replica owns the
// shard, refuse ends the topic on all replicas.
func (p *periodic) refuse(t messages.Topic, err error) {
	i := shardOf(t)
	s := &p.shards[i]
	s.mu.Lock()
	if s.leased(time.Now()) {
		p.publish(refusal(i, s.fence, t, err), s.until)
	}
	s.mu.Unlock()
	p.feed.Refused(t, err)
}

// replicas returns the names of the replicas that have sent a hello within liveFor.
func (p *periodic) replicas(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.live))
	for name, at := range p.live {
		if now.Sub(at) > liveFor {
			delete(p.live, name)
			continue
		}
		names = append(names, name)
	}
	return names
}

// rank returns the number of replicas that rank before this replica for a shard. It uses rendezvous hashing: if a replica joins or
// leaves, only the shards of that replica change their owners.
func (p *periodic) rank(shard int, replicas []string) (rank int) {
	own := weight(p.cfg.Replica, shard)
	for _, name := range replicas {
		if name != p.cfg.Replica && weight(name, shard) > own {
			rank++
		}
	}
	return rank
}

func weight(name string, shard int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(shard)})
	_, _ = h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 33 // mix the bits, because the names of replicas are short
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
