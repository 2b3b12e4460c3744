package relay

import (
	"context"
	"math/rand/v2"
	"time"

	"oddsgraph/internal/market/messages"
)

// periodic does the relay's periodic work, in rounds. Only the goroutine of Run uses a periodic. The goroutine of Relay.receive uses
// only the channel reopen.
type periodic struct {
	*Relay
	// A value in reopen requests another connection to the Bus. reopenedAt is the time of the last request.
	reopen     chan struct{}
	reopenedAt time.Time
	helloAt    time.Time
	// ready is set when the other replicas are known.
	ready  bool
	wantAt time.Time
	// failingSince is the time when the calls of Bus.Lease began to fail. It is the zero time if the last call succeeded or if this
	// replica is alone.
	failingSince time.Time
	// backAt is the time when a replica that is alone will share the stream again; see Relay.alone. It is the zero time while the
	// replica cannot reach the Bus.
	backAt time.Time
	// held, outrankedSince and restUntil have an element for each shard. held reports whether this replica has the lease.
	// outrankedSince is the time when this replica noticed that it has the lease although another replica ranks before it, or the zero
	// time. After this replica has handed over the shard, it does not request the lease again before restUntil.
	held           [shardCount]bool
	outrankedSince [shardCount]time.Time
	restUntil      [shardCount]time.Time
	holds          map[messages.Topic]Hold
}

func newPeriodic(r *Relay) *periodic {
	return &periodic{Relay: r, reopen: make(chan struct{}, 1), reopenedAt: r.started, holds: make(map[messages.Topic]Hold)}
}

// run works until ctx ends.
func (p *periodic) run(ctx context.Context) {
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	defer p.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.applyCalls(ctx)
			p.dropLost()
		case <-ticker.C:
			now := time.Now()
			p.sayHello(now)
			p.checkBus(now)
			p.applyCalls(ctx)
			p.renew(ctx, now)
			p.dropLost()
			p.checkSilence(now)
			p.lockEach(p.beat)
			p.demand(ctx, now)
			p.syncHolds(now)
		}
	}
}

// end closes the Holds and releases the leases.
func (p *periodic) end() {
	for t, h := range p.holds {
		h.Close()
		delete(p.holds, t)
	}
	var shards []int
	p.lockEach(func(i int, s *shard) {
		s.until = time.Time{}
		if p.held[i] {
			shards = append(shards, i)
		}
	})
	if len(shards) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), LeaseFor)
		defer cancel()
		_ = p.bus.Release(ctx, p.cfg.Replica, shards) // without Release, the leases expire
	}
}

func (p *periodic) sayHello(now time.Time) {
	if now.Before(p.helloAt) {
		return
	}
	p.helloAt = now.Add(helloEvery)
	p.publish(&frame{kind: frameHello}, now.Add(helloEvery))
}

// checkBus requests another connection if the replica does not receive its own hellos. It also calls beAlone when the Bus fails for
// too long, and share at a random time after the Bus works again.
func (p *periodic) checkBus(now time.Time) {
	silence := now.Sub(p.started) - time.Duration(p.ownHelloAt.Load())
	if silence > renewBusAfter && now.Sub(p.reopenedAt) > renewBusAfter {
		p.reopenedAt = now
		select {
		case p.reopen <- struct{}{}:
		default:
		}
	}
	if !p.failingSince.IsZero() {
		silence = max(silence, now.Sub(p.failingSince))
	}
	switch {
	case !p.alone.Load():
		if silence > aloneAfter {
			p.beAlone()
		}
	case silence > 2*helloEvery:
		p.backAt = time.Time{}
	case p.backAt.IsZero():
		p.backAt = now.Add(rand.N(backWithin))
	case now.After(p.backAt):
		p.share(now)
	}
}

// beAlone subscribes to all topics with this replica's own client, because this replica cannot reach the other replicas.
func (p *periodic) beAlone() {
	p.log.Warn("the other replicas cannot be reached; this replica has its own stream")
	p.alone.Store(true)
	p.backAt, p.failingSince, p.held = time.Time{}, time.Time{}, [shardCount]bool{}
	p.lockEach(func(_ int, s *shard) {
		if !s.local {
			p.endAll(s, errSilent)
		}
		s.local, s.until = true, time.Time{}
		for t, c := range s.topics {
			if !c.subscribed {
				c.subscribed = p.client.Watch(t, nil) == nil // if the client has no room, the topic stays down
			}
		}
	})
}

