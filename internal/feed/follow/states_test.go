package follow_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/upstream"
)

// TestPricesInAnOutage checks that prices are polled over REST while the venue's stream is down.
func TestPricesInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4")}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		s.connect(pricesOf("T"))
		s.price("T", "0.5")
		f.want(showPrice, "INITIAL 0.5 STREAM")
		if r.calls != 0 {
			t.Errorf("the stream made %d reads of a live topic, want 0", r.calls)
		}
		s.disconnect(pricesOf("T"))
		f.want(showPrice, "FRESHNESS 0.5 STREAM stale")
		time.Sleep(6 * time.Second)
		f.want(showPrice, "CHANGE 0.4 REST")
		r.set(priceOf("T", "0.3"))
		time.Sleep(6 * time.Second)
		f.want(showPrice, "CHANGE 0.3 REST")
		r.fail(errDown)
		time.Sleep(6 * time.Second)
		f.want(showPrice, "FRESHNESS 0.3 REST stale")
		time.Sleep(time.Hour)
		f.want(showPrice)
		r.fail(nil)
		time.Sleep(40 * time.Second)
		f.want(showPrice, "FRESHNESS 0.3 REST")
		s.connect(pricesOf("T"))
		s.price("T", "0.6")
		f.want(showPrice, "RESYNC 0.6 STREAM")
		calls := r.calls
		time.Sleep(time.Minute)
		if r.calls != calls {
			t.Error("a live topic is polled")
		}
	})
}

// TestFirstEventInAnOutage checks that the first event during an outage has a value from REST, not the old value of the venue's
// stream.
func TestFirstEventInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4")}
		first := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		s.connect(pricesOf("T"))
		s.price("T", "0.5")
		s.disconnect(pricesOf("T"))
		first.take()
		second := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		time.Sleep(time.Second)
		second.want(showPrice, "INITIAL 0.4 REST")
	})
}

// TestReaderJoins checks that a reader that joins gets the live state. If the topic is not live, the reader gets a new value from
// REST. If REST does not respond, the reader gets the last state.
func TestReaderJoins(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, g := &restSource[*market.Price]{value: priceOf("T", "0.4")}, newReaders()
		source := s.source()
		source.Group = g
		f := run(t, follow.Prices(s.ctx, source, []string{"T"}, time.Second, r.list))
		s.connect(pricesOf("T"))
		s.price("T", "0.5")
		f.want(showPrice, "INITIAL 0.5 STREAM")
		f.cohorts()

		// While the topic is live, the joining reader gets the state at once.
		time.Sleep(2 * time.Second)
		g.join()
		f.want(showPrice, "INITIAL 0.5 STREAM")
		if to := f.cohorts(); fmt.Sprint(to) != "[1]" {
			t.Errorf("the cohorts of the events are %v, want [1]", to)
		}
		// A change waits for the interval. All readers get the change before the joining reader gets the state.
		s.price("T", "0.51")
		s.price("T", "0.52")
		f.want(showPrice, "CHANGE 0.51 STREAM")
		g.join()
		f.want(showPrice)
		time.Sleep(time.Second)
		f.want(showPrice, "CHANGE 0.52 STREAM", "INITIAL 0.52 STREAM")

		// While the topic is not live, the stream reads REST first.
		s.disconnect(pricesOf("T"))
		time.Sleep(time.Second)
		f.want(showPrice, "FRESHNESS 0.52 STREAM stale")
		f.cohorts()
		g.join()
		f.want(showPrice, "CHANGE 0.4 REST", "INITIAL 0.4 REST")
		if to := f.cohorts(); fmt.Sprint(to) != "[0 3]" {
			t.Errorf("the cohorts of the events are %v, want [0 3]", to)
		}
		// Now REST does not respond.
		r.slow(time.Hour)
		time.Sleep(10 * time.Second)
		f.take()
		g.join()
		time.Sleep(6 * time.Second)
		f.want(showPrice, "INITIAL 0.4 REST stale")
	})
}

