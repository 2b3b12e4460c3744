package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/market"
	"oddsgraph/tests/unraced"
)

// What the chaos is made of.
const (
	chaosTokens  = 20
	chaosLinks   = 3
	chaosUpdates = 10_000
	chaosTick    = 10 * time.Millisecond
	chaosBurst   = 12 * time.Second // with faults
	chaosCalm    = 12 * time.Second // without
	wireCalm     = 25 * time.Second // over sockets, which may be asked to stay away for 10 s
	chaosQuiet   = time.Second      // at the end of a calm, so that the wire drains
	chaosTail    = 3 * time.Second  // from the beginning of a calm to a lost last frame
	chaosBeat    = 3 * time.Second
	chaosHeal    = 5 * time.Second
	chaosTicks   = 1000 // prices run from 0.001 to 0.999
)

var chaosDepths = [...]int{1, 5, 20, 200}

// decimals are the numbers that books are made of; ticks finds them again.
var decimals, ticks = func() (map[[2]int32]market.Decimal, map[string]int32) {
	d, back := make(map[[2]int32]market.Decimal), make(map[string]int32)
	for i := range int32(chaosTicks) {
		for e, exponent := range []int32{-3, 0} {
			v := market.NewDecimal(int64(i), exponent)
			d[[2]int32{int32(e), i}] = v
			if e == 0 {
				back[v.Reduce().String()] = i
			}
		}
	}
	return d, back
}()

func tickOf(d market.Decimal) int32 { return ticks[d.Reduce().String()] }

func sizeOf(d market.Decimal) int32 {
	n, err := strconv.Atoi(d.String())
	if err != nil {
		return -1
	}
	return int32(n)
}

// rung is a level in numbers of the test's own.
type rung struct{ tick, size int32 }

func (r rung) level() market.Level {
	return market.Level{Price: decimals[[2]int32{0, r.tick}], Size: decimals[[2]int32{1, r.size}]}
}

// truth is the venue's book at one number: what is streamed of it, best first.
type truth struct{ bids, asks []rung }

func (b *truth) cut(depth int) truth {
	return truth{b.bids[:min(depth, len(b.bids))], b.asks[:min(depth, len(b.asks))]}
}

func (b *truth) book(token, epoch string, seq uint64, hash string, depth int) *market.Book {
	c := b.cut(depth)
	out := &market.Book{TokenID: token, Epoch: epoch, Seq: seq, Hash: hash, Depth: depth, Bids: []market.Level{}, Asks: []market.Level{}}
	for _, r := range c.bids {
		out.Bids = append(out.Bids, r.level())
	}
	for _, r := range c.asks {
		out.Asks = append(out.Asks, r.level())
	}
	return out
}

// place names a state of the venue.
type place struct {
	token, epoch, hash string
	seq                uint64
}

func placeOf(b *market.Book) place {
	if b.Seq == 0 {
		return place{token: b.TokenID, hash: b.Hash}
	}
	return place{token: b.TokenID, epoch: b.Epoch, seq: b.Seq}
}

// after reports whether a state of a token came after another.
func (p place) after(other place) bool {
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

// token is one token at the venue.
type token struct {
	id         string
	numbered   bool
	deep       int // levels a side that are kept
	bids, asks [chaosTicks]int32
	seq        uint64 // of the book; it counts on where the venue does not number, for hashes
	priceSeq   uint64
	price      int32
	now        truth
	quietUntil time.Time
	sent       []sent // when the latest numbers were sent
	due        uint64 // the latest that has had the time to arrive
}

type sent struct {
	at  time.Time
	seq uint64
}

// chaos is a venue, a faulty link and a feed, with readers and a cache behind it. All but the upstream's methods is for
// one goroutine.
type chaos struct {
	rand   *rand.Rand
	feed   *Feed
	cache  *cache.Cache
	epoch  int
	tokens []*token
	links  []*link
	wire   *wire         // nil where the links lead straight into the feed
	calm   time.Duration // between bursts

	mu      sync.Mutex // protects all below, which REST calls and the feed's timers reach for
	history map[place]truth
	prices  map[place]int32
	asks    []ask
	calls   int

	faulty    bool
	bursts    int // before this one
	bursting  int // ticks of this burst
	faults    map[string]int
	wires     int
	published int
	readers   []*replayer
	finding   error
}

// ask is something that the feed has asked of the upstream.
type ask struct {
	verb  string
	topic market.Topic
	due   time.Time
}

func (a ask) name() string { return a.topic.ID + string(a.topic.Channel) + a.verb }

// link is one connection.
type link struct {
	socket  *socket // nil where there is no wire
	topics  map[market.Topic]*carried
	up      bool
	upAt    time.Time // when it will be, while it is not
	last    time.Time // of the frame that was sent last
	stalled time.Time
	beatAt  time.Time
	beaten  time.Time // when a heartbeat was delivered last
	wire    []wired
}

// carried is a topic on a link.
type carried struct {
	up      bool
	upAt    time.Time // when it is to be subscribed, while it is not
	resync  time.Time // when a snapshot is to be sent; zero for none
	resent  time.Time
	touched time.Time // by a fault, last
}

// wired is a frame on its way.
type wired struct {
	at      time.Time
	order   int
	deliver func()
}

func (c *chaos) chance(percent float64) bool { return c.rand.Float64()*100 < percent }

// strike reports whether a fault is to happen now to a topic.
func (c *chaos) strike(fault string, percent float64, touched ...*carried) bool {
	if !c.faulty || !c.chance(percent) {
		return false
	}
	c.faults[fault]++
	for _, k := range touched {
		k.touched = time.Now()
	}
	return true
}

func (c *chaos) epochName() string { return fmt.Sprintf("e%d", c.epoch) }

// The upstream.

func (c *chaos) linkOf(t market.Topic) *link {
	n := 0
	for _, b := range []byte(t.ID + string(t.Channel)) {
		n = n*31 + int(b)
	}
	return c.links[n%chaosLinks]
}

// carried returns the topic on its link; over a wire nothing may carry it.
func (c *chaos) carried(t market.Topic) (*link, *carried) {
	l := c.wire.of(t)
	if c.wire == nil {
		l = c.linkOf(t)
	}
	if k := l.topics[t]; k != nil {
		return l, k
	}
	return l, &carried{}
}

func (c *chaos) ask(verb string, t market.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, ask{verb, t, time.Now()})
}

