package follow_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is that of the first event in tests.
const timeout = 30 * time.Second

// upstream takes topics as far as there is room, and brings nothing by itself.
type upstream struct {
	mu   sync.Mutex
	room int // of public topics; 0 is no bound
	open map[market.Topic]bool
}

func (u *upstream) Watch(t market.Topic, _ *market.Credentials) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.room > 0 && len(u.open) >= u.room && !u.open[t] {
		return market.Errorf(market.CodeRateLimited, "full")
	}
	u.open[t] = true
	return nil
}

func (u *upstream) Unwatch(t market.Topic) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, t)
}
func (u *upstream) Resync(market.Topic)    {}
func (u *upstream) Reconnect(market.Topic) {}

func (u *upstream) has(t market.Topic) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open[t]
}

// nowhere is a sink that forgets.
type nowhere struct{}

func (nowhere) StreamPrice(*market.Session, *market.Price, market.Meta)    {}
func (nowhere) StreamSpread(*market.Session, *market.Spread, market.Meta)  {}
func (nowhere) StreamBook(*market.Session, *market.Book, market.Meta)      {}
func (nowhere) StreamStale(market.Topic)                                   {}
func (nowhere) StreamMarket(*market.Session, string, *market.MarketChange) {}
func (nowhere) StreamAccount(*market.Session, market.Topic, []market.Order, []market.Position, *market.Balance, market.Meta) {
}

// stage is a feed that a test plays the venue for. It is for use in a synctest bubble.
type stage struct {
	*feed.Feed
	t    *testing.T
	up   *upstream
	ctx  context.Context
	seqs map[market.Topic]uint64
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, up: &upstream{open: make(map[market.Topic]bool)}, seqs: make(map[market.Topic]uint64)}
	s.Feed = feed.New(feed.Config{Sink: nowhere{}})
	s.Connect(s.up)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx = ctx
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
		s.Close()
	})
	return s
}

func (s *stage) source() follow.Source { return follow.Source{Feed: s.Feed, Timeout: timeout} }

// live opens topics and, where they are markets, confirms them.
func (s *stage) live(topics ...market.Topic) {
	synctest.Wait() // streams watch the topics by now
	s.Up("e", topics)
	s.Acknowledged(topics)
}

func (s *stage) down(topics ...market.Topic) { s.Down(topics, nil) }

// say sends a message of a topic, with the next number.
func (s *stage) say(key market.Topic, kind market.MessageKind, fill func(m *market.Message)) {
	s.seqs[key]++
	m := &market.Message{Topic: key, Kind: kind, Epoch: "e", Seq: s.seqs[key], ReceivedAt: time.Now()}
	fill(m)
	s.Message(m)
	synctest.Wait()
}

func (s *stage) price(id, price string) {
	s.say(pricesOf(id), market.MessagePrice, func(m *market.Message) { m.Price = priceOf(id, price) })
}

func pricesOf(id string) market.Topic { return market.Topic{Channel: market.ChannelPrices, ID: id} }
func marketsOf(id string) market.Topic {
	return market.Topic{Channel: market.ChannelMarket, ID: id}
}

var account = market.Topic{Channel: market.ChannelUser, ID: "0xa", Scope: "s"}

func priceOf(id, price string) *market.Price {
	return &market.Price{TokenID: id, Price: market.MustDecimal(price)}
}

func freshMeta() market.Meta {
	return market.Meta{Source: market.SourceREST, ReceivedAt: time.Now()}
}

func staleMeta() market.Meta {
	m := freshMeta()
	m.Stale = true
	return m
}

// followed is what a stream has yielded.
type followed[T any] struct {
	t      *testing.T
	mu     sync.Mutex
	events []follow.Event[T]
	err    error
	ended  bool
}

// run ranges over a stream until it ends.
func run[T any](t *testing.T, stream follow.Stream[T]) *followed[T] {
	f := &followed[T]{t: t}
	go func() {
		for e, err := range stream {
			f.mu.Lock()
			if err != nil {
				f.err = err
			} else {
				f.events = append(f.events, e)
			}
			f.mu.Unlock()
		}
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
	}()
	synctest.Wait()
	return f
}