// TestReaderJoinsBeforeTheFirstState checks that a reader that joins before the first state gets the current problem.
func TestReaderJoinsBeforeTheFirstState(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, g := &restSource[*market.Price]{err: errDown}, newReaders()
		source := s.source()
		source.Group = g
		f := run(t, follow.Prices(s.ctx, source, []string{"T", "U"}, 0, r.list))
		time.Sleep(time.Second)
		f.want(showPrice, "!UPSTREAM_UNAVAILABLE")
		time.Sleep(20 * time.Second)
		f.want(showPrice)
		g.join()
		time.Sleep(6 * time.Second)
		f.want(showPrice, "!UPSTREAM_UNAVAILABLE")
		if to := f.cohorts(); fmt.Sprint(to) != "[0 1]" {
			t.Errorf("the cohorts of the events are %v, want [0 1]", to)
		}
		r.edit(func() { r.err, r.value = nil, priceOf("T", "0.4") })
		time.Sleep(40 * time.Second)
		f.want(showPrice, "INITIAL 0.4 REST", "INITIAL 0.4 REST")
	})
}

// TestIntervalKeepsNoBacklog checks that only the latest price waits for the interval.
func TestIntervalKeepsNoBacklog(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.50")} // REST has a price, because an unknown token would end the stream
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, time.Second, r.list))
		s.connect(pricesOf("T"))
		for n := range 100 {
			s.price("T", fmt.Sprintf("0.%02d", n))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		events := f.take()
		if n := len(events); n < 10 || n > 13 {
			t.Errorf("the changes of ten seconds caused %d events, want 10 to 13", n)
		}
		if last := showPrice(events[len(events)-1].Value); last != "0.99 STREAM" {
			t.Errorf("the last event has the price %s, want 0.99 STREAM", last)
		}
	})
}

// TestStaleRead checks that one stale read of an unchanged price causes no event, but several stale reads in a row do.
func TestStaleRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4"), meta: staleMeta}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		time.Sleep(500 * time.Millisecond)
		f.want(showPrice, "INITIAL 0.4 REST stale")
		r.edit(func() { r.value, r.meta = priceOf("T", "0.5"), nil })
		time.Sleep(time.Second)
		f.want(showPrice, "CHANGE 0.5 REST")
		r.edit(func() { r.meta = staleMeta })
		time.Sleep(3600 * time.Millisecond)
		f.want(showPrice) // no event yet, because the next read may return a newer value
		r.edit(func() { r.meta = nil })
		time.Sleep(time.Minute)
		f.want(showPrice)
		r.edit(func() { r.meta = staleMeta })
		time.Sleep(time.Minute)
		f.want(showPrice, "FRESHNESS 0.5 REST stale")
	})
}

// TestReclaimedTopicIsPolled checks that a topic is polled after the feed has closed it for other clients.
func TestReclaimedTopicIsPolled(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4")}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		s.connect(pricesOf("T"))
		s.price("T", "0.5")
		f.want(showPrice, "INITIAL 0.5 STREAM")
		s.Refused(pricesOf("T"), market.Errorf(market.CodeRateLimited, "others need the room"))
		time.Sleep(6 * time.Second)
		f.want(showPrice, "CHANGE 0.4 REST")
	})
}

// TestUnknownOrders checks that orders are polled over REST if the snapshot of the account has nil orders.
func TestUnknownOrders(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*[]market.Order]{value: &[]market.Order{{OrderID: "o1", Status: market.OrderOpen}}}
		f := run(t, follow.Orders(s.ctx, s.source(), follow.Account[[]market.Order]{Topic: account, Read: r.read}))
		show := func(o follow.OrdersUpdate) string { return fmt.Sprint(len(o.Changed), len(o.Closed)) }
		s.connect(account)
		s.send(account, messages.KindUserSnapshot, func(m *messages.Message) { m.Positions = []market.Position{} })
		f.want(show)
		time.Sleep(time.Second)
		f.want(show, "INITIAL 1 0")
		r.set(&[]market.Order{})
		time.Sleep(5 * time.Second)
		f.want(show, "CHANGE 0 1") // the stream does not send the orders, so the orders are polled
		s.send(account, messages.KindUserSnapshot, func(m *messages.Message) {
			m.Orders = []market.Order{{OrderID: "o2", Status: market.OrderOpen}}
		})
		f.want(show, "RESYNC 1 0")
	})
}