func (c *chaos) Watch(t market.Topic, _ *market.Credentials) error {
	c.ask("watch", t)
	return nil
}
func (c *chaos) Unwatch(t market.Topic)   { c.ask("unwatch", t) }
func (c *chaos) Resync(t market.Topic)    { c.ask("resync", t) }
func (c *chaos) Reconnect(t market.Topic) { c.ask("reconnect", t) }

// listen does what the feed has asked for, as the stream's client does: snapshots after a jitter and once a second.
func (c *chaos) listen() {
	if c.wire != nil {
		c.wire.listen()
		return
	}
	c.mu.Lock()
	asks := c.asks
	c.asks = nil
	c.mu.Unlock()
	slices.SortStableFunc(asks, func(a, b ask) int { // timers fire at once in any order
		if d := a.due.Compare(b.due); d != 0 {
			return d
		}
		return strings.Compare(a.name(), b.name())
	})
	now := time.Now()
	for _, a := range asks {
		l := c.linkOf(a.topic)
		k := l.topics[a.topic]
		switch a.verb {
		case "watch":
			l.topics[a.topic] = &carried{upAt: now}
		case "unwatch":
			delete(l.topics, a.topic)
		case "resync":
			if k != nil && k.up && k.resync.IsZero() {
				k.resync = now.Add(time.Duration(c.rand.IntN(250)) * time.Millisecond)
				if again := k.resent.Add(time.Second); again.After(k.resync) {
					k.resync = again
				}
			}
		case "reconnect":
			c.faults["reconnect"]++
			c.close(l)
		}
	}
}

func (c *chaos) close(l *link) {
	if !l.up {
		return
	}
	if c.wire != nil {
		c.wire.closes++
		code := [...]int{1006, 4002, 4003}[c.wire.closes%3]
		c.faults[fmt.Sprintf("close %d", code)]++
		c.wire.drop(l)
		l.socket.end(code)
		return
	}
	l.up, l.wire = false, nil
	l.upAt = time.Now().Add(time.Second + time.Duration(c.rand.IntN(1000))*time.Millisecond)
	var down []market.Topic
	for t, k := range l.topics {
		if k.up {
			down = append(down, t)
		}
		k.up, k.resync = false, time.Time{}
	}
	sortTopics(down)
	c.feed.Down(down, errors.New("closed"))
}

func sortTopics(topics []market.Topic) {
	slices.SortFunc(topics, func(a, b market.Topic) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Channel, b.Channel))
	})
}

func (l *link) sorted() []market.Topic {
	topics := make([]market.Topic, 0, len(l.topics))
	for t := range l.topics {
		topics = append(topics, t)
	}
	sortTopics(topics)
	return topics
}

// send puts a frame on the wire, behind those before it unless late says by how much it lags.
func (c *chaos) send(l *link, late time.Duration, deliver func()) {
	at := time.Now().Add(10*time.Millisecond + time.Duration(c.rand.IntN(20))*time.Millisecond)
	if at.Before(l.last) {
		at = l.last
	}
	if late == 0 {
		l.last = at
	}
	c.wires++
	l.wire = append(l.wire, wired{at.Add(late), c.wires, deliver})
}

