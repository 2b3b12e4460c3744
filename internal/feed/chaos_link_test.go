package feed

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// request is a call of the feed to its upstream.
type request struct {
	verb  string
	topic messages.Topic
	due   time.Time
}

func (a request) name() string { return a.topic.ID + string(a.topic.Channel) + a.verb }

// link is one connection between the venue and the feed.
type link struct {
	topics       map[messages.Topic]*linkTopic
	up           bool
	upAt         time.Time // the time when the link connected or will connect
	last         time.Time // the delivery time of the last frame that no fault delayed
	stalledUntil time.Time
	beatAt       time.Time // the time of the next heartbeat
	frames       []delayedFrame
}

// linkTopic is a topic on a link.
type linkTopic struct {
	up        bool
	upAt      time.Time // the time when the topic was or will be subscribed
	resyncAt  time.Time // the time to send a requested snapshot; zero without a request
	resentAt  time.Time // the time when the last requested snapshot was sent
	lastFault time.Time // the time of the last fault
}

// delayedFrame is a frame that was sent but not delivered.
type delayedFrame struct {
	at      time.Time // the time of the delivery
	order   int
	deliver func()
}

func (c *chaos) linkOf(t messages.Topic) *link {
	n := 0
	for _, b := range []byte(t.ID + string(t.Channel)) {
		n = n*31 + int(b)
	}
	return c.links[n%chaosLinks]
}

// topicOnLink returns the link that has the topic t, and the state of t on this link. If no link has the topic, the returned
// linkTopic is down.
func (c *chaos) topicOnLink(t messages.Topic) (*link, *linkTopic) {
	l := c.linkOf(t)
	if k := l.topics[t]; k != nil {
		return l, k
	}
	return l, &linkTopic{}
}

func (c *chaos) record(verb string, t messages.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, request{verb, t, time.Now()})
}

func (c *chaos) Watch(t messages.Topic, _ *market.Credentials) error {
	c.record("watch", t)
	return nil
}

func (c *chaos) Unwatch(t messages.Topic) { c.record("unwatch", t) }

func (c *chaos) Resync(t messages.Topic) { c.record("resync", t) }

// listen executes the feed's requests as stream.Client does. listen delays each resync by a random time of less than 250 ms, and
// sends at most one resync per second for each topic.
func (c *chaos) listen() {
	c.mu.Lock()
	asks := c.requests
	c.requests = nil
	c.mu.Unlock()
	// Sort the requests, because timers with equal times fire in random order.
	slices.SortStableFunc(asks, func(a, b request) int {
		return cmp.Or(a.due.Compare(b.due), strings.Compare(a.name(), b.name()))
	})
	now := time.Now()
	for _, a := range asks {
		l := c.linkOf(a.topic)
		k := l.topics[a.topic]
		switch a.verb {
		case "watch":
			l.topics[a.topic] = &linkTopic{upAt: now}
		case "unwatch":
			delete(l.topics, a.topic)
		case "resync":
			if k != nil && k.up && k.resyncAt.IsZero() {
				k.resyncAt = now.Add(time.Duration(c.rand.IntN(250)) * time.Millisecond)
				if again := k.resentAt.Add(time.Second); again.After(k.resyncAt) {
					k.resyncAt = again
				}
			}
		}
	}
}

func (c *chaos) close(l *link) {
	if !l.up {
		return
	}
	l.up, l.frames = false, nil
	l.upAt = time.Now().Add(time.Second + time.Duration(c.rand.IntN(1000))*time.Millisecond)
	var down []messages.Topic
	for t, k := range l.topics {
		if k.up {
			down = append(down, t)
		}
		k.up, k.resyncAt = false, time.Time{}
	}
	sortTopics(down)
	c.feed.Down(down, errors.New("closed"))
}

func sortTopics(topics []messages.Topic) {
	slices.SortFunc(topics, func(a, b messages.Topic) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Channel, b.Channel))
	})
}

