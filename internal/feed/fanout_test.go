package feed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

func TestReadersShareATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		readers := make([]*Reader, 1000)
		for i := range readers {
			readers[i], _ = r.watch(t, bookOf("T"))
		}
		r.wantCalls(t, "watch orderbook T")
		r.upNow(bookOf("T"))
		r.Message(bookMessage("T", "A", 1, ".50x1 | .60x1"))
		for i, reader := range readers {
			if w := reader.Take(); len(w) != 1 {
				t.Fatalf("reader %d was signalled for %d watches", i, len(w))
			}
		}
		for _, reader := range readers[1:] {
			reader.Close()
		}
		time.Sleep(time.Hour)
		r.wantCalls(t)
		readers[0].Close()
		readers[0].Close()
		time.Sleep(5*time.Second - 1)
		synctest.Wait()
		if calls := r.up.take(); len(calls) > 0 || r.Stats().Topics != 1 {
			t.Fatalf("before Config.Linger has passed, the upstream got the calls %q and %d topics are open, want no call and 1 topic", calls, r.Stats().Topics)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if calls := r.up.take(); !slices.Equal(calls, []string{"unwatch orderbook T"}) || r.Stats().Topics != 0 {
			t.Fatalf("after Config.Linger has passed, the upstream got the calls %q and %d topics are open, want one unwatch and 0 topics", calls, r.Stats().Topics)
		}
		if r.sink.entry(bookOf("T")).fresh() {
			t.Error("the book in the sink is fresh although the topic was closed")
		}
	})
}

func TestSkipLingerClosesTopicsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		read, _ := r.watch(t, bookOf("read"))
		lingering, _ := r.watch(t, bookOf("lingering"))
		other, _ := r.watch(t, bookOf("other"))
		lingering.Close()
		r.up.take()
		r.SkipLinger(func(key messages.Topic) bool { return key.ID != "other" })
		synctest.Wait()
		r.wantCalls(t, "unwatch orderbook lingering")
		read.Close()
		other.Close()
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r.wantCalls(t, "unwatch orderbook read")
	})
}

func TestJoiningDuringTheLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		first, _ := r.watch(t, bookOf("T"))
		r.upNow(bookOf("T"))
		r.Message(bookMessage("T", "A", 1, ".50x1 | .60x1"))
		r.up.take()
		for range 3 {
			first.Close()
			time.Sleep(4 * time.Second)
			second, w := r.watch(t, bookOf("T"))
			select {
			case <-second.Changed():
			default:
				t.Fatal("the reader of a new watch was not signalled although the state is known")
			}
			if s, err := w.State(); err != nil || !s.Live || s.Seq != 1 {
				t.Fatalf("the state of the new watch is %+v with the error %v, want a live book", s, err)
			}
			time.Sleep(time.Minute)
			first = second
		}
		r.wantCalls(t)
		first.Close()
	})
}

func TestTakeConflates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		reader := r.NewReader("reader")
		defer reader.Close()
		var watches []*Watch
		topics := []messages.Topic{priceOf("0"), priceOf("1"), priceOf("2"), priceOf("3")}
		for _, key := range topics {
			watches = append(watches, watchTopic(t, reader, key, ""))
		}
		r.upNow(topics...)
		reader.Take()
		for len(reader.Changed()) > 0 {
			<-reader.Changed()
		}
		seq := uint64(0)
		change := func(order ...int) {
			for _, i := range order {
				seq++
				r.Message(priceMessage(topics[i].ID, "A", seq, ".5"))
			}
		}
		change(2, 0, 2, 2, 1, 0)
		if n := len(reader.Changed()); n != 1 {
			t.Errorf("%d signals wait in the channel, want 1", n)
		}
		if got := reader.Take(); !slices.Equal(got, []*Watch{watches[2], watches[0], watches[1]}) {
			t.Errorf("Take returned %d watches, want the watches 2, 0 and 1", len(got))
		}
		if got := reader.Take(); len(got) != 0 {
			t.Errorf("a second Take returned %d watches, want 0", len(got))
		}
		if s := r.Stats(); s.Conflated < 3 {
			t.Errorf("Stats.Conflated is %d, want at least 3", s.Conflated)
		}
		change(3, 1)
		watches[3].Close()
		watches[3].Close()
		change(3, 0)
		if got := reader.Take(); !slices.Equal(got, []*Watch{watches[1], watches[0]}) {
			t.Errorf("after one watch was closed, Take returned %d watches, want the watches 1 and 0", len(got))
		}
		if len(reader.watches) != 3 {
			t.Errorf("the reader has %d watches, want 3", len(reader.watches))
		}
	})
}

func TestDownEndsASessionWithOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		reader := r.NewReader("reader")
		defer reader.Close()
		var topics []messages.Topic
		for i := range 100 {
			topics = append(topics, bookOf(fmt.Sprint(i)))
			watchTopic(t, reader, topics[i], "")
		}
		countFresh := func(topics []messages.Topic) (n int) {
			for _, key := range topics {
				if r.sink.entry(key).fresh() {
					n++
				}
			}
			return n
		}
		seq := uint64(0)
		sendBooks := func(topics []messages.Topic) {
			seq++
			for _, key := range topics {
				r.Message(bookMessage(key.ID, "A", seq, ".50x1 | .60x1"))
			}
		}
		// Some topics go down. The other topics of their session stay live.
		r.upNow(topics...)
		sendBooks(topics)
		r.downNow(topics[:40]...)
		if n := countFresh(topics); n != 60 || countFresh(topics[:40]) != 0 {
			t.Fatalf("after 40 of 100 topics went down, %d books in the sink are fresh, want the other 60", n)
		}
		sendBooks(topics)
		if n := countFresh(topics); n != 60 {
			t.Fatalf("after new messages, %d books in the sink are fresh, want the 60 books of the live topics", n)
		}
		// The other topics go down too, which ends the session.
		staleCalls := r.sink.staleCalls
		r.downNow(topics[40:]...)
		if n := countFresh(topics); n != 0 || r.sink.staleCalls != staleCalls {
			t.Fatalf("after all topics went down, %d books are fresh and StreamStale was called %d times, want 0 and 0", n, r.sink.staleCalls-staleCalls)
		}
		// Topics that come up again get a new session. The first ten topics come up twice, so their session differs from the session of
		// the other topics.
		r.upNow(topics...)
		r.upNow(topics[:10]...)
		sendBooks(topics)
		r.downNow(topics[10:]...)
		if n := countFresh(topics[:10]); n != 10 || countFresh(topics[10:]) != 0 {
			t.Errorf("after the topics of the earlier session went down, %d books of the later session are fresh, want only these 10", n)
		}
		staleCalls = r.sink.staleCalls
		r.downNow(topics...)
		if n := countFresh(topics); n != 0 || r.sink.staleCalls != staleCalls {
			t.Errorf("after all topics went down again, %d books are fresh and StreamStale was called %d times, want 0 and 0", n, r.sink.staleCalls-staleCalls)
		}
		// Topic 0 leaves the session of the other topics before they go down. The later Down of the topics 0 to 98 must not end this
		// session, because topic 99 still uses it.
		r.upNow(topics...)
		r.downNow(topics[0])
		r.upNow(topics[0])
		sendBooks(topics)
		r.downNow(topics[:99]...)
		if n := countFresh(topics); n != 1 || countFresh(topics[99:]) != 1 {
			t.Errorf("after all topics except topic 99 went down, %d books are fresh, want only the book of topic 99", n)
		}
		// Topics without watches do not keep a session alive.
		r.upNow(topics...)
		sendBooks(topics)
		for w := range reader.watches {
			if w.Topic() == topics[7] {
				w.Close()
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		staleCalls = r.sink.staleCalls
		r.downNow(topics...)
		if n := countFresh(topics); n != 0 || r.sink.staleCalls != staleCalls {
			t.Errorf("after all topics with watches went down, %d books are fresh and StreamStale was called %d times, want 0 and 0", n, r.sink.staleCalls-staleCalls)
		}
	})
}

func TestRefusedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		reader, w := r.watch(t, bookOf("T"))
		_, other := r.watch(t, bookOf("U"))
		r.upNow(bookOf("T"), bookOf("U"))
		r.Message(bookMessage("T", "A", 1, ".50x1 | .60x1"))
		r.Message(bookMessage("U", "A", 1, ".50x1 | .60x1"))
		reader.Take()
		gone := market.Errorf(market.CodeNotFound, "unknown")
		r.Refused(bookOf("T"), gone)
		r.Refused(bookOf("T"), gone)
		r.Refused(bookOf("nobody's"), gone)
		if got := reader.Take(); !slices.Equal(got, []*Watch{w}) {
			t.Fatal("the reader was not signalled")
		}
		if _, err := w.State(); err != error(gone) {
			t.Errorf("the watch has the error %v, want %v", err, gone)
		}
		if s, err := other.State(); err != nil || !s.Live {
			t.Errorf("the state of the other topic is %+v with the error %v, want a live state", s, err)
		}
		if r.sink.entry(bookOf("T")).fresh() || !r.sink.entry(bookOf("U")).fresh() {
			t.Error("the sink must have a stale book of the refused topic and a fresh book of the other topic")
		}
		r.wantOpen(t, "orderbook U")
		// A new watch opens a new topic. Neither the end of the old watch nor the old linger timer affects the new topic.
		_, again := r.watch(t, bookOf("T"))
		reader.Close()
		r.closeAfterLinger(w.topic) // as if the linger timer of the old topic had fired
		time.Sleep(time.Minute)
		r.upNow(bookOf("T"))
		r.Message(bookMessage("T", "A", 1, ".50x1 | .60x1"))
		if s, err := again.State(); err != nil || !s.Live {
			t.Errorf("the state of the new watch is %+v with the error %v, want a live state", s, err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		reader, w := r.watch(t, bookOf("T"))
		r.upNow(bookOf("T"))
		r.Message(bookMessage("T", "A", 1, ".50x1 | .60x1"))
		r.RecordPoll(0, []string{"W", "W", "W"})
		r.Close()
		r.Close()
		if _, err := w.State(); market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("after Close, the watch has the error %v, want %s", err, market.CodeUpstreamUnavailable)
		}
		watchTopic(t, reader, bookOf("U"), market.CodeUpstreamUnavailable)
		reader.KeepLive(bookOf("U"))
		r.up.take()
		r.Message(bookMessage("T", "A", 2, ".50x1 | .60x1"))
		r.upNow(bookOf("T"))
		r.RecordPoll(0, []string{"V", "V", "V"})
		reader.Close()
		synctest.Wait()
		if calls := r.up.take(); len(calls) > 0 || r.auto.watches.Len() > 0 || r.auto.expiry != nil {
			t.Errorf("a closed feed made the calls %q and has %d auto-watches, want none", calls, r.auto.watches.Len())
		}
	})
}

func TestWatchesWithoutReaderQueueNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		reader := r.NewReader("reader")
		defer reader.Close()
		reader.KeepLive(tradesOf("T"))
		r.upNow(tradesOf("T"))
		r.Message(tradesMessage("T", "A", 1, messages.KindTradesSnapshot))
		for n := range maxQueued + 1 {
			r.Message(tradesMessage("T", "A", uint64(n+2), messages.KindTrade, fmt.Sprint(n)))
		}
		for w := range reader.watches {
			if s, items, err := w.Take(); err != nil || !items.empty() || len(s.Trades) != maxTape {
				t.Errorf("the KeepLive watch has %d queued trades, %d trades in its state and the error %v; want 0, %d and nil", len(items.Trades), len(s.Trades), err, maxTape)
			}
		}
		if s := r.Stats(); s.Dropped != 0 || len(reader.Take()) != 0 {
			t.Errorf("the feed dropped %d items, or has signalled the reader of a KeepLive watch", s.Dropped)
		}
	})
}

func TestFeedWithoutUpstream(t *testing.T) {
	f := New(Config{Sink: newSink()})
	defer f.Close()
	r := f.NewReader("reader")
	defer r.Close()
	watchTopic(t, r, bookOf("T"), market.CodeUnsupported)
	r.KeepLive(bookOf("T"))
	tokens := []string{"T", "T", "T"}
	n := testing.AllocsPerRun(100, func() { f.RecordPoll(0, messages.ChannelPrices, tokens) })
	if n != 0 || f.auto.polls.Len() > 0 || f.auto.watches.Len() > 0 {
		t.Errorf("without an upstream, RecordPoll takes %v allocations, and the feed has %d counted tokens and %d auto-watches; want none", n, f.auto.polls.Len(), f.auto.watches.Len())
	}
}

