package cache

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

func streamed(received time.Time) reads.Meta {
	return reads.Meta{ReceivedAt: received, AsOf: received, Source: market.SourceStream}
}

// TestStreamedValueDuringSession checks that REST does not replace a streamed value before the session ends, and that the value is
// stale after the end.
func TestStreamedValueDuringSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		session := &reads.Session{}
		rest := mustRead(t, c.Prices(), "k")
		price := &market.Price{TokenID: "k", Price: market.MustDecimal("0.7")}
		c.StreamPrice(session, price, streamed(time.Now()))
		if rest.Handle.Valid() {
			t.Error("the handle of REST's value does not show its replacement")
		}
		time.Sleep(time.Hour)
		live := mustRead(t, c.Prices(), "k")
		if live.Value != price || live.Stale || live.Source != market.SourceStream || !live.Handle.Valid() {
			t.Errorf("after an hour: got %+v, want the streamed price", live)
		}
		// REST calls that started before the stream return these late results.
		other := &market.Price{TokenID: "k", Price: market.MustDecimal("0.1")}
		for _, late := range []*market.Price{other, nil} {
			if r := c.prices.accept("k", late, origin{}); r.Value != price {
				t.Errorf("late REST result: got %+v, want the streamed price", r.Value)
			}
		}
		if again := mustRead(t, c.Prices(), "k"); again.Handle != live.Handle || !live.Handle.Valid() || len(v.calls()) != 1 {
			t.Errorf("after late REST results: got %+v, want the streamed price", again)
		}
		session.End(time.Now())
		if live.Handle.Valid() {
			t.Error("the handle does not show the end of the session")
		}
		if r := mustRead(t, c.Prices(), "k"); !r.Stale || r.Value != price {
			t.Errorf("after the end: got %+v, want the streamed price, stale", r)
		}
		synctest.Wait()
		if r := mustRead(t, c.Prices(), "k"); r.Stale || r.Source != market.SourceREST || len(v.calls()) != 2 {
			t.Errorf("after the refresh: got %+v, want a fresh price of REST", r)
		}
	})
}

func TestStreamedValueReplacesAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		v.setUnknown("t", true)
		c := open(t, v)
		absent := mustRead(t, c.Books(), depth(20))
		c.StreamBook(&reads.Session{}, &market.Book{TokenID: "t", Depth: 200}, streamed(time.Now()))
		if r := mustRead(t, c.Books(), depth(20)); r.Value == nil || absent.Value != nil || absent.Handle.Valid() {
			t.Error("the handle of the absence does not show the book")
		}
	})
}

// TestReadDeeperThanStreamedBook checks that a read deeper than the streamed book gets a REST book, and that the cache keeps both
// books.
func TestReadDeeperThanStreamedBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		live := &market.Book{TokenID: "t", Depth: 50, Bids: market.NewSide(make([]market.Level, 50)), Asks: market.NewSide(make([]market.Level, 50))}
		session := &reads.Session{}
		c.StreamBook(session, live, streamed(time.Now()))
		for range 3 {
			if r := mustRead(t, c.Books(), depth(200)); r.Value.Depth != 200 || !r.Handle.Valid() || r.Source != market.SourceREST {
				t.Errorf("depth 200: got %+v, want a book of REST", r)
			}
			if r := mustRead(t, c.Books(), depth(50)); r.Value != live {
				t.Errorf("depth 50: got %+v, want the streamed book", r)
			}
		}
		if !slices.Equal(v.depths(), []int{200}) {
			t.Errorf("got calls for depths %v, want 200", v.depths())
		}
		time.Sleep(500 * time.Millisecond)
		deep := mustRead(t, c.Books(), depth(120))
		synctest.Wait()
		if !deep.Stale || !slices.Equal(v.depths(), []int{200, 200}) {
			t.Errorf("got %+v and calls for depths %v, want a stale book and 200 twice", deep, v.depths())
		}
		session.End(time.Now())
		time.Sleep(500 * time.Millisecond)
		if r := mustRead(t, c.Books(), depth(50)); !r.Stale {
			t.Errorf("after the end: got %+v, want a stale book", r)
		}
		synctest.Wait()
		mustRead(t, c.Books(), depth(200))
		synctest.Wait()
		if r := mustRead(t, c.Books(), depth(50)); r.Stale || r.Source != market.SourceREST {
			t.Errorf("after the refresh: got %+v, want a fresh book of REST", r)
		}
	})
}

func TestGapMakesStreamedValuesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{blocked: make(chan struct{})})
		session := &reads.Session{}
		c.StreamPrice(session, &market.Price{TokenID: "t"}, streamed(time.Now()))
		c.StreamSpread(session, &market.Spread{TokenID: "t"}, streamed(time.Now()))
		c.StreamBook(session, &market.Book{TokenID: "t", Depth: 200}, streamed(time.Now()))
		p, s, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Spreads(), "t"), mustRead(t, c.Books(), depth(20))
		c.StreamStale(messages.Topic{Channel: messages.ChannelPrices, ID: "t"})
		if p.Handle.Valid() || s.Handle.Valid() || !b.Handle.Valid() {
			t.Errorf("after a gap of prices: got valid handles %v %v %v, want only that of the book", p.Handle.Valid(), s.Handle.Valid(), b.Handle.Valid())
		}
		if !mustRead(t, c.Prices(), "t").Stale || !mustRead(t, c.Spreads(), "t").Stale || mustRead(t, c.Books(), depth(20)).Stale {
			t.Error("after a gap of prices: want stale price and spread, and a fresh book")
		}
		c.StreamStale(messages.Topic{Channel: messages.ChannelOrderbook, ID: "t"})
		if b.Handle.Valid() || !mustRead(t, c.Books(), depth(20)).Stale {
			t.Error("after a gap of the book: want a stale book")
		}
	})
}

type watcher struct{ polls []string }

func (w *watcher) RecordPoll(_ uint64, c messages.Channel, tokens []string) {
	for _, t := range tokens {
		w.polls = append(w.polls, fmt.Sprint(c, " ", t))
	}
}

// TestRecordPoll checks that each client read of prices, spreads or books calls RecordPoll with the tokens that exist. Background
// reads and reads of markets must not pass tokens to RecordPoll.
func TestRecordPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		v.setUnknown("x", true)
		c, w := open(t, v), &watcher{}
		c.SetWatcher(w)
		for range 2 {
			readAll(t.Context(), c.Prices(), "a", "x", "bad")
		}
		if !slices.Equal(w.polls, []string{"prices a", "prices a"}) {
			t.Errorf("got polls %v, want two of a", w.polls)
		}
		w.polls = nil
		readAll(request.WithoutPoll(t.Context()), c.Prices(), "a", "b")
		time.Sleep(time.Second)
		readAll(request.WithoutPoll(t.Context()), c.Prices(), "a") // this read refreshes the stale price
		synctest.Wait()
		mustRead(t, c.Spreads(), "s")
		mustRead(t, c.Books(), queries.Book{TokenID: "b", Depth: 7})
		mustRead(t, c.Markets(), byToken("m"))
		if !slices.Equal(w.polls, []string{"prices s", "orderbook b"}) {
			t.Errorf("got polls %v, want one of s and one of b", w.polls)
		}
	})
}

// TestRecordPollOfStreamedTokens checks that RecordPoll gets a streamed token at most once a second. RecordPoll must get all other
// tokens at each read.
func TestRecordPollOfStreamedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := open(t, &testVenue{}), &watcher{}
		c.SetWatcher(w)
		session := &reads.Session{}
		for _, id := range []string{"s", "t"} {
			c.StreamPrice(session, &market.Price{TokenID: id}, reads.Meta{})
		}
		list := []string{"a", "s", "b", "t", "a"}
		wantPolls := func(want ...string) {
			t.Helper()
			if !slices.Equal(w.polls, want) {
				t.Errorf("got polls %q, want %q", w.polls, want)
			}
			w.polls = nil
		}
		readAll(t.Context(), c.Prices(), list...)
		w.polls = nil // forget the polls of the first read
		time.Sleep(time.Second / 2)
		readAll(t.Context(), c.Prices(), list...)
		wantPolls("prices a", "prices b", "prices a")
		readAll(t.Context(), c.Prices(), "s", "t", "b")
		wantPolls("prices b")
		readAll(t.Context(), c.Prices(), "t")
		wantPolls()
		time.Sleep(time.Second / 2)
		readAll(t.Context(), c.Prices(), "t")
		wantPolls("prices t")
		readAll(t.Context(), c.Prices(), "s", "t")
		wantPolls("prices s")
		session.End(time.Now())
		readAll(t.Context(), c.Prices(), "s")
		synctest.Wait()
		w.polls = nil
		readAll(t.Context(), c.Prices(), "s", "t") // s now comes from REST
		wantPolls("prices s")
	})
}

