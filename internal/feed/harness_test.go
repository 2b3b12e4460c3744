package feed

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func priceOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelPrices, ID: id}
}
func bookOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}
func tradesOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelTrades, ID: id}
}

// testUpstream is an Upstream that records the calls of its methods.
type testUpstream struct {
	mu       sync.Mutex
	requests []string // each request is a verb, a channel and an id
	watched  map[messages.Topic]int
	// maxPublic limits the number of public topics. maxAccounts limits the number of user topics. 0 means that there is no limit.
	maxPublic, maxAccounts int
	refuse                 error
}

func newUpstream() *testUpstream { return &testUpstream{watched: make(map[messages.Topic]int)} }

func (u *testUpstream) record(verb string, t messages.Topic) {
	u.requests = append(u.requests, verb+" "+string(t.Channel)+" "+t.ID)
}

func (u *testUpstream) Watch(t messages.Topic, _ *market.Credentials) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refuse != nil {
		return u.refuse
	}
	public, users := 0, 0
	for other := range u.watched {
		if other.Channel == messages.ChannelUser {
			users++
		} else {
			public++
		}
	}
	if t.Channel == messages.ChannelUser && u.maxAccounts > 0 && users >= u.maxAccounts ||
		t.Channel != messages.ChannelUser && u.maxPublic > 0 && public >= u.maxPublic {
		return market.Errorf(market.CodeRateLimited, "full")
	}
	u.watched[t]++
	u.record("watch", t)
	return nil
}

func (u *testUpstream) Unwatch(t messages.Topic) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watched[t] > 0 {
		delete(u.watched, t)
		u.record("unwatch", t)
	}
}

func (u *testUpstream) Resync(t messages.Topic) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.record("resync", t)
}

// take returns and removes the recorded calls.
func (u *testUpstream) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	asked := u.requests
	u.requests = nil
	return asked
}

func (u *testUpstream) open() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var open []string
	for t := range u.watched {
		open = append(open, string(t.Channel)+" "+t.ID)
	}
	slices.Sort(open)
	return open
}

// sinkEntry is the last value that a sink got for a topic.
type sinkEntry struct {
	session *reads.Session
	stale   bool
	meta    reads.Meta
	price   *market.Price
	spread  *market.Spread
	book    *market.Book
	account *Account
}

func (k *sinkEntry) fresh() bool {
	if k == nil || k.stale {
		return false
	}
	_, ended := k.session.Ended()
	return !ended
}

// sink is a Sink that stores the last value of each topic.
type sink struct {
	mu           sync.Mutex
	topics       map[messages.Topic]*sinkEntry
	spreads      map[string]*sinkEntry
	markets      []string
	staleCalls   int
	accountCalls int      // calls of StreamAccount
	unread       uint64   // calls of StreamUnread
	violations   []string // descriptions of values that were stale or had a wrong source when they arrived
}

func newSink() *sink {
	return &sink{topics: make(map[messages.Topic]*sinkEntry), spreads: make(map[string]*sinkEntry)}
}

func (s *sink) put(t messages.Topic, in *reads.Session, m reads.Meta, k *sinkEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ended := in.Ended(); ended || m.Stale || m.Source != market.SourceStream && m.Source != market.SourceREST {
		s.violations = append(s.violations, fmt.Sprintf("%v got a stale value or a value from %s", t, m.Source))
	}
	k.session, k.meta = in, m
	s.topics[t] = k
}

func (s *sink) StreamPrice(in *reads.Session, p *market.Price, m reads.Meta) {
	s.put(priceOf(p.TokenID), in, m, &sinkEntry{price: p})
}

func (s *sink) StreamSpread(in *reads.Session, sp *market.Spread, m reads.Meta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spreads[sp.TokenID] = &sinkEntry{session: in, spread: sp}
}

func (s *sink) StreamBook(in *reads.Session, b *market.Book, m reads.Meta) {
	s.put(bookOf(b.TokenID), in, m, &sinkEntry{book: b})
}

func (s *sink) StreamStale(t messages.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staleCalls++
	if k := s.topics[t]; k != nil {
		k.stale = true
	}
	if k := s.spreads[t.ID]; k != nil && t.Channel == messages.ChannelPrices {
		k.stale = true
	}
}

func (s *sink) StreamMarket(id string, _ *market.MarketChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.markets = append(s.markets, id)
}

func (s *sink) StreamAccount(in *reads.Session, t messages.Topic, orders []market.Order, positions []market.Position, b *market.Balance, m reads.Meta) {
	s.mu.Lock()
	s.accountCalls++
	s.mu.Unlock()
	s.put(t, in, m, &sinkEntry{account: &Account{Orders: orders, Positions: positions, Balance: b}})
}

func (s *sink) StreamUnread(messages.Topic, messages.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread++
}

func (s *sink) entry(t messages.Topic) *sinkEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.topics[t]; k != nil {
		c := *k
		return &c
	}
	return nil
}

func (s *sink) spread(id string) *sinkEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.spreads[id]; k != nil {
		c := *k
		return &c
	}
	return nil
}

func (s *sink) takeMarkets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.markets
	s.markets = nil
	return m
}

// testFeed is a feed with an upstream and a sink for tests. Call newTestFeed in a synctest bubble.
type testFeed struct {
	*Feed
	up   *testUpstream
	sink *sink
}

