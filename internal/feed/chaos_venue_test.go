package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

func tickOf(d market.Decimal) int32 { return ticks[d.Reduce().String()] }

func sizeOf(d market.Decimal) int32 {
	n, err := strconv.Atoi(d.String())
	if err != nil {
		return -1
	}
	return int32(n)
}

// tickLevel is a price level. The price is tick/1000.
type tickLevel struct{ tick, size int32 }

func (r tickLevel) level() market.Level {
	return market.Level{Price: decimals[[2]int32{0, r.tick}], Size: decimals[[2]int32{1, r.size}]}
}

// venueBook is the venue's book at one sequence number. The best levels come first.
type venueBook struct{ bids, asks []tickLevel }

func (b *venueBook) cut(depth int) venueBook {
	return venueBook{b.bids[:min(depth, len(b.bids))], b.asks[:min(depth, len(b.asks))]}
}

func (b *venueBook) book(token, epoch string, seq uint64, hash string, depth int) *market.Book {
	c := b.cut(depth)
	out := &market.Book{TokenID: token, Epoch: epoch, Seq: seq, Hash: hash, Depth: depth}
	var bids, asks []market.Level
	for _, r := range c.bids {
		bids = append(bids, r.level())
	}
	for _, r := range c.asks {
		asks = append(asks, r.level())
	}
	out.Bids, out.Asks = market.NewSide(bids), market.NewSide(asks)
	return out
}

// stateID identifies a state of a book by epoch and seq, or by hash if the venue sends no sequence numbers.
type stateID struct {
	token, epoch, hash string
	seq                uint64
}

func stateIDOf(b *market.Book) stateID {
	if b.Seq == 0 {
		return stateID{token: b.TokenID, hash: b.Hash}
	}
	return stateID{token: b.TokenID, epoch: b.Epoch, seq: b.Seq}
}

// after reports whether the state p is newer than the state other of the same token.
func (p stateID) after(other stateID) bool {
	if p.hash != "" {
		var a, b int
		_, _ = fmt.Sscanf(p.hash, p.token+"#%d", &a)
		_, _ = fmt.Sscanf(other.hash, p.token+"#%d", &b)
		return a > b
	}
	return epochNumber(p.epoch) > epochNumber(other.epoch) || p.epoch == other.epoch && p.seq > other.seq
}

func epochNumber(epoch string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(epoch, "e"))
	return n
}

// token is one token of the venue.
type token struct {
	id         string
	numbered   bool // whether the venue sends sequence numbers for the book
	levels     int  // the number of levels on each side
	bids, asks [chaosTicks]int32
	seq        uint64 // the number of the book's latest state; the venue sends seq as the sequence number or in the hash
	priceSeq   uint64
	price      int32
	now        venueBook
	quietUntil time.Time
	sent       []sentSeq // recent values of seq that the feed may not have received yet
	dueSeq     uint64    // the latest value of seq that the feed must have received
}

type sentSeq struct {
	at  time.Time
	seq uint64
}

func (c *chaos) tokenOf(id string) *token {
	for _, k := range c.tokens {
		if k.id == id {
			return k
		}
	}
	panic("no token " + id)
}

func (c *chaos) bookMessage(k *token) *messages.Message {
	m := &messages.Message{Topic: bookOf(k.id), Kind: messages.KindBookSnapshot, Time: time.Now()}
	if k.numbered {
		m.Epoch, m.Seq = c.epochName(), k.seq
	}
	m.Book = k.now.book(k.id, m.Epoch, m.Seq, k.hash(), queries.MaxBookDepth)
	return m
}

func (c *chaos) priceMessage(k *token) *messages.Message {
	m := &messages.Message{Topic: priceOf(k.id), Kind: messages.KindPrice, Epoch: c.epochName(), Seq: k.priceSeq, Time: time.Now()}
	m.Price = &market.Price{TokenID: k.id, Price: decimals[[2]int32{0, k.price}], Timestamp: m.Time}
	return m
}

func (k *token) hash() string {
	if k.numbered {
		return ""
	}
	return fmt.Sprintf("%s#%d", k.id, k.seq)
}

