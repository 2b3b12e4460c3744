package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

type crowdKind struct {
	name           string
	tokens, length int // tokens from which the lists are made, and tokens of a list
	each           int // events of a list in a second
}

var crowdKinds = []crowdKind{{"token", 1, 1, 10}, {"lists", 500, 8, 2}}

func (b *bench) crowdBenchmarks(context.Context) (all []benchmark, err error) {
	servers := b.graphServers(graphServer, crowdFlag)
	for _, n := range []int{b.subscribers / 5, b.subscribers} {
		for _, kind := range crowdKinds {
			all = append(all, benchmark{crowdSection, fmt.Sprintf("Subscribers/of=%s/clients=%d", kind.name, n), servers, func(ctx context.Context, p *process) (figures, error) {
				return b.measureCrowd(ctx, p, n, kind)
			}})
		}
	}
	return all, nil
}

func (b *bench) measureCrowd(ctx context.Context, p *process, n int, kind crowdKind) (f figures, err error) {
	every := time.Second * time.Duration(kind.length) / time.Duration(kind.each*kind.tokens)
	moves := make([]move, max(1, int(b.duration/every)))
	tokens, err := b.venue.risingTokens(kind.tokens, 1+len(moves)/kind.tokens)
	if err != nil {
		return f, err
	}
	for i := range moves {
		t := &tokens[i%kind.tokens]
		t.price += t.tick
		moves[i] = t.move
	}
	lists := make([][]string, n)
	for i := range lists {
		for _, at := range rand.New(rand.NewPCG(uint64(i), 0)).Perm(kind.tokens)[:kind.length] {
			lists[i] = append(lists[i], tokens[at].token)
		}
	}
	c, err := openCrowd(ctx, p, lists)
	if err != nil {
		return f, err
	}
	defer c.close()
	return b.observe(ctx, p, func() (*load, error) { return c.deliver(ctx, b.venue, moves, every) })
}

// ticker is a token with its present price and the size of a tick, both in 1/10,000.
type ticker struct {
	move
	tick int
}

// risingTokens returns n tokens whose prices can rise by the given number of ticks. The prices of the tokens of a market move
// together, so each token is of another market.
func (v *venue) risingTokens(n, ticks int) (tokens []ticker, err error) {
	for _, m := range v.open() {
		token := m.Outcomes[0].TokenID
		price, _ := strconv.ParseFloat(string(v.prices[token]), 64)
		t := ticker{move{token, int(math.Round(price * 10_000))}, int(math.Round(m.TickSize * 10_000))}
		if len(tokens) < n && t.price+ticks*t.tick < 10_000 {
			tokens = append(tokens, t)
		}
	}
	if len(tokens) < n {
		return nil, fmt.Errorf("the prices of %d tokens can rise, want %d", len(tokens), n)
	}
	return tokens, nil
}

const subscription = `subscription($ids: [String!]!) {
  priceChanged(tokenIds: $ids) { reason token { tokenId } price { price basis timestamp freshness { source stale } } previousPrice }
}`

const (
	// perAddress is the number of subscribers with the same address, so that no bound of one address applies. Linux accepts all
	// addresses of 127.0.0.0/8.
	perAddress  = 100
	maxDialing  = 32 // subscribers that connect at once
	dialTimeout = time.Minute
	silence     = time.Second           // time without messages after which no more are expected
	patience    = time.Minute           // how much longer than planned a run may take
	slowest     = 50 * time.Millisecond // time for one request of the first round, in which nothing is in the cache
)

// crowd is all subscribers of a server, each with one WebSocket.
type crowd struct {
	conns     []*websocket.Conn
	followers map[string]int // number of subscribers by token
	reading   sync.WaitGroup

	mu sync.Mutex
	// sent has the times of the changes, by token and new price. delays are the times from a change until its events had arrived.
	sent   map[[2]string]time.Time
	delays []time.Duration
	heard  time.Time // the last message
	lost   error     // the first error of a connection
}