// TestConcurrentUse checks that concurrent operations leave no topic open.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tokens, connections, turns = 12, 3, 1500
		r := newTestFeed(t, func(c *Config) { c.Linger, c.Topics = time.Millisecond, 30 })
		r.up.maxPublic = 30
		topics := func(connection int) (all []messages.Topic) {
			for i := connection; i < tokens; i += connections {
				id := fmt.Sprint(i)
				all = append(all, priceOf(id), bookOf(id), tradesOf(id), messages.Topic{Channel: messages.ChannelMarket, ID: id})
			}
			return all
		}
		var wg sync.WaitGroup
		for c := range connections {
			wg.Go(func() { // one goroutine makes all calls for the topics of a connection
				random := rand.New(rand.NewPCG(1, uint64(c)))
				mine, seq := topics(c), uint64(0)
				for n := range turns {
					key := mine[random.IntN(len(mine))]
					seq++
					switch random.IntN(12) {
					case 0:
						r.Up(mine)
					case 1:
						r.Down(mine[:random.IntN(len(mine)+1)], nil)
					case 2:
						r.Heartbeat("A", map[messages.Topic]uint64{key: seq})
					case 3:
						r.Refused(key, market.Errorf(market.CodeNotFound, "gone"))
					case 4:
						time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
					case 5:
						r.Acknowledged(mine)
					case 6:
						r.Stats()
					default:
						epoch := string(rune('A' + n/700))
						switch key.Channel {
						case messages.ChannelPrices:
							r.Message(priceMessage(key.ID, epoch, seq, ".5"))
						case messages.ChannelOrderbook:
							r.Message(bookMessage(key.ID, epoch, seq, ".50x1 | .60x1"))
							r.Message(deltaMessage(key.ID, epoch, seq+1, "b.40x1"))
						case messages.ChannelTrades:
							r.Message(tradesMessage(key.ID, epoch, seq, messages.KindTradesSnapshot, fmt.Sprint(seq)))
						default:
							m := message(key, messages.KindMarket, epoch, seq)
							m.Market = &market.MarketChange{Kind: "STATUS"}
							r.Message(m)
						}
					}
				}
			})
		}
		for n := range 6 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(2, uint64(n)))
				for range turns / 10 {
					reader := r.NewReader("reader")
					for range 10 {
						key := topics(random.IntN(connections))[random.IntN(8)]
						switch random.IntN(4) {
						case 0:
							reader.KeepLive(key)
						case 1:
							r.RecordPoll(0, []string{key.ID, key.ID, fmt.Sprint(random.IntN(tokens))})
						default:
							if w, err := reader.Watch(key, nil); err == nil && random.IntN(3) == 0 {
								defer w.Close()
							} else if err != nil && market.CodeOf(err) != market.CodeRateLimited {
								t.Errorf("Watch returned the error %v", err)
							}
						}
						for _, w := range reader.Take() {
							if s, _, err := w.Take(); err == nil && s.Live && w.Topic().Channel == messages.ChannelOrderbook && s.Book == nil {
								t.Error("a topic of a book is live but has no book")
							}
						}
					}
					time.Sleep(time.Duration(random.IntN(2)) * time.Millisecond)
					reader.Close()
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Hour) // after this time, all auto-watches have expired
		synctest.Wait()
		if open := r.up.open(); len(open) > 0 || r.Stats().Topics != 0 {
			t.Errorf("after all watches have ended, the topics %q are open at the upstream and %d topics in the feed, want none", open, r.Stats().Topics)
		}

		// Close may run concurrently with the other methods.
		for range 4 {
			wg.Go(func() {
				for range 200 {
					reader := r.NewReader("reader")
					for _, key := range topics(0) {
						_, _ = reader.Watch(key, nil)
					}
					reader.Close()
				}
			})
		}
		wg.Go(func() {
			for n := range 400 {
				r.Up(topics(0))
				r.Message(bookMessage("0", "A", uint64(n+1), ".50x1 | .60x1"))
			}
		})
		wg.Go(r.Close)
		wg.Wait()
		if _, err := r.NewReader("reader").Watch(bookOf("0"), nil); err == nil {
			t.Error("Watch succeeded after Close")
		}
	})
}
