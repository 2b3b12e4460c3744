package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// witnessed is the number of levels on each side of a book that annals compare.
const witnessed = 20

// annals are a venue that records every price and book that it publishes. Change the venue through move only, so that
// each state is recorded before a client can read it.
type annals struct {
	seed    uint64
	tokens  []string
	address string
	limits  [2]int // requests a minute for an address and for a key; 0 means no limit
	// heartbeat is the stream's interval. The client reconnects after 2.5 intervals without a frame.
	heartbeat time.Duration
	// muted: the venue is called directly in a synctest bubble, and accepts no network connections.
	muted bool

	mu     sync.RWMutex
	venue  *demo.Venue
	server *http.Server
	served chan struct{}
	books  map[string]*past[bookState]
	prices map[string]*past[priceState]
	// epochs are the last sequence numbers, by token and epoch.
	epochs map[string]uint64
	steps  int
}

// bookState is a book's sequence number and the digest of its levels. priceState is a price and its time in Unix
// milliseconds.
type (
	bookState struct {
		epoch       string
		seq, digest uint64
	}
	priceState struct {
		at    int64
		price demo.Price
	}
)

// past is a ring buffer of the latest 4096 states.
type past[T any] struct {
	states [4096]T
	n      int
}

func (p *past[T]) add(s T) {
	p.states[p.n%len(p.states)] = s
	p.n++
}

// find returns the latest state for which fits is true.
func (p *past[T]) find(fits func(s T) bool) (s T, ok bool) {
	for i := p.n - 1; i >= max(0, p.n-len(p.states)); i-- {
		if s := p.states[i%len(p.states)]; fits(s) {
			return s, true
		}
	}
	return s, false
}

// newAnnals starts a venue that records its first open tokens.
func newAnnals(t testing.TB, seed uint64, tokens int, limits [2]int) *annals {
	t.Helper()
	return openAnnals(t, seed, tokens, limits, false)
}

// newMutedAnnals is newAnnals for a synctest bubble.
func newMutedAnnals(t testing.TB, seed uint64, tokens int, limits [2]int) *annals {
	t.Helper()
	return openAnnals(t, seed, tokens, limits, true)
}

func openAnnals(t testing.TB, seed uint64, tokens int, limits [2]int, muted bool) *annals {
	t.Helper()
	w := &annals{
		seed: seed, limits: limits, muted: muted, address: "127.0.0.1:0", heartbeat: 500 * time.Millisecond,
		books: make(map[string]*past[bookState]), prices: make(map[string]*past[priceState]), epochs: make(map[string]uint64),
	}
	if limits != [2]int{} { // a quiet stream matters more here than a fast reconnect
		w.heartbeat = 5 * time.Second
	}
	w.open(t)
	for _, token := range w.venue.Tokens() {
		if token.Status == "OPEN" && len(w.tokens) < tokens {
			w.tokens = append(w.tokens, token.TokenID)
			w.books[token.TokenID], w.prices[token.TokenID] = &past[bookState]{}, &past[priceState]{}
		}
	}
	if len(w.tokens) < tokens {
		t.Fatalf("the venue has only %d open tokens", len(w.tokens))
	}
	w.move(func() {})
	t.Cleanup(w.close)
	return w
}

// open starts the venue, or restarts it with the same markets and address.
func (w *annals) open(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := net.Listen("tcp", w.address)
	for begin := time.Now(); err != nil && time.Since(begin) < patience; l, err = net.Listen("tcp", w.address) {
		time.Sleep(10 * time.Millisecond) // an outgoing connection may use this port for a moment
	}
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	if w.muted {
		l = newPipes(l)
	}
	w.venue = demo.New(demo.Config{
		Markets: 400, Seed: w.seed, Heartbeat: w.heartbeat, PublicPerMinute: w.limits[0], KeyPerMinute: w.limits[1],
	})
	w.server, w.served = &http.Server{Handler: w.venue}, make(chan struct{})
	go func(s *http.Server, served chan struct{}) {
		defer close(served)
		_ = s.Serve(l)
	}(w.server, w.served)
	w.remember()
}

// close stops the venue and cuts its connections.
func (w *annals) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.server.Close()
	w.venue.Close()
	<-w.served
}

// args returns the flags of a service over the venue.
func (w *annals) args(more ...string) []string {
	return append([]string{
		"--venue-url=http://" + w.address, "--stream-url=ws://" + w.address + demo.StreamPath, "--trusted-proxies=127.0.0.1", "--log-level=error",
		fmt.Sprint("--venue-public-per-minute=", w.limits[0]), fmt.Sprint("--venue-key-per-minute=", w.limits[1]),
	}, more...)
}

// move calls change, which changes the venue, and records the new state.
func (w *annals) move(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember() // a fault may have begun an epoch since the last move
	change()
	w.remember()
}

