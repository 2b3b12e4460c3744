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

// witnessed is how deep the books are that annals know.
const witnessed = 20

// annals are a venue of the test's own, with a memory of what it stated. Whoever changes the venue does it through move, so
// that nothing can be read before it is remembered.
type annals struct {
	seed    uint64
	tokens  []string
	address string
	limits  [2]int // requests a minute of an address and of a key; 0 is any number
	// heartbeat is the stream's, which two and a half times without a frame end.
	heartbeat time.Duration
	// muted is whether nobody can connect to it, as in a bubble of synctest, where it is called directly.
	muted bool

	mu     sync.RWMutex
	venue  *demo.Venue
	server *http.Server
	served chan struct{}
	books  map[string]*past[bookState]
	prices map[string]*past[priceState]
	// epochs are the last numbers of the books of each token by epoch.
	epochs map[string]uint64
	steps  int
}

// bookState is a book at a number, its levels as a digest. priceState is a price at a time of the venue's.
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

// past is the latest of many states, in room that does not grow.
type past[T any] struct {
	states [4096]T
	n      int
}

func (p *past[T]) add(s T) {
	p.states[p.n%len(p.states)] = s
	p.n++
}

// find returns the latest state that fits.
func (p *past[T]) find(fits func(s T) bool) (s T, ok bool) {
	for i := p.n - 1; i >= max(0, p.n-len(p.states)); i-- {
		if s := p.states[i%len(p.states)]; fits(s) {
			return s, true
		}
	}
	return s, false
}

// newAnnals opens a venue whose first open tokens are remembered.
func newAnnals(t testing.TB, seed uint64, tokens int, limits [2]int) *annals {
	t.Helper()
	return openAnnals(t, seed, tokens, limits, false)
}

// newMutedAnnals is newAnnals for a bubble of synctest.
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
	if limits != [2]int{} { // what is asked of the stream is then to be quiet, not to be quick
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

// open opens the venue, anew with the same markets where it was closed.
func (w *annals) open(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := net.Listen("tcp", w.address)
	for begin := time.Now(); err != nil && time.Since(begin) < patience; l, err = net.Listen("tcp", w.address) {
		time.Sleep(10 * time.Millisecond) // a connection of somebody has this port meanwhile
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

// close kills the venue: connections are closed where they are.
func (w *annals) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.server.Close()
	w.venue.Close()
	<-w.served
}

// args are the flags of a service over the venue.
func (w *annals) args(more ...string) []string {
	return append([]string{
		"--venue-url=http://" + w.address, "--stream-url=ws://" + w.address + demo.StreamPath, "--trusted-proxies=127.0.0.1", "--log-level=error",
		fmt.Sprint("--venue-public-per-minute=", w.limits[0]), fmt.Sprint("--venue-key-per-minute=", w.limits[1]),
	}, more...)
}

// move changes the venue and remembers its state.
func (w *annals) move(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember() // an epoch that a fault began between two moves
	change()
	w.remember()
}

// step lets the engine move the market, of which it moves few tokens at a time, and then some of those that are remembered.
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

// rungs reads a side of a book, in the venue's units.
func rungs(v any, path string) []demo.Level {
	var out []demo.Level
	for _, l := range list(v, path) {
		out = append(out, demo.Level{Price: demo.Price(units(text(l, "price"), 4)), Size: demo.Size(units(text(l, "size"), 2))})
	}
	return out
}

// units reads a decimal in units of so many digits; -1 where it is none.
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

// checkBook compares a book of witnessed levels with what the venue had at its sequence.
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
		return nil // the last of an epoch, which ended before it could be remembered
	case !ok && seq == 1 && w.epochs[id+epoch] > 1:
		// The first of an epoch that began in the midst of a move, which is the last of the one before in other numbers.
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

// checkPrice compares a price with what the venue stated at its time.
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

// present tells whether a book and a price are what the venue has now.
func (w *annals) present(id, sequence, price string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	q, _ := w.venue.Quote(id)
	return strings.HasPrefix(sequence, w.venue.Epoch()) && strings.HasSuffix(sequence, ":"+fmt.Sprint(q.Seq)) && demo.Price(units(price, 4)) == q.Price
}

// crowd is a load on a service, of which every answer is held against annals.
type crowd struct {
	*service
	annals  *annals
	ctx     context.Context
	leave   context.CancelFunc
	members sync.WaitGroup
	sockets []*socket
	// pause is held by who wants no questions to be asked.
	pause sync.RWMutex

	mu    sync.Mutex
	wrong map[string]int
	seen  map[string]int
	last  map[string][2]string // the book's sequence and the price that a subscriber of a token was sent last
}

func newCrowd(s *service, w *annals) *crowd {
	c := &crowd{service: s, annals: w, wrong: make(map[string]int), seen: make(map[string]int), last: make(map[string][2]string)}
	c.ctx, c.leave = context.WithCancel(context.Background())
	return c
}

// disperse ends the load.
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

// sights returns all that was seen.
func (c *crowd) sights() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}

// notes returns how often something was seen.
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

// complaints returns what was wrong since they were asked for last.
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

// subscribe follows prices and books of tokens on a socket until the crowd disperses.
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
		r := &replay{depth: witnessed, hurried: true} // hundreds of events a second, on a busy machine
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

// caughtUp tells whether all subscribers hold the venue's present state. Nothing may move meanwhile.
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

// crowdQuery is what pollers ask.
const crowdQuery = `query($ids: [String!]!, $a: Address!) {
  tokens(tokenIds: $ids) { tokenId price { tokenId price timestamp freshness { stale source } } orderbook(depth: 20) { sequence bids { price size } asks { price size } freshness { stale source } } }
  user(address: $a) { balance { cashBalance } }
}`

// poll asks for tokens and an account again and again, and says what came.
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

// sample asks once.
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