// carry sends a message of a topic through the faults of the link.
func (c *chaos) carry(m *market.Message) {
	l, k := c.carried(m.Topic)
	if !k.up || !l.up {
		return
	}
	deliver := func() {
		if l.socket != nil {
			l.say(frame(m))
		} else if k.up {
			got := *m
			got.ReceivedAt = time.Now()
			c.feed.Message(&got)
		}
	}
	lag := func(most int) time.Duration { return time.Duration(30+c.rand.IntN(most)) * time.Millisecond }
	whole := m.Kind == market.MessageBookSnapshot && m.Seq != 0
	switch {
	case c.strike("drop", 1.5, k):
	case l.socket != nil && c.strike("damage", 0.7, k):
		bad := c.damage(m)
		c.send(l, 0, func() { l.sayAny(bad) })
	case whole && c.strike("lost snapshot", 25, k):
	case whole && c.strike("slow snapshot", 25, k):
		c.send(l, lag(1200), deliver)
	case c.strike("reorder", 1, k):
		c.send(l, lag(300), deliver)
	case c.strike("duplicate", 2, k):
		c.send(l, 0, deliver)
		c.send(l, lag(300), deliver)
	default:
		c.send(l, 0, deliver)
	}
}

// subscribe brings up what is to be up: in one frame what begins at the same time.
func (c *chaos) subscribe(l *link) {
	if l.socket != nil {
		return
	}
	now := time.Now()
	if !l.up {
		if now.Before(l.upAt) {
			return
		}
		l.up, l.beatAt, l.last, l.stalled = true, now.Add(chaosBeat), now, time.Time{}
	}
	var ready []market.Topic
	for _, t := range l.sorted() {
		if k := l.topics[t]; !k.up && !now.Before(k.upAt) {
			k.up, k.resync, k.resent = true, time.Time{}, time.Time{}
			ready = append(ready, t)
		}
	}
	if len(ready) == 0 {
		return
	}
	c.feed.Up(c.epochName(), ready)
	for _, t := range ready {
		c.snapshot(t)
	}
}

func (c *chaos) tokenOf(id string) *token {
	for _, k := range c.tokens {
		if k.id == id {
			return k
		}
	}
	panic("no token " + id)
}

func (c *chaos) snapshot(t market.Topic) {
	k := c.tokenOf(t.ID)
	if t.Channel == market.ChannelPrices {
		c.carry(c.priceMessage(k))
		return
	}
	m := c.bookMessage(k)
	_, on := c.carried(t)
	if m.Seq != 0 && len(m.Book.Asks) > 0 && c.strike("crossed snapshot", 4, on) {
		m.Book.Bids = append([]market.Level{m.Book.Asks[0]}, m.Book.Bids...)
	}
	c.carry(m)
}

func (c *chaos) bookMessage(k *token) *market.Message {
	m := &market.Message{Topic: bookOf(k.id), Kind: market.MessageBookSnapshot, Time: time.Now()}
	if k.numbered {
		m.Epoch, m.Seq = c.epochName(), k.seq
	}
	m.Book = k.now.book(k.id, m.Epoch, m.Seq, k.hash(), market.MaxBookDepth)
	return m
}

func (c *chaos) priceMessage(k *token) *market.Message {
	m := &market.Message{Topic: priceOf(k.id), Kind: market.MessagePrice, Epoch: c.epochName(), Seq: k.priceSeq, Time: time.Now()}
	m.Price = &market.Price{TokenID: k.id, Price: decimals[[2]int32{0, k.price}], Timestamp: m.Time}
	return m
}

// The venue.

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

// look returns the book as it is streamed.
func (k *token) look() truth {
	var b truth
	for i := int32(chaosTicks - 1); i > 0 && len(b.bids) < market.MaxBookDepth; i-- {
		if k.bids[i] > 0 {
			b.bids = append(b.bids, rung{i, k.bids[i]})
		}
	}
	for i := int32(1); i < chaosTicks && len(b.asks) < market.MaxBookDepth; i++ {
		if k.asks[i] > 0 {
			b.asks = append(b.asks, rung{i, k.asks[i]})
		}
	}
	return b
}

// fill makes a book anew.
func (c *chaos) fill(k *token) {
	k.bids, k.asks = [chaosTicks]int32{}, [chaosTicks]int32{}
	mid := int32(chaosTicks/2 + c.rand.IntN(100) - 50)
	for i := range int32(k.deep) {
		k.bids[mid-1-i] = 1 + int32(c.rand.IntN(900))
		k.asks[mid+1+i] = 1 + int32(c.rand.IntN(900))
	}
}

// move makes an update of a book. It tells whether the best price went through what stood on the other side.
func (c *chaos) move(k *token) (through bool) {
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
		through = true
	}
	bid, ask = k.best()
	for range 1 + c.rand.IntN(3) {
		size := int32(0)
		if c.chance(70) {
			size = 1 + int32(c.rand.IntN(900))
		}
		far := int32(1 + c.rand.IntN(k.deep+10))
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
		c.fill(k)
		through = false
	}
	return through
}

