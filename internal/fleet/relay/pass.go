package relay

import (
	"context"
	"math/rand/v2"
	"time"

	"oddsgraph/internal/market/messages"
)

// pass does the relay's regular work. Only the goroutine of Run uses it.
type pass struct {
	*Relay
	// reopen requests another connection to the bus. reopened is the time of the last request.
	reopen   chan struct{}
	reopened time.Time
	helloAt  time.Time
	// ready is set when the other replicas are known.
	ready  bool
	wantAt time.Time
	// failing is the time of the first of the unanswered requests for leases. It is zero if the bus answered the last request.
	failing time.Time
	// backAt is the time at which this replica, if it is alone, will share the stream again. It is zero while the replica cannot
	// reach the bus. See Relay.alone.
	backAt time.Time
	// held reports for each shard whether this replica got the lease at its last request and has kept it since then. For a held
	// shard, the field second is the time at which another replica began to rank before this one. It is zero if no replica ranks
	// before this one. The field rest is set when this replica hands over a shard. Until that time, this replica does not request
	// the lease of the shard.
	held   [shardCount]bool
	second [shardCount]time.Time
	rest   [shardCount]time.Time
	holds  map[messages.Topic]Hold
}

func newPass(r *Relay) *pass {
	return &pass{Relay: r, reopen: make(chan struct{}, 1), reopened: r.started, holds: make(map[messages.Topic]Hold)}
}

// run works until ctx ends.
func (p *pass) run(ctx context.Context) {
	ticker := time.NewTicker(passEvery)
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
			p.beats()
			p.demand(ctx, now)
			p.syncHolds(now)
		}
	}
}

// end gives the leases back.
func (p *pass) end() {
	for t, h := range p.holds {
		h.Close()
		delete(p.holds, t)
	}
	var shards []int
	for i := range p.held {
		s := &p.shards[i]
		s.mu.Lock()
		s.until = time.Time{}
		s.mu.Unlock()
		if p.held[i] {
			shards = append(shards, i)
		}
	}
	if len(shards) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), LeaseFor)
		defer cancel()
		_ = p.bus.Release(ctx, p.cfg.Replica, shards) // without Release, the leases expire
	}
}

func (p *pass) sayHello(now time.Time) {
	if now.Before(p.helloAt) {
		return
	}
	p.helloAt = now.Add(helloEvery)
	p.publish(&frame{kind: frameHello}, now.Add(helloEvery))
}

// checkBus requests another connection if the replica does not receive its own hellos. It also decides whether the replica is
// alone.
func (p *pass) checkBus(now time.Time) {
	silence := now.Sub(p.started) - time.Duration(p.heard.Load())
	if silence > renewBusAfter && now.Sub(p.reopened) > renewBusAfter {
		p.reopened = now
		select {
		case p.reopen <- struct{}{}:
		default:
		}
	}
	if !p.failing.IsZero() {
		silence = max(silence, now.Sub(p.failing))
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

// beAlone subscribes to all topics with this replica's own client, because it cannot reach the other replicas.
func (p *pass) beAlone() {
	p.log.Warn("the other replicas cannot be reached; this replica has its own stream")
	p.alone.Store(true)
	p.backAt, p.failing, p.held = time.Time{}, time.Time{}, [shardCount]bool{}
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		if !s.local {
			p.endAll(s, errSilent)
		}
		s.local, s.until = true, time.Time{}
		for t, c := range s.topics {
			if !c.subscribed {
				c.subscribed = p.client.Watch(t, nil) == nil // if the client has no room, the topic stays down
			}
		}
		s.mu.Unlock()
	}
}

// share ends the time in which this replica is alone. This replica's own client stays subscribed to the topics of a shard until
// another replica sends frames as the owner of the shard.
func (p *pass) share(now time.Time) {
	p.log.Info("the other replicas can be reached; this replica shares the stream with them")
	p.alone.Store(false)
	p.resetSilence(now)
}

// calls are the feed's calls since the last pass.
type calls struct {
	watched, unwatched, resyncs, reconnected []messages.Topic
}

func (p *pass) takeCalls() (c calls) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range take(p.changed) {
		if _, watched := p.watched[t]; watched {
			c.watched = append(c.watched, t)
		} else {
			c.unwatched = append(c.unwatched, t)
		}
	}
	c.resyncs, c.reconnected = take(p.resyncs), take(p.reconnected)
	return c
}

// applyCalls applies the feed's calls since the last pass.
func (p *pass) applyCalls(ctx context.Context) {
	c := p.takeCalls()
	for _, t := range c.unwatched {
		p.remove(t)
	}
	for _, t := range c.watched {
		p.add(t)
	}
	if wanted := p.wantedHere(c.watched); len(wanted) > 0 {
		p.ask(frameWant, wanted)
		p.want(ctx, wanted)
	}
	var ask []messages.Topic
	for _, t := range c.reconnected {
		if p.carries(t) {
			p.client.Reconnect(t)
		} else {
			ask = append(ask, t)
		}
	}
	for _, t := range c.resyncs {
		if p.carries(t) {
			p.client.Resync(t)
		} else {
			ask = append(ask, t)
		}
	}
	p.noteAsked(ask)
	p.ask(frameResync, ask)
}

// noteAsked records that the owners of topics are asked for snapshots.
func (p *pass) noteAsked(topics []messages.Topic) {
	for _, t := range topics {
		s := &p.shards[shardOf(t)]
		s.mu.Lock()
		if c := s.topics[t]; c != nil {
			c.asked, c.asks = time.Now(), 0
		}
		s.mu.Unlock()
	}
}

// carries reports whether a topic comes from this replica's own client.
func (p *pass) carries(t messages.Topic) bool {
	s := &p.shards[shardOf(t)]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local
}

func (p *pass) remove(t messages.Topic) {
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

// add adds a topic, or subscribes to it again. If another replica owns the topic, the topic is up when the next beat of that
// replica arrives.
func (p *pass) add(t messages.Topic) {
	s := &p.shards[shardOf(t)]
	s.mu.Lock()
	c := s.topics[t]
	if c == nil {
		c = &carried{hash: hashOf(t)}
		if len(s.topics) == 0 {
			s.heard = time.Now()
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

// dropLost unsubscribes from topics that another replica owns now. It also treats shards without topics as no longer owned by this
// replica.
func (p *pass) dropLost() {
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
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
		s.mu.Unlock()
	}
}

// checkSilence reports topics as down if their owner has sent no frame for staleAfter.
func (p *pass) checkSilence(now time.Time) {
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		if !s.local && now.Sub(s.heard) > staleAfter {
			p.endAll(s, errSilent)
		}
		s.mu.Unlock()
	}
}

// beats sends a beat for each shard that this replica owns.
func (p *pass) beats() {
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		p.beat(i, s)
		s.mu.Unlock()
	}
}
