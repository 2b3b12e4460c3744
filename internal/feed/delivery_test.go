package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// TestStuckReaderDelaysNobody checks that a reader that never reads does not change the trades that other readers get.
func TestStuckReaderDelaysNobody(t *testing.T) {
	play := func(t *testing.T, stuck bool) (got [5][]string) {
		synctest.Test(t, func(t *testing.T) {
			r := newTestFeed(t)
			var lazy *Watch
			var lazyReader *Reader
			if stuck {
				lazyReader, lazy = r.watch(t, tradesOf("T"))
				for i := range 10 {
					if _, err := lazyReader.Watch(priceOf(fmt.Sprint(i)), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			var watches [5]*Watch
			for i := range watches {
				_, watches[i] = r.watch(t, tradesOf("T"))
			}
			r.upNow(tradesOf("T"), priceOf("0"), priceOf("1"))
			r.Message(tradesMessage("T", "A", 1, messages.KindTradesSnapshot))
			for n := range 3000 {
				r.Message(tradesMessage("T", "A", uint64(n+2), messages.KindTrade, fmt.Sprintf("t%d", n)))
				r.Message(priceMessage(fmt.Sprint(n%2), "A", uint64(n+1), ".5"))
				for i, w := range watches {
					if n%(1+10*i) == 0 {
						_, items, err := w.Take()
						if err != nil {
							t.Fatalf("the watch of a reader that reads has ended: %v", err)
						}
						for _, x := range items.Trades {
							got[i] = append(got[i], x.TradeID)
						}
					}
				}
				if stuck {
					if n := len(lazy.items.Trades); n > maxQueued {
						t.Fatalf("%d trades wait for the stuck reader, want at most %d", n, maxQueued)
					}
				}
			}
			if !stuck {
				return
			}
			if waiting := len(lazyReader.changed); waiting != 3 {
				t.Errorf("%d changed watches wait for the stuck reader, want 3", waiting)
			}
			_, items, err := lazy.Take()
			if market.CodeOf(err) != market.CodeRateLimited || !items.empty() || !strings.Contains(err.Error(), "too slowly") {
				t.Errorf("the watch of the stuck reader has %d trades and the error %v; want no trades and RATE_LIMITED", len(items.Trades), err)
			}
			if s := r.Stats(); s.Dropped != maxQueued+1 || s.Conflated == 0 {
				t.Errorf("Dropped is %d and Conflated is %d, want %d and more than 0", s.Dropped, s.Conflated, maxQueued+1)
			}
		})
		return got
	}
	with, without := play(t, true), play(t, false)
	for i := range with {
		if !slices.Equal(with[i], without[i]) {
			t.Errorf("reader %d got %d trades beside a stuck reader, but %d trades without one", i, len(with[i]), len(without[i]))
		}
		for n, id := range with[i] {
			if id != fmt.Sprintf("t%d", n) {
				t.Fatalf("reader %d got the trade %s, want t%d", i, id, n)
			}
		}
		if len(with[i]) < 2950 {
			t.Errorf("reader %d got %d trades, want at least 2950", i, len(with[i]))
		}
	}
}

// TestDeliveryAllocatesNothingPerReader checks that a message for 1,000 readers causes at most ten allocations more than a message
// for one reader.
func TestDeliveryAllocatesNothingPerReader(t *testing.T) {
	count := func(key messages.Topic, readers int, next func(seq uint64) *messages.Message) float64 {
		r := newTestFeed(t)
		all := make([]*Reader, readers)
		watches := make([]*Watch, readers)
		for i := range all {
			all[i], watches[i] = r.watch(t, key)
			defer all[i].Close()
		}
		r.upNow(key)
		seq := uint64(1)
		if key.Channel == messages.ChannelTrades {
			r.Message(tradesMessage("T", "A", seq, messages.KindTradesSnapshot))
		}
		return testing.AllocsPerRun(100, func() {
			seq++
			r.Message(next(seq))
			for i := range all {
				<-all[i].Changed()
				if got := all[i].Take(); len(got) != 1 || got[0] != watches[i] {
					t.Fatal("a reader was not signalled")
				}
				if s, _, err := watches[i].Take(); err != nil || s.Seq != seq {
					t.Fatal("a reader did not get the new state")
				}
			}
		})
	}
	for _, c := range []struct {
		name string
		key  messages.Topic
		next func(seq uint64) *messages.Message
	}{
		{"price", priceOf("T"), func(seq uint64) *messages.Message { return priceMessage("T", "A", seq, ".5") }},
		{"book", bookOf("T"), func(seq uint64) *messages.Message { return bookMessage("T", "A", seq, ".50x1 | .60x1") }},
		{"trade", tradesOf("T"), func(seq uint64) *messages.Message {
			return tradesMessage("T", "A", seq, messages.KindTrade, fmt.Sprint(seq))
		}},
	} {
		one, many := count(c.key, 1, c.next), count(c.key, 1000, c.next)
		t.Logf("%s: %.0f allocations for 1 reader, %.0f for 1,000", c.name, one, many)
		if many > one+10 {
			t.Errorf("%s: a message takes %.0f allocations for 1 reader and %.0f for 1,000 readers, want at most 10 more", c.name, one, many)
		}
	}
}

// TestReaderOverFeeds checks that one reader can watch topics of several feeds: one signal, the shares of each feed, and all watches
// closed at the end.
func TestReaderOverFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newTestFeed(t), newTestFeed(t)
		reader := NewReader("reader", market.Names{"", "b"}, a.Feed, b.Feed)
		first, second := watchTopic(t, reader, priceOf("T"), ""), watchTopic(t, reader, priceOf("b:T"), "")
		reader.KeepLive(bookOf("b:T"))
		a.wantOpen(t, "prices T")
		b.wantOpen(t, "orderbook b:T", "prices b:T")
		if x, y := countTopics(t, a)["reader"], countTopics(t, b)["reader"]; x != 1 || y != 2 {
			t.Errorf("the reader has %d and %d topics, want 1 and 2", x, y)
		}
		for range 2 {
			a.Refused(priceOf("T"), market.Errorf(market.CodeNotFound, "no"))
			b.upNow(priceOf("b:T"))
			b.downNow(priceOf("b:T"))
		}
		<-reader.Changed()
		if got := reader.Take(); !slices.Contains(got, first) || !slices.Contains(got, second) {
			t.Errorf("Take returns %d watches, want those of both feeds", len(got))
		}
		reader.Close()
		if x, y := countTopics(t, a)["reader"], countTopics(t, b)["reader"]; x+y != 0 {
			t.Errorf("after Close, the reader has %d and %d topics", x, y)
		}
	})
}
