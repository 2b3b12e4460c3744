package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
)

func streamed(received time.Time) market.Meta {
	return market.Meta{ReceivedAt: received, AsOf: received, Source: market.SourceStream}
}

// What is streamed answers as long as its session lasts, whatever REST says, and is stale from its end on.
func TestStreamedValueLivesAsLongAsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		session := &market.Session{}
		rest := must(t, c.Prices(), "k")
		price := &market.Price{TokenID: "k", Price: market.MustDecimal("0.7")}
		c.StreamPrice(session, price, streamed(time.Now()))
		if rest.Handle.Version() == 0 {
			t.Error("the value of REST was replaced unseen")
		}
		time.Sleep(time.Hour)
		live := must(t, c.Prices(), "k")
		if live.Value != price || live.Stale || live.Source != market.SourceStream || live.Handle.Version() != 0 {
			t.Errorf("after an hour: %+v", live)
		}
		// Answers of calls that had left before.
		other := &market.Price{TokenID: "k", Price: market.MustDecimal("0.1")}
		for _, late := range []*market.Price{other, nil} {
			if r := c.prices.accept("k", late, origin{}); r.Value != price {
				t.Errorf("the reader of a late answer gets %+v", r.Value)
			}
		}
		if again := must(t, c.Prices(), "k"); again.Handle != live.Handle || live.Handle.Version() != 0 || len(v.calls()) != 1 {
			t.Errorf("REST replaced what is streamed: %+v", again)
		}
		session.End(time.Now())
		if live.Handle.Version() == 0 {
			t.Error("the end is not to be seen")
		}
		if r := must(t, c.Prices(), "k"); !r.Stale || r.Value != price {
			t.Errorf("after the end: %+v", r)
		}
		synctest.Wait()
		if r := must(t, c.Prices(), "k"); r.Stale || r.Source != market.SourceREST || len(v.calls()) != 2 {
			t.Errorf("after the refresh: %+v", r)
		}
	})
}

func TestStreamedValueEndsAnAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		v.setUnknown("t", true)
		c := open(t, v)
		absent := must(t, c.Books(), depth(20))
		c.StreamBook(&market.Session{}, &market.Book{TokenID: "t", Depth: 200}, streamed(time.Now()))
		if r := must(t, c.Books(), depth(20)); r.Value == nil || absent.Value != nil || absent.Handle.Version() == 0 {
			t.Error("the book appeared unseen")
		}
	})
}

// What is deeper than the streamed book is read by REST, stands beside it for its own time, and leaves it alone.
func TestDeeperThanTheStreamedBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		live := &market.Book{TokenID: "t", Depth: 50, Bids: make([]market.Level, 50), Asks: make([]market.Level, 50)}
		session := &market.Session{}
		c.StreamBook(session, live, streamed(time.Now()))
		for range 3 {
			if r := must(t, c.Books(), depth(200)); r.Value.Depth != 200 || r.Handle.Version() != 0 || r.Source != market.SourceREST {
				t.Errorf("%+v", r)
			}
			if r := must(t, c.Books(), depth(50)); r.Value != live {
				t.Errorf("%+v instead of the streamed book", r)
			}
		}
		if !slices.Equal(v.depths(), []int{200}) {
			t.Errorf("asked for depths %v", v.depths())
		}
		time.Sleep(500 * time.Millisecond)
		deep := must(t, c.Books(), depth(120))
		synctest.Wait()
		if !deep.Stale || deep.Handle.Version() == 0 || !slices.Equal(v.depths(), []int{200, 200}) {
			t.Errorf("%+v, asked for depths %v", deep, v.depths())
		}
		session.End(time.Now())
		time.Sleep(500 * time.Millisecond)
		if r := must(t, c.Books(), depth(50)); !r.Stale {
			t.Errorf("after the end: %+v", r)
		}
		synctest.Wait()
		must(t, c.Books(), depth(200))
		synctest.Wait()
		if r := must(t, c.Books(), depth(50)); r.Stale || r.Source != market.SourceREST {
			t.Errorf("after the refresh: %+v", r)
		}
	})
}

func TestGapMakesStreamedValuesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &venue{gate: make(chan struct{})})
		session := &market.Session{}
		c.StreamPrice(session, &market.Price{TokenID: "t"}, streamed(time.Now()))
		c.StreamSpread(session, &market.Spread{TokenID: "t"}, streamed(time.Now()))
		c.StreamBook(session, &market.Book{TokenID: "t", Depth: 200}, streamed(time.Now()))
		p, s, b := must(t, c.Prices(), "t"), must(t, c.Spreads(), "t"), must(t, c.Books(), depth(20))
		c.StreamStale(messages.Topic{Channel: messages.ChannelPrices, ID: "t"})
		if p.Handle.Version() == 0 || s.Handle.Version() == 0 || b.Handle.Version() != 0 {
			t.Errorf("versions %d %d %d", p.Handle.Version(), s.Handle.Version(), b.Handle.Version())
		}
		if !must(t, c.Prices(), "t").Stale || !must(t, c.Spreads(), "t").Stale || must(t, c.Books(), depth(20)).Stale {
			t.Error("stale is what the gap is not in")
		}
		c.StreamStale(messages.Topic{Channel: messages.ChannelOrderbook, ID: "t"})
		if b.Handle.Version() == 0 || !must(t, c.Books(), depth(20)).Stale {
			t.Error("the gap is not to be seen")
		}
	})
}

// An account that is streamed for one caller is nothing to another.
func TestStreamedAccountIsItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(as(t, "alice"), wallet)}
		positions := []market.Position{{Outcome: "streamed"}}
		session := &market.Session{}
		c.StreamAccount(session, topic, nil, positions, nil, streamed(time.Now()))
		for secret, want := range map[string]string{"alice": "streamed", "bob": seen(as(t, "bob")), "": seen(t.Context())} {
			r, err := readOne(as(t, secret), c.Positions(), wallet)
			if err != nil || (*r.Value)[0].Outcome != want {
				t.Errorf("%q sees %+v, %v", secret, r.Value, err)
			}
		}
		if r, err := readOne(as(t, "alice"), c.Orders(), wallet); err != nil || (*r.Value)[0].Outcome != seen(as(t, "alice")) {
			t.Errorf("orders that were not streamed: %+v, %v", r.Value, err)
		}
		for _, scope := range []string{"", "00", topic.Scope + "00", "zz" + topic.Scope[2:]} {
			bad := topic
			bad.Scope = scope
			before := c.positions.entries.len()
			c.StreamAccount(session, bad, nil, positions, nil, streamed(time.Now()))
			c.StreamStale(bad)
			if c.positions.entries.len() != before {
				t.Errorf("scope %q names somebody", scope)
			}
		}
	})
}

type watcher struct{ asked []string }

func (w *watcher) RecordPoll(_ uint64, caller string, c messages.Channel, tokens []string) {
	for _, t := range tokens {
		w.asked = append(w.asked, fmt.Sprint(caller, c, " ", t))
	}
}

// The watcher hears of tokens that exist and that clients ask for, once for each read.
func TestWatcherHearsOfDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		v.setUnknown("x", true)
		c, w := open(t, v), &watcher{}
		c.SetWatcher(w)
		for range 2 {
			readAll(t.Context(), c.Prices(), "a", "x", "bad")
		}
		if !slices.Equal(w.asked, []string{"prices a", "prices a"}) {
			t.Errorf("heard of %v", w.asked)
		}
		w.asked = nil
		readAll(reqctx.WithoutPoll(t.Context()), c.Prices(), "a", "b")
		time.Sleep(time.Second)
		readAll(reqctx.WithoutPoll(t.Context()), c.Prices(), "a") // refreshes
		synctest.Wait()
		must(t, c.Spreads(), "s")
		must(t, c.Books(), queries.Book{TokenID: "b", Depth: 7})
		must(t, c.Markets(), byToken("m"))
		readAll(reqctx.WithCaller(t.Context(), "ann: "), c.Books(), queries.Book{TokenID: "b", Depth: 7})
		if !slices.Equal(w.asked, []string{"prices s", "orderbook b", "ann: orderbook b"}) {
			t.Errorf("heard of %v", w.asked)
		}
	})
}

// What is streamed is watched already: the watcher hears once a second that it is asked for still, and of the rest each time.
func TestWatcherHearsSeldomOfWhatIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := open(t, &venue{}), &watcher{}
		c.SetWatcher(w)
		session := &market.Session{}
		for _, id := range []string{"s", "t"} {
			c.StreamPrice(session, &market.Price{TokenID: id}, market.Meta{})
		}
		list := []string{"a", "s", "b", "t", "a"}
		hears := func(want ...string) {
			t.Helper()
			if !slices.Equal(w.asked, want) {
				t.Errorf("heard of %q instead of %q", w.asked, want)
			}
			w.asked = nil
		}
		readAll(t.Context(), c.Prices(), list...)
		w.asked = nil // a and b were fetched
		time.Sleep(time.Second / 2)
		readAll(t.Context(), c.Prices(), list...)
		hears("prices a", "prices b", "prices a")
		readAll(t.Context(), c.Prices(), "s", "t", "b")
		hears("prices b")
		readAll(t.Context(), c.Prices(), "t")
		hears()
		time.Sleep(time.Second / 2)
		readAll(t.Context(), c.Prices(), "t")
		hears("prices t")
		readAll(t.Context(), c.Prices(), "s", "t")
		hears("prices s")
		session.End(time.Now())
		readAll(t.Context(), c.Prices(), "s")
		synctest.Wait()
		w.asked = nil
		readAll(t.Context(), c.Prices(), "s", "t") // s was read over REST meanwhile
		hears("prices s")
	})
}

