package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/venue/stream"
)

// wire connects the venue of a chaos with the feed through stream.Client. Its links are sockets that carry JSON frames.
type wire struct {
	chaos  *chaos
	client *stream.Client
	carry  map[messages.Topic]*link // the link that carries a topic
	closes int                      // the number of sockets that the venue has closed

	mu       sync.Mutex // protects the fields below, which the client's goroutines also use
	rand     *rand.Rand
	opened   []*socket
	requests []clientFrame
	reasons  map[string]int
	kinds    map[string]int
	drifts   map[string]int
}

// clientFrame is a frame from the client. If closed is true, the client has closed the socket, and frame is empty.
type clientFrame struct {
	by    *socket
	frame struct {
		Type, Rid, Channel, TokenID string
		TokenIDs                    []string
	}
	closed bool
}

// socket is the stream.Conn of the client.
type socket struct {
	wire     *wire
	toClient chan []byte
	closed   chan struct{}
	once     sync.Once
	err      error
}

// newWire returns a wire whose client passes messages to the feed f.
func newWire(c *chaos, f *Feed, seed uint64) (*wire, error) {
	w := &wire{
		chaos: c, carry: make(map[messages.Topic]*link), rand: rand.New(rand.NewPCG(seed, 1)),
		reasons: make(map[string]int), kinds: make(map[string]int), drifts: make(map[string]int),
	}
	var err error
	w.client, err = stream.New(stream.Config{
		URL: "ws://venue.example/ws", Dial: w, Rand: w.float, Observer: w, TopicsPerConnection: 2*chaosTokens/chaosLinks + 1,
		Backoff: market.Backoff{Min: time.Second, Max: 2 * time.Second},
	}, f)
	return w, err
}

func (w *wire) float() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.Float64()
}

func (w *wire) count(in map[string]int, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[what]++
}

func (w *wire) Frame(kind string)       { w.count(w.kinds, kind) }
func (w *wire) Drift(what string)       { w.count(w.drifts, what) }
func (w *wire) Reconnect(reason string) { w.count(w.reasons, reason) }

func (w *wire) Dial(context.Context, string, http.Header) (stream.Conn, error) {
	s := &socket{wire: w, toClient: make(chan []byte, 100_000), closed: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, s)
	return s, nil
}

func (s *socket) Read(context.Context) ([]byte, error) {
	select {
	case frame := <-s.toClient:
		return frame, nil
	default:
	}
	select {
	case frame := <-s.toClient:
		return frame, nil
	case <-s.closed:
		return nil, s.err
	}
}

func (s *socket) Write(_ context.Context, frame []byte) error {
	x := clientFrame{by: s}
	if err := json.Unmarshal(frame, &x.frame); err != nil {
		return err
	}
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	s.wire.requests = append(s.wire.requests, x)
	return nil
}

func (s *socket) Close(int) error {
	s.wire.mu.Lock()
	s.wire.requests = append(s.wire.requests, clientFrame{by: s, closed: true})
	s.wire.mu.Unlock()
	s.end(0)
	return nil
}

func (s *socket) end(code int) {
	s.once.Do(func() {
		s.err = &stream.CloseError{Code: code}
		close(s.closed)
	})
}

// fields contains the fields of a JSON frame.
type fields map[string]any

func (l *link) send(o fields) {
	frame, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	l.socket.toClient <- frame
}

func (w *wire) hello(l *link) {
	l.send(fields{"type": "hello", "epoch": w.chaos.epochName(), "heartbeatMs": chaosBeat.Milliseconds(), "limits": fields{"depth": queries.MaxBookDepth}})
}

// listen opens links and executes the client's requests.
func (w *wire) listen() {
	w.mu.Lock()
	opened, asked := w.opened, w.requests
	w.opened, w.requests = nil, nil
	w.mu.Unlock()
	now := time.Now()
	for _, s := range opened {
		l := &link{socket: s, topics: make(map[messages.Topic]*linkTopic), up: true, upAt: now, last: now, beatAt: now.Add(chaosBeat)}
		w.chaos.links = append(w.chaos.links, l)
		w.hello(l)
	}
	for _, x := range asked {
		i := slices.IndexFunc(w.chaos.links, func(l *link) bool { return l.socket == x.by })
		if i < 0 {
			continue
		}
		l := w.chaos.links[i]
		switch {
		case x.closed:
			w.chaos.faults["closed by the client"]++
			w.removeLink(l)
		case x.frame.Type == "ping":
			l.send(fields{"type": "pong", "rid": x.frame.Rid})
		case x.frame.Type == "subscribe":
			l.send(fields{"type": "subscribed", "rid": x.frame.Rid})
			for _, id := range x.frame.TokenIDs {
				t := messages.Topic{Channel: messages.Channel(x.frame.Channel), ID: id}
				l.topics[t], w.carry[t] = &linkTopic{up: true, upAt: now}, l
				w.chaos.snapshot(t)
			}
		case x.frame.Type == "unsubscribe":
			for _, id := range x.frame.TokenIDs {
				w.leave(l, messages.Topic{Channel: messages.Channel(x.frame.Channel), ID: id})
			}
		case x.frame.Type == "resync":
			if k := l.topics[messages.Topic{Channel: messages.Channel(x.frame.Channel), ID: x.frame.TokenID}]; k != nil {
				k.resyncAt = now
			}
		}
	}
}