func (l *link) sorted() []messages.Topic {
	topics := slices.Collect(maps.Keys(l.topics))
	sortTopics(topics)
	return topics
}

// send queues a frame for delivery after all earlier frames. If delay is not 0, later frames may overtake the frame.
func (c *chaos) send(l *link, delay time.Duration, deliver func()) {
	at := time.Now().Add(10*time.Millisecond + time.Duration(c.rand.IntN(20))*time.Millisecond)
	if at.Before(l.last) {
		at = l.last
	}
	if delay == 0 {
		l.last = at
	}
	c.frameCount++
	l.frames = append(l.frames, delayedFrame{at.Add(delay), c.frameCount, deliver})
}

// sendFaulty sends a message. A fault may drop, delay or repeat the message.
func (c *chaos) sendFaulty(m *messages.Message) {
	l, k := c.topicOnLink(m.Topic)
	if !k.up || !l.up {
		return
	}
	deliver := func() {
		if k.up {
			got := *m
			got.ReceivedAt = time.Now()
			c.feed.Message(&got)
		}
	}
	lag := func(most int) time.Duration { return time.Duration(30+c.rand.IntN(most)) * time.Millisecond }
	whole := m.Kind == messages.KindBookSnapshot && m.Seq != 0
	switch {
	case c.inject("drop", 1.5, k):
	case whole && c.inject("lost snapshot", 25, k):
	case whole && c.inject("slow snapshot", 25, k):
		c.send(l, lag(1200), deliver)
	case c.inject("reorder", 1, k):
		c.send(l, lag(300), deliver)
	case c.inject("duplicate", 2, k):
		c.send(l, 0, deliver)
		c.send(l, lag(300), deliver)
	default:
		c.send(l, 0, deliver)
	}
}

// subscribe connects a link when link.upAt has come, and subscribes to each topic of the link when linkTopic.upAt has come. It
// passes the new topics to Feed.Up in one call and sends a snapshot of each new topic.
func (c *chaos) subscribe(l *link) {
	now := time.Now()
	if !l.up {
		if now.Before(l.upAt) {
			return
		}
		l.up, l.beatAt, l.last, l.stalledUntil = true, now.Add(chaosBeat), now, time.Time{}
	}
	var ready []messages.Topic
	for _, t := range l.sorted() {
		if k := l.topics[t]; !k.up && !now.Before(k.upAt) {
			k.up, k.resyncAt, k.resentAt = true, time.Time{}, time.Time{}
			ready = append(ready, t)
		}
	}
	if len(ready) == 0 {
		return
	}
	c.feed.Up(ready)
	for _, t := range ready {
		c.snapshot(t)
	}
}

func (c *chaos) snapshot(t messages.Topic) {
	k := c.tokenOf(t.ID)
	if t.Channel == messages.ChannelPrices {
		c.sendFaulty(c.priceMessage(k))
		return
	}
	m := c.bookMessage(k)
	_, on := c.topicOnLink(t)
	if m.Seq != 0 && m.Book.Asks.Len() > 0 && c.inject("crossed snapshot", 4, on) {
		m.Book.Bids = market.NewSide(append([]market.Level{*m.Book.Asks.Best()}, m.Book.Bids.Levels()...))
	}
	c.sendFaulty(m)
}

// startCalm makes some tokens send nothing until the next burst.
func (c *chaos) startCalm() {
	for i, k := range c.tokens {
		_, carried := c.topicOnLink(bookOf(k.id))
		carried.lastFault = time.Now()
		if i%3 == 0 && k.numbered {
			k.quietUntil = time.Now().Add(chaosCalm)
		}
	}
}