// quoting is a venue whose prices, spreads and books a test decides on.
type quoting struct {
	*venue
	price  *market.Price
	spread *market.Spread
	book   *market.Book
}

func (q *quoting) Prices(ctx context.Context, ids []string) ([]market.Result[*market.Price], error) {
	return list(q.venue, ctx, reqctx.EndpointPrices, ids, func(string) *market.Price { return q.price })
}

func (q *quoting) Spreads(ctx context.Context, ids []string) ([]market.Result[*market.Spread], error) {
	return list(q.venue, ctx, reqctx.EndpointSpreads, ids, func(string) *market.Spread { return q.spread })
}

func (q *quoting) Book(ctx context.Context, id string, depth int) (*market.Book, error) {
	return single(q.venue, ctx, reqctx.EndpointBook, id, func() *market.Book {
		b := *q.book.Cut(depth)
		b.Depth = depth
		return &b
	})
}

func opened(t *testing.T, q *quoting) *Cache {
	t.Helper()
	q.venue = &venue{}
	c := New(q, DefaultConfig())
	t.Cleanup(c.Close)
	return c
}

func at(second int) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC)
}

func priced(price string, second int) *market.Price {
	return &market.Price{TokenID: "t", Price: market.MustDecimal(price), Timestamp: at(second)}
}

func topped(bid, ask string, second int) *market.Spread {
	s := &market.Spread{TokenID: "t", Timestamp: at(second)}
	if bid != "" {
		d := market.MustDecimal(bid)
		s.BestBid = &d
	}
	if ask != "" {
		d := market.MustDecimal(ask)
		s.BestAsk = &d
	}
	return s
}

// booked returns a book with bids of the given sizes.
func booked(epoch string, seq uint64, second, depth int, sizes ...int64) *market.Book {
	b := &market.Book{TokenID: "t", Epoch: epoch, Seq: seq, Timestamp: at(second), Depth: depth, Asks: []market.Level{}}
	for i, size := range sizes {
		b.Bids = append(b.Bids, market.Level{Price: market.NewDecimal(int64(50-i), -2), Size: market.NewDecimal(size, 0)})
	}
	return b
}

func TestAges(t *testing.T) {
	many := func(n int, first int64) []int64 {
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = first + int64(i)
		}
		return sizes
	}
	for _, x := range []struct {
		name string
		got  bool
		want bool
	}{
		{"an earlier price", olderPrice(priced(".5", 1), priced(".6", 2)), true},
		{"a later price", olderPrice(priced(".5", 2), priced(".6", 1)), false},
		{"a price of the same time", olderPrice(priced(".5", 1), priced(".6", 1)), false},
		{"the same price", olderPrice(priced(".5", 1), priced(".50", 2)), false},
		{"a price without time", olderPrice(priced(".5", 0), priced(".6", 2)), false},
		{"a price over one without time", olderPrice(priced(".5", 1), priced(".6", 0)), false},
		{"an earlier spread", olderSpread(topped(".4", ".6", 1), topped(".4", ".5", 2)), true},
		{"an earlier spread of one side", olderSpread(topped("", ".6", 1), topped(".4", ".6", 2)), true},
		{"the same spread", olderSpread(topped(".4", ".6", 1), topped(".40", ".60", 2)), false},
		{"the same spread of one side", olderSpread(topped("", ".6", 1), topped("", ".60", 2)), false},
		{"a lower number", olderBook(booked("A", 7, 9, 20, 1), booked("A", 8, 1, 20, 1)), true},
		{"the same number", olderBook(booked("A", 8, 1, 20, 1), booked("A", 8, 9, 20, 2)), false},
		{"a higher number", olderBook(booked("A", 9, 1, 20, 1), booked("A", 8, 9, 20, 2)), false},
		{"another epoch, earlier", olderBook(booked("A", 9, 1, 20, 1), booked("B", 2, 2, 20, 2)), true},
		{"another epoch, later", olderBook(booked("B", 2, 2, 20, 1), booked("A", 9, 1, 20, 2)), false},
		{"no numbers, earlier", olderBook(booked("", 0, 1, 20, 1), booked("", 0, 2, 20, 2)), true},
		{"no number on one side, earlier", olderBook(booked("A", 7, 1, 20, 1), booked("", 0, 2, 20, 2)), true},
		{"no numbers, the same book", olderBook(booked("", 0, 1, 20, 1, 2), booked("", 0, 2, 200, 1, 2)), false},
		{"no numbers, one level more within reach", olderBook(booked("", 0, 1, 20, 1), booked("", 0, 2, 20, 1, 2)), true},
		{"no numbers, one level less within reach", olderBook(booked("", 0, 1, 20, 1, 2), booked("", 0, 2, 20, 1)), true},
		{"no numbers, the same as far as it reaches", olderBook(booked("", 0, 1, 200, many(30, 1)...), booked("", 0, 2, 20, many(20, 1)...)), false},
		{"no numbers, as far as the other reaches", olderBook(booked("", 0, 1, 20, many(20, 1)...), booked("", 0, 2, 200, many(30, 1)...)), false},
		{"no numbers, another one as far as it reaches", olderBook(booked("", 0, 1, 200, many(30, 2)...), booked("", 0, 2, 20, many(20, 1)...)), true},
		{"no times", olderBook(booked("", 0, 0, 20, 1), booked("", 0, 0, 20, 2)), false},
	} {
		if x.got != x.want {
			t.Errorf("%s is older: %t", x.name, x.got)
		}
	}
}

