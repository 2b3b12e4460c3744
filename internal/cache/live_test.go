package cache

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
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
			if r := c.prices.accept("k", late); r.Value != price {
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

// What is deeper than the streamed book is read by REST, and leaves the streamed one alone.
func TestDeeperThanTheStreamedBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		live := &market.Book{TokenID: "t", Depth: 50, Bids: make([]market.Level, 50), Asks: make([]market.Level, 50)}
		c.StreamBook(&market.Session{}, live, streamed(time.Now()))
		if r := must(t, c.Books(), depth(200)); r.Value.Depth != 200 || r.Handle.Version() == 0 {
			t.Errorf("%+v: a handle of what is no entry stands", r)
		}
		if r := must(t, c.Books(), depth(50)); r.Value != live || !slices.Equal(v.depths(), []int{200}) {
			t.Errorf("asked for depths %v", v.depths())
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
		c.StreamStale(market.Topic{Channel: market.ChannelPrices, ID: "t"})
		if p.Handle.Version() == 0 || s.Handle.Version() == 0 || b.Handle.Version() != 0 {
			t.Errorf("versions %d %d %d", p.Handle.Version(), s.Handle.Version(), b.Handle.Version())
		}
		if !must(t, c.Prices(), "t").Stale || !must(t, c.Spreads(), "t").Stale || must(t, c.Books(), depth(20)).Stale {
			t.Error("stale is what the gap is not in")
		}
		c.StreamStale(market.Topic{Channel: market.ChannelOrderbook, ID: "t"})
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
		topic := market.Topic{Channel: market.ChannelUser, ID: string(wallet), Scope: c.Scope(as(t, "alice"), wallet)}
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
			before := c.positions.entries.Len()
			c.StreamAccount(session, bad, nil, positions, nil, streamed(time.Now()))
			c.StreamStale(bad)
			if c.positions.entries.Len() != before {
				t.Errorf("scope %q names somebody", scope)
			}
		}
	})
}

type watcher struct{ asked []string }

func (w *watcher) Asked(tokens []string) { w.asked = append(w.asked, tokens...) }

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
		if !slices.Equal(w.asked, []string{"a", "a"}) {
			t.Errorf("heard of %v", w.asked)
		}
		w.asked = nil
		readAll(market.WithoutDemand(t.Context()), c.Prices(), "a", "b")
		time.Sleep(time.Second)
		readAll(market.WithoutDemand(t.Context()), c.Prices(), "a") // refreshes
		synctest.Wait()
		must(t, c.Spreads(), "s")
		must(t, c.Books(), market.BookQuery{TokenID: "b", Depth: 7})
		must(t, c.Markets(), byToken("m"))
		if !slices.Equal(w.asked, []string{"s", "b"}) {
			t.Errorf("heard of %v", w.asked)
		}
	})
}
