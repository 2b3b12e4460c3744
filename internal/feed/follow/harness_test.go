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
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
	"oddsgraph/tests/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is Source.Timeout in tests.
const timeout = 30 * time.Second

// testUpstream is a feed.Upstream that accepts a limited number of topics.
type testUpstream struct {
	mu   sync.Mutex
	room int // the maximum number of topics, including accounts; 0 means that there is no maximum
	open map[messages.Topic]bool
}

func (u *testUpstream) Watch(t messages.Topic, _ *market.Credentials) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.room != 0 && len(u.open) >= u.room && !u.open[t] {
		return market.Errorf(market.CodeRateLimited, "full")
	}
	u.open[t] = true
	return nil
}

func (u *testUpstream) Unwatch(t messages.Topic) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.open, t)
}
func (u *testUpstream) Resync(messages.Topic) {}

func (u *testUpstream) has(t messages.Topic) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open[t]
}

// testVenue is a feed to which the test sends messages. Call newTestVenue in a synctest bubble.
type testVenue struct {
	*feed.Feed
	t    *testing.T
	up   *testUpstream
	ctx  context.Context
	seqs map[messages.Topic]uint64
}

// newTestVenue returns a venue that sends snapshots on the given channels.
func newTestVenue(t *testing.T, snapshots ...messages.Channel) *testVenue {
	s := &testVenue{t: t, up: &testUpstream{open: make(map[messages.Topic]bool)}, seqs: make(map[messages.Topic]uint64)}
	s.Feed = feed.New(feed.Config{Sink: tool.Discard{}, Snapshots: snapshots})
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

func (s *testVenue) source() follow.Source {
	return follow.Source{Feeds: []*feed.Feed{s.Feed}, Timeout: timeout}
}

// connect reports to the feed that topics are up and confirmed.
func (s *testVenue) connect(topics ...messages.Topic) {
	synctest.Wait() // wait until the streams have opened their watches
	s.Up(topics)
	s.Acknowledged(topics)
}

func (s *testVenue) disconnect(topics ...messages.Topic) { s.Down(topics, nil) }

// send sends a message of a topic with the next sequence number.
func (s *testVenue) send(key messages.Topic, kind messages.Kind, fill func(m *messages.Message)) {
	s.seqs[key]++
	m := &messages.Message{Topic: key, Kind: kind, Epoch: "e", Seq: s.seqs[key], ReceivedAt: time.Now()}
	fill(m)
	s.Message(m)
	synctest.Wait()
}

func (s *testVenue) price(id, price string) {
	s.send(pricesOf(id), messages.KindPrice, func(m *messages.Message) { m.Price = priceOf(id, price) })
}

func pricesOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelPrices, ID: id}
}
func marketsOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelMarket, ID: id}
}

var account = messages.Topic{Channel: messages.ChannelUser, ID: "0xa", Scope: "s"}

func priceOf(id, price string) *market.Price {
	return &market.Price{TokenID: id, Price: market.MustDecimal(price)}
}

func freshMeta() reads.Meta {
	return reads.Meta{Source: market.SourceREST, ReceivedAt: time.Now()}
}

func staleMeta() reads.Meta {
	m := freshMeta()
	m.Stale = true
	return m
}

// received collects the events of a stream.
type received[T any] struct {
	t      *testing.T
	mu     sync.Mutex
	events []follow.Event[T]
	// to contains the cohorts of the events since the last call of cohorts.
	to    []follow.Cohort
	err   error
	ended bool
}

// run ranges over a stream on a new goroutine and collects the events.
func run[T any](t *testing.T, stream follow.Stream[T]) *received[T] {
	f := &received[T]{t: t}
	go func() {
		for e, err := range stream {
			f.mu.Lock()
			if err != nil {
				f.err = err
			} else {
				f.events = append(f.events, e)
				f.to = append(f.to, e.Envelope.To)
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

// cohorts returns and removes the cohorts of the collected events.
func (f *received[T]) cohorts() (to []follow.Cohort) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, f.to = f.to, nil
	return to
}

// take returns and removes the collected events.
func (f *received[T]) take() []follow.Event[T] {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// want formats the collected events with show and compares them with want. A problem is formatted as "!CODE".
func (f *received[T]) want(show func(T) string, want ...string) {
	f.t.Helper()
	got := []string{}
	for _, e := range f.take() {
		if e.Problem != nil {
			problem := "!" + string(market.CodeOf(e.Problem))
			if at, ok := errors.AsType[*market.VenueError](e.Problem); ok {
				problem += " at " + at.Venue
			}
			got = append(got, problem)
		} else {
			got = append(got, string(e.Reason)+" "+show(e.Value))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Fatalf("got the events  %q\nwant the events %q", got, want)
	}
}

// restSource is a source of REST reads. The test sets the result and the duration of the reads. A read returns the result that was
// set when the read started.
type restSource[T any] struct {
	mu       sync.Mutex
	value    T
	meta     func() reads.Meta
	err      error
	duration time.Duration
	calls    int
}

func (r *restSource[T]) set(value T) { r.edit(func() { r.value = value }) }
func (r *restSource[T]) fail(err error) {
	r.edit(func() { r.err = err })
}
func (r *restSource[T]) slow(d time.Duration) { r.edit(func() { r.duration = d }) }

// count returns the number of reads so far.
func (r *restSource[T]) count() (n int) {
	r.edit(func() { n = r.calls })
	return n
}

func (r *restSource[T]) edit(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *restSource[T]) read(ctx context.Context) (reads.Value[T], error) {
	r.mu.Lock()
	r.calls++
	value, meta, err, takes := r.value, freshMeta(), r.err, r.duration
	if r.meta != nil {
		meta = r.meta()
	}
	r.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return reads.Value[T]{}, market.Errorf(market.CodeUpstreamTimeout, "late").Because(ctx.Err())
	}
	if err != nil {
		return reads.Value[T]{}, err
	}
	return reads.Value[T]{Value: value, Meta: meta}, nil
}

// list returns the same result for each id.
func (r *restSource[T]) list(ctx context.Context, ids []string) []reads.Result[T] {
	value, err := r.read(ctx)
	out := make([]reads.Result[T], len(ids))
	for i := range out {
		out[i] = reads.Result[T]{Value: value, Err: err}
	}
	return out
}

var errDown error = market.Errorf(market.CodeUpstreamUnavailable, "down").Because(errors.New("test"))

func mark(m reads.Meta) string {
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
	if !u.Known {
		out += "?"
	}
	return out
}

// bubble runs a test in a synctest bubble.
func bubble(t *testing.T, f func(t *testing.T, s *testVenue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newTestVenue(t, messages.ChannelTrades, messages.ChannelUser)) })
}

// readers is a follow.Group. The test calls join to add a reader.
type readers struct {
	mu      sync.Mutex
	waiting chan struct{}
	// joiners counts the readers that wait for the present state. last is the last cohort that TakeWaiting returned.
	joiners int
	last    follow.Cohort
}

func newReaders() *readers { return &readers{waiting: make(chan struct{}, 1)} }

func (g *readers) join() {
	g.mu.Lock()
	g.joiners++
	g.mu.Unlock()
	g.waiting <- struct{}{}
	synctest.Wait()
}

func (g *readers) Waiting() <-chan struct{} { return g.waiting }
func (g *readers) TakeWaiting() (follow.Cohort, bool, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joiners == 0 {
		return 0, false, false
	}
	g.joiners--
	g.last++
	return g.last, false, true
}
func (g *readers) Join(follow.Cohort) {}