// While REST's value is younger than what the stream begins with, it stays; from then on the stream tells.
func TestStreamBeginsWithAnOlderValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quoting{price: priced(".6", 5), spread: topped(".5", ".7", 5), book: booked("A", 8, 5, 200, 1)}
		c := opened(t, q)
		must(t, c.Prices(), "t")
		must(t, c.Spreads(), "t")
		must(t, c.Books(), depth(20))
		session := &market.Session{}
		c.StreamPrice(session, priced(".5", 4), streamed(at(4)))
		c.StreamSpread(session, topped(".4", ".6", 4), streamed(at(4)))
		c.StreamBook(session, booked("A", 7, 9, 200, 2), streamed(at(9)))
		if p, s, b := must(t, c.Prices(), "t"), must(t, c.Spreads(), "t"), must(t, c.Books(), depth(20)); p.Source != market.SourceREST ||
			s.Source != market.SourceREST || b.Source != market.SourceREST || p.Handle.Version()+s.Handle.Version()+b.Handle.Version() != 0 {
			t.Errorf("the stream's older values took the place of %v %v %v", p, s, b)
		}
		// The same age, and the same value of whatever age: the stream wins.
		price, spread, book := priced(".60", 1), topped(".50", ".70", 1), booked("A", 8, 1, 200, 1)
		c.StreamPrice(session, price, streamed(at(1)))
		c.StreamSpread(session, spread, streamed(at(1)))
		c.StreamBook(session, book, streamed(at(1)))
		if p, s, b := must(t, c.Prices(), "t"), must(t, c.Spreads(), "t"), must(t, c.Books(), depth(20)); p.Value != price || s.Value != spread || b.Value != book {
			t.Errorf("the stream is not read: %v %v %v", p, s, b)
		}
		// Its values come in order, whatever their times.
		price, spread, book = priced(".4", 0), topped(".3", ".5", 0), booked("A", 3, 0, 200, 4)
		for range 2 {
			c.StreamPrice(session, price, streamed(at(1)))
			c.StreamSpread(session, spread, streamed(at(1)))
			c.StreamBook(session, book, streamed(at(1)))
			if p, s, b := must(t, c.Prices(), "t"), must(t, c.Spreads(), "t"), must(t, c.Books(), depth(20)); p.Value != price || s.Value != spread || b.Value != book {
				t.Errorf("the stream's last values are not read: %v %v %v", p, s, b)
			}
			price, spread, book = priced(".45", -1), topped(".35", ".5", -1), booked("A", 2, -1, 200, 5)
			session = &market.Session{} // nor does another session's past matter
		}
	})
}

// A call that left before the stream came brings nothing into the cache.
func TestFlightThatLeftBeforeTheStreamCame(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		t.Run(fmt.Sprintf("unknown %t", unknown), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &quoting{price: priced(".9", 9), book: booked("", 0, 9, 200, 9)}
				c := opened(t, q)
				q.latency = time.Second
				q.setUnknown("t", unknown)
				var readers [3]market.Read[*market.Price]
				var book market.Read[*market.Book]
				for i := range readers {
					go func() { readers[i], _ = readOne(t.Context(), c.Prices(), "t") }()
				}
				go func() { book, _ = readOne(t.Context(), c.Books(), depth(20)) }()
				time.Sleep(500 * time.Millisecond)
				session, live, liveBook := &market.Session{}, priced(".5", 1), booked("A", 1, 1, 200, 1)
				c.StreamPrice(session, live, streamed(time.Now()))
				c.StreamBook(session, liveBook, streamed(time.Now()))
				time.Sleep(time.Second)
				synctest.Wait()
				for _, r := range readers {
					if r.Value != live || r.Source != market.SourceStream || r.Handle.Version() != 0 {
						t.Errorf("who waited for the call reads %+v", r)
					}
				}
				if book.Value != liveBook || must(t, c.Prices(), "t").Value != live || must(t, c.Books(), depth(20)).Value != liveBook {
					t.Error("an answer took the place of what is streamed")
				}
			})
		})
	}
}