// linkOf returns the link that carries a topic. If no link carries the topic, linkOf returns a link that is down.
func (w *wire) linkOf(t messages.Topic) *link {
	if w == nil {
		return nil
	}
	if l := w.carry[t]; l != nil {
		return l
	}
	return &link{}
}

func (w *wire) leave(l *link, t messages.Topic) {
	delete(l.topics, t)
	if w.carry[t] == l {
		delete(w.carry, t)
	}
}

// removeLink removes a closed link.
func (w *wire) removeLink(l *link) {
	for t, k := range l.topics {
		k.up = false
		w.leave(l, t)
	}
	l.up, l.frames = false, nil
	w.chaos.links = slices.DeleteFunc(w.chaos.links, func(other *link) bool { return other == l })
}

// frame encodes a message as the venue does.
func frame(m *messages.Message) fields {
	o := fields{"tokenId": m.Topic.ID, "timestamp": m.Time}
	if m.Seq != 0 {
		o["epoch"], o["seq"] = m.Epoch, m.Seq
	}
	if m.PrevSeq != 0 {
		o["prevSeq"] = m.PrevSeq
	}
	side := func(levels []market.Level) []fields {
		out := make([]fields, len(levels))
		for i, l := range levels {
			out[i] = fields{"price": json.Number(l.Price.String()), "size": json.Number(l.Size.String())}
		}
		return out
	}
	switch m.Kind {
	case messages.KindPrice:
		o["type"], o["price"] = "price_update", json.Number(m.Price.Price.String())
	case messages.KindBookSnapshot:
		o["type"], o["bids"], o["asks"], o["hash"] = "orderbook_snapshot", side(m.Book.Bids.Levels()), side(m.Book.Asks.Levels()), m.Book.Hash
	default:
		list := make([]fields, len(m.Changes))
		for i, x := range m.Changes {
			list[i] = fields{"side": x.Side, "price": json.Number(x.Price.String()), "size": json.Number(x.Size.String())}
		}
		o["type"], o["changes"] = "orderbook_update", list
	}
	return o
}

// garbage contains texts that are not valid frames.
var garbage = []string{"", "{", `{"type":"orderbook_update"`, "\x00\xff\xfe", "<html>502</html>", `{"type":}`, `nul`, `[{"type":"trade"},`, `{"a":1}{`}

func rubbish(r *rand.Rand) []byte { return []byte(garbage[r.IntN(len(garbage))]) }

// injectGarbage sends invalid frames on a link at random.
func (w *wire) injectGarbage(l *link, all []*linkTopic) {
	c := w.chaos
	if c.inject("some garbage", 0.5, all...) {
		text := rubbish(c.rand)
		c.send(l, 0, func() { l.socket.toClient <- text })
	}
	if c.inject("unknown type", 0.5) {
		c.send(l, 0, func() { l.send(fields{"type": "weather", "tokenId": "T00", "seq": 1}) })
	}
	if c.faulty && c.chance(0.03) {
		w.sendGarbage(l)
	}
}

// sendGarbage sends 40 invalid frames in a row. The client closes the link after ten of them.
func (w *wire) sendGarbage(l *link) {
	w.chaos.faults["garbage in a row"]++
	for _, k := range l.topics {
		k.lastFault = time.Now()
	}
	for range 40 {
		text := rubbish(w.chaos.rand)
		w.chaos.send(l, 0, func() { l.socket.toClient <- text })
	}
}

// breakLinks makes the client close the link with the most topics. tick is the number of the tick in the burst. At some ticks,
// breakLinks sends invalid frames on this link. Late in the burst, breakLinks stops the delivery of the link for a minute.
func (w *wire) breakLinks(tick int) {
	var busiest *link
	for _, l := range w.chaos.links {
		if time.Now().After(l.stalledUntil) && (busiest == nil || len(l.topics) > len(busiest.topics)) {
			busiest = l
		}
	}
	switch {
	case busiest == nil:
	case tick%150 == 100 && tick < 800:
		w.sendGarbage(busiest)
	case tick > 800 && len(busiest.topics) > 0 && w.chaos.faults["silence"] < 2*(w.chaos.bursts+1):
		w.chaos.faults["silence"]++
		busiest.stalledUntil = time.Now().Add(time.Minute)
	}
}

// damage returns a damaged form of a message that the client cannot use. The result is either fields to encode or the text of a
// frame.
func (c *chaos) damage(m *messages.Message) any {
	o := frame(m)
	switch c.rand.IntN(4) {
	case 0:
		return string(rubbish(c.rand))
	case 1:
		o["seq"] = "x"
	case 2:
		o["price"], o["bids"], o["changes"] = "much", 7, []fields{{"side": "UP"}}
	default:
		whole, _ := json.Marshal(o)
		return string(whole[:len(whole)/2])
	}
	return o
}

func (l *link) sendAny(v any) {
	if text, ok := v.(string); ok {
		l.socket.toClient <- []byte(text)
		return
	}
	l.send(v.(fields))
}

// String returns the wire's statistics.
func (w *wire) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("frames %v, drifts %v, reconnects %v", w.kinds, w.drifts, w.reasons)
}
