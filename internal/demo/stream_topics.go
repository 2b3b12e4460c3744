package demo

import "slices"

// channel is the kind of a topic's data.
type channel uint8

// The channels. Channels whose topics are tokens come first.
const (
	channelPrices channel = iota
	channelOrderbook
	channelTrades
	tokenChannels
	channelMarket = tokenChannels
	channelUser   = channelMarket + 1
	channels      = channelUser + 1
)

var channelNames = [channels]string{"prices", "orderbook", "trades", "market", "user"}

type topicKey struct {
	channel channel
	id      string
}

// topic is a channel of a token, a market or a wallet. It exists while it has subscribers. The venue's lock guards it.
type topic struct {
	topicKey
	token  *token
	market *market
	wallet *wallet
	// groups contain the subscribers. The orderbook channel has one group for each requested depth. Other channels have one group.
	groups []*group
}

// group is a set of subscribers of one topic. All of them get the same frames.
type group struct {
	topic *topic
	depth int
	subs  []*subscription
	// bids and asks are the last book that was sent to the subscribers. oldBids and oldAsks are the book before that. The next update
	// reuses the memory of oldBids and oldAsks.
	bids, asks, oldBids, oldAsks []Level
}

type subscription struct {
	conn       *streamConn
	group      *group
	groupIndex int // index in group.subs
	turnIndex  int // index in conn.turns[channel]
}

func (t *topic) seq() uint64 {
	switch t.channel {
	case channelPrices:
		return t.token.priceSeq
	case channelOrderbook:
		return t.token.bookSeq
	case channelTrades:
		return t.token.tape.seq
	case channelMarket:
		return t.market.seq
	default:
		return t.wallet.seq
	}
}

// slot returns a pointer to the field that stores the key's topic. The field belongs to the token, the market or the wallet.
func (k topicKey) slot(t *token, m *market, w *wallet) **topic {
	switch k.channel {
	case channelMarket:
		return &m.topic
	case channelUser:
		return &w.topic
	default:
		return &t.topics[k.channel]
	}
}

// subject is the token, market or wallet of a topic. The other two fields are nil.
type subject struct {
	token  *token
	market *market
	wallet *wallet
}

// join subscribes a client and, except on the market channel, sends the present state to the client. A client that is already
// subscribed gets a new snapshot only if the requested depth differs.
func (v *Venue) join(c *streamConn, key topicKey, subj subject, depth int) {
	v.stream.counts.subscribes[key.channel].Add(1)
	if s := c.subs[key]; s != nil {
		if s.group.depth != depth {
			t := s.group.topic
			s.leaveGroup()
			s.joinGroup(t, depth)
			s.group.sendSnapshot(c)
		}
		return
	}
	slot := key.slot(subj.token, subj.market, subj.wallet)
	if *slot == nil {
		t := &topic{topicKey: key, token: subj.token, market: subj.market, wallet: subj.wallet}
		*slot = t
		v.stream.openTopics[key.channel]++
		if key.channel == channelUser {
			v.stream.users = append(v.stream.users, t)
			t.wallet.markSent()
		}
	}
	s := &subscription{conn: c, turnIndex: len(c.turns[key.channel])}
	c.subs[key] = s
	c.turns[key.channel] = append(c.turns[key.channel], s)
	v.stream.subs[key.channel]++
	s.joinGroup(*slot, depth)
	if key.channel != channelMarket { // clients read the state of a market over REST
		s.group.sendSnapshot(c)
	}
}

func (s *subscription) joinGroup(t *topic, depth int) {
	var g *group
	if i := slices.IndexFunc(t.groups, func(g *group) bool { return g.depth == depth }); i >= 0 {
		g = t.groups[i]
	} else {
		g = &group{topic: t, depth: depth}
		if t.channel == channelOrderbook {
			g.bids, g.asks = t.token.cut(depth, nil, nil)
		}
		t.groups = append(t.groups, g)
	}
	s.group, s.groupIndex = g, len(g.subs)
	g.subs = append(g.subs, s)
}