// After an outage, answers that lag behind the stream confirm what it said last, until they have caught up or have had
// the time to.
func TestAnswersThatLagBehindTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quoting{price: priced(".4", 3), book: booked("A", 6, 3, 200, 6)}
		c := opened(t, q)
		session, price, book := &market.Session{}, priced(".5", 5), booked("A", 8, 5, 200, 8)
		c.StreamPrice(session, price, streamed(at(5)))
		c.StreamBook(session, book, streamed(at(5)))
		session.End(time.Now())
		calls := len(q.calls())
		for n := range 10 {
			must(t, c.Prices(), "t")
			must(t, c.Books(), depth(20))
			synctest.Wait()
			p, b := must(t, c.Prices(), "t"), must(t, c.Books(), depth(20))
			if p.Value != price || b.Value != book || p.Stale || b.Stale || p.Source != market.SourceREST || !p.AsOf.Equal(at(5)) {
				t.Fatalf("answer %d: %+v %+v", n, p, b)
			}
			if now := len(q.calls()); now != calls+2 {
				t.Fatalf("answer %d took %d calls", n, now-calls)
			}
			calls += 2
			time.Sleep(2 * time.Second)
		}
		// One that goes deeper than what was streamed answers who asked, and no one else.
		shallow := booked("A", 9, 6, 50, make([]int64, 50)...)
		again := &market.Session{}
		c.StreamBook(again, shallow, streamed(at(6)))
		again.End(time.Now())
		deep, err := readOne(t.Context(), c.Books(), depth(200))
		if err != nil || deep.Value.Seq != 6 || deep.Value.Depth != 200 || deep.Handle.Version() == 0 {
			t.Errorf("%+v, %v", deep, err)
		}
		if b := must(t, c.Books(), depth(20)); b.Value != shallow || !b.Stale {
			t.Errorf("%+v", b)
		}
		synctest.Wait() // for the refresh of that
		time.Sleep(2 * time.Second)
		// They have caught up.
		q.price, q.book = priced(".3", 7), booked("A", 9, 7, 200, 9)
		must(t, c.Prices(), "t")
		must(t, c.Books(), depth(20))
		synctest.Wait()
		if p, b := must(t, c.Prices(), "t"), must(t, c.Books(), depth(20)); p.Value != q.price || b.Value.Timestamp != at(7) {
			t.Errorf("%+v %+v", p, b)
		}
		// A value of the stream's with a time that never comes does not stay for ever.
		late := &market.Session{}
		c.StreamPrice(late, &market.Price{TokenID: "t", Price: market.MustDecimal(".99"), Timestamp: at(0).AddDate(4000, 0, 0)}, streamed(time.Now()))
		late.End(time.Now())
		for range 100 {
			must(t, c.Prices(), "t")
			time.Sleep(time.Second)
		}
		if p := must(t, c.Prices(), "t"); p.Value != q.price {
			t.Errorf("%+v", p)
		}
	})
}

// While a token is watched, queries for its price, its spread and its book at any depth up to the streamed one make no
// call, and read what the stream said last.
func TestQueriesOfWhatIsStreamedMakeNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		session := &market.Session{}
		for n := range 1000 {
			price, spread, book := priced(fmt.Sprintf(".%04d", n+1), n%60), topped(".1", ".2", 7), booked("A", uint64(n+1), 0, 200, int64(n))
			c.StreamPrice(session, price, streamed(time.Now()))
			c.StreamSpread(session, spread, streamed(time.Now()))
			c.StreamBook(session, book, streamed(time.Now()))
			time.Sleep(time.Minute)
			if p, s, b := must(t, c.Prices(), "t"), must(t, c.Spreads(), "t"), must(t, c.Books(), depth(1+n%200)); p.Value != price || s.Value != spread || b.Value != book ||
				p.Stale || s.Stale || b.Stale || p.Source != market.SourceStream {
				t.Fatalf("query %d read %+v %+v %+v", n, p, s, b)
			}
		}
		if calls := v.calls(); len(calls) > 0 {
			t.Errorf("%d calls were made", len(calls))
		}
	})
}

