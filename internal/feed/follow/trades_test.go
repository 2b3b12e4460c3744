package follow_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// pageOf returns a page of trades by id, newest first.
func pageOf(ids ...string) *market.TradePage {
	p := &market.TradePage{}
	for _, id := range ids {
		p.Trades = append(p.Trades, market.Trade{TradeID: id})
	}
	return p
}

func (s *stage) fill(id string) {
	s.say(account, market.MessageFill, func(m *market.Message) { m.Trades = []market.Trade{{TradeID: id}} })
}

func (s *stage) openAccount() {
	s.live(account)
	s.say(account, market.MessageUserSnapshot, func(*market.Message) {})
}

func (s *stage) userTrades(r *rest[*market.TradePage]) follow.Stream[follow.TradesUpdate] {
	return follow.UserTrades(s.ctx, s.source(), follow.Account[market.TradePage]{Topic: account, Read: r.read}, func(t *market.Trade) string { return t.TradeID })
}

// TestUserTradesWhileTheStreamOpens: a read that began before the stream was open does not settle what the stream's first state
// owes.
func TestUserTradesWhileTheStreamOpens(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.TradePage]{value: pageOf("t1"), takes: 2 * time.Second}
		f := run(t, s.userTrades(r))
		time.Sleep(time.Second) // the first read is under way
		r.set(pageOf("t2", "t1"))
		s.openAccount()
		s.fill("t3") // REST does not know it yet
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

// TestFillsWhileTradesAreRead are sent once, in their order.
func TestFillsWhileTradesAreRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.TradePage]{value: pageOf("t1"), takes: time.Second}
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

// TestUserTradesOfAnOldAnswer: an answer from before the account's stream began may be without trades that the stream did not tell
// of. The trades are read again when the venue has a newer one. What the stream tells meanwhile is sent at once.
func TestUserTradesOfAnOldAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.TradePage]{value: pageOf("t1"), meta: func() market.Meta {
			m := freshMeta()
			m.Handle = market.NewHandleOfAge(time.Now(), market.Age{Known: true, Least: 9 * time.Second, Most: 10 * time.Second, Renewed: 20 * time.Second})
			return m
		}}
		f := run(t, s.userTrades(r))
		s.openAccount()
		f.want(showTrades, "INITIAL t1 ")
		s.fill("t3")
		f.want(showTrades, "CHANGE t3 ")
		time.Sleep(19 * time.Second)
		if f.want(showTrades); r.calls != 1 {
			t.Errorf("%d reads", r.calls)
		}
		r.edit(func() { r.err, r.value = errDown, pageOf("t3", "t2", "t1") })
		time.Sleep(2 * time.Second)
		r.fail(nil)
		time.Sleep(5 * time.Second)
		f.want(showTrades, "CHANGE t2 ")
		reads := r.calls
		time.Sleep(time.Minute)
		if f.want(showTrades); r.calls != reads {
			t.Errorf("%d reads more", r.calls-reads)
		}
	})
}

// TestAGapOfUserTrades: where REST no longer lists a trade that was sent, some may be missing in between.
func TestAGapOfUserTrades(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.TradePage]{value: pageOf("t1")}
		f := run(t, s.userTrades(r))
		s.openAccount()
		f.want(showTrades, "INITIAL t1 ")
		s.down(account)
		f.want(showTrades, "FRESHNESS ")
		ids := make([]string, follow.MaxTrades)
		for i := range ids {
			ids[i] = fmt.Sprint("u", i)
		}
		r.set(pageOf(ids...))
		s.openAccount()
		events := f.take()
		if len(events) != 1 || events[0].Reason != follow.Resync || !events[0].Value.Gap || len(events[0].Value.Trades) != follow.MaxTrades {
			t.Errorf("got %+v", events)
		}
		s.down(account)
		f.want(showTrades, "FRESHNESS ")
		r.set(pageOf(append([]string{"v"}, ids[:follow.MaxTrades-1]...)...))
		s.openAccount()
		f.want(showTrades, "RESYNC v ")
	})
}

// TestUserTradesAreReadInVain: what the stream brings stays pending until a read has covered it.
func TestUserTradesAreReadInVain(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		r := &rest[*market.TradePage]{err: errDown}
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

// TestTape: the tape begins when every token's is known, or else after a while with those that are.
func TestTape(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		tapeOf := func(id string) market.Topic { return market.Topic{Channel: market.ChannelTrades, ID: id} }
		tape := func(key market.Topic, kind market.MessageKind, ids ...string) {
			s.say(key, kind, func(m *market.Message) { m.Trades = pageOf(ids...).Trades })
		}
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T", "U"}))
		s.live(tapeOf("T"), tapeOf("U"))
		tape(tapeOf("T"), market.MessageTradesSnapshot, "t1")
		f.want(showTrades)
		time.Sleep(time.Second)
		f.want(showTrades, "INITIAL t1 ")
		tape(tapeOf("T"), market.MessageTrade, "t2")
		tape(tapeOf("U"), market.MessageTradesSnapshot, "u1")
		f.want(showTrades, "CHANGE t2 ", "RESYNC u1 ")
		s.down(tapeOf("U"))
		f.want(showTrades, "FRESHNESS ")
		s.live(tapeOf("U"))
		tape(tapeOf("U"), market.MessageTradesSnapshot, "u1", "u2")
		f.want(showTrades, "RESYNC u2 ")
	})
}

// TestStatus is sent first and whenever it differs.
func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
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
			t.Error("it goes on")
		}
	})
}