// take returns what has come since it was last called.
func (f *followed[T]) take() []follow.Event[T] {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// want compares what has come, as show writes it, with want. A problem is "!CODE".
func (f *followed[T]) want(show func(T) string, want ...string) {
	f.t.Helper()
	got := []string{}
	for _, e := range f.take() {
		if e.Problem != nil {
			got = append(got, "!"+string(market.CodeOf(e.Problem)))
		} else {
			got = append(got, string(e.Reason)+" "+show(e.Value))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Fatalf("got  %q\nwant %q", got, want)
	}
}

// rest is a venue's REST answer that a test decides on. A read waits for as long as it takes and then returns what was the case
// when it began.
type rest[T any] struct {
	mu    sync.Mutex
	value T
	meta  func() market.Meta
	err   error
	takes time.Duration
	calls int
}

func (r *rest[T]) set(value T) { r.edit(func() { r.value = value }) }
func (r *rest[T]) fail(err error) {
	r.edit(func() { r.err = err })
}
func (r *rest[T]) slow(d time.Duration) { r.edit(func() { r.takes = d }) }

func (r *rest[T]) edit(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *rest[T]) read(ctx context.Context) (market.Read[T], error) {
	r.mu.Lock()
	r.calls++
	value, meta, err, takes := r.value, freshMeta(), r.err, r.takes
	if r.meta != nil {
		meta = r.meta()
	}
	r.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return market.Read[T]{}, market.Errorf(market.CodeUpstreamTimeout, "late").Because(ctx.Err())
	}
	if err != nil {
		return market.Read[T]{}, err
	}
	return market.Read[T]{Value: value, Meta: meta}, nil
}

// list reads the same for every id.
func (r *rest[T]) list(ctx context.Context, ids []string) []market.Result[market.Read[T]] {
	value, err := r.read(ctx)
	out := make([]market.Result[market.Read[T]], len(ids))
	for i := range out {
		out[i] = market.Result[market.Read[T]]{Value: value, Err: err}
	}
	return out
}

var errDown error = market.Errorf(market.CodeUpstreamUnavailable, "down").Because(errors.New("test"))

func mark(m market.Meta) string {
	out := " " + string(m.Source)
	if m.Stale {
		out += " stale"
	}
	return out
}

func showPrice(p follow.PriceUpdate) string { return p.Price.Price.String() + mark(p.Meta) }

func showMarket(m follow.MarketUpdate) string {
	out := m.Market.Description + "/" + string(m.Market.Status)
	if m.Change != "" {
		out = m.Change + " " + out
	}
	if m.Meta.Stale {
		out += " stale"
	}
	return out
}

func showTrades(u follow.TradesUpdate) string {
	out := ""
	for _, t := range u.Trades {
		out += t.TradeID + " "
	}
	if u.Gap {
		out += "gap"
	}
	return out
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newStage(t)) })
}

// readers is a Group of readers that join when the test says so.
type readers struct {
	mu      sync.Mutex
	waiting chan struct{}
	joined  int
	posts   []follow.Envelope
	next    follow.Cohort
}

func newReaders() *readers { return &readers{waiting: make(chan struct{}, 1)} }

func (g *readers) join() {
	g.mu.Lock()
	g.joined++
	g.mu.Unlock()
	g.waiting <- struct{}{}
	synctest.Wait()
}

func (g *readers) Announce(e follow.Envelope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.posts = append(g.posts, e)
}
func (g *readers) Waiting() <-chan struct{} { return g.waiting }
func (g *readers) TakeWaiting() (follow.Cohort, bool, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joined == 0 {
		return 0, false, false
	}
	g.joined--
	g.next++
	return g.next, false, true
}
func (g *readers) Join(follow.Cohort) {}

// cohorts returns whom the events since it was last called were for.
func (g *readers) cohorts() (to []follow.Cohort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.posts {
		to = append(to, e.To)
	}
	g.posts = nil
	return to
}