// The end of a session makes all of its values stale by one write, and those of another session not.
func TestEndOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		ended, lasting := &market.Session{}, &market.Session{}
		keys := ids("t", 0, 1000)
		for i, id := range keys {
			session := ended
			if i%4 == 0 {
				session = lasting
			}
			c.StreamPrice(session, &market.Price{TokenID: id}, streamed(time.Now()))
		}
		before := readAll(t.Context(), c.Prices(), keys...)
		ended.End(time.Now())
		ended.End(time.Now().Add(time.Hour)) // only the first end counts
		for i, r := range readAll(t.Context(), c.Prices(), keys...) {
			stays := i%4 == 0
			if r.Value.Stale == stays || (before[i].Value.Handle.Version() == 0) != stays || before[i].Value.Stale {
				t.Fatalf("token %d: %+v", i, r)
			}
			if _, timed := r.Value.Handle.FreshUntil(); timed {
				t.Fatalf("token %d is fresh by time", i)
			}
		}
		// They are served stale while they are refreshed, then no more.
		time.Sleep(30*time.Second - 1)
		out := make([]market.Result[market.Read[*market.Price]], 1)
		if missing := c.Prices().Lookup(t.Context(), []string{"t001"}, out, nil); len(missing) != 0 || !out[0].Value.Stale {
			t.Errorf("before the end of its time: %+v", out[0])
		}
		time.Sleep(time.Nanosecond)
		if missing := c.Prices().Lookup(t.Context(), []string{"t001", "t000"}, make([]market.Result[market.Read[*market.Price]], 2), nil); !slices.Equal(missing, []int{0}) {
			t.Errorf("after its time %v are missing", missing)
		}
	})
}

// A gap, and the snapshot after it: every replacement is to be seen on the handles.
func TestHandlesOfStreamedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &venue{gate: make(chan struct{})})
		session, topic := &market.Session{}, messages.Topic{Channel: messages.ChannelPrices, ID: "t"}
		c.StreamStale(topic) // of nothing
		c.StreamPrice(session, priced(".5", 1), streamed(at(1)))
		one := must(t, c.Prices(), "t")
		c.StreamPrice(session, priced(".5", 1), streamed(at(1)))
		two := must(t, c.Prices(), "t")
		if one.Handle.Version() == 0 || two.Handle.Version() != 0 || one.Handle == two.Handle {
			t.Error("a replacement is not to be seen")
		}
		c.StreamStale(topic)
		cut := two.Handle.Version()
		c.StreamStale(topic)
		if cut == 0 || two.Handle.Version() != cut {
			t.Errorf("versions %d and %d after a gap", cut, two.Handle.Version())
		}
		if r := must(t, c.Prices(), "t"); !r.Stale || r.Handle.Version() == 0 {
			t.Errorf("after a gap: %+v", r)
		}
		session.End(time.Now())
		if r := must(t, c.Prices(), "t"); !r.Stale {
			t.Errorf("after the end: %+v", r)
		}
		c.StreamPrice(&market.Session{}, priced(".6", 1), streamed(at(1)))
		if r := must(t, c.Prices(), "t"); r.Stale || r.Handle.Version() != 0 || r.Value.Price.String() != "0.6" {
			t.Errorf("after the snapshot: %+v", r)
		}
	})
}

// A value is past from the gap on, not only from the later end of its session.
func TestGapBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &venue{gate: make(chan struct{})})
		session := &market.Session{}
		c.StreamPrice(session, priced(".5", 1), streamed(at(1)))
		c.StreamStale(messages.Topic{Channel: messages.ChannelPrices, ID: "t"})
		time.Sleep(20 * time.Second)
		session.End(time.Now())
		out := make([]market.Result[market.Read[*market.Price]], 1)
		if missing := c.Prices().Lookup(t.Context(), []string{"t"}, out, nil); len(missing) != 0 {
			t.Error("20 s after the gap the value is gone")
		}
		time.Sleep(10 * time.Second)
		if missing := c.Prices().Lookup(t.Context(), []string{"t"}, out, nil); len(missing) != 1 {
			t.Error("30 s after the gap the value is served")
		}
	})
}

func TestChangedMarketIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		byID := market.MarketRef{By: market.ByMarketID, Value: "m"}
		r := must(t, c.Markets(), byID)
		c.StreamMarket(new(market.Session), "other", nil)
		if must(t, c.Markets(), byID); len(v.calls()) != 1 || r.Handle.Version() != 0 {
			t.Errorf("another market's change cost %d calls", len(v.calls())-1)
		}
		c.StreamMarket(new(market.Session), "m", nil)
		if r.Handle.Version() == 0 {
			t.Error("the change is not to be seen")
		}
		if must(t, c.Markets(), byID); len(v.calls()) != 2 {
			t.Error("a changed market was not read again")
		}
	})
}