// publish makes one update of a token and sends it.
func (c *chaos) publish(k *token) {
	before := k.now
	through := c.move(k)
	_, carried := c.carried(bookOf(k.id))
	if k.numbered && c.strike("skipped number", 0.5, carried) {
		k.seq++
		c.remember(k)
	}
	prev := k.seq
	k.seq++
	k.priceSeq++
	k.price = 1 + int32(c.rand.IntN(chaosTicks-1))
	k.now = k.look()
	c.remember(k)
	c.published++

	if k.numbered {
		m := &market.Message{Topic: bookOf(k.id), Kind: market.MessageBookDelta, Epoch: c.epochName(), Seq: k.seq, Time: time.Now()}
		if c.chance(50) {
			m.PrevSeq = prev
		}
		m.Changes = changes(before, k.now)
		half := slices.DeleteFunc(slices.Clone(m.Changes), func(x market.LevelChange) bool { return x.Size.IsZero() })
		if through && crosses(before, half) && c.strike("half an update", 10, carried) {
			m.Changes = half
		}
		if len(before.bids) > 0 {
			c.carry(m)
		}
	} else {
		c.carry(c.bookMessage(k))
	}
	c.carry(c.priceMessage(k))
}

// crosses reports whether a book with changes that remove nothing has a bid at or above an ask.
func crosses(b truth, changes []market.LevelChange) bool {
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

// changes are what turns one book into another, found in another way than the one that is tested.
func changes(from, to truth) []market.LevelChange {
	var out []market.LevelChange
	for _, side := range [...]struct {
		side     market.OrderSide
		from, to []rung
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
		order := make([]int32, 0, len(sizes))
		for tick := range sizes {
			order = append(order, tick)
		}
		slices.Sort(order)
		for _, tick := range order {
			out = append(out, market.LevelChange{Side: side.side, Level: rung{tick, sizes[tick]}.level()})
		}
	}
	return out
}

// remember notes the venue's state under its number.
func (c *chaos) remember(k *token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := place{token: k.id, hash: k.hash()}
	if k.numbered {
		at = place{token: k.id, epoch: c.epochName(), seq: k.seq}
	}
	c.history[at] = k.now
	c.prices[place{token: k.id, epoch: c.epochName(), seq: k.priceSeq}] = k.price
	k.sent = append(k.sent, sent{time.Now(), k.seq})
}

// restart begins a new epoch, whose numbers start low and whose books are others.
func (c *chaos) restart(quietly bool) {
	c.epoch++
	for _, k := range c.tokens {
		c.fill(k)
		if k.seq++; k.numbered {
			k.seq = uint64(1 + c.rand.IntN(3))
		}
		k.priceSeq = uint64(1 + c.rand.IntN(3))
		k.now = k.look()
		k.sent, k.due = nil, 0
		c.remember(k)
	}
	for _, l := range slices.Clone(c.links) {
		for _, k := range l.topics {
			k.touched = time.Now()
		}
		if quietly && l.socket != nil {
			c.wire.hello(l)
		}
		if !quietly {
			c.close(l)
		}
	}
}

// The venue's REST half, which the cache reads.

var errNone = errors.New("not in this venue")

func (c *chaos) rest(ctx context.Context, id string) {
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	wait := 20*time.Millisecond + time.Duration(time.Now().UnixMilli()/10*37+int64(id[2])*7)%130*time.Millisecond
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

func (c *chaos) Book(ctx context.Context, id string, depth int) (*market.Book, error) {
	c.mu.Lock()
	k := c.tokenOf(id)
	epoch, seq := "", uint64(0)
	if k.numbered {
		epoch, seq = c.epochName(), k.seq
	}
	b := k.now.book(id, epoch, seq, k.hash(), depth)
	b.Timestamp = time.Now()
	c.mu.Unlock()
	c.rest(ctx, id)
	return b, ctx.Err()
}

func (c *chaos) Prices(context.Context, []string) ([]market.Result[*market.Price], error) {
	return nil, errNone
}
func (c *chaos) Spreads(context.Context, []string) ([]market.Result[*market.Spread], error) {
	return nil, errNone
}
func (c *chaos) PriceHistory(context.Context, string, market.Date, market.Date) (*market.PriceHistory, error) {
	return nil, errNone
}
func (c *chaos) Search(context.Context, market.Search) (*market.SearchPage, error) {
	return nil, errNone
}
func (c *chaos) MarketsByID(context.Context, []string) ([]market.Result[*market.Market], error) {
	return nil, errNone
}
func (c *chaos) MarketsByToken(context.Context, []string) ([]market.Result[*market.Market], error) {
	return nil, errNone
}
func (c *chaos) MarketBySlug(context.Context, string) (*market.Market, error) { return nil, errNone }
func (c *chaos) Balance(context.Context, market.Address) (*market.Balance, error) {
	return nil, errNone
}
func (c *chaos) Positions(context.Context, market.Address) ([]market.Position, error) {
	return nil, errNone
}
func (c *chaos) Orders(context.Context, market.Address) ([]market.Order, error) { return nil, errNone }
func (c *chaos) Trades(context.Context, market.Address, market.TradeQuery) (*market.TradePage, error) {
	return nil, errNone
}
func (c *chaos) History(context.Context, market.Address, market.HistoryQuery) (*market.HistoryPage, error) {
	return nil, errNone
}

// The readers.

// replayer is a subscription to a book with deltas, and its client that lays them over each other.
type replayer struct {
	chaos  *chaos
	token  *token
	depth  int
	every  int // how many ticks it takes to read
	reader *Reader
	watch  *Watch

	// What the subscription has sent.
	sent, live bool
	resyncs    uint64
	book       *market.Book
	// What the client has.
	bids, asks map[int32]int32
	events     int
	settled    map[string]int
}

// read makes an event of what has changed, in the way of the resolvers, and plays it.
func (r *replayer) read() error {
	select {
	case <-r.reader.Changed():
	default:
		return nil
	}
	if taken := r.reader.Take(); len(taken) == 0 {
		return nil
	}
	s, err := r.watch.State()
	if err != nil || !s.Known {
		return err
	}
	cut := s.Book.Cut(r.depth)
	same := r.book != nil && sameSide(r.book.Bids, cut.Bids) && sameSide(r.book.Asks, cut.Asks)
	reason := ""
	switch {
	case !r.sent:
		reason = "INITIAL"
	case s.Resyncs != r.resyncs:
		reason = "RESYNC"
	case !same && s.Live:
		reason = "CHANGE"
	case s.Live != r.live:
		reason = "FRESHNESS"
		cut = r.book
	default:
		return nil
	}
	r.sent, r.live, r.resyncs = true, s.Live, s.Resyncs
	if r.book != nil && cut.Seq != 0 && (reason == "CHANGE" || reason == "FRESHNESS") {
		play(r.bids, market.BookSideDelta(r.book.Bids, cut.Bids, market.SideBuy))
		play(r.asks, market.BookSideDelta(r.book.Asks, cut.Asks, market.SideSell))
	} else {
		r.bids, r.asks = make(map[int32]int32), make(map[int32]int32)
		play(r.bids, cut.Bids)
		play(r.asks, cut.Asks)
	}
	r.book = cut
	r.events++
	r.settled[reason]++
	return r.compare(reason)
}

func sameSide(a, b []market.Level) bool {
	return slices.EqualFunc(a, b, func(x, y market.Level) bool { return x.Price.Cmp(y.Price) == 0 && x.Size.Cmp(y.Size) == 0 })
}

func play(side map[int32]int32, levels []market.Level) {
	for _, l := range levels {
		if l.Size.IsZero() {
			delete(side, tickOf(l.Price))
		} else {
			side[tickOf(l.Price)] = sizeOf(l.Size)
		}
	}
}

// compare holds the client's book against what the venue had at that number.
func (r *replayer) compare(reason string) error {
	was, ok := r.chaos.history[placeOf(r.book)]
	if !ok {
		return fmt.Errorf("wrong: %s at depth %d: %s of a state that the venue never had, %v", r.token.id, r.depth, reason, placeOf(r.book))
	}
	want := was.cut(r.depth)
	for _, side := range [...]struct {
		name string
		got  map[int32]int32
		want []rung
	}{{"bids", r.bids, want.bids}, {"asks", r.asks, want.asks}} {
		bad := len(side.got) != len(side.want)
		for _, x := range side.want {
			bad = bad || side.got[x.tick] != x.size
		}
		if bad {
			return fmt.Errorf("wrong: %s at depth %d, %v after %s: %s are %v, the venue had %v", r.token.id, r.depth, placeOf(r.book), reason, side.name, side.got, side.want)
		}
	}
	return nil
}

// agrees holds a book of any depth against what the venue had.
func (c *chaos) agrees(b *market.Book, depth int) error {
	c.mu.Lock()
	was, ok := c.history[placeOf(b)]
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("wrong: queries read a state that the venue never had, %v", placeOf(b))
	}
	want, got := was.cut(depth), b.Cut(depth)
	for _, side := range [...]struct {
		got  []market.Level
		want []rung
	}{{got.Bids, want.bids}, {got.Asks, want.asks}} {
		if !slices.EqualFunc(side.got, side.want, func(l market.Level, x rung) bool {
			return tickOf(l.Price) == x.tick && sizeOf(l.Size) == x.size
		}) {
			return fmt.Errorf("wrong: queries read %v, and the venue had another book then", placeOf(b))
		}
	}
	return nil
}

// query reads a token's book as a query does, which may take a call of the venue.
func (c *chaos) query(ctx context.Context, k *token, depth int, live State) error {
	keys, out := []market.BookQuery{{TokenID: k.id, Depth: depth}}, make([]market.Result[market.Read[*market.Book]], 1)
	if missing := c.cache.Books().Lookup(ctx, keys, out, nil); len(missing) > 0 {
		if live.Live {
			return fmt.Errorf("wrong: %s is live and queries have to ask for it", k.id)
		}
		go func() {
			r := c.cache.Books().Fetch(ctx, keys)[0]
			if r.Err == nil {
				r.Err = c.agrees(r.Value.Value, depth)
			}
			if r.Err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.finding = r.Err
				c.mu.Unlock()
			}
		}()
		return nil
	}
	got := out[0].Value
	if live.Live && (got.Stale || placeOf(got.Value) != placeOf(live.Book)) && !(got.Source == market.SourceREST && placeOf(got.Value).after(placeOf(live.Book))) {
		return fmt.Errorf("wrong: %s is live at %v, queries read %v, stale %t, from %s", k.id, placeOf(live.Book), placeOf(got.Value), got.Stale, got.Source)
	}
	if !live.Live && got.Source == market.SourceStream && !got.Stale {
		return fmt.Errorf("wrong: %s is not live, queries read a fresh %v from the stream", k.id, placeOf(got.Value))
	}
	return c.agrees(got.Value, depth)
}