// TestStreamOvertakesARead checks that the result of a read is dropped if the venue's stream sends a value during the read.
func TestStreamOvertakesARead(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4"), duration: 2 * time.Second}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		time.Sleep(time.Second) // the first read is running
		s.connect(pricesOf("T"))
		s.price("T", "0.5")
		s.disconnect(pricesOf("T"))
		f.want(showPrice, "INITIAL 0.5 STREAM", "FRESHNESS 0.5 STREAM stale")
		r.set(priceOf("T", "0.6"))
		time.Sleep(2 * time.Second)
		f.want(showPrice)
		time.Sleep(2 * time.Second)
		f.want(showPrice, "CHANGE 0.6 REST")
	})
}

// TestStreamWaitsForItsRead checks that a stream cancels its read and ends without an error when its context ends.
func TestStreamWaitsForItsRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		ctx, cancel := context.WithCancel(s.ctx)
		r := &restSource[*market.Price]{duration: time.Hour}
		f := run(t, follow.Prices(ctx, s.source(), []string{"T"}, 0, r.list))
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if !f.ended || f.err != nil {
			t.Errorf("the stream has ended: %v, with the error %v; want an end without an error", f.ended, f.err)
		}
	})
}

// TestRateLimitDelaysReads checks that after a RATE_LIMITED error no read starts before the error's RetryAfter has passed.
func TestRateLimitDelaysReads(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{err: upstream.RateLimited(20 * time.Second)}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		time.Sleep(20 * time.Second)
		f.want(showPrice, "!RATE_LIMITED")
		if r.calls != 1 {
			t.Errorf("the stream made %d reads before RetryAfter had passed, want 1", r.calls)
		}
		r.edit(func() { r.err, r.value = nil, priceOf("T", "0.4") })
		time.Sleep(time.Second)
		f.want(showPrice, "INITIAL 0.4 REST")
	})
}

func TestIntervalDoesNotDelayTheFirstState(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4"), duration: time.Hour}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, time.Minute, r.list))
		s.connect(pricesOf("T"))
		synctest.Wait() // the topic is open and has no price yet
		s.price("T", "0.5")
		f.want(showPrice, "INITIAL 0.5 STREAM")
	})
}

// TestBooksOlderThanREST checks that a book of the venue's stream is not sent if it is older than the last book from REST.
func TestBooksOlderThanREST(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		key := messages.Topic{Channel: messages.ChannelOrderbook, ID: "T"}
		book := func(seq uint64) *market.Book {
			return &market.Book{TokenID: "T", Epoch: "e", Seq: seq, Bids: market.NewSide([]market.Level{{Price: market.MustDecimal("0.5"), Size: market.NewDecimal(int64(seq), 0)}})}
		}
		snapshot := func(seq uint64) {
			s.seqs[key] = seq - 1
			s.send(key, messages.KindBookSnapshot, func(m *messages.Message) { m.Book = book(seq) })
		}
		show := func(b follow.BookUpdate) string { return fmt.Sprint(b.Book.Seq) + mark(b.Meta) }
		r := &restSource[*market.Book]{value: book(18)}
		f := run(t, follow.Book(s.ctx, s.source(), "T", 5, false, 0, r.read))
		time.Sleep(6 * time.Second)
		f.want(show, "INITIAL 18 REST")
		s.connect(key)
		snapshot(16)
		snapshot(17)
		f.want(show)
		snapshot(19)
		f.want(show, "RESYNC 19 STREAM")

		// After a minute, books with lower numbers are sent, because the venue may have restarted its sequence numbers.
		s.disconnect(key)
		r.set(book(1000))
		time.Sleep(6 * time.Second)
		f.want(show, "FRESHNESS 19 STREAM stale", "CHANGE 1000 REST")
		s.connect(key)
		snapshot(20)
		f.want(show)
		time.Sleep(time.Minute)
		snapshot(21)
		f.want(show, "RESYNC 21 STREAM")
	})
}