// What was read of a market before it changed answers where the venue fails, marked stale, within its stale time.
func TestChangedMarketIsServedStaleWhereTheVenueFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		byID := market.MarketRef{By: market.ByMarketID, Value: "m"}
		first := must(t, c.Markets(), byID)
		for range 3 { // changes, gaps and reconnects
			c.StreamMarket(new(market.Session), "m", nil)
		}
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		r := must(t, c.Markets(), byID)
		if !r.Stale || r.Value != first.Value || len(v.calls()) != 2 {
			t.Errorf("%+v after %d calls", r, len(v.calls()))
		}
		time.Sleep(2 * time.Hour)
		if r, err := readOne(t.Context(), c.Markets(), byID); market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("past its stale time: %+v, %v", r, err)
		}
		v.fail = nil
		if r := must(t, c.Markets(), byID); r.Stale || r.Value == first.Value {
			t.Errorf("read again: %+v", r)
		}
	})
}

// A read that left before a change was told never answers for what comes after it, however the market was named.
func TestReadsThatLeftBeforeAChangeAreNotFresh(t *testing.T) {
	byID := market.MarketRef{By: market.ByMarketID, Value: "m"}
	for name, asked := range map[string]market.MarketRef{"by id": byID, "by slug": {By: market.BySlug, Value: "slug"}, "by token": byToken("yes")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, hold := &venue{}, make(chan struct{})
				c := open(t, v)
				// The first call has seen the market open, and takes until hold is closed.
				v.fail = func(ask) error {
					if len(v.calls()) == 1 {
						<-hold
					}
					return nil
				}
				says := func(s market.Status) {
					v.market = func(string) *market.Market {
						return &market.Market{MarketID: "m", Slug: "slug", Status: s, Outcomes: []market.Outcome{{TokenID: "yes"}}}
					}
				}
				before := make(chan market.Read[*market.Market], 1)
				go func() { before <- must(t, c.Markets(), asked) }()
				synctest.Wait()
				c.StreamMarket(new(market.Session), "m", nil)
				says(market.StatusClosed)
				// A later caller does not wait for the old answer, nor does that replace the new one.
				after := make(chan market.Read[*market.Market], 1)
				go func() { after <- must(t, c.Markets(), asked) }()
				synctest.Wait()
				select {
				case r := <-after:
					if r.Stale || r.Value.Status != market.StatusClosed {
						t.Errorf("read after the change: %+v, %v", r.Value.Status, r.Stale)
					}
				default:
					t.Error("a read after the change waits for the answer to one before it")
				}
				says(market.StatusOpen)
				close(hold)
				if r := <-before; !r.Stale || r.Value.Status != market.StatusOpen || r.Handle.Version() == 0 {
					t.Errorf("the read from before the change: %+v, %v, version %d", r.Value.Status, r.Stale, r.Handle.Version())
				}
				synctest.Wait()
				says(market.StatusClosed)
				if r := must(t, c.Markets(), byID); r.Stale || r.Value.Status != market.StatusClosed || len(v.calls()) != 2 {
					t.Errorf("read when the old answer has come: %+v, %v, %d calls", r.Value.Status, r.Stale, len(v.calls()))
				}
				for _, l := range c.markets.routes {
					atRest(t, l)
				}
			})
		})
	}
}

// A call that left before a change ends when nobody waits for it any more.
func TestReadsThatLeftBeforeAChangeAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{gate: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = readOne(ctx, c.Markets(), market.MarketRef{By: market.ByMarketID, Value: "m"}) }()
		synctest.Wait()
		c.StreamMarket(new(market.Session), "m", nil)
		if synctest.Wait(); v.calls()[0].ctx.Err() != nil {
			t.Error("the change has cancelled a call that somebody waits for")
		}
		cancel()
		if synctest.Wait(); v.calls()[0].ctx.Err() == nil {
			t.Error("the call goes on for nobody")
		}
		atRest(t, c.markets.routes[0])
	})
}

// The scope of a topic leads back to the key that the caller's own reads have.
func TestScopeIsTheCallersKey(t *testing.T) {
	c := open(t, &venue{})
	seen := make(map[string]bool)
	for _, secret := range []string{"", "alice", "bob"} {
		for _, a := range []market.Address{wallet, "0x1"} {
			ctx := as(t, secret)
			scope := c.Scope(ctx, a)
			if scope != c.Scope(ctx, a) || seen[scope] {
				t.Errorf("the scope of %q and %s is not theirs alone", secret, a)
			}
			seen[scope] = true
			key, ok := keyOfTopic(messages.Topic{Channel: messages.ChannelUser, ID: string(a), Scope: scope})
			if !ok || key != c.scope.of(ctx, a) {
				t.Errorf("the scope of %q and %s leads to another key", secret, a)
			}
		}
	}
}