// run plays the chaos until so many updates were published. It returns what it found wrong: a wrong book, or a topic that
// does not come back.
func (c *chaos) run(ctx context.Context) error {
	watches := make(map[*token][2]*Watch)
	keeper := c.feed.NewReader()
	defer keeper.Close()
	for i, k := range c.tokens {
		price, err := keeper.Watch(priceOf(k.id), nil)
		if err != nil {
			return err
		}
		book, err := keeper.Watch(bookOf(k.id), nil)
		if err != nil {
			return err
		}
		watches[k] = [2]*Watch{price, book}
		for j, depth := range chaosDepths {
			r := &replayer{chaos: c, token: k, depth: depth, every: []int{1, 3, 17, 60}[(i+j)%4], settled: make(map[string]int), reader: c.feed.NewReader()}
			defer r.reader.Close()
			if r.watch, err = r.reader.Watch(bookOf(k.id), nil); err != nil {
				return err
			}
			c.readers = append(c.readers, r)
		}
	}
	c.listen()
	turn := time.Now()
	c.faulty = true
	lost := false
	for n := 0; ; n++ {
		time.Sleep(chaosTick)
		synctest.Wait()
		now := time.Now()
		age := now.Sub(turn)
		if wasFaulty := c.faulty; age >= chaosBurst+c.calm {
			if c.published >= chaosUpdates {
				return nil
			}
			turn, c.faulty, c.bursting, lost = now, true, 0, false
			c.bursts++
		} else if c.faulty = age < chaosBurst; wasFaulty && !c.faulty {
			c.hush()
		} else if !lost && age >= chaosBurst+chaosTail {
			lost = true
			c.lose()
		}
		if c.faulty || age < chaosBurst+c.calm-chaosQuiet {
			for range 2 + c.rand.IntN(4) {
				if k := c.tokens[c.rand.IntN(len(c.tokens))]; !now.Before(k.quietUntil) {
					c.publish(k)
				}
			}
		}
		c.misfortune()
		c.listen()
		for _, l := range c.links {
			c.subscribe(l)
			c.resend(l)
			c.beat(l)
			c.deliver(l)
		}
		synctest.Wait()
		for i, r := range c.readers {
			if (n+i)%r.every == 0 {
				if err := r.read(); err != nil {
					return err
				}
			}
		}
		for _, k := range c.tokens {
			if err := c.look(ctx, k, watches[k], n); err != nil {
				return err
			}
		}
		c.mu.Lock()
		err := c.finding
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if c.faulty || age < chaosBurst+c.calm-chaosTick {
			continue
		}
		for _, r := range c.readers { // the end of a calm: all has been read
			if err := r.read(); err != nil {
				return err
			}
			if !r.live {
				return fmt.Errorf("hang: the reader of %s at depth %d was not told that it is live", r.token.id, r.depth)
			}
			if want := r.token.now.cut(r.depth); !slices.EqualFunc(r.book.Bids, want.bids, func(l market.Level, x rung) bool { return tickOf(l.Price) == x.tick && sizeOf(l.Size) == x.size }) {
				return fmt.Errorf("hang: the reader of %s at depth %d stayed behind, at %v of %d", r.token.id, r.depth, placeOf(r.book), r.token.seq)
			}
		}
	}
}

