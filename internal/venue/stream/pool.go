package stream

import (
	"slices"

	"oddsgraph/internal/market"
)

// pool is what is watched and the connections that carry it. Client.mu protects it.
type pool struct {
	topics map[market.Topic]*entry
	// public connections are in the order of their making, which is the order in which they are filled.
	public []*connection
	// users are the connections of user topics, one a topic.
	users map[market.Topic]*connection
	// wanted counts the topics that are watched, identities the user topics among them.
	wanted, identities int
	// perConnection is how many topics a public connection carries; the venue may make it less.
	perConnection int
	// numbers counts connections for the log, turns counts calls of Watch.
	numbers int
	turns   uint64
}

// entry is a topic that is watched, or that was and that its connection has not let go of yet. It stays with its
// connection, so that there is never a second goroutine that calls the Handler for it.
type entry struct {
	topic  market.Topic
	creds  *market.Credentials
	conn   *connection
	wanted bool
	// turn is the number of the last Watch, so that a topic that is watched anew is subscribed anew.
	turn uint64
}

func newPool(perConnection int) pool {
	return pool{
		topics:        make(map[market.Topic]*entry),
		users:         make(map[market.Topic]*connection),
		perConnection: perConnection,
	}
}

// open counts the connections that are open.
func (p *pool) open() int {
	n := 0
	for _, k := range p.public {
		if k.state == StateLive {
			n++
		}
	}
	for _, k := range p.users {
		if k.state == StateLive {
			n++
		}
	}
	return n
}

// Watch subscribes to a topic until Unwatch or Handler.Refused, whatever happens to connections. creds are for user
// topics, whose ID is the address in lower case; nil there means that the venue asks for none. Up is called when a
// connection carries the topic. To watch a watched topic again is to subscribe anew: Up is called again and a snapshot
// follows. ErrFull means that there is no room. Watch never waits for the network.
func (c *Client) Watch(t market.Topic, creds *market.Credentials) error {
	if !validTopic(t) {
		return market.Errorf(market.CodeBadUserInput, "this cannot be a topic of the stream")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return ErrStopped
	}
	e := c.pool.topics[t]
	if e == nil {
		k := c.place(t)
		if k == nil {
			return ErrFull
		}
		e = &entry{topic: t, conn: k}
		c.pool.topics[t] = e
		k.topics[t] = e
	} else if !e.wanted && !c.room(e) {
		return ErrFull
	}
	if !e.wanted {
		e.wanted = true
		c.tally(e, 1)
	}
	e.creds = creds
	c.pool.turns++
	e.turn = c.pool.turns
	e.conn.touch(t)
	return nil
}

// Unwatch ends a topic. What was received before it may still reach the Handler for a moment afterwards.
func (c *Client) Unwatch(t market.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.pool.topics[t]; e != nil && e.wanted {
		c.unwant(e)
		e.conn.touch(t)
	}
}

// Resync asks the venue for a snapshot of a topic, after a jitter of up to a quarter of a second and at most once a
// second. It does nothing while a snapshot is due anyway: while the topic is not up, or while one was asked for within
// the last second and a half and has not come.
func (c *Client) Resync(t market.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.pool.topics[t]; e != nil && e.wanted {
		e.conn.resyncs = append(e.conn.resyncs, t)
		e.conn.poke()
	}
}

// Reconnect drops the connection that carries a topic, with all topics on it, and opens another after the usual wait.
func (c *Client) Reconnect(t market.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.pool.topics[t]; e != nil && e.wanted {
		e.conn.drop = true
		e.conn.poke()
	}
}

// validTopic tells whether a topic can be asked for.
func validTopic(t market.Topic) bool {
	switch t.Channel {
	case market.ChannelPrices, market.ChannelOrderbook, market.ChannelTrades, market.ChannelMarket:
		return market.CheckID(t.ID) == nil && t.Scope == ""
	case market.ChannelUser:
		return market.CheckID(t.ID) == nil
	}
	return false
}

