package follow_test

import (
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

func marketNow(words string, status market.Status) *market.Market {
	return &market.Market{MarketID: "M", Description: words, Status: status}
}

// announce says that a market has changed.
func (s *stage) announce(kind string, status market.Status) {
	s.say(marketsOf("M"), market.MessageMarket, func(m *market.Message) { m.Market = &market.MarketChange{Kind: kind, Status: status} })
}

// TestMarketChangesWhileItIsRead: a read settles what was pending when it began. A change that comes later is read for again.
func TestMarketChangesWhileItIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.Market]{value: marketNow("a", market.StatusOpen), takes: time.Second}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.live(marketsOf("M")) // it is read
		time.Sleep(500 * time.Millisecond)
		r.set(marketNow("a", market.StatusClosed))
		s.announce("STATUS", market.StatusClosed)
		time.Sleep(500 * time.Millisecond)
		f.want(showMarket, "INITIAL a/OPEN")
		time.Sleep(time.Second)
		f.want(showMarket, "CHANGE STATUS a/CLOSED")

		// The same where the cache says that the read was overtaken.
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

// TestMarketReadIsStale: a stale answer settles nothing.
func TestMarketReadIsStale(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.live(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.edit(func() { r.takes, r.meta = time.Second, staleMeta })
		s.announce("METADATA", "")
		time.Sleep(500 * time.Millisecond)
		s.announce("TICK_SIZE", "")
		time.Sleep(600 * time.Millisecond)
		f.want(showMarket) // overtaken: it is read again at once
		r.edit(func() { r.value, r.meta = marketNow("b", market.StatusOpen), nil })
		time.Sleep(time.Second)
		f.want(showMarket, "FRESHNESS a/OPEN stale")
		time.Sleep(2 * time.Second)
		f.want(showMarket, "CHANGE METADATA b/OPEN", "CHANGE TICK_SIZE b/OPEN")
	})
}

// agedMeta is that of a stale answer, which the venue renews three seconds later.
func agedMeta() market.Meta {
	m := staleMeta()
	m.Handle = market.NewHandleOfAge(time.Now(), market.Age{Known: true, Least: time.Second, Most: 2 * time.Second, Renewed: 3 * time.Second})
	return m
}

// TestMarketReadIsOld: what an old answer shows is sent, marked stale. It settles nothing, and the next read waits until the venue
// has a newer answer.
func TestMarketReadIsOld(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.live(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.edit(func() { r.value, r.meta = marketNow("b", market.StatusClosed), agedMeta })
		s.announce("STATUS", market.StatusClosed)
		f.want(showMarket, "CHANGE STATUS b/CLOSED stale")
		s.announce("METADATA", "")
		f.want(showMarket)
		reads := r.calls
		time.Sleep(2900 * time.Millisecond)
		f.want(showMarket)
		if r.calls != reads {
			t.Errorf("%d reads before the venue has a newer answer", r.calls-reads)
		}
		r.edit(func() { r.value, r.meta = marketNow("c", market.StatusClosed), nil })
		time.Sleep(200 * time.Millisecond)
		f.want(showMarket, "CHANGE METADATA c/CLOSED")
		time.Sleep(time.Minute)
		f.want(showMarket)
		if r.calls != reads+1 {
			t.Errorf("%d reads since", r.calls-reads)
		}
	})
}

// TestMarketReadFails: what the stream says by itself is told at once, and the rest when REST is back.
func TestMarketReadFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.live(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.fail(errDown)
		s.announce("METADATA", market.StatusOpen) // which is known
		f.want(showMarket, "FRESHNESS a/OPEN stale")
		s.announce("STATUS", market.StatusClosed)
		f.want(showMarket, "CHANGE STATUS a/CLOSED stale")
		time.Sleep(time.Hour)
		f.want(showMarket)
		if r.calls > 200 {
			t.Errorf("%d reads in an hour", r.calls)
		}
		r.edit(func() { r.err, r.value = nil, marketNow("b", market.StatusClosed) })
		time.Sleep(time.Minute)
		f.want(showMarket, "CHANGE METADATA b/CLOSED")
	})
}

// TestMarketOutage: while the stream is away the market is polled; it is read again when the stream is back.
func TestMarketOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.Up("e", []market.Topic{marketsOf("M")}) // not confirmed
		f.want(showMarket)
		time.Sleep(time.Second)
		f.want(showMarket, "INITIAL a/OPEN")
		r.set(marketNow("a", market.StatusClosed))
		time.Sleep(5 * time.Second)
		f.want(showMarket, "CHANGE STATUS a/CLOSED")
		s.Acknowledged([]market.Topic{marketsOf("M")})
		f.want(showMarket, "RESYNC a/CLOSED")
		s.down(marketsOf("M"))
		f.want(showMarket, "FRESHNESS a/CLOSED stale")
		r.set(marketNow("b", market.StatusClosed))
		s.live(marketsOf("M"))
		f.want(showMarket, "RESYNC b/CLOSED")
	})
}

// TestManyChangesOfAMarket: more changes than are kept are settled by one RESYNC.
func TestManyChangesOfAMarket(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.Market]{value: marketNow("a", market.StatusOpen)}
		f := run(t, follow.Markets(s.ctx, s.source(), []string{"M"}, r.list))
		s.live(marketsOf("M"))
		f.want(showMarket, "INITIAL a/OPEN")
		r.slow(time.Second)
		for range 1500 {
			s.announce("METADATA", "")
		}
		r.set(marketNow("z", market.StatusOpen))
		time.Sleep(10 * time.Second)
		events := f.take()
		if last := events[len(events)-1]; len(events) > 600 || showMarket(last.Value) != "METADATA z/OPEN" && showMarket(last.Value) != "z/OPEN" {
			t.Errorf("%d events, the last shows %s", len(events), showMarket(last.Value))
		}
	})
}