// hush begins a calm: some tokens fall quiet.
func (c *chaos) hush() {
	for i, k := range c.tokens {
		_, carried := c.carried(bookOf(k.id))
		carried.touched = time.Now()
		if i%3 == 0 && k.numbered {
			k.quietUntil = time.Now().Add(c.calm)
		}
	}
}

// lose loses the last frame of half of the quiet tokens, when nothing else is wrong with them that would find it.
func (c *chaos) lose() {
	for i, k := range c.tokens {
		if _, carried := c.carried(bookOf(k.id)); i%6 == 0 && k.numbered && carried.up {
			carried.touched, carried.up = time.Now(), false // so that it is not carried
			c.publish(k)
			carried.up = true
			c.faults["lost last frame"]++
		}
	}
}

// misfortune is what befalls whole connections, and the venue.
func (c *chaos) misfortune() {
	now := time.Now()
	for _, l := range slices.Clone(c.links) {
		if !l.up {
			continue
		}
		all := make([]*carried, 0, len(l.topics))
		for _, t := range l.sorted() {
			all = append(all, l.topics[t])
		}
		if now.After(l.stalled) && c.chance(0.2) && c.faulty {
			c.stall(l)
		}
		if c.strike("close", 0.04, all...) {
			c.close(l)
			continue
		}
		if l.socket != nil {
			c.wire.spoil(l, all)
			continue
		}
		sorted := l.sorted()
		t := sorted[c.rand.IntN(len(sorted))]
		if k := l.topics[t]; k.up && c.strike("put off", 0.2, k) {
			k.up, k.resync, k.upAt = false, time.Time{}, now.Add(time.Second)
			c.feed.Down([]market.Topic{t}, errors.New("put off"))
		} else if k.up && c.strike("subscribed anew", 0.2, k) {
			k.up, k.upAt = false, now // what is on the wire still arrives
		}
	}
	if !c.faulty {
		return
	}
	c.bursting++
	if c.wire != nil {
		c.wire.misfortune(c.bursting)
	}
	switch c.bursting {
	case 200:
		if len(c.links) > 0 {
			c.stall(c.links[0])
		}
	case 300, 800: // the connections close with one of them
		quietly := (c.bursting == 300) == (c.bursts%2 == 1)
		c.faults[map[bool]string{false: "restart", true: "restart without a close"}[quietly]]++
		c.restart(quietly)
	case 450, 600, 750:
		if (c.bursting == 600 || c.wire != nil) && len(c.links) > 0 {
			c.faults["close"]++
			c.close(c.links[c.bursts%len(c.links)])
		}
	}
}