// An account's values end with their session at once, and a gap ends all of them.
func TestStreamedAccountEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		ctx := as(t, "alice")
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(ctx, wallet)}
		balance := &market.Balance{UpdatedAt: at(1)}
		read := func() (fromStream int) {
			t.Helper()
			b, err1 := readOne(ctx, c.Balances(), wallet)
			p, err2 := readOne(ctx, c.Positions(), wallet)
			o, err3 := readOne(ctx, c.Orders(), wallet)
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(err1, err2, err3)
			}
			for _, m := range []market.Meta{b.Meta, p.Meta, o.Meta} {
				if m.Source == market.SourceStream {
					fromStream++
				}
				if m.Stale {
					t.Error("an account is never served stale")
				}
			}
			return fromStream
		}
		for _, end := range []func(s *market.Session){
			func(s *market.Session) { s.End(time.Now()) },
			func(*market.Session) { c.StreamStale(topic) },
		} {
			session := &market.Session{}
			c.StreamAccount(session, topic, []market.Order{}, []market.Position{}, balance, streamed(at(1)))
			time.Sleep(time.Hour)
			if n := read(); n != 3 {
				t.Errorf("%d values come from the stream", n)
			}
			end(session)
			if n := read(); n != 0 {
				t.Errorf("after the end, %d values come from the stream", n)
			}
			// What is not known of a later snapshot is read over REST.
			c.StreamAccount(&market.Session{}, topic, nil, []market.Position{}, nil, streamed(at(1)))
			if n := read(); n != 1 {
				t.Errorf("%d values come from a stream that tells one", n)
			}
		}
		if len(v.calls()) == 0 {
			t.Error("nothing was read")
		}
	})
}

// The way past the cache asks the venue whatever is cached, and leaves the cache as it is.
func TestOriginPassesByTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quoting{price: priced("0.4", 1), book: booked("e", 4, 1, 200, 4)}
		c := opened(t, q)
		o := c.Origin()
		s := &market.Session{}
		c.StreamPrice(s, priced("0.5", 2), market.Meta{Source: market.SourceStream})
		c.StreamBook(s, booked("e", 5, 2, 200, 5), market.Meta{Source: market.SourceStream})
		p, err := o.Price(t.Context(), "t")
		if err != nil || p.Value.Price.String() != "0.4" {
			t.Errorf("the price is %v, %v", p.Value, err)
		}
		b, err := o.Book(t.Context(), "t", 200)
		if err != nil || b.Value.Seq != 4 || b.Value.Depth != 200 {
			t.Errorf("the book is %+v, %v", b, err)
		}
		if got := must(t, c.Prices(), "t").Value.Price.String(); got != "0.5" {
			t.Errorf("queries read %s", got)
		}
		s.End(time.Now()) // REST lags behind what was streamed, which queries are still told
		time.Sleep(time.Second)
		if _, err = o.Book(t.Context(), "t", 200); err != nil {
			t.Fatal(err)
		}
		if got := must(t, c.Books(), queries.Book{TokenID: "t", Depth: 20}).Value.Seq; got != 5 {
			t.Errorf("queries read %d", got)
		}
		if b, err = o.Book(t.Context(), "t", 200); err != nil || b.Value.Seq != 4 {
			t.Errorf("the book is %+v, %v", b, err)
		}
		q.setUnknown("u", true)
		if p, err := o.Price(t.Context(), "u"); p.Value != nil || err != nil {
			t.Errorf("a token without a price has %v, %v", p, err)
		}
		synctest.Wait() // for the refresh of what queries were told
		q.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "away") }
		if b, err := o.Book(t.Context(), "t", 200); b.Value != nil || market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("a venue that is away has %v, %v", b, err)
		}
	})
}

// Prices that are asked for one by one travel together.
func TestOriginBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{latency: 100 * time.Millisecond}
		o := open(t, v).Origin()
		var wg sync.WaitGroup
		for _, id := range ids("t", 0, 84) {
			wg.Go(func() {
				if p, err := o.Price(t.Context(), id); err != nil || p.Value.TokenID != id {
					t.Errorf("%s: %v, %v", id, p.Value, err)
				}
			})
		}
		wg.Wait()
		if n := len(v.calls(reqctx.EndpointPrices)); n > 7 {
			t.Errorf("84 prices took %d calls", n)
		}
	})
}
