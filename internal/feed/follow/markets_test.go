package follow_test

import (
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

func marketNow(words string, status market.Status) *market.Market {
	return &market.Market{MarketID: "M", Description: words, Status: status}
}

func (s *testVenue) announce(kind string, status market.Status) {
	s.send(marketsOf("M"), messages.KindMarket, func(m *messages.Message) { m.Market = &market.MarketChange{Kind: kind, Status: status} })
}

// TestMarketChangesWhileItIsRead checks that changes during a read cause another read.
func TestMarketChangesWhileItIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Market]{value: marketNow("a", market.StatusOpen), duration: time.Second}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.connect(marketsOf("M")) // this starts the read of the market
		time.Sleep(500 * time.Millisecond)
		r.set(marketNow("a", market.StatusClosed))
		s.announce("STATUS", market.StatusClosed)
		time.Sleep(500 * time.Millisecond)
		f.want(showMarket, "INITIAL a/OPEN")
		time.Sleep(time.Second)
		f.want(showMarket, "CHANGE STATUS a/CLOSED")

		// A second change of the same kind during a read also causes another read.
		r.set(marketNow("b", market.StatusClosed))
		s.announce("METADATA", "")
		time.Sleep(500 * time.Millisecond)
		r.set(marketNow("c", market.StatusClosed))
		s.announce("METADATA", "")
		time.Sleep(500 * time.Millisecond)
		f.want(showMarket, "CHANGE METADATA b/CLOSED")
		time.Sleep(time.Second)
		f.want(showMarket, "CHANGE METADATA c/CLOSED")
		time.Sleep(time.Minute)
		f.want(showMarket)
	})
}

// TestMarketReadIsStale checks that changes stay pending after a read that returns a stale market.
func TestMarketReadIsStale(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.connect(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.edit(func() { r.duration, r.meta = time.Second, staleMeta })
		s.announce("METADATA", "")
		time.Sleep(500 * time.Millisecond)
		s.announce("TICK_SIZE", "")
		time.Sleep(600 * time.Millisecond)
		f.want(showMarket) // the stream drops the stale result and reads the market again at once
		r.edit(func() { r.value, r.meta = marketNow("b", market.StatusOpen), nil })
		time.Sleep(time.Second)
		f.want(showMarket, "FRESHNESS a/OPEN stale")
		time.Sleep(2 * time.Second)
		f.want(showMarket, "CHANGE METADATA b/OPEN", "CHANGE TICK_SIZE b/OPEN")
	})
}

// TestMarketReadFails checks that a change of the status is sent while reads fail. Other changes wait until a read succeeds.
func TestMarketReadFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.connect(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.fail(errDown)
		s.announce("METADATA", market.StatusOpen) // the message does not contain the new metadata, so the market must be read
		f.want(showMarket, "FRESHNESS a/OPEN stale")
		s.announce("STATUS", market.StatusClosed)
		f.want(showMarket, "CHANGE STATUS a/CLOSED stale")
		time.Sleep(time.Hour)
		f.want(showMarket)
		if r.calls > 200 {
			t.Errorf("the stream made %d reads in an hour of failures, want at most 200", r.calls)
		}
		r.edit(func() { r.err, r.value = nil, marketNow("b", market.StatusClosed) })
		time.Sleep(time.Minute)
		f.want(showMarket, "CHANGE METADATA b/CLOSED")
	})
}

// TestMarketOutage checks that a market is polled while its topic is not live, and read again when the topic becomes live.
func TestMarketOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.Up([]messages.Topic{marketsOf("M")}) // the topic is not confirmed yet
		f.want(showMarket)
		time.Sleep(time.Second)
		f.want(showMarket, "INITIAL a/OPEN")
		r.set(marketNow("a", market.StatusClosed))
		time.Sleep(5 * time.Second)
		f.want(showMarket, "CHANGE STATUS a/CLOSED")
		s.Acknowledged([]messages.Topic{marketsOf("M")})
		f.want(showMarket, "RESYNC a/CLOSED")
		s.disconnect(marketsOf("M"))
		f.want(showMarket, "FRESHNESS a/CLOSED stale")
		r.set(marketNow("b", market.StatusClosed))
		s.connect(marketsOf("M"))
		f.want(showMarket, "RESYNC b/CLOSED")
	})
}

// TestManyChangesOfAMarket checks that 1,500 changes cause at most 600 events, and that the last event has the last state of the
// market.
func TestManyChangesOfAMarket(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.connect(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.slow(time.Second)
		for range 1500 {
			s.announce("METADATA", "")
		}
		r.set(marketNow("z", market.StatusOpen))
		time.Sleep(10 * time.Second)
		events := f.take()
		if last := events[len(events)-1]; len(events) > 600 || showMarket(last.Value) != "METADATA z/OPEN" && showMarket(last.Value) != "z/OPEN" {
			t.Errorf("the stream sent %d events, want at most 600; the last event has the market %s, want z/OPEN", len(events), showMarket(last.Value))
		}
	})
}