func openCrowd(ctx context.Context, p *process, lists [][]string) (*crowd, error) {
	c := &crowd{conns: make([]*websocket.Conn, len(lists)), followers: map[string]int{}, sent: map[[2]string]time.Time{}}
	g, dialing := errgroup.WithContext(ctx)
	g.SetLimit(maxDialing)
	var client *http.Client
	for i, list := range lists {
		if i%perAddress == 0 {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/perAddress))}}
			client = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
		}
		options := &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"graphql-transport-ws"}}
		for _, id := range list {
			c.followers[id]++
		}
		g.Go(func() (err error) {
			c.conns[i], err = subscribe(dialing, p.url+"/graphql", options, list)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		c.close()
		return nil, err
	}
	for _, conn := range c.conns {
		c.reading.Go(func() { c.follow(ctx, conn) })
	}
	for time.Sleep(silence); !c.silent(); time.Sleep(silence / 10) { // the first states come from REST, and then from the stream
	}
	return c, nil
}

// subscribe connects and waits for the first event, which has the present price.
func subscribe(ctx context.Context, url string, options *websocket.DialOptions, list []string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, options)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(map[string]any{"query": subscription, "variables": map[string]any{"ids": list}})
	if err != nil {
		return conn, err
	}
	for _, message := range []string{`{"type":"connection_init"}`, fmt.Sprintf(`{"id":"1","type":"subscribe","payload":%s}`, payload)} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
			return conn, err
		}
	}
	var message bytes.Buffer
	for _, want := range []string{`{"type":"connection_ack"`, `{"id":"1","type":"next","payload":{"data":`} {
		if err := next(ctx, conn, &message); err != nil {
			return conn, err
		}
		if !strings.HasPrefix(message.String(), want) {
			return conn, fmt.Errorf("the server says %.500s", &message)
		}
	}
	return conn, nil
}

// next reads the next message that is not a ping.
func next(ctx context.Context, conn *websocket.Conn, message *bytes.Buffer) error {
	for {
		_, r, err := conn.Reader(ctx)
		if err != nil {
			return err
		}
		message.Reset()
		if _, err := message.ReadFrom(r); err != nil {
			return err
		}
		if message.String() != `{"type":"ping"}` {
			return nil
		}
		if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"pong"}`)); err != nil {
			return err
		}
	}
}

func (c *crowd) follow(ctx context.Context, conn *websocket.Conn) {
	var message bytes.Buffer
	for {
		err := next(ctx, conn, &message)
		_, rest, _ := bytes.Cut(message.Bytes(), []byte(`"tokenId":"`))
		token, rest, _ := bytes.Cut(rest, []byte{'"'})
		_, rest, _ = bytes.Cut(rest, []byte(`"price":{"price":"`))
		price, _, _ := bytes.Cut(rest, []byte{'"'})
		c.mu.Lock()
		c.heard = time.Now()
		if sent, ok := c.sent[[2]string{string(token), string(price)}]; ok && err == nil {
			c.delays = append(c.delays, c.heard.Sub(sent))
		}
		if c.lost == nil && err != nil {
			c.lost = fmt.Errorf("a subscriber lost its connection: %w", err)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// silent reports whether no message has arrived for a while.
func (c *crowd) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.heard) > silence
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
	c.reading.Wait()
}

// deliver makes the moves, one every interval, and waits for their events.
func (c *crowd) deliver(ctx context.Context, v *venue, moves []move, every time.Duration) (*load, error) {
	begun, expected := time.Now(), 0
	for i, m := range moves {
		expected += c.followers[m.token]
		time.Sleep(time.Until(begun.Add(time.Duration(i) * every)))
		c.mu.Lock()
		c.sent[[2]string{m.token, m.literal()}] = time.Now()
		c.mu.Unlock()
		if err := v.move(ctx, m); err != nil {
			return nil, err
		}
	}
	for arrived := 0; arrived < expected && (arrived == 0 || !c.silent()) && time.Since(begun) < time.Duration(len(moves))*every+patience; time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		arrived = len(c.delays)
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &load{elapsed: time.Since(begun), latencies: slices.Sorted(slices.Values(c.delays)), expected: expected}, c.lost
}