// leaveGroup removes the subscription from its group, and an empty group from its topic.
func (s *subscription) leaveGroup() {
	g := s.group
	last := len(g.subs) - 1
	g.subs[s.groupIndex] = g.subs[last]
	g.subs[s.groupIndex].groupIndex = s.groupIndex
	g.subs[last] = nil
	g.subs = g.subs[:last]
	if last == 0 {
		t := g.topic
		t.groups = slices.DeleteFunc(t.groups, func(o *group) bool { return o == g })
	}
}

// leave ends a subscription. The end of a topic's last subscription also ends the topic.
func (v *Venue) leave(c *streamConn, key topicKey) {
	s := c.subs[key]
	if s == nil {
		return
	}
	delete(c.subs, key)
	turns := c.turns[key.channel]
	last := len(turns) - 1
	turns[s.turnIndex] = turns[last]
	turns[s.turnIndex].turnIndex = s.turnIndex
	turns[last] = nil
	c.turns[key.channel] = turns[:last]
	v.stream.subs[key.channel]--

	t := s.group.topic
	s.leaveGroup()
	if w := t.wallet; w != nil && v.accounts[w.address] != w {
		v.derived.unpin(w)
	}
	if len(t.groups) > 0 {
		return
	}
	*key.slot(t.token, t.market, t.wallet) = nil
	v.stream.openTopics[key.channel]--
	if key.channel == channelUser {
		v.stream.users = slices.DeleteFunc(v.stream.users, func(o *topic) bool { return o == t })
		t.wallet.stream = walletStream{}
	}
}

func (v *Venue) leaveAll(c *streamConn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key := range c.subs {
		v.leave(c, key)
	}
}

func (g *group) publish(f frame) {
	for _, s := range g.subs {
		s.conn.push(f)
	}
}

func (g *group) sendSnapshot(c *streamConn) {
	t := g.topic
	var f frame
	switch t.channel {
	case channelPrices:
		f = priceFrame(t.token)
	case channelOrderbook:
		f = bookFrame(t.token, g)
	case channelTrades:
		f = tapeFrame(t.token, c.v.opened)
	case channelMarket:
		f = marketFrame(t.market, changeStatus)
		if t.market.status == statusResolved {
			f = marketFrame(t.market, changeResolved)
		}
	case channelUser:
		f = userFrame(t.wallet)
	}
	c.push(f)
}

func (v *Venue) publishPrice(t *token) {
	if topic := t.topics[channelPrices]; topic != nil {
		topic.groups[0].publish(priceFrame(t))
	}
}

// publishBook streams the changes in the book of a token. Each group gets the difference between the previous and the present book,
// both cut at the group's depth. The sequence number increases even if the difference is empty.
func (v *Venue) publishBook(t *token) {
	topic := t.topics[channelOrderbook]
	if topic == nil {
		return
	}
	for _, g := range topic.groups {
		g.oldBids, g.oldAsks, g.bids, g.asks = g.bids, g.asks, g.oldBids[:0], g.oldAsks[:0]
		g.bids, g.asks = t.cut(g.depth, g.bids, g.asks)
		g.publish(bookUpdateFrame(t, g))
	}
}

// cut appends the best bids and asks of the token's book to the empty lists bids and asks: at most depth levels of each side.
func (t *token) cut(depth int, bids, asks []Level) (b, a []Level) {
	bids, asks = slices.Grow(bids, 1), slices.Grow(asks, 1)
	t.eachBid(func(l Level) bool { bids = append(bids, l); return len(bids) < depth })
	t.eachAsk(func(l Level) bool { asks = append(asks, l); return len(asks) < depth })
	return bids, asks
}

func (v *Venue) publishTrade(t *token, trade tapeTrade) {
	if topic := t.topics[channelTrades]; topic != nil {
		topic.groups[0].publish(tradeFrame(t, trade))
	}
}

func (v *Venue) publishMarket(m *market, change string) {
	if m.topic != nil {
		m.topic.groups[0].publish(marketFrame(m, change))
	}
}