// TestReadsOfStreamedTokenMakeNoCall checks that reads of a streamed token return the last streamed values without a call.
func TestReadsOfStreamedTokenMakeNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		session := &reads.Session{}
		for n := range 1000 {
			price, spread, book := newPrice(fmt.Sprintf(".%04d", n+1), n%60), newSpread(".1", ".2", 7), newBook("A", uint64(n+1), 0, 200, int64(n))
			c.StreamPrice(session, price, streamed(time.Now()))
			c.StreamSpread(session, spread, streamed(time.Now()))
			c.StreamBook(session, book, streamed(time.Now()))
			time.Sleep(time.Minute)
			if p, s, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Spreads(), "t"), mustRead(t, c.Books(), depth(1+n%200)); p.Value != price || s.Value != spread || b.Value != book ||
				p.Stale || s.Stale || b.Stale || p.Source != market.SourceStream {
				t.Fatalf("read %d: got %+v %+v %+v, want the last streamed values", n, p, s, b)
			}
		}
		if calls := v.calls(); len(calls) > 0 {
			t.Errorf("got %d calls, want 0", len(calls))
		}
	})
}

// TestEndOfSession checks that the end of a session makes all values of this session stale at once, and leaves other values fresh.
func TestEndOfSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{blocked: make(chan struct{})}
		c := open(t, v)
		ended, lasting := &reads.Session{}, &reads.Session{}
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
		ended.End(time.Now().Add(time.Hour)) // a second call of End has no effect
		for i, r := range readAll(t.Context(), c.Prices(), keys...) {
			stays := i%4 == 0
			if r.Value.Stale == stays || before[i].Value.Handle.Valid() != stays || before[i].Value.Stale {
				t.Fatalf("token %d: got %+v, want stale %v", i, r, !stays)
			}
			if at := r.Value.Handle.FreshUntil(); at != 0 {
				t.Fatalf("token %d: FreshUntil returned %d, want 0", i, at)
			}
		}
		// Stale values are served until their stale time ends.
		time.Sleep(30*time.Second - 1)
		out := make([]reads.Result[*market.Price], 1)
		if missing := c.Prices().Lookup(t.Context(), []string{"t001"}, out, nil); len(missing) != 0 || !out[0].Value.Stale {
			t.Errorf("before the end of the stale time: got %+v, want a stale price", out[0])
		}
		time.Sleep(time.Nanosecond)
		if missing := c.Prices().Lookup(t.Context(), []string{"t001", "t000"}, make([]reads.Result[*market.Price], 2), nil); !slices.Equal(missing, []int{0}) {
			t.Errorf("after the stale time: got missing indexes %v, want [0]", missing)
		}
	})
}

// TestHandlesOfStreamedValues checks that the handle of a streamed value changes when the value is replaced and when StreamStale is
// called.
func TestHandlesOfStreamedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{blocked: make(chan struct{})})
		session, topic := &reads.Session{}, messages.Topic{Channel: messages.ChannelPrices, ID: "t"}
		c.StreamStale(topic) // no effect, because nothing is streamed yet
		c.StreamPrice(session, newPrice(".5", 1), streamed(at(1)))
		one := mustRead(t, c.Prices(), "t")
		c.StreamPrice(session, newPrice(".5", 1), streamed(at(1)))
		two := mustRead(t, c.Prices(), "t")
		if one.Handle.Valid() || !two.Handle.Valid() || one.Handle == two.Handle {
			t.Error("the handle does not show the replacement")
		}
		c.StreamStale(topic)
		if two.Handle.Valid() {
			t.Error("after a gap the handle is valid")
		}
		if r := mustRead(t, c.Prices(), "t"); !r.Stale || r.Handle.Valid() {
			t.Errorf("after a gap: got %+v, want a stale price", r)
		}
		session.End(time.Now())
		if r := mustRead(t, c.Prices(), "t"); !r.Stale {
			t.Errorf("after the end: got %+v, want a stale price", r)
		}
		c.StreamPrice(&reads.Session{}, newPrice(".6", 1), streamed(at(1)))
		if r := mustRead(t, c.Prices(), "t"); r.Stale || !r.Handle.Valid() || r.Value.Price.String() != "0.6" {
			t.Errorf("after the snapshot: got %+v, want a fresh price of 0.6", r)
		}
	})
}

// TestGapBeforeEnd checks that the stale time begins at StreamStale even if the session ends later.
func TestGapBeforeEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{blocked: make(chan struct{})})
		session := &reads.Session{}
		c.StreamPrice(session, newPrice(".5", 1), streamed(at(1)))
		c.StreamStale(messages.Topic{Channel: messages.ChannelPrices, ID: "t"})
		time.Sleep(20 * time.Second)
		session.End(time.Now())
		out := make([]reads.Result[*market.Price], 1)
		if missing := c.Prices().Lookup(t.Context(), []string{"t"}, out, nil); len(missing) != 0 {
			t.Error("20 s after the gap: got no value")
		}
		time.Sleep(10 * time.Second)
		if missing := c.Prices().Lookup(t.Context(), []string{"t"}, out, nil); len(missing) != 1 {
			t.Error("30 s after the gap: got a value, want none")
		}
	})
}
