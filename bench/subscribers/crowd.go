// Package subscribers connects many subscribers to one WebSocket server. On each [Order] it causes events, measures how long their
// messages take to arrive, and returns a [Report].
package subscribers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/bench/probe"
)

// Order is a list of events to cause. For each event, the body is posted to the URL.
type Order struct {
	URL    string   `json:"url"`
	Bodies []string `json:"bodies"`
	// Prices has one price for each event. The unit is 1/10,000. The price in a message shows which event caused the message. So all
	// prices must be different. If Tokens is not empty, Prices is not used.
	Prices []int `json:"prices"`
	// Tokens has one token for each event if the subscribers have lists of tokens. The token in a message then shows which event
	// caused the message.
	Tokens []string `json:"tokens,omitempty"`
	// Every is the time between two events.
	Every time.Duration `json:"every"`
}

// Report has the measurements of one order.
type Report struct {
	// Subscribers is the number of connected subscribers.
	Subscribers int `json:"subscribers"`
	// Expected is the number of messages that should arrive.
	Expected int `json:"expected"`
	// Deliveries is the number of messages that arrived. P50 and P99 are percentiles of the time from the event to the arrival.
	Deliveries int           `json:"deliveries"`
	P50        time.Duration `json:"p50"`
	P99        time.Duration `json:"p99"`
	// CPU is the CPU time of the subscribers' process during the order, in nanoseconds.
	CPU int64 `json:"cpu"`
	// Last is one of the last messages that arrived.
	Last string `json:"last"`
}