// step moves the market once, then sets the prices of some recorded tokens, since the market alone moves few of them.
func (w *annals) step() {
	w.move(func() { w.venue.Step() })
	w.move(func() {
		w.steps++
		for i, id := range w.tokens {
			if q, _ := w.venue.Quote(id); (i+w.steps)%(len(w.tokens)/4+1) == 0 {
				_ = w.venue.SetPrice(id, (q.Price/100+7)%60*100+2000)
			}
		}
	})
}

func (w *annals) remember() {
	epoch := w.venue.Epoch()
	for _, id := range w.tokens {
		q, _ := w.venue.Quote(id)
		if books := w.books[id]; w.epochs[id+epoch] != q.Seq {
			b, _ := w.venue.Book(id)
			w.epochs[id+epoch] = b.Seq
			books.add(bookState{epoch, b.Seq, digestOf(b.Bids, b.Asks)})
		}
		if s := (priceState{q.At.UnixMilli(), q.Price}); w.prices[id].n == 0 || w.prices[id].states[(w.prices[id].n-1)%len(w.prices[id].states)] != s {
			w.prices[id].add(s)
		}
	}
}

func digestOf(sides ...[]demo.Level) uint64 {
	h := fnv.New64a()
	for _, side := range sides {
		for _, l := range side[:min(witnessed, len(side))] {
			_ = binary.Write(h, binary.LittleEndian, [2]int64{int64(l.Price), int64(l.Size)})
		}
		_ = binary.Write(h, binary.LittleEndian, int64(-1))
	}
	return h.Sum64()
}

// rungs decodes one side of a book into the venue's integer units.
func rungs(v any, path string) []demo.Level {
	var out []demo.Level
	for _, l := range list(v, path) {
		out = append(out, demo.Level{Price: demo.Price(units(text(l, "price"), 4)), Size: demo.Size(units(text(l, "size"), 2))})
	}
	return out
}

