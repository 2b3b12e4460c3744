package demo

import (
	"slices"

	"oddsgraph/internal/demo/server"
)

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
	subject
	subs map[*streamConn]struct{}
	// bids and asks are the last book that was sent to the subscribers. oldBids and oldAsks are the book before that. The next update
	// reuses the memory of oldBids and oldAsks.
	bids, asks, oldBids, oldAsks []Level
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

// join subscribes a client and, except on the market channel, sends the present state to the client, unless it is subscribed already.
func (v *Venue) join(c *streamConn, key topicKey, subj subject) {
	v.counts.Add(server.Subscribes, channelNames[key.channel], 1)
	if c.subs[key] != nil {
		return
	}
	slot := key.slot(subj.token, subj.market, subj.wallet)
	t := *slot
	if t == nil {
		t = &topic{topicKey: key, subject: subj, subs: make(map[*streamConn]struct{})}
		*slot = t
		v.stream.openTopics[key.channel]++
		switch key.channel {
		case channelOrderbook:
			t.bids, t.asks = t.token.levels(nil, nil)
		case channelUser:
			v.stream.users = append(v.stream.users, t)
			t.wallet.markSent()
		}
	}
	t.subs[c], c.subs[key] = struct{}{}, t
	c.turns[key.channel] = append(c.turns[key.channel], t)
	v.stream.subs[key.channel]++
	if key.channel != channelMarket { // clients read the state of a market over REST
		t.sendSnapshot(c)
	}
}

// leave ends a subscription. The end of a topic's last subscription also ends the topic.
func (v *Venue) leave(c *streamConn, key topicKey) {
	t := c.subs[key]
	if t == nil {
		return
	}
	delete(c.subs, key)
	c.turns[key.channel] = slices.DeleteFunc(c.turns[key.channel], func(o *topic) bool { return o == t })
	v.stream.subs[key.channel]--
	if delete(t.subs, c); len(t.subs) > 0 {
		return
	}
	*key.slot(t.token, t.market, t.wallet) = nil
	v.stream.openTopics[key.channel]--
	if key.channel == channelUser {
		v.stream.users = slices.DeleteFunc(v.stream.users, func(o *topic) bool { return o == t })
		t.wallet.stream = walletStream{}
	}
}

func (t *topic) publish(f server.Frame) {
	for c := range t.subs {
		c.Push(f)
	}
}

func (t *topic) sendSnapshot(c *streamConn) {
	var f server.Frame
	switch t.channel {
	case channelPrices:
		f = priceFrame(t.token)
	case channelOrderbook:
		f = bookFrame(t.token)
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
	c.Push(f)
}

func (v *Venue) publishPrice(t *token) {
	if topic := t.topics[channelPrices]; topic != nil {
		topic.publish(priceFrame(t))
	}
}

// publishBook streams the changes in the book of a token. The sequence number increases even if there are none.
func (v *Venue) publishBook(t *token) {
	if topic := t.topics[channelOrderbook]; topic != nil {
		bids, asks := topic.bids, topic.asks
		topic.bids, topic.asks = t.levels(topic.oldBids[:0], topic.oldAsks[:0])
		topic.oldBids, topic.oldAsks = bids, asks
		topic.publish(bookUpdateFrame(t, topic))
	}
}

// levels appends the best bids and asks of the token's book to the empty lists bids and asks: at most maxDepth levels of each side.
func (t *token) levels(bids, asks []Level) (b, a []Level) {
	t.eachBid(func(l Level) bool { bids = append(bids, l); return len(bids) < maxDepth })
	t.eachAsk(func(l Level) bool { asks = append(asks, l); return len(asks) < maxDepth })
	return bids, asks
}

func (v *Venue) publishTrade(t *token, trade tapeTrade) {
	if topic := t.topics[channelTrades]; topic != nil {
		topic.publish(tradeFrame(t, trade))
	}
}

func (v *Venue) publishMarket(m *market, change string) {
	if m.topic != nil {
		m.topic.publish(marketFrame(m, change))
	}
}

// A wallet's stream sends the differences between the present state and the last sent state. So code that changes a wallet or a
// price need not notify the stream.

// walletStream is the last sent state of a wallet. The last sent states of its positions and orders are in position.shown and
// order.shown.
type walletStream struct {
	records uint64      // number of records already sent, including those that wallet.fold has removed
	ended   []*order    // orders that ended since the last frame
	closed  []*position // positions closed since the last frame
	balance shownBalance
}

// shownPosition, shownOrder and shownBalance are the last sent values.
type (
	shownPosition struct {
		size  Size
		cost  Money
		price Price
	}
	shownOrder struct {
		known  bool
		filled Size
	}
	shownBalance struct {
		portfolio, cash Money
		at              millis
	}
)

func (p *position) values() shownPosition { return shownPosition{p.size, p.cost, p.token.price()} }
func (o *order) values() shownOrder       { return shownOrder{true, o.filled} }
func (w *wallet) values() shownBalance {
	return shownBalance{w.portfolioValue(), w.cash, w.updatedAt()}
}

// markSent marks the present state as sent. The state gets a new sequence number, because the wallet may have changed while it had
// no subscribers.
func (w *wallet) markSent() {
	w.seq++
	w.stream = walletStream{records: w.dropped + uint64(len(w.records)), balance: w.values()}
	for _, p := range w.positions {
		p.shown = p.values()
	}
	for _, o := range w.orders {
		o.shown = o.values()
	}
}

// publishAccount streams all differences of a wallet: orders, then fills, positions and the balance.
func (v *Venue) publishAccount(t *topic) {
	w := t.wallet
	send := func(kind string, name string, add func([]byte) []byte) {
		previous := w.seq
		w.seq++
		b := addNumber(beginUser(kind, w, 512), "prevSeq", previous)
		t.publish(finishFrame(kind, add(addName(b, name))))
	}
	sendOrder := func(o *order) {
		o.shown = o.values()
		send(frameOrderUpdate, "order", func(b []byte) []byte { return o.appendStreamed(b, w) })
	}
	for _, o := range w.stream.ended {
		sendOrder(o)
	}
	w.stream.ended = w.stream.ended[:0]
	for _, o := range w.orders {
		if o.shown != o.values() {
			sendOrder(o)
		}
	}
	for i := max(w.stream.records, w.dropped) - w.dropped; i < uint64(len(w.records)); i++ {
		if w.records[i].kind == kindTrade {
			send(frameFill, "trade", func(b []byte) []byte { return w.appendTrade(b, int(i)) })
		}
	}
	w.stream.records = w.dropped + uint64(len(w.records))
	for _, p := range w.stream.closed {
		send(framePositionUpdate, "position", p.append)
	}
	w.stream.closed = w.stream.closed[:0]
	for _, p := range w.positions {
		if now := p.values(); p.shown != now {
			p.shown = now
			send(framePositionUpdate, "position", p.append)
		}
	}
	if now := w.values(); w.stream.balance != now {
		w.stream.balance = now
		send(frameBalanceUpdate, "balance", w.appendBalance)
	}
}