// Serve connects n subscribers to a server and writes a first report to out. It then writes a report for each order that it reads
// from in, until in ends. With an empty document, the subscribers connect but do not subscribe. If there are tokens, each
// subscriber has a different list of ListLength tokens.
func Serve(address string, n int, document string, tokens []string, in io.Reader, out io.Writer) error {
	c := &crowd{tokens: tokens, followers: make(map[string]int), sentFor: make(map[string]*atomic.Int64)}
	for _, id := range tokens {
		c.sentFor[id] = new(atomic.Int64)
	}
	defer c.close()
	if err := c.connect(address, n, document); err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(Report{Subscribers: n}); err != nil {
		return err
	}
	orders := json.NewDecoder(in)
	for {
		var o Order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		r, err := c.execute(o)
		if err != nil {
			return err
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
}

// crowd is the set of all subscribers.
type crowd struct {
	readers []*reader
	// tokens are the tokens from which lists are made. followers maps a token to the number of lists that contain it.
	tokens    []string
	followers map[string]int
	// sent has the time of the event for each price, in nanoseconds since began. The time is 0 if no event has this price.
	sent [10_001]atomic.Int64
	// sentFor replaces sent if there are lists. It maps a token to the time of its event.
	sentFor map[string]*atomic.Int64
	// reading waits for the goroutines of the readers.
	reading sync.WaitGroup
	arrived atomic.Int64
	last    atomic.Pointer[[]byte]
	ended   atomic.Pointer[error]
}

var began = time.Now()

// reader is a subscriber.
type reader struct {
	*socket

	// mu protects delays.
	mu     sync.Mutex
	delays []time.Duration
}

// begin removes all recorded delays and allocates space for the given number of delays.
func (r *reader) begin(events int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays = make([]time.Duration, 0, events)
}

func (r *reader) note(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays = append(r.delays, delay)
}

// end returns and removes the recorded delays.
func (r *reader) end() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	delays := r.delays
	r.delays = nil
	return delays
}

// maxDialing is the maximum number of subscribers that connect at the same time.
const maxDialing = 32

// ListLength is the number of tokens of a list.
const ListLength = 8

// list returns a pseudo-random list of different tokens, with the given seed. It returns nil if the crowd has no tokens.
func (c *crowd) list(seed int) []string {
	if len(c.tokens) == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	list := make([]string, 0, ListLength)
	for _, at := range random.Perm(len(c.tokens))[:min(ListLength, len(c.tokens))] {
		list = append(list, c.tokens[at])
	}
	return list
}

func (c *crowd) connect(address string, n int, document string) error {
	c.readers = make([]*reader, n)
	for i := range n {
		for _, id := range c.list(i) {
			c.followers[id]++
		}
	}
	var g errgroup.Group
	g.SetLimit(maxDialing)
	for i := range c.readers {
		g.Go(func() error {
			s, err := open(address, i)
			if err != nil {
				return fmt.Errorf("subscriber %d: %w", i+1, err)
			}
			c.readers[i] = &reader{socket: s}
			if document == "" {
				return nil
			}
			return s.subscribe(document, c.list(i))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, r := range c.readers {
		c.reading.Go(func() { c.follow(r) })
	}
	return nil
}

func (c *crowd) close() {
	for _, r := range c.readers {
		if r != nil {
			_ = r.conn.Close()
		}
	}
	c.reading.Wait()
}

// marker is the text directly before the price in a message. tokenMarker is the text directly before the token.
var marker, tokenMarker = []byte(`"price":{"price":"`), []byte(`"tokenId":"`)

// sentAt returns the time of the event that caused a message, in nanoseconds since began. It returns 0 if no event of the
// current order caused the message.
func (c *crowd) sentAt(message []byte) int64 {
	mark := marker
	if len(c.tokens) > 0 {
		mark = tokenMarker
	}
	_, rest, _ := bytes.Cut(message, mark)
	literal, _, ok := bytes.Cut(rest, []byte{'"'})
	if !ok {
		return 0
	}
	if len(c.tokens) > 0 {
		if sent := c.sentFor[string(literal)]; sent != nil {
			return sent.Load()
		}
		return 0
	}
	price, err := strconv.ParseFloat(string(literal), 64)
	if err != nil || price < 0 || price > 1 {
		return 0
	}
	return c.sent[int(price*10_000+.5)].Load()
}

func (c *crowd) follow(r *reader) {
	for {
		message, err := r.next()
		if err != nil {
			c.ended.CompareAndSwap(nil, &err)
			return
		}
		sent := c.sentAt(message)
		if sent == 0 {
			continue // the message has the initial state or belongs to an earlier order
		}
		r.note(time.Since(began) - time.Duration(sent))
		if c.arrived.Add(1)%1000 == 1 {
			last := bytes.Clone(message)
			c.last.Store(&last)
		}
	}
}

// silence is the time without any message after which missing messages are considered lost.
const silence = 2 * time.Second

// expected returns the number of messages that an order should cause.
func (c *crowd) expected(o Order) (n int64) {
	if len(o.Tokens) == 0 {
		return int64(len(c.readers) * len(o.Bodies))
	}
	for _, id := range o.Tokens {
		n += int64(c.followers[id])
	}
	return n
}

func (c *crowd) execute(o Order) (Report, error) {
	for i := range c.sent {
		c.sent[i].Store(0) // late messages of earlier orders do not count
	}
	for _, sent := range c.sentFor {
		sent.Store(0)
	}
	want := c.expected(o)
	for _, r := range c.readers {
		r.begin(int(want)/len(c.readers) + 1)
	}
	c.arrived.Store(0)
	before := probe.Read().CPU
	start := time.Now()
	for i, body := range o.Bodies {
		time.Sleep(time.Until(start.Add(time.Duration(i) * o.Every)))
		if len(o.Tokens) > 0 {
			c.sentFor[o.Tokens[i]].Store(int64(time.Since(began)))
		} else {
			c.sent[o.Prices[i]].Store(int64(time.Since(began)))
		}
		resp, err := http.Post(o.URL, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			return Report{}, err
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return Report{}, fmt.Errorf("%s: %w", o.URL, err)
		}
		if resp.StatusCode != http.StatusOK {
			return Report{}, fmt.Errorf("%s: %s: %s", o.URL, resp.Status, answer)
		}
	}
	for seen, since := int64(-1), time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err := c.ended.Load(); err != nil {
			return Report{}, fmt.Errorf("a subscriber lost its connection: %w", *err)
		}
		now := c.arrived.Load()
		if now != seen {
			seen, since = now, time.Now()
		}
		if now >= want || time.Since(since) > silence {
			break
		}
	}
	r := Report{Subscribers: len(c.readers), Expected: int(want), CPU: probe.Read().CPU - before}
	var delays []time.Duration
	for _, reader := range c.readers {
		delays = append(delays, reader.end()...)
	}
	slices.Sort(delays)
	if r.Deliveries = len(delays); r.Deliveries > 0 {
		r.P50, r.P99 = delays[len(delays)/2], delays[len(delays)*99/100]
	}
	if last := c.last.Load(); last != nil {
		r.Last = string(*last)
	}
	return r, nil
}