// units parses a decimal into units of 10^-digits; -1 if it is not valid.
func units(decimal string, digits int) int64 {
	whole, fraction, _ := strings.Cut(decimal, ".")
	if len(fraction) > digits {
		return -1
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// checkBook compares a book with the venue's state at the book's sequence number.
func (w *annals) checkBook(id string, v any) error {
	sequence := text(v, "sequence")
	i := strings.LastIndexFunc(sequence, func(r rune) bool { return r < '0' || r > '9' })
	if i < 0 {
		return fmt.Errorf("a book of %s of the sequence %q: %s", id, sequence, asJSON(v))
	}
	epoch := sequence[:i]
	seq, err := strconv.ParseUint(sequence[i+1:], 10, 64)
	if err != nil {
		return err
	}
	digest := digestOf(rungs(v, "bids"), rungs(v, "asks"))
	w.mu.RLock()
	known := w.epochs[id+epoch] != 0
	w.mu.RUnlock()
	if !known {
		w.move(func() {})
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	s, ok := w.books[id].find(func(s bookState) bool { return s.seq == seq && s.epoch == epoch })
	switch {
	case !ok && w.venue.Epoch() != epoch && w.epochs[id+epoch] != 0 && seq > w.epochs[id+epoch]:
		return nil // the last book of an epoch, which ended before it was recorded
	case !ok && seq == 1 && w.epochs[id+epoch] > 1:
		// An epoch that began during a move starts with the last book of the epoch before, under a new number.
		if _, known := w.books[id].find(func(s bookState) bool { return s.epoch != epoch && s.digest == digest }); known {
			return nil
		}
		return fmt.Errorf("a wrong book of %s at the beginning of %s: %s", id, epoch, asJSON(v))
	case !ok:
		return fmt.Errorf("a book of %s of the state %q, which the venue never had", id, sequence)
	case s.digest != digest:
		return fmt.Errorf("a wrong book of %s at %s: %s", id, sequence, asJSON(v))
	}
	return nil
}

// checkPrice compares a price with the one that the venue published at that time.
func (w *annals) checkPrice(v any) error {
	id := text(v, "tokenId")
	at, err := time.Parse(time.RFC3339Nano, text(v, "timestamp"))
	if err != nil {
		return fmt.Errorf("a price of %s of no time: %s", id, asJSON(v))
	}
	price := demo.Price(units(text(v, "price"), 4))
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.prices[id] == nil {
		return fmt.Errorf("a price of a token that nobody asked for: %s", asJSON(v))
	}
	if _, ok := w.prices[id].find(func(s priceState) bool { return s.at == at.UnixMilli() && s.price == price }); !ok {
		return fmt.Errorf("a wrong price of %s: %s", id, asJSON(v))
	}
	return nil
}

// present reports whether a token's sequence and price are the venue's current ones.
func (w *annals) present(id, sequence, price string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	q, _ := w.venue.Quote(id)
	return strings.HasPrefix(sequence, w.venue.Epoch()) && strings.HasSuffix(sequence, ":"+fmt.Sprint(q.Seq)) && demo.Price(units(price, 4)) == q.Price
}

// crowd is a load on a service. It checks every answer against annals.
type crowd struct {
	*service
	annals  *annals
	ctx     context.Context
	leave   context.CancelFunc
	members sync.WaitGroup
	sockets []*socket
	// pause stops polling while its write lock is held.
	pause sync.RWMutex

	mu    sync.Mutex
	wrong map[string]int
	seen  map[string]int
	last  map[string][2]string // by token: the book's sequence and the price that its subscriber received last
}

func newCrowd(s *service, w *annals) *crowd {
	c := &crowd{service: s, annals: w, wrong: make(map[string]int), seen: make(map[string]int), last: make(map[string][2]string)}
	c.ctx, c.leave = context.WithCancel(context.Background())
	return c
}

// disperse ends the load and waits for its goroutines.
func (c *crowd) disperse() {
	c.leave()
	c.members.Wait()
	for _, k := range c.sockets {
		k.close()
	}
}

func (c *crowd) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

// sights returns all counts of note.
func (c *crowd) sights() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}

// notes returns how often note was called with what.
func (c *crowd) notes(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}

func (c *crowd) complain(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 20 {
		c.wrong[err.Error()]++
	}
}

// complaints returns the errors with their counts, and clears them.
func (c *crowd) complaints() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := c.wrong
	c.wrong = make(map[string]int)
	return wrong
}

const (
	crowdPrices = `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids, maxPerSecond: 20) { reason price { tokenId price timestamp freshness { stale source } } } }`
	crowdBook   = `subscription($id: String!) { orderbookChanged(tokenId: $id, depth: 20, deltas: true, maxPerSecond: 20) {
		kind reason tokenId sequence previousSequence bids { price size } asks { price size } book { sequence bids { price size } asks { price size } freshness { stale source } } } }`
)

// subscribe follows the prices and books of tokens on one socket until the crowd disperses.
func (c *crowd) subscribe(t testing.TB, credentials string, tokens []string) {
	t.Helper()
	k := c.dial(t, credentials)
	c.sockets = append(c.sockets, k)
	follow := func(e *events, take func(v any)) {
		c.members.Go(func() {
			for {
				select {
				case ev := <-e.came:
					if ev.ended || len(ev.errors) > 0 {
						c.complain(fmt.Errorf("a subscription was sent %+v", ev))
						return
					}
					for _, v := range ev.data.(map[string]any) {
						c.note("events")
						c.note("event " + text(v, "reason"))
						take(v)
					}
				case <-c.ctx.Done():
					return
				}
			}
		})
	}
	follow(k.subscribe(t, crowdPrices, vars{"ids": tokens}), func(v any) {
		v = at(v, "price")
		c.complain(c.annals.checkPrice(v))
		c.hold(text(v, "tokenId"), 1, text(v, "price"))
	})
	for _, id := range tokens {
		r := &replay{depth: witnessed, hurried: true} // a busy machine gets hundreds of events a second
		follow(k.subscribe(t, crowdBook, vars{"id": id}), func(v any) {
			r.take(t, v)
			c.complain(c.annals.checkBook(id, at(v, "book")))
			c.hold(id, 0, text(v, "sequence"))
		})
	}
}

func (c *crowd) hold(id string, what int, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last[id]
	last[what] = value
	c.last[id] = last
}

// caughtUp reports whether all subscribers have the venue's current state. The venue must not change meanwhile.
func (c *crowd) caughtUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, last := range c.last {
		if !c.annals.present(id, last[0], last[1]) {
			return false
		}
	}
	return true
}

// crowdQuery is the query of pollers.
const crowdQuery = `query($ids: [String!]!, $a: Address!) {
  tokens(tokenIds: $ids) { tokenId price { tokenId price timestamp freshness { stale source } } orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source } } }
  user(address: $a) { balance { cashBalance } }
}`

// poll queries tokens and an account periodically, and checks the answers.
func (c *crowd) poll(every time.Duration, tokens []string) {
	c.members.Go(func() {
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

// sample sends the query once and checks the answer.
func (c *crowd) sample(tokens []string) {
	var out struct {
		Data   any          `json:"data"`
		Errors []graphError `json:"errors"`
	}
	c.pause.RLock()
	err := c.post(c.ctx, crowdQuery, vars{"ids": tokens, "a": addressOf3}, keyOf3, &out)
	c.pause.RUnlock()
	if err != nil {
		if c.ctx.Err() == nil {
			c.complain(fmt.Errorf("no answer: %w", err))
		}
		return
	}
	for _, e := range out.Errors {
		c.note("error " + e.Extensions.Code)
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
			c.note(part + " " + age + " " + text(p, "freshness.source"))
			if part == "price" {
				c.complain(c.annals.checkPrice(p))
			} else {
				c.complain(c.annals.checkBook(text(v, "tokenId"), p))
			}
		}
	}
}
