package e2e

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
)

// recordedDepth is the number of levels on each side of a book that a recordedVenue compares.
const recordedDepth = 20

// recordedVenue is a venue that records every price and book that it publishes. Change the venue only through update, because
// update records the new prices and books before a client can read them.
type recordedVenue struct {
	seed    uint64
	tokens  []string
	address string
	limits  [2]int // the accepted requests a minute from an address and with a key; 0 means no limit
	// heartbeat is the interval of the stream's heartbeats. The service reconnects after 2.5 intervals without a frame.
	heartbeat time.Duration

	mu     sync.RWMutex
	venue  *demo.Venue
	faults *faults.Proxy // stands in front of venue
	server *http.Server
	served chan struct{}
	books  map[string]*ring[bookState]
	prices map[string]*ring[priceState]
	// lastSeqs are the last recorded sequence numbers of books, by token and epoch. Each restart of the venue begins a new epoch,
	// in which all sequence numbers start again.
	lastSeqs map[string]uint64
	steps    int
}

type (
	// bookState is a book's sequence number and the digest of its levels.
	bookState struct {
		epoch       string
		seq, digest uint64
	}
	// priceState is a price and its time in Unix milliseconds.
	priceState struct {
		at    int64
		price demo.Price
	}
)

// ring is a ring buffer of the latest 4096 elements.
type ring[T any] struct {
	states [4096]T
	n      int
}

func (p *ring[T]) add(s T) {
	p.states[p.n%len(p.states)] = s
	p.n++
}

// find returns the latest element that the filter accepts. ok is false if there is no such element.
func (p *ring[T]) find(filter func(s T) bool) (s T, ok bool) {
	for i := p.n - 1; i >= max(0, p.n-len(p.states)); i-- {
		if s := p.states[i%len(p.states)]; filter(s) {
			return s, true
		}
	}
	return s, false
}

// newRecordedVenue starts a venue that records the prices and books of the given number of open tokens.
func newRecordedVenue(t testing.TB, seed uint64, tokens int, limits [2]int) *recordedVenue {
	t.Helper()
	w := &recordedVenue{
		seed: seed, limits: limits, address: "127.0.0.1:0", heartbeat: 500 * time.Millisecond,
		books: make(map[string]*ring[bookState]), prices: make(map[string]*ring[priceState]), lastSeqs: make(map[string]uint64),
	}
	if limits != [2]int{} { // tests with rate limits do not need to reconnect quickly, so they use fewer heartbeats
		w.heartbeat = 5 * time.Second
	}
	w.open(t)
	for _, token := range w.venue.Tokens() {
		if token.Status == "OPEN" && len(w.tokens) < tokens {
			w.tokens = append(w.tokens, token.TokenID)
			w.books[token.TokenID], w.prices[token.TokenID] = &ring[bookState]{}, &ring[priceState]{}
		}
	}
	if len(w.tokens) < tokens {
		t.Fatalf("the venue has only %d open tokens", len(w.tokens))
	}
	w.update(func() {})
	t.Cleanup(w.close)
	return w
}

// open starts the venue, or restarts it with the same markets and address.
func (w *recordedVenue) open(t testing.TB) {
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
	w.venue = demo.New(demo.Config{
		Markets: 400, Seed: w.seed, Heartbeat: w.heartbeat, PublicPerMinute: w.limits[0], KeyPerMinute: w.limits[1],
	})
	w.faults = faults.New(w.venue)
	w.server, w.served = &http.Server{Handler: w.faults}, make(chan struct{})
	go func(s *http.Server, served chan struct{}) {
		defer close(served)
		_ = s.Serve(l)
	}(w.server, w.served)
	w.remember()
}

// close stops the venue and cuts its connections.
func (w *recordedVenue) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.server.Close()
	w.venue.Close()
	<-w.served
}

// args returns the flags of a service that calls this venue.
func (w *recordedVenue) args(more ...string) []string {
	return append([]string{
		"--venue-url=http://" + w.address, "--stream-url=ws://" + w.address + demo.StreamPath, "--trusted-proxies=127.0.0.1", "--log-level=error", toldFlag,
		fmt.Sprint("--venue-public-per-minute=", w.limits[0]), fmt.Sprint("--venue-key-per-minute=", w.limits[1]),
	}, more...)
}

// update calls change, which may modify the venue, and records the new prices and books.
func (w *recordedVenue) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.remember()
}

