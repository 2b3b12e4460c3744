package stream

import (
	"maps"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// pool contains the watched topics and their connections. Client.mu protects it.
type pool struct {
	topics map[messages.Topic]*entry
	// public contains the connections for public topics, oldest first.
	public []*connection
	users  map[messages.Topic]*connection
	// watchedCount is the number of watched topics. identityCount is the number of watched user topics.
	watchedCount, identityCount int
	// perConnection is the maximum number of subjects on a public connection (see Protocol.Subject). The venue's hello may reduce
	// this number.
	perConnection int
	// lastNumber is the number of the newest connection. turns is the number of successful calls of Watch.
	lastNumber int
	turns      uint64
}

// entry is a watched topic, or one that its connection has not released yet. Until then it stays with this connection, because only
// one goroutine at a time may call the Handler for a topic.
type entry struct {
	topic  messages.Topic
	creds  *market.Credentials
	conn   *connection
	wanted bool
	// turn is the value of pool.turns at the last Watch of this topic. If it changes, the connection subscribes again.
	turn uint64
}

func (p *pool) countOpen() int {
	n := 0
	for _, k := range slices.AppendSeq(slices.Clone(p.public), maps.Values(p.users)) {
		if k.state == StateLive {
			n++
		}
	}
	return n
}

// Watch subscribes to a topic now and after each reconnect, until Unwatch is called or Handler.Refused reports a rejection. If the topic
// is already watched, the client subscribes again, and the venue sends a snapshot again. The ID of a user topic is the address in
// lower case, and creds are its credentials, or nil if the venue needs none. Watch fails with ErrFull if the limits allow no further
// topic, and with ErrStopped if the context of Run has ended. It does not wait for the network.
func (c *Client) Watch(t messages.Topic, creds *market.Credentials) error {
	if t = c.own(t); !validTopic(t) {
		return market.Errorf(market.CodeBadUserInput, "this cannot be a topic of the stream")
	}
	if c.cfg.NoCredentials && (t.Channel == messages.ChannelUser || creds != nil) {
		return market.Errorf(market.CodeUnsupported, "the stream of a venue without credentials has no accounts")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return ErrStopped
	}
	e := c.pool.topics[t]
	if e == nil {
		if !c.hasRoom(t, c.pool.public...) {
			return ErrFull
		}
		e = &entry{topic: t, conn: c.assign(t)}
		c.pool.topics[t] = e
		e.conn.topics[t] = e
	} else if !e.wanted && !c.hasRoom(t, e.conn) {
		return ErrFull
	}
	if !e.wanted {
		e.wanted = true
		c.addWatched(e, 1)
	}
	e.creds = creds
	c.pool.turns++
	e.turn = c.pool.turns
	e.conn.markDirty(t)
	return nil
}

// Unwatch ends the subscription of a topic. The Handler may still get a few messages after the call.
func (c *Client) Unwatch(t messages.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t = c.own(t)
	if e := c.pool.topics[t]; e != nil && e.wanted {
		c.unwatch(e)
		e.conn.markDirty(t)
	}
}

// Resync requests a snapshot of a subscribed topic, after a random delay of up to 250 ms and at most once a second, or after bad frames
// in up to 30 s. It does nothing if a request is queued, or was sent less than 1.5 s ago and has no snapshot yet.
func (c *Client) Resync(t messages.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t = c.own(t)
	if e := c.pool.topics[t]; e != nil && e.wanted {
		e.conn.resyncs = append(e.conn.resyncs, t)
		e.conn.signal()
	}
}

// own returns the venue's own form of a topic. A topic of another venue has no id then, and is not valid.
func (c *Client) own(t messages.Topic) messages.Topic {
	t, _ = market.CutAll(c.cfg.Venue, t)
	return t
}

func validTopic(t messages.Topic) bool {
	switch t.Channel {
	case messages.ChannelPrices, messages.ChannelOrderbook, messages.ChannelTrades, messages.ChannelMarket:
		return market.CheckID(t.ID) == nil && t.Scope == ""
	case messages.ChannelUser:
		return market.CheckID(t.ID) == nil
	}
	return false
}

// assign returns a connection for a new topic, or nil if the pool is full. It may add a connection.
func (c *Client) assign(t messages.Topic) *connection {
	if t.Channel == messages.ChannelUser {
		return c.add(t)
	}
	for _, k := range c.pool.public {
		if k.carries(t) {
			return k
		}
	}
	for _, k := range c.pool.public {
		if k.load() < c.pool.perConnection {
			return k
		}
	}
	if len(c.pool.public) >= c.cfg.Connections {
		return nil
	}
	return c.add(messages.Topic{})
}

// hasRoom reports whether the limits allow topic t to be watched. A public topic always has room on one of the given connections that
// carries its subject. The limit is the total of all public connections: one may have more than perConnection subjects, because an
// unwatched topic may be watched again after another has taken its place.
func (c *Client) hasRoom(t messages.Topic, connections ...*connection) bool {
	if t.Channel == messages.ChannelUser {
		return c.pool.identityCount < maxIdentities
	}
	load := 0
	for _, k := range c.pool.public {
		load += k.load()
	}
	return load < c.pool.perConnection*c.cfg.Connections || slices.ContainsFunc(connections, func(k *connection) bool { return k.carries(t) })
}

// add adds a connection for the user topic identity, or for public topics if identity is the zero topic.
func (c *Client) add(identity messages.Topic) *connection {
	c.pool.lastNumber++
	k := newConnection(c, c.pool.lastNumber, identity)
	if k.isUser() {
		c.pool.users[identity] = k
	} else {
		c.pool.public = append(c.pool.public, k)
		c.updateState()
	}
	c.start(k)
	return k
}

func (c *Client) addWatched(e *entry, by int) {
	c.pool.watchedCount += by
	e.conn.changeLoad(e.topic, by)
	if e.conn.isUser() {
		c.pool.identityCount += by
	}
}

// unwatch marks a topic as no longer watched. The connection of the topic releases the entry later.
func (c *Client) unwatch(e *entry) {
	e.wanted = false
	e.creds = nil
	c.addWatched(e, -1)
}

// release removes the entry of an unwatched topic. Only the connection's goroutine calls release.
func (c *Client) release(e *entry) {
	delete(e.conn.topics, e.topic)
	if c.pool.topics[e.topic] == e {
		delete(c.pool.topics, e.topic)
	}
}

// refuse removes a topic that the venue has rejected, and calls Handler.Refused, unless the topic was unwatched or watched again after
// turn. Only the connection's goroutine calls refuse.
func (c *Client) refuse(k *connection, t messages.Topic, turn uint64, err *market.Error) {
	c.mu.Lock()
	e := k.topics[t]
	if e == nil || !e.wanted || e.turn != turn {
		c.mu.Unlock()
		return
	}
	c.unwatch(e)
	c.release(e)
	c.mu.Unlock()
	c.count.refused.Add(1)
	c.handler.Refused(market.QualifyAll(c.cfg.Venue, t), err)
}

func (c *Client) refuseAll(k *connection, err *market.Error) {
	for _, e := range k.watched() {
		c.refuse(k, e.topic, e.turn, err)
	}
}

// retire removes a connection without topics from the pool, except the last public connection, whose state Stats reports. If it
// returns true, the goroutine of the connection, which alone calls retire, must end.
func (c *Client) retire(k *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(k.topics) > 0 {
		return false
	}
	if k.isUser() {
		if c.pool.users[k.identity] == k {
			delete(c.pool.users, k.identity)
		}
		return true
	}
	if len(c.pool.public) < 2 {
		return false
	}
	c.pool.public = slices.DeleteFunc(c.pool.public, func(other *connection) bool { return other == k })
	c.updateState()
	return true
}

// shrink applies the venue's limit of topics on a connection: it moves excess topics of k to other connections, or refuses them if
// all are full. Only k's goroutine calls shrink, before it subscribes.
func (c *Client) shrink(k *connection, limit int) {
	var unplaced []entry
	c.mu.Lock()
	c.pool.perConnection = min(c.pool.perConnection, limit)
	excess := k.load() - c.pool.perConnection
	for _, e := range k.topics {
		if excess <= 0 || k.isUser() {
			break
		}
		if !e.wanted {
			continue
		}
		excess--
		delete(k.topics, e.topic)
		k.changeLoad(e.topic, -1)
		other := c.assign(e.topic)
		if other == nil {
			k.changeLoad(e.topic, 1)
			k.topics[e.topic] = e
			unplaced = append(unplaced, *e)
			continue
		}
		e.conn = other
		other.topics[e.topic] = e
		other.changeLoad(e.topic, 1)
		other.markDirty(e.topic)
	}
	c.mu.Unlock()
	for _, e := range unplaced {
		c.refuse(k, e.topic, e.turn, errNoRoom)
	}
}