// loseLastFrames loses the last frame of some tokens that send nothing until the next burst. Only a heartbeat can reveal the loss.
func (c *chaos) loseLastFrames() {
	for i, k := range c.tokens {
		if _, carried := c.topicOnLink(bookOf(k.id)); i%6 == 0 && k.numbered && carried.up {
			carried.lastFault, carried.up = time.Now(), false // while up is false, the frames of the topic are lost
			c.publish(k)
			carried.up = true
			c.faults["lost last frame"]++
		}
	}
}

// breakConnections injects faults of links and of single topics. In each burst, it also restarts the venue twice.
func (c *chaos) breakConnections() {
	now := time.Now()
	for _, l := range slices.Clone(c.links) {
		if !l.up {
			continue
		}
		all := make([]*linkTopic, 0, len(l.topics))
		for _, t := range l.sorted() {
			all = append(all, l.topics[t])
		}
		if now.After(l.stalledUntil) && c.chance(0.2) && c.faulty {
			c.stall(l)
		}
		if c.inject("close", 0.04, all...) {
			c.close(l)
			continue
		}
		sorted := l.sorted()
		t := sorted[c.rand.IntN(len(sorted))]
		if k := l.topics[t]; k.up && c.inject("put off", 0.2, k) {
			k.up, k.resyncAt, k.upAt = false, time.Time{}, now.Add(time.Second)
			c.feed.Down([]messages.Topic{t}, errors.New("put off"))
		} else if k.up && c.inject("subscribed anew", 0.2, k) {
			k.up, k.upAt = false, now // the feed gets no Down, and queued frames still arrive
		}
	}
	if !c.faulty {
		return
	}
	c.burstTicks++
	switch c.burstTicks {
	case 200:
		if len(c.links) > 0 {
			c.stall(c.links[0])
		}
	case 300, 800: // one of the two restarts in a burst closes the connections
		quietly := (c.burstTicks == 300) == (c.bursts%2 == 1)
		c.faults[map[bool]string{false: "restart", true: "restart without a close"}[quietly]]++
		c.restart(quietly)
	case 600:
		if len(c.links) > 0 {
			c.faults["close"]++
			c.close(c.links[c.bursts%len(c.links)])
		}
	}
}

// stall stops the delivery of a link for one to four seconds.
func (c *chaos) stall(l *link) {
	c.faults["stall"]++
	for _, k := range l.topics {
		k.lastFault = time.Now()
	}
	l.stalledUntil = time.Now().Add(time.Second + time.Duration(c.rand.IntN(3000))*time.Millisecond)
}

func (c *chaos) resend(l *link) {
	now := time.Now()
	for _, t := range l.sorted() {
		if k := l.topics[t]; k.up && !k.resyncAt.IsZero() && !now.Before(k.resyncAt) {
			k.resyncAt, k.resentAt = time.Time{}, now
			c.snapshot(t)
		}
	}
}

// beat sends a heartbeat with the sequence numbers of the books.
func (c *chaos) beat(l *link) {
	now := time.Now()
	if !l.up || now.Before(l.beatAt) {
		return
	}
	l.beatAt = now.Add(chaosBeat)
	seqs := make(map[messages.Topic]uint64)
	for t, k := range l.topics {
		if token := c.tokenOf(t.ID); t.Channel == messages.ChannelOrderbook && token.numbered && k.up {
			seqs[t] = token.seq
		}
	}
	epoch := c.epochName()
	c.send(l, 0, func() {
		for t := range seqs {
			if k := l.topics[t]; k == nil || !k.up {
				delete(seqs, t)
			}
		}
		c.feed.Heartbeat(epoch, seqs)
	})
}

func (c *chaos) deliver(l *link) {
	now := time.Now()
	if now.Before(l.stalledUntil) {
		return
	}
	slices.SortFunc(l.frames, func(a, b delayedFrame) int { return cmp.Or(a.at.Compare(b.at), a.order-b.order) })
	for l.up && len(l.frames) > 0 && !l.frames[0].at.After(now) {
		first := l.frames[0]
		l.frames = l.frames[1:]
		first.deliver()
	}
}