// share makes this replica share the stream again after it was alone. This replica's client stays subscribed to the topics of each
// shard until another replica sends frames as the owner of the shard.
func (p *periodic) share(now time.Time) {
	p.log.Info("the other replicas can be reached; this replica shares the stream with them")
	p.alone.Store(false)
	p.resetSilence(now)
}

// takeCalls returns the topics of the feed's calls since the last takeCalls.
func (p *periodic) takeCalls() (watched, unwatched, resyncs, reconnected []messages.Topic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range take(p.changed) {
		if _, known := p.watched[t]; known {
			watched = append(watched, t)
		} else {
			unwatched = append(unwatched, t)
		}
	}
	return watched, unwatched, take(p.resyncs), take(p.reconnected)
}

// applyCalls applies the feed's calls that takeCalls returns.
func (p *periodic) applyCalls(ctx context.Context) {
	watched, unwatched, resyncs, reconnected := p.takeCalls()
	for _, t := range unwatched {
		p.remove(t)
	}
	for _, t := range watched {
		p.add(t)
	}
	if wanted := p.wantedHere(watched); len(wanted) > 0 {
		p.ask(frameWant, wanted)
		p.want(ctx, wanted)
	}
	p.ask(frameResync, append(p.requestOwn(reconnected, p.client.Reconnect), p.requestOwn(resyncs, p.client.Resync)...))
}

// requestOwn calls request for each given topic that comes from this replica's own client. It returns the other topics, and records
// that this replica requests their snapshots from the owners of their shards.
func (p *periodic) requestOwn(topics []messages.Topic, request func(messages.Topic)) (others []messages.Topic) {
	for _, t := range topics {
		s := &p.shards[shardOf(t)]
		s.mu.Lock()
		local := s.local
		if c := s.topics[t]; c != nil && !local {
			c.requestedAt, c.repetitions = time.Now(), 0
		}
		s.mu.Unlock()
		if local {
			request(t)
		} else {
			others = append(others, t)
		}
	}
	return others
}

func (p *periodic) remove(t messages.Topic) {
	s := &p.shards[shardOf(t)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.topics[t]; c != nil {
		delete(s.topics, t)
		if c.subscribed {
			p.client.Unwatch(t)
		}
	}
}

// add adds a topic to its shard if the shard does not contain the topic yet. If the shard is local, add subscribes to the topic,
// even if the client is subscribed already. If another replica owns the shard, the next beat of that replica brings the topic up.
func (p *periodic) add(t messages.Topic) {
	s := &p.shards[shardOf(t)]
	s.mu.Lock()
	c := s.topics[t]
	if c == nil {
		c = &watchedTopic{hash: hashOf(t)}
		if len(s.topics) == 0 {
			s.heardAt = time.Now()
		}
		s.topics[t] = c
	}
	c.up = false
	var err error
	if s.local {
		err = p.client.Watch(t, nil)
		c.subscribed = err == nil
	}
	s.mu.Unlock()
	if err != nil && !p.alone.Load() {
		p.refuse(t, err)
	}
}

// dropLost unsubscribes from topics that now come from another replica. While this replica is not alone, dropLost also gives up
// shards without topics.
func (p *periodic) dropLost() {
	p.lockEach(func(i int, s *shard) {
		if s.local && len(s.topics) == 0 && !p.alone.Load() {
			s.local, s.until, p.held[i] = false, time.Time{}, false
		}
		if !s.local {
			p.held[i] = false
			for t, c := range s.topics {
				if c.subscribed {
					c.subscribed = false
					p.client.Unwatch(t)
				}
			}
		}
	})
}

// checkSilence reports topics as down if the owner of their shard has sent no frame for staleAfter.
func (p *periodic) checkSilence(now time.Time) {
	p.lockEach(func(_ int, s *shard) {
		if !s.local && now.Sub(s.heardAt) > staleAfter {
			p.endAll(s, errSilent)
		}
	})
}
