package e2e

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"
)

// checkedLoad runs clients that send queries and subscriptions to a service. It compares the prices and books that they receive
// with those of a recordedVenue.
type checkedLoad struct {
	*service
	recorded   *recordedVenue
	ctx        context.Context
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
	sockets    []*socket
	// pause stops polling while its write lock is held.
	pause sync.RWMutex

	mu    sync.Mutex
	wrong map[string]int
	seen  map[string]int
	last  map[string][2]string // maps a token to the last sequence of the book and the last price that a subscriber received
}

func newCheckedLoad(s *service, w *recordedVenue) *checkedLoad {
	c := &checkedLoad{service: s, recorded: w, wrong: make(map[string]int), seen: make(map[string]int), last: make(map[string][2]string)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// stopLoad ends the load and waits for its goroutines.
func (c *checkedLoad) stopLoad() {
	c.cancel()
	c.goroutines.Wait()
	for _, k := range c.sockets {
		k.close()
	}
}

func (c *checkedLoad) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

func (c *checkedLoad) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}

// countOf returns how often count was called with the given name.
func (c *checkedLoad) countOf(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}

func (c *checkedLoad) addError(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := err.Error(); c.wrong[text] > 0 || len(c.wrong) < 20 {
		c.wrong[text]++
	}
}

// takeErrors returns the errors and how often each occurred, and clears them.
func (c *checkedLoad) takeErrors() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := c.wrong
	c.wrong = make(map[string]int)
	return wrong
}

const (
	loadPrices = `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids, maxPerSecond: 20) { reason price { tokenId price timestamp freshness { stale source } } } }`
	loadBook   = `subscription($id: String!) { orderbookChanged(tokenId: $id, depth: 20, deltas: true, maxPerSecond: 20) {
		kind reason tokenId sequence previousSequence bids { price size } asks { price size } book { sequence bids { price size } asks { price size } freshness { stale source } } } }`
)

// subscribe subscribes to the prices and books of tokens on one socket, and checks the events until stopLoad is called.
func (c *checkedLoad) subscribe(t testing.TB, credentials string, tokens []string) {
	t.Helper()
	k := c.dial(t, credentials)
	c.sockets = append(c.sockets, k)
	follow := func(e *events, take func(v any)) {
		c.goroutines.Go(func() {
			for {
				select {
				case ev := <-e.came:
					if ev.ended || len(ev.errors) > 0 {
						c.addError(fmt.Errorf("a subscription ended or got an error: %+v", ev))
						return
					}
					for _, v := range ev.data.(map[string]any) {
						c.count("events")
						c.count("event " + text(v, "reason"))
						take(v)
					}
				case <-c.ctx.Done():
					return
				}
			}
		})
	}
	follow(k.subscribe(t, loadPrices, vars{"ids": tokens}), func(v any) {
		v = at(v, "price")
		c.addError(c.recorded.checkPrice(v))
		c.setLast(text(v, "tokenId"), 1, text(v, "price"))
	})
	for _, id := range tokens {
		c.setLast(id, 0, "") // caughtUp is false until the subscriptions of the token have sent their first events

		r := &replay{depth: recordedDepth, hurried: true} // on a busy machine, the client is too slow for hundreds of events a second
		follow(k.subscribe(t, loadBook, vars{"id": id}), func(v any) {
			r.take(t, v)
			c.addError(c.recorded.checkBook(id, at(v, "book")))
			c.setLast(id, 0, text(v, "sequence"))
		})
	}
}

func (c *checkedLoad) setLast(id string, what int, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last[id]
	last[what] = value
	c.last[id] = last
}

// caughtUp reports whether all subscribers have received the venue's current prices and books. The venue must not change during the
// check.
func (c *checkedLoad) caughtUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, last := range c.last {
		if !c.recorded.isCurrent(id, last[0], last[1]) {
			return false
		}
	}
	return true
}

// loadQuery is the query that poll sends.
const loadQuery = `query($ids: [String!]!, $a: Address!) {
  tokens(tokenIds: $ids) { tokenId price { tokenId price timestamp freshness { stale source } } orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source } } }
  user(address: $a) { balance { cashBalance } }
}`

// poll sends loadQuery for the tokens periodically, and checks the responses.
func (c *checkedLoad) poll(every time.Duration, tokens []string) {
	c.goroutines.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-c.ctx.Done():
				return
			}
			c.sample(tokens)
		}
	})
}

// sample sends loadQuery once and checks the response.
func (c *checkedLoad) sample(tokens []string) {
	var out graphResult
	c.pause.RLock()
	err := c.post(c.ctx, loadQuery, vars{"ids": tokens, "a": addressOf3}, keyOf3, &out)
	c.pause.RUnlock()
	if err != nil {
		if c.ctx.Err() == nil {
			c.addError(fmt.Errorf("a query got no response: %w", err))
		}
		return
	}
	for _, e := range out.Errors {
		c.count("error " + e.Extensions.Code)
	}
	for _, v := range list(out.Data, "tokens") {
		for _, part := range []string{"price", "orderbook"} {
			p := at(v, part)
			if p == nil {
				continue
			}
			age := "fresh"
			if at(p, "freshness.stale") == true {
				age = "stale"
			}
			c.count(part + " " + age + " " + text(p, "freshness.source"))
			if part == "price" {
				c.addError(c.recorded.checkPrice(p))
			} else {
				c.addError(c.recorded.checkBook(text(v, "tokenId"), p))
			}
		}
	}
}
