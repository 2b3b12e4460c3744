package polymarket

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/stream"
)

// StreamURL is the address of Polymarket's market socket.
const StreamURL = "wss://ws-subscriptions-clob.polymarket.com/ws/market"

const (
	// silence is the greatest time without a frame. The responses to pings count as frames.
	silence = 25 * time.Second
	// pingEvery is the time between pings. The venue closes a socket without pings.
	pingEvery = 10 * time.Second
	pingText  = "PING"
	pongText  = "PONG"
)

// codec translates the topics of one socket of the market channel. Polymarket calls a token an asset. The subscription of an asset
// delivers the asset's book, prices and trades, and the changes of the asset's market. Polymarket sends no sequence numbers. So the
// codec detects lost changes by a comparison of its books with the reported best prices. The codec numbers the messages of each
// topic itself. It is safe for concurrent use.
type codec struct {
	// epoch identifies the socket. The message numbers of different sockets cannot be compared.
	epoch string
	env   stream.Env
	read  readBooksFunc

	mu sync.Mutex
	// greeted reports that the codec has sent a subscription. The first subscription on a socket has a different form from the later
	// subscriptions.
	greeted bool
	assets  map[string]*asset
	// markets maps a market with a subscribed topic to the asset whose subscription serves the topic.
	markets map[string]string
	// subscribed contains topics whose subscription tick must confirm, because the venue confirms nothing.
	subscribed []messages.Topic
	numbers    stream.Numbering
}

func newCodec(env stream.Env, read readBooksFunc) *codec {
	return &codec{epoch: rand.Text(), env: env, read: read, assets: make(map[string]*asset), markets: make(map[string]string)}
}

// Stream returns the address and the protocol of the market socket. On this socket, Polymarket sends no frame before the first
// subscription and confirms no subscription. After a resync request, the codec delivers its own copy of the book. If the codec has
// missed a change of the book, the codec first reads the book over REST.
func (d *Driver) Stream() (address string, p *stream.Protocol) {
	read := func(ctx context.Context, ids []string) ([]upstream.Result[*market.Book], error) {
		return d.wholeBooks(ctx, upstream.Call{}, ids) // no operation waits for a repair
	}
	return StreamURL, &stream.Protocol{
		NewCodec: func(_ messages.Topic, env stream.Env) stream.Codec { return newCodec(env, read) },
		// The subject is the id of a token. For a market topic, the subject is the id of the market. A market topic uses the subscription
		// of one of the market's tokens, but this token may not be known yet.
		Subject:   func(t messages.Topic) string { return t.ID },
		PingEvery: pingEvery, Silence: silence,
	}
}

func (d *Driver) wholeBooks(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Book], error) {
	return tokenLookup(d, upstream.EndpointBook, "", readBooks).Read(ctx, call, ids)
}

// assetOf returns the asset of a topic. Any token of a market serves the market's topic. If the socket does not serve the topic, the
// service has not read the market yet, or the outcome has no token in an order book, ok is false.
func (c *codec) assetOf(t messages.Topic) (id string, ok bool) {
	switch t.Channel {
	case messages.ChannelOrderbook, messages.ChannelPrices, messages.ChannelTrades:
		return t.ID, marketOf(t.ID) == ""
	case messages.ChannelMarket:
		if id, ok = c.markets[t.ID]; ok {
			return id, true // also if the cache has evicted the market since
		}
		return c.assetOfMarket(c.env.Market(t.ID))
	}
	return "", false
}

func (c *codec) assetOfMarket(m *market.Market) (id string, ok bool) {
	if m == nil {
		return "", false
	}
	for i := range m.Outcomes {
		switch token := m.Outcomes[i].TokenID; {
		case token == "", marketOf(token) != "": // not in an order book
		case c.assets[token] != nil:
			return token, true
		case id == "":
			id = token
		}
	}
	return id, id != ""
}

// assetRequest is a subscription or an unsubscription. The first request on a socket has a type, and all later requests have an
// operation.
type assetRequest struct {
	Assets    []string `json:"assets_ids"`
	Type      string   `json:"type,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Dump      bool     `json:"initial_dump,omitempty"`
	Custom    bool     `json:"custom_feature_enabled,omitempty"`
}

// Encode returns the frames of a request. It returns no frame if the request changes nothing on the socket.
func (c *codec) Encode(r *stream.Request) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Verb {
	case stream.VerbSubscribe:
		return c.subscribe(r.Topics)
	case stream.VerbUnsubscribe:
		return c.unsubscribe(r.Topics)
	case stream.VerbResync:
		return c.resync(r.Topics[0])
	case stream.VerbPing:
		return [][]byte{[]byte(pingText)}
	}
	return nil
}

// subscribe subscribes to the assets of the topics. If the socket is already subscribed to the asset of a topic, the next call of
// codec.tick delivers the current state to the topic.
func (c *codec) subscribe(topics []messages.Topic) [][]byte {
	var fresh []string
	for _, t := range topics {
		id, ok := c.assetOf(t)
		if !ok {
			continue // the service has not read the market yet; package feed sends the subscription again
		}
		if t.Channel == messages.ChannelMarket {
			c.markets[t.ID] = id
		}
		a := c.assets[id]
		if a == nil {
			a = &asset{id: id, wanted: make(map[messages.Topic]bool)}
			c.assets[id] = a
			fresh = append(fresh, id)
		}
		a.wanted[t] = true
		a.owed = append(a.owed, t)
		c.subscribed = append(c.subscribed, t)
	}
	if len(fresh) == 0 {
		return nil
	}
	return [][]byte{c.subscribeFrame(fresh)}
}

func (c *codec) subscribeFrame(ids []string) []byte {
	s := assetRequest{Assets: ids, Dump: true, Custom: true}
	if c.greeted {
		s.Operation = "subscribe"
	} else {
		s.Type, c.greeted = "market", true
	}
	return body(s)
}

func (c *codec) unsubscribe(topics []messages.Topic) [][]byte {
	var ended []string
	for _, t := range topics {
		id, ok := c.assetOf(t)
		a := c.assets[id]
		if !ok || a == nil || !a.wanted[t] {
			continue
		}
		delete(a.wanted, t)
		delete(c.markets, t.ID)
		c.numbers.End(t)
		if len(a.wanted) == 0 {
			delete(c.assets, id)
			ended = append(ended, id)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	return [][]byte{body(assetRequest{Assets: ended, Operation: "unsubscribe"})}
}

// resync makes the next call of codec.tick deliver the state of a topic again. If the codec has missed a change of the book, the
// codec first reads the book over REST. After maxRepairs failed repairs, resync subscribes to the asset again, because the venue
// sends the book after a new subscription.
func (c *codec) resync(t messages.Topic) [][]byte {
	id, ok := c.assetOf(t)
	a := c.assets[id]
	if !ok || a == nil || !a.wanted[t] {
		return nil
	}
	a.owed = append(a.owed, t)
	c.subscribed = append(c.subscribed, t)
	if a.failures < maxRepairs {
		return nil
	}
	a.reset()
	return [][]byte{body(assetRequest{Assets: []string{id}, Operation: "unsubscribe"}), c.subscribeFrame([]string{id})}
}