func newTestFeed(t testing.TB, change ...func(*Config)) *testFeed {
	t.Helper()
	r := &testFeed{up: newUpstream(), sink: newSink()}
	cfg := Config{Sink: r.sink, Snapshots: []messages.Channel{messages.ChannelTrades, messages.ChannelUser}}
	for _, f := range change {
		f(&cfg)
	}
	r.Feed = New(cfg)
	r.Connect(r.up)
	t.Cleanup(func() {
		r.Close()
		if len(r.sink.violations) > 0 {
			t.Errorf("the sink got values that were stale or had a wrong source: %q", r.sink.violations)
		}
	})
	return r
}

// watch returns a new reader with one watch.
func (r *testFeed) watch(t testing.TB, key messages.Topic) (*Reader, *Watch) {
	t.Helper()
	reader := r.NewReader("reader")
	return reader, watchTopic(t, reader, key, "")
}

// watchTopic watches a topic. It fails the test if the error does not have the code want, which is empty for no error.
func watchTopic(t testing.TB, r *Reader, key messages.Topic, want market.Code) *Watch {
	t.Helper()
	w, err := r.Watch(key, nil)
	if market.CodeOf(err) != want {
		t.Fatalf("Watch of %v returned the error %v, want the code %q", key, err, want)
	}
	return w
}

// wantOpen checks which topics are open at the upstream. Each topic is a channel and an id.
func (r *testFeed) wantOpen(t *testing.T, want ...string) {
	t.Helper()
	if open := r.up.open(); !slices.Equal(open, want) {
		t.Errorf("the topics %q are open at the upstream, want %q", open, want)
	}
}

// wantCalls checks the calls that the upstream has got since the last check.
func (r *testFeed) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if calls := r.up.take(); !slices.Equal(calls, want) {
		t.Errorf("the upstream got the calls %q, want %q", calls, want)
	}
}

func (r *testFeed) upNow(topics ...messages.Topic)   { r.Up(topics) }
func (r *testFeed) downNow(topics ...messages.Topic) { r.Down(topics, nil) }

func dec(s string) market.Decimal { return market.MustDecimal(s) }

func decp(s string) *market.Decimal {
	d := dec(s)
	return &d
}

// levels parses levels such as ".50x10 .40x5", which are prices with sizes.
func levels(s string) []market.Level {
	out := []market.Level{}
	for _, f := range strings.Fields(s) {
		price, size, _ := strings.Cut(f, "x")
		out = append(out, market.Level{Price: dec(price), Size: dec(size)})
	}
	return out
}

// parseBook parses bids and asks such as ".50x10 .40x5 | .60x7". The best levels come first.
func parseBook(id, s string) *market.Book {
	bids, asks, _ := strings.Cut(s, "|")
	return &market.Book{TokenID: id, Bids: market.NewSide(levels(bids)), Asks: market.NewSide(levels(asks)), Depth: 200}
}

// text formats a decimal without the 0 before the point.
func text(d market.Decimal) string { return strings.TrimPrefix(d.String(), "0") }

func showBook(b *market.Book) string {
	if b == nil {
		return ""
	}
	var out []string
	for _, l := range b.Bids.Levels() {
		out = append(out, text(l.Price)+"x"+l.Size.String())
	}
	out = append(out, "|")
	for _, l := range b.Asks.Levels() {
		out = append(out, text(l.Price)+"x"+l.Size.String())
	}
	return strings.Join(out, " ")
}

func message(key messages.Topic, kind messages.Kind, epoch string, seq uint64) *messages.Message {
	return &messages.Message{Topic: key, Kind: kind, Epoch: epoch, Seq: seq, ReceivedAt: time.Now()}
}

func priceMessage(id, epoch string, seq uint64, price string) *messages.Message {
	m := message(priceOf(id), messages.KindPrice, epoch, seq)
	m.Price = &market.Price{TokenID: id, Price: dec(price)}
	return m
}

func bookMessage(id, epoch string, seq uint64, book string) *messages.Message {
	m := message(bookOf(id), messages.KindBookSnapshot, epoch, seq)
	m.Book = parseBook(id, book)
	return m
}

// deltaMessage returns a message with changes such as "b.50x10 s.60x0". The letters stand for buy and sell.
func deltaMessage(id, epoch string, seq uint64, changes string) *messages.Message {
	m := message(bookOf(id), messages.KindBookDelta, epoch, seq)
	for _, f := range strings.Fields(changes) {
		side := market.SideBuy
		if f[0] == 's' {
			side = market.SideSell
		}
		m.Changes = append(m.Changes, market.LevelChange{Side: side, Level: levels(f[1:])[0]})
	}
	return m
}

func tradeOf(id string) market.Trade { return market.Trade{TradeID: id} }

func tradesMessage(id, epoch string, seq uint64, kind messages.Kind, trades ...string) *messages.Message {
	m := message(tradesOf(id), kind, epoch, seq)
	m.Trades = []market.Trade{}
	for _, x := range trades {
		m.Trades = append(m.Trades, tradeOf(x))
	}
	return m
}

func showTrades(trades []market.Trade) string {
	var out []string
	for _, x := range trades {
		out = append(out, x.TradeID)
	}
	return strings.Join(out, " ")
}

// RecordPoll calls Feed.RecordPoll twice: for the prices and for the books of the tokens.
func (r *testFeed) RecordPoll(poll uint64, tokenIDs []string) {
	for _, c := range []messages.Channel{messages.ChannelPrices, messages.ChannelOrderbook} {
		r.Feed.RecordPoll(poll, c, tokenIDs)
	}
}

// AutoWatch calls Feed.AutoWatch twice: for the prices and for the books of the tokens.
func (r *testFeed) AutoWatch(tokenIDs []string) {
	for _, c := range []messages.Channel{messages.ChannelPrices, messages.ChannelOrderbook} {
		r.Feed.AutoWatch(c, tokenIDs)
	}
}