// stall holds the frames of a link back for some seconds.
func (c *chaos) stall(l *link) {
	c.faults["stall"]++
	for _, k := range l.topics {
		k.touched = time.Now()
	}
	l.stalled = time.Now().Add(time.Second + time.Duration(c.rand.IntN(3000))*time.Millisecond)
}

func (c *chaos) resend(l *link) {
	now := time.Now()
	for _, t := range l.sorted() {
		if k := l.topics[t]; k.up && !k.resync.IsZero() && !now.Before(k.resync) {
			k.resync, k.resent = time.Time{}, now
			c.snapshot(t)
		}
	}
}

// beat sends a heartbeat with the numbers of the books.
func (c *chaos) beat(l *link) {
	now := time.Now()
	if !l.up || now.Before(l.beatAt) {
		return
	}
	l.beatAt = now.Add(chaosBeat)
	seqs := make(map[market.Topic]uint64)
	for t, k := range l.topics {
		if token := c.tokenOf(t.ID); t.Channel == market.ChannelOrderbook && token.numbered && k.up {
			seqs[t] = token.seq
		}
	}
	epoch := c.epochName()
	c.send(l, 0, func() {
		if l.socket != nil {
			numbers := object{}
			for t, seq := range seqs {
				numbers[t.ID] = seq
			}
			l.say(object{"type": "heartbeat", "epoch": epoch, "ts": time.Now().UnixMilli(), "seqs": object{"orderbook": numbers}})
			return
		}
		l.beaten = time.Now()
		for t := range seqs {
			if k := l.topics[t]; k == nil || !k.up {
				delete(seqs, t)
			}
		}
		c.feed.Heartbeat(epoch, seqs)
	})
}

func (c *chaos) deliver(l *link) {
	now := time.Now()
	if now.Before(l.stalled) {
		return
	}
	slices.SortStableFunc(l.wire, func(a, b wired) int {
		if d := a.at.Compare(b.at); d != 0 {
			return d
		}
		return a.order - b.order
	})
	for l.up && len(l.wire) > 0 && !l.wire[0].at.After(now) {
		first := l.wire[0]
		l.wire = l.wire[1:]
		first.deliver()
	}
}

// look checks a token's state, what queries read of it, and that it comes back after its faults.
func (c *chaos) look(ctx context.Context, k *token, watches [2]*Watch, n int) error {
	price, err := watches[0].State()
	if err != nil {
		return err
	}
	if want, ok := c.prices[place{token: k.id, epoch: price.Epoch, seq: price.Seq}]; price.Known && (!ok || tickOf(price.Price.Price) != want) {
		return fmt.Errorf("wrong: the price of %s at %s:%d is %s", k.id, price.Epoch, price.Seq, price.Price.Price)
	}
	book, err := watches[1].State()
	if err != nil {
		return err
	}
	if n%7 == 0 {
		if err := c.query(ctx, k, chaosDepths[c.rand.IntN(len(chaosDepths))], book); err != nil {
			return err
		}
	}
	if c.faulty || !k.numbered {
		return nil
	}
	l, carried := c.carried(bookOf(k.id))
	if !l.up || !carried.up {
		return nil
	}
	over := carried.touched
	for _, t := range []time.Time{l.upAt, carried.upAt, l.stalled, over.Add(chaosBeat + 100*time.Millisecond)} {
		if t.After(over) {
			over = t
		}
	}
	if time.Since(over) < chaosHeal {
		return nil
	}
	for len(k.sent) > 0 && time.Since(k.sent[0].at) >= 100*time.Millisecond {
		k.due, k.sent = k.sent[0].seq, k.sent[1:]
	}
	if !book.Live || book.Epoch != c.epochName() || book.Seq < k.due {
		return fmt.Errorf("hang: %s is at %s:%d, live %t, and the venue at %s:%d, %s after the last fault was over", k.id, book.Epoch, book.Seq, book.Live, c.epochName(), k.due, time.Since(over))
	}
	return nil
}