// step moves the market once. Then it sets the prices of some recorded tokens, because a move of the market changes few prices.
func (w *recordedVenue) step() {
	w.update(func() { w.venue.Step() })
	w.update(func() {
		w.steps++
		for i, id := range w.tokens {
			if q, _ := w.venue.Quote(id); (i+w.steps)%(len(w.tokens)/4+1) == 0 {
				_ = w.venue.SetPrice(id, (q.Price/100+7)%60*100+2000)
			}
		}
	})
}

func (w *recordedVenue) remember() {
	epoch := w.venue.Epoch()
	for _, id := range w.tokens {
		q, _ := w.venue.Quote(id)
		if books := w.books[id]; w.lastSeqs[id+epoch] != q.Seq {
			b, _ := w.venue.Book(id)
			w.lastSeqs[id+epoch] = b.Seq
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
		for _, l := range side[:min(recordedDepth, len(side))] {
			_ = binary.Write(h, binary.LittleEndian, [2]int64{int64(l.Price), int64(l.Size)})
		}
		_ = binary.Write(h, binary.LittleEndian, int64(-1))
	}
	return h.Sum64()
}

// levelsAt decodes one side of a book into the venue's integer units.
func levelsAt(v any, path string) []demo.Level {
	var out []demo.Level
	for _, l := range list(v, path) {
		out = append(out, demo.Level{Price: demo.Price(units(text(l, "price"), 4)), Size: demo.Size(units(text(l, "size"), 2))})
	}
	return out
}

// units parses a decimal and returns it in units of 10^-digits. It returns -1 if the decimal is not valid or has too many digits.
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

// checkBook compares a book with the book that the venue had at the same sequence number.
func (w *recordedVenue) checkBook(id string, v any) error {
	sequence := text(v, "sequence")
	i := strings.LastIndexFunc(sequence, func(r rune) bool { return r < '0' || r > '9' })
	if i < 0 {
		return fmt.Errorf("a book of %s has the invalid sequence %q: %s", id, sequence, asJSON(v))
	}
	epoch := sequence[:i]
	seq, err := strconv.ParseUint(sequence[i+1:], 10, 64)
	if err != nil {
		return err
	}
	digest := digestOf(levelsAt(v, "bids"), levelsAt(v, "asks"))
	w.mu.RLock()
	known := w.lastSeqs[id+epoch] != 0
	w.mu.RUnlock()
	if !known {
		w.update(func() {})
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	s, ok := w.books[id].find(func(s bookState) bool { return s.seq == seq && s.epoch == epoch })
	switch {
	case !ok && w.venue.Epoch() != epoch && w.lastSeqs[id+epoch] != 0 && seq > w.lastSeqs[id+epoch]:
		return nil // this is the last book of an epoch, and the next epoch began before remember recorded the book
	case !ok && seq == 1 && w.lastSeqs[id+epoch] > 1:
		// An epoch that begins during a move starts with the last book of the previous epoch, under a new sequence number.
		if _, known := w.books[id].find(func(s bookState) bool { return s.epoch != epoch && s.digest == digest }); known {
			return nil
		}
		return fmt.Errorf("the first book of %s in the epoch %s is wrong: %s", id, epoch, asJSON(v))
	case !ok:
		return fmt.Errorf("a book of %s has the sequence %q, which the venue never had", id, sequence)
	case s.digest != digest:
		return fmt.Errorf("the book of %s with the sequence %s is wrong: %s", id, sequence, asJSON(v))
	}
	return nil
}

// checkPrice compares a price with the price that the venue published at the same time.
func (w *recordedVenue) checkPrice(v any) error {
	id := text(v, "tokenId")
	at, err := time.Parse(time.RFC3339Nano, text(v, "timestamp"))
	if err != nil {
		return fmt.Errorf("a price of %s has no valid time: %s", id, asJSON(v))
	}
	price := demo.Price(units(text(v, "price"), 4))
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.prices[id] == nil {
		return fmt.Errorf("a price of a token that is not in the query: %s", asJSON(v))
	}
	if _, ok := w.prices[id].find(func(s priceState) bool { return s.at == at.UnixMilli() && s.price == price }); !ok {
		return fmt.Errorf("the venue never published this price of %s: %s", id, asJSON(v))
	}
	return nil
}

// isCurrent reports whether the venue's current book of a token has the given sequence, and the current price is the given price.
func (w *recordedVenue) isCurrent(id, sequence, price string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	q, _ := w.venue.Quote(id)
	return strings.HasPrefix(sequence, w.venue.Epoch()) && strings.HasSuffix(sequence, ":"+fmt.Sprint(q.Seq)) && demo.Price(units(price, 4)) == q.Price
}