// place finds or makes the connection for a new topic; nil means that there is no room. The lock is held.
func (c *Client) place(t market.Topic) *connection {
	if t.Channel == market.ChannelUser {
		if c.pool.identities >= c.cfg.Identities {
			return nil
		}
		return c.add(t)
	}
	for _, k := range c.pool.public {
		if k.load < c.pool.perConnection {
			return k
		}
	}
	if len(c.pool.public) >= c.cfg.Connections {
		return nil
	}
	return c.add(market.Topic{})
}

// room tells whether a topic that its connection has not let go of can be watched again. It goes back to that connection,
// which may then carry more than its share for a while. The lock is held.
func (c *Client) room(e *entry) bool {
	if e.conn.user() {
		return c.pool.identities < c.cfg.Identities
	}
	return c.pool.wanted-c.pool.identities < c.pool.perConnection*c.cfg.Connections
}

// add makes a connection, for a user topic or, with the zero topic, for public ones. The lock is held.
func (c *Client) add(identity market.Topic) *connection {
	c.pool.numbers++
	k := newConnection(c, c.pool.numbers, identity)
	if k.user() {
		c.pool.users[identity] = k
	} else {
		c.pool.public = append(c.pool.public, k)
		c.judge()
	}
	c.start(k)
	return k
}

// tally counts a topic in or out. The lock is held.
func (c *Client) tally(e *entry, by int) {
	c.pool.wanted += by
	e.conn.load += by
	if e.conn.user() {
		c.pool.identities += by
	}
}

// unwant marks a topic as not watched; its connection lets go of it. The lock is held.
func (c *Client) unwant(e *entry) {
	e.wanted = false
	e.creds = nil
	c.tally(e, -1)
}

// release forgets a topic that is not watched, on the goroutine of its connection. The lock is held.
func (c *Client) release(e *entry) {
	delete(e.conn.topics, e.topic)
	if c.pool.topics[e.topic] == e {
		delete(c.pool.topics, e.topic)
	}
}

// refuse ends a topic that the venue does not give, unless it was watched anew meanwhile. It is called on the goroutine
// of the topic's connection.
func (c *Client) refuse(k *connection, t market.Topic, turn uint64, err *market.Error) {
	c.mu.Lock()
	e := k.topics[t]
	if e == nil || !e.wanted || e.turn != turn {
		c.mu.Unlock()
		return
	}
	c.unwant(e)
	c.release(e)
	c.mu.Unlock()
	c.count.refused.Add(1)
	c.handler.Refused(t, err)
}

// refuseAll ends all topics of a connection.
func (c *Client) refuseAll(k *connection, err *market.Error) {
	for _, e := range k.assigned() {
		c.refuse(k, e.topic, e.turn, err)
	}
}

// retire takes a connection without topics out of the pool and reports whether it did: one public connection stays, so
// that the stream's state is known. It is called on the connection's goroutine, which ends then.
func (c *Client) retire(k *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(k.topics) > 0 {
		return false
	}
	if k.user() {
		if c.pool.users[k.identity] == k {
			delete(c.pool.users, k.identity)
		}
		return true
	}
	if len(c.pool.public) < 2 {
		return false
	}
	c.pool.public = slices.DeleteFunc(c.pool.public, func(other *connection) bool { return other == k })
	c.judge()
	return true
}

// shrink takes over the venue's own limit of topics a connection, and moves what is too much for k elsewhere before it is
// subscribed. What finds no place is refused. It is called on the goroutine of k.
func (c *Client) shrink(k *connection, limit int) {
	var homeless []*entry
	c.mu.Lock()
	c.pool.perConnection = min(c.pool.perConnection, limit)
	excess := k.load - c.pool.perConnection
	for _, e := range k.topics {
		if excess <= 0 || k.user() {
			break
		}
		if !e.wanted {
			continue
		}
		excess--
		delete(k.topics, e.topic)
		k.load--
		other := c.place(e.topic)
		if other == nil {
			k.load++
			k.topics[e.topic] = e
			homeless = append(homeless, &entry{topic: e.topic, turn: e.turn})
			continue
		}
		e.conn = other
		other.topics[e.topic] = e
		other.load++
		other.touch(e.topic)
	}
	c.mu.Unlock()
	for _, e := range homeless {
		c.refuse(k, e.topic, e.turn, errNoRoom)
	}
}