func (k *token) best() (bid, ask int32) {
	ask = chaosTicks
	for i := int32(1); i < chaosTicks; i++ {
		if k.bids[i] > 0 {
			bid = i
		}
		if k.asks[i] > 0 && ask == chaosTicks {
			ask = i
		}
	}
	return bid, ask
}

// streamedBook returns the levels of the book that the venue streams.
func (k *token) streamedBook() venueBook {
	var b venueBook
	for i := int32(chaosTicks - 1); i > 0 && len(b.bids) < queries.MaxBookDepth; i-- {
		if k.bids[i] > 0 {
			b.bids = append(b.bids, tickLevel{i, k.bids[i]})
		}
	}
	for i := int32(1); i < chaosTicks && len(b.asks) < queries.MaxBookDepth; i++ {
		if k.asks[i] > 0 {
			b.asks = append(b.asks, tickLevel{i, k.asks[i]})
		}
	}
	return b
}

// resetBook replaces the book with a random one.
func (c *chaos) resetBook(k *token) {
	k.bids, k.asks = [chaosTicks]int32{}, [chaosTicks]int32{}
	mid := int32(chaosTicks/2 + c.rand.IntN(100) - 50)
	for i := range int32(k.levels) {
		k.bids[mid-1-i] = 1 + int32(c.rand.IntN(900))
		k.asks[mid+1+i] = 1 + int32(c.rand.IntN(900))
	}
}

// move changes a book at random. crossed is true if a bid now has the price of the old best ask, or an ask has the price of the old
// best bid.
func (c *chaos) move(k *token) (crossed bool) {
	bid, ask := k.best()
	if c.chance(15) && bid > 150 && ask < chaosTicks-150 {
		n := int32(1 + c.rand.IntN(3))
		if c.chance(50) {
			for i := ask; i < ask+n; i++ {
				k.asks[i] = 0
			}
			k.bids[ask] = 1 + int32(c.rand.IntN(900))
		} else {
			for i := bid; i > bid-n; i-- {
				k.bids[i] = 0
			}
			k.asks[bid] = 1 + int32(c.rand.IntN(900))
		}
		crossed = true
	}
	bid, ask = k.best()
	for range 1 + c.rand.IntN(3) {
		size := int32(0)
		if c.chance(70) {
			size = 1 + int32(c.rand.IntN(900))
		}
		far := int32(1 + c.rand.IntN(k.levels+10))
		if c.chance(50) {
			far = int32(1 + c.rand.IntN(6))
		}
		if c.chance(50) {
			k.bids[max(1, ask-far)] = size
		} else {
			k.asks[min(chaosTicks-1, bid+far)] = size
		}
		bid, ask = k.best()
	}
	for bid, ask = k.best(); bid == 0 || ask == chaosTicks; bid, ask = k.best() {
		c.resetBook(k)
		crossed = false
	}
	return crossed
}

// publish changes a token at random and sends the changes.
func (c *chaos) publish(k *token) {
	before := k.now
	crossed := c.move(k)
	_, carried := c.topicOnLink(bookOf(k.id))
	if k.numbered && c.inject("skipped number", 0.5, carried) {
		k.seq++
		c.remember(k)
	}
	prev := k.seq
	k.seq++
	k.priceSeq++
	k.price = 1 + int32(c.rand.IntN(chaosTicks-1))
	k.now = k.streamedBook()
	c.remember(k)
	c.published++

	if k.numbered {
		m := &messages.Message{Topic: bookOf(k.id), Kind: messages.KindBookDelta, Epoch: c.epochName(), Seq: k.seq, Time: time.Now()}
		if c.chance(50) {
			m.PrevSeq = prev
		}
		m.Changes = changes(before, k.now)
		half := slices.DeleteFunc(slices.Clone(m.Changes), func(x market.LevelChange) bool { return x.Size.IsZero() })
		if crossed && crosses(before, half) && c.inject("half an update", 10, carried) {
			m.Changes = half
		}
		if len(before.bids) > 0 {
			c.sendFaulty(m)
		}
	} else {
		c.sendFaulty(c.bookMessage(k))
	}
	c.sendFaulty(c.priceMessage(k))
}

