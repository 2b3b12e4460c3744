package follow_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// pageOf returns a page of trades with the given ids.
func pageOf(ids ...string) *queries.TradePage {
	p := &queries.TradePage{}
	for _, id := range ids {
		p.Trades = append(p.Trades, market.Trade{TradeID: id})
	}
	return p
}

func (s *testVenue) fill(id string) {
	s.send(account, messages.KindFill, func(m *messages.Message) { m.Trades = []market.Trade{{TradeID: id}} })
}

func (s *testVenue) openAccount() {
	s.connect(account)
	s.send(account, messages.KindUserSnapshot, func(*messages.Message) {})
}

func (s *testVenue) userTrades(r *restSource[*queries.TradePage]) follow.Stream[follow.TradesUpdate] {
	return follow.UserTrades(s.ctx, s.source(), follow.Account[queries.TradePage]{Topic: account, Read: r.read}, func(t *market.Trade) string { return t.TradeID })
}

// TestUserTradesWhileTheStreamOpens checks that trades are read again if the first read starts before the account's topic is live.
func TestUserTradesWhileTheStreamOpens(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf("t1"), duration: 2 * time.Second}
		f := run(t, s.userTrades(r))
		time.Sleep(time.Second) // the first read is running
		r.set(pageOf("t2", "t1"))
		s.openAccount()
		s.fill("t3") // REST does not return t3 yet
		time.Sleep(1500 * time.Millisecond)
		f.want(showTrades, "INITIAL t1 ")
		time.Sleep(2 * time.Second)
		f.want(showTrades, "RESYNC t2 t3 ")
		s.fill("t4")
		s.fill("t3")
		f.want(showTrades, "CHANGE t4 ")
		time.Sleep(time.Minute)
		f.want(showTrades)
	})
}

// TestFillsWhileTradesAreRead checks that fills that arrive during a read are sent once, in order.
func TestFillsWhileTradesAreRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf("t1"), duration: time.Second}
		f := run(t, s.userTrades(r))
		s.openAccount()
		s.fill("t2")
		time.Sleep(500 * time.Millisecond)
		s.fill("t3")
		time.Sleep(600 * time.Millisecond)
		f.want(showTrades, "INITIAL t1 ", "CHANGE t2 t3 ")
		time.Sleep(time.Minute)
		f.want(showTrades)
	})
}

// TestGapInUserTrades checks that an event reports a gap if the REST response contains none of the trades that were sent before.
func TestGapInUserTrades(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf("t1")}
		f := run(t, s.userTrades(r))
		s.openAccount()
		f.want(showTrades, "INITIAL t1 ")
		s.disconnect(account)
		f.want(showTrades, "FRESHNESS ")
		ids := make([]string, follow.MaxTrades)
		for i := range ids {
			ids[i] = fmt.Sprint("u", i)
		}
		r.set(pageOf(ids...))
		s.openAccount()
		events := f.take()
		if len(events) != 1 || events[0].Reason != follow.Resync || !events[0].Value.Gap || len(events[0].Value.Trades) != follow.MaxTrades {
			t.Errorf("got the events %+v, want one RESYNC event with a gap and %d trades", events, follow.MaxTrades)
		}
		s.disconnect(account)
		f.want(showTrades, "FRESHNESS ")
		r.set(pageOf(append([]string{"v"}, ids[:follow.MaxTrades-1]...)...))
		s.openAccount()
		f.want(showTrades, "RESYNC v ")
	})
}

// TestUserTradesReadsFail checks that fills are not sent while reads fail, and are sent after a read has succeeded.
func TestUserTradesReadsFail(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{err: errDown}
		f := run(t, s.userTrades(r))
		s.openAccount()
		s.fill("t2")
		time.Sleep(10 * time.Second)
		f.want(showTrades, "!UPSTREAM_UNAVAILABLE")
		r.edit(func() { r.err, r.value = nil, pageOf("t1") })
		time.Sleep(time.Minute)
		f.want(showTrades, "INITIAL t1 t2 ")
	})
}

// TestStatus checks that the first event contains the status, and that each change of the status causes an event.
func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		var now atomic.Int64
		now.Store(1)
		ctx, cancel := context.WithCancel(s.ctx)
		f := run(t, follow.StreamStatus(ctx, s.source(), now.Load, func(a, b *int64) bool { return *a == *b }))
		show := func(n int64) string { return fmt.Sprint(n) }
		f.want(show, "CHANGE 1")
		time.Sleep(time.Minute)
		f.want(show)
		now.Store(2)
		time.Sleep(time.Second)
		f.want(show, "CHANGE 2")
		cancel()
		f.take()
		if !f.ended {
			t.Error("the stream has not ended although its context has ended")
		}
	})
}