// playChaos runs the chaos of a seed over a feed, with the stream's real client in between if wired is set.
func playChaos(t *testing.T, seed uint64, wired bool) (c *chaos, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c = &chaos{
			rand: rand.New(rand.NewPCG(seed, 0)), history: make(map[place]truth), prices: make(map[place]int32), faults: make(map[string]int),
			calm: chaosCalm,
		}
		for i := range chaosTokens {
			k := &token{id: fmt.Sprintf("T%02d", i), numbered: i < chaosTokens-3, deep: 20 + 3*i, seq: uint64(c.rand.IntN(100)) + 1, priceSeq: 1}
			if i < 2 {
				k.deep = 230
			}
			c.tokens = append(c.tokens, k)
			c.fill(k)
			k.now = k.look()
			c.remember(k)
		}
		for range chaosLinks {
			if wired {
				break // the client opens them
			}
			c.links = append(c.links, &link{topics: make(map[market.Topic]*carried), upAt: time.Now()})
		}
		c.cache = cache.New(c, cache.DefaultConfig())
		defer c.cache.Close()
		c.feed = New(Config{Sink: c.cache, Origin: c.cache.Origin()})
		c.feed.Connect(c)
		defer c.feed.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if wired {
			c.calm = wireCalm
			if c.wire, err = newWire(c, c.feed, seed); err != nil {
				return
			}
			c.feed.Connect(c.wire.client)
			var running sync.WaitGroup
			running.Go(func() { _ = c.wire.client.Run(ctx) })
			defer running.Wait()
			defer cancel()
		}
		err = c.run(ctx)
	})
	return c, err
}

// TestChaos publishes 10,000 updates of 20 tokens through a link that drops, repeats, reorders, stalls and breaks, and
// compares every event of every reader, and what queries read, with what the venue had at that number. CHAOS=60 in the
// environment plays 60 more of them.
func TestChaos(t *testing.T) {
	chaosOf(t, false, []uint64{1, 2, 3}, "half an update", "crossed snapshot", "close", "put off", "subscribed anew")
}

// TestChaosOnTheWire is TestChaos with the stream's real client in between, so that frames can be damaged too.
func TestChaosOnTheWire(t *testing.T) {
	chaosOf(t, true, []uint64{4, 5}, "damage", "some garbage", "garbage in a row", "unknown type", "silence",
		"closed by the client", "close 1006", "close 4002", "close 4003")
}

func chaosOf(t *testing.T, wired bool, seeds []uint64, faults ...string) {
	if unraced.Raced {
		seeds = seeds[:1] // which take ten times as long, and race no more
	}
	if n, err := strconv.Atoi(os.Getenv("CHAOS")); err == nil {
		for i := range n {
			seeds = append(seeds, uint64(100+i))
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			c, err := playChaos(t, seed, wired)
			events, reasons := 0, make(map[string]int)
			for _, r := range c.readers {
				events += r.events
				for reason, n := range r.settled {
					reasons[reason] += n
				}
			}
			t.Logf("seed %d: %d updates, %d events %v, faults %v, %d calls, %+v", seed, c.published, events, reasons, c.faults, c.calls, c.feed.Stats())
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range append([]string{"drop", "duplicate", "reorder", "skipped number", "lost snapshot",
				"slow snapshot", "lost last frame", "stall", "restart", "restart without a close"}, faults...) {
				if c.faults[fault] == 0 {
					t.Errorf("there was no fault of the kind %q", fault)
				}
			}
			for _, reason := range []string{"INITIAL", "CHANGE", "RESYNC", "FRESHNESS"} {
				if reasons[reason] == 0 {
					t.Errorf("there was no event of the reason %s", reason)
				}
			}
			if !wired {
				return
			}
			t.Log(c.wire)
			for _, reason := range []string{"garbage", "closed", "slow", "restart"} {
				if c.wire.reasons[reason] == 0 {
					t.Errorf("no connection was lost for the reason %q", reason)
				}
			}
			if c.wire.reasons["silence"]+c.wire.reasons["asked"] == 0 { // a topic that is not resynced may be the sooner
				t.Error("no silent connection was given up")
			}
		})
	}
}