// crosses reports whether book b has a bid at or above an ask if the levels in changes are added.
func crosses(b venueBook, changes []market.LevelChange) bool {
	bid, ask := int32(0), int32(chaosTicks)
	if len(b.bids) > 0 {
		bid = b.bids[0].tick
	}
	if len(b.asks) > 0 {
		ask = b.asks[0].tick
	}
	for _, x := range changes {
		if x.Side == market.SideBuy {
			bid = max(bid, tickOf(x.Price))
		} else {
			ask = min(ask, tickOf(x.Price))
		}
	}
	return bid >= ask
}

// changes returns the differences between two books. It does not use the code under test.
func changes(from, to venueBook) []market.LevelChange {
	var out []market.LevelChange
	for _, side := range [...]struct {
		side     market.OrderSide
		from, to []tickLevel
	}{{market.SideBuy, from.bids, to.bids}, {market.SideSell, from.asks, to.asks}} {
		sizes := make(map[int32]int32)
		for _, r := range side.from {
			sizes[r.tick] = 0
		}
		for _, r := range side.to {
			sizes[r.tick] = r.size
		}
		for _, r := range side.from {
			if sizes[r.tick] == r.size {
				delete(sizes, r.tick)
			}
		}
		for _, tick := range slices.Sorted(maps.Keys(sizes)) {
			out = append(out, market.LevelChange{Side: side.side, Level: tickLevel{tick, sizes[tick]}.level()})
		}
	}
	return out
}

// remember stores the book and the price of a token in c.history and c.prices, and k.seq in k.sent.
func (c *chaos) remember(k *token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := stateID{token: k.id, hash: k.hash()}
	if k.numbered {
		at = stateID{token: k.id, epoch: c.epochName(), seq: k.seq}
	}
	c.history[at] = k.now
	c.prices[stateID{token: k.id, epoch: c.epochName(), seq: k.priceSeq}] = k.price
	k.sent = append(k.sent, sentSeq{time.Now(), k.seq})
}

// restart begins a new epoch with low sequence numbers and new books. If quietly is true, the connections stay open.
func (c *chaos) restart(quietly bool) {
	c.epoch++
	for _, k := range c.tokens {
		c.resetBook(k)
		if k.seq++; k.numbered {
			k.seq = uint64(1 + c.rand.IntN(3))
		}
		k.priceSeq = uint64(1 + c.rand.IntN(3))
		k.now = k.streamedBook()
		k.sent, k.dueSeq = nil, 0
		c.remember(k)
	}
	for _, l := range slices.Clone(c.links) {
		for _, k := range l.topics {
			k.lastFault = time.Now()
		}
		if !quietly {
			c.close(l)
		}
	}
}

var errNoPrices = errors.New("this venue serves no prices over REST")

func (c *chaos) delayRead(ctx context.Context, id string) {
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	wait := 20*time.Millisecond + time.Duration(time.Now().UnixMilli()/10*37+int64(id[2])*7)%130*time.Millisecond
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

func (c *chaos) Can(upstream.Endpoint) error { return nil }

func (c *chaos) MaxKeys(upstream.Endpoint) int { return 1 }

func (c *chaos) Cost(upstream.Endpoint, int, int) int { return 1 }

func (c *chaos) Books(ctx context.Context, _ upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error) {
	id, depth := books[0].TokenID, books[0].Depth
	c.mu.Lock()
	k := c.tokenOf(id)
	epoch, seq := "", uint64(0)
	if k.numbered {
		epoch, seq = c.epochName(), k.seq
	}
	b := k.now.book(id, epoch, seq, k.hash(), depth)
	b.Timestamp = time.Now()
	c.mu.Unlock()
	c.delayRead(ctx, id)
	return []upstream.Result[*market.Book]{{Value: b}}, ctx.Err()
}

func (c *chaos) Prices(context.Context, upstream.Call, []string) ([]upstream.Result[*market.Price], error) {
	return nil, errNoPrices
}
