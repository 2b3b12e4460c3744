package follow_test

import (
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

func tapeOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelTrades, ID: id}
}

func (s *testVenue) tape(id string, kind messages.Kind, ids ...string) {
	s.send(tapeOf(id), kind, func(m *messages.Message) { m.Trades = pageOf(ids...).Trades })
}

func (s *testVenue) trade(id, trade string) { s.tape(id, messages.KindTrade, trade) }

// eventVenue runs a test over a venue that sends trades without a snapshot.
func eventVenue(t *testing.T, f func(t *testing.T, s *testVenue)) {
	t.Helper()
	bubble(t, func(t *testing.T, _ *testVenue) { f(t, newTestVenue(t)) })
}

// manyTrades returns the ids of n trades, newest first.
func manyTrades(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(prefix, n-i))
	}
	return ids
}

// TestPublicTrades checks that the first event waits for the trades of all tokens, but at most for a second.
func TestPublicTrades(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T", "U"}, nil))
		s.connect(tapeOf("T"), tapeOf("U"))
		s.tape("T", messages.KindTradesSnapshot, "t1")
		f.want(showTrades)
		time.Sleep(time.Second)
		f.want(showTrades, "INITIAL t1 ?")
		s.trade("T", "t2")
		s.tape("U", messages.KindTradesSnapshot, "u1")
		f.want(showTrades, "CHANGE t2 ?", "RESYNC u1 ")
		s.disconnect(tapeOf("U"))
		f.want(showTrades, "FRESHNESS ")
		s.connect(tapeOf("U"))
		s.tape("U", messages.KindTradesSnapshot, "u1", "u2")
		f.want(showTrades, "RESYNC u2 ")
	})
}

// TestQuietTradesOfAVenueWithoutAList checks that trades without a snapshot and without a list never become known, and that the
// first event comes when the venue has confirmed the subscription.
func TestQuietTradesOfAVenueWithoutAList(t *testing.T) {
	eventVenue(t, func(t *testing.T, s *testVenue) {
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, nil))
		f.want(showTrades)
		s.connect(tapeOf("T"))
		f.want(showTrades, "INITIAL ?")
		time.Sleep(time.Hour)
		f.want(showTrades)
		s.trade("T", "t1")
		f.want(showTrades, "CHANGE t1 ?")
		s.disconnect(tapeOf("T"))
		s.connect(tapeOf("T"))
		f.want(showTrades, "FRESHNESS ?", "RESYNC gap?")
	})
}

// TestTradesFollowOverREST checks that the first event does not wait for REST, that the trades from before the subscription follow
// with one call for all tokens, and that trades of the stream do not wait for this call.
func TestTradesFollowOverREST(t *testing.T) {
	eventVenue(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf("t2", "t1"), duration: time.Second}
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T", "U"}, r.list))
		s.connect(tapeOf("T"), tapeOf("U"))
		f.want(showTrades, "INITIAL ?")
		s.trade("T", "t3")
		s.trade("T", "t2") // the response has this trade, too
		f.want(showTrades, "CHANGE t3 ?", "CHANGE t2 ?")
		time.Sleep(1100 * time.Millisecond)
		f.want(showTrades, "RESYNC t1 t2 t3 ?", "RESYNC t1 t2 ")
		s.trade("T", "t4")
		f.want(showTrades, "CHANGE t4 ")
		time.Sleep(time.Hour)
		if f.want(showTrades); r.calls != 1 {
			t.Errorf("the subscription made %d reads, want 1", r.calls)
		}
	})
}

// TestNoTradesAreKnown checks that a token without trades becomes known, also if the first reads fail.
func TestNoTradesAreKnown(t *testing.T) {
	eventVenue(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf(), err: errDown}
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, r.list))
		s.connect(tapeOf("T"))
		time.Sleep(time.Minute)
		f.want(showTrades, "INITIAL ?") // a failure is no problem of the subscription
		r.fail(nil)
		time.Sleep(time.Minute)
		f.want(showTrades, "RESYNC ")
		if r.calls > 20 {
			t.Errorf("the subscription made %d reads in two minutes, want few", r.calls)
		}
	})
}

// TestAReconnectIsClosedOverREST checks that the trades of an interruption are read over REST, that new trades wait for them, and
// that the event reports a gap only if the rows do not reach back.
func TestAReconnectIsClosedOverREST(t *testing.T) {
	for name, test := range map[string]struct {
		rows []string
		more bool // the venue has another page
		want string
	}{
		"the rows reach back":                       {[]string{"t3", "t2", "t1"}, true, "RESYNC t2 t3 t4 "},
		"the rows have the new trade":               {[]string{"t4", "t3", "t2", "t1"}, true, "RESYNC t2 t3 t4 "},
		"nothing was missed":                        {[]string{"t1"}, true, "RESYNC t4 "},
		"the rows do not reach back":                {[]string{"t3", "t2"}, true, "RESYNC t2 t3 t4 gap"},
		"the rows are all trades of the token":      {[]string{"t3", "t2"}, false, "RESYNC t2 t3 t4 "},
		"the venue has lost its trades":             {nil, false, "RESYNC t4 gap"},
		"a trade was lost without a sign before it": {[]string{"t3", "t1", "t0"}, true, "RESYNC t3 t4 "},
	} {
		t.Run(name, func(t *testing.T) {
			eventVenue(t, func(t *testing.T, s *testVenue) {
				r := &restSource[*queries.TradePage]{value: pageOf("t1")}
				f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, r.list))
				s.connect(tapeOf("T"))
				f.want(showTrades, "INITIAL ?", "RESYNC t1 ")
				s.disconnect(tapeOf("T"))
				f.want(showTrades, "FRESHNESS ")
				page := pageOf(test.rows...)
				if test.more {
					page.Next = "older"
				}
				r.edit(func() { r.value, r.duration = page, time.Second })
				s.connect(tapeOf("T"))
				s.trade("T", "t4")
				f.want(showTrades)
				time.Sleep(1100 * time.Millisecond)
				f.want(showTrades, test.want)
				s.trade("T", "t5")
				f.want(showTrades, "CHANGE t5 ")
				time.Sleep(time.Hour)
				f.want(showTrades)
			})
		})
	}
}

// TestLostTradeIsReadOverREST checks that a trade that the stream has lost is read over REST while the topic stays live.
func TestLostTradeIsReadOverREST(t *testing.T) {
	eventVenue(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf("t1")}
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, r.list))
		s.connect(tapeOf("T"))
		f.want(showTrades, "INITIAL ?", "RESYNC t1 ")
		s.trade("T", "t2")
		f.want(showTrades, "CHANGE t2 ")
		page := pageOf("t4", "t3", "t2")
		page.Next = "older"
		r.set(page)
		s.seqs[tapeOf("T")]++ // t3 is lost
		s.trade("T", "t4")
		f.want(showTrades, "RESYNC t3 t4 ")
	})
}

// TestAGapIsNotClosedInTime checks that new trades do not wait forever for REST: if no read succeeds, they are sent with the mark of
// a gap.
func TestAGapIsNotClosedInTime(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		within time.Duration
	}{
		"the venue is down":                      {errDown, 10 * time.Second},
		"the limit admits no call for a minute":  {&market.Error{Code: market.CodeRateLimited, RetryAfter: time.Minute}, time.Second},
		"the venue does not serve trades at all": {market.Errorf(market.CodeUnsupported, "no"), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			eventVenue(t, func(t *testing.T, s *testVenue) {
				r := &restSource[*queries.TradePage]{value: pageOf("t1")}
				f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, r.list))
				s.connect(tapeOf("T"))
				f.want(showTrades, "INITIAL ?", "RESYNC t1 ")
				s.disconnect(tapeOf("T"))
				r.fail(test.err)
				r.slow(time.Millisecond) // so that the trade arrives first
				s.connect(tapeOf("T"))
				s.trade("T", "t4")
				time.Sleep(test.within)
				f.want(showTrades, "FRESHNESS ", "RESYNC t4 gap")
				s.trade("T", "t5")
				f.want(showTrades, "CHANGE t5 ")
				reads := r.calls
				time.Sleep(time.Hour)
				if f.want(showTrades); r.calls > reads+1 {
					t.Errorf("after the gap was reported, the subscription made %d reads, want at most 1", r.calls-reads)
				}
			})
		})
	}
}

// TestARowsLimit checks that the event after the read has at most MaxTrades trades, and that a venue with more trades than that in an
// interruption causes a gap.
func TestARowsLimit(t *testing.T) {
	eventVenue(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{value: pageOf(manyTrades("t", 70)...)}
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, r.list))
		s.connect(tapeOf("T"))
		events := f.take()
		if len(events) != 2 || len(events[1].Value.Trades) != follow.MaxTrades || events[1].Value.Trades[0].TradeID != "t21" || !events[1].Value.Known {
			t.Fatalf("got the events %+v, want the newest %d trades, oldest first", events, follow.MaxTrades)
		}
		s.disconnect(tapeOf("T"))
		r.set(pageOf(manyTrades("u", 60)...))
		s.connect(tapeOf("T"))
		events = f.take()
		if last := events[len(events)-1]; !last.Value.Gap || len(last.Value.Trades) != follow.MaxTrades {
			t.Errorf("after more trades than a page has, the event is %+v, want a gap", last)
		}
	})
}

// TestTradesOfAnUnknownToken checks that the subscription reports a token that the venue does not know over REST.
func TestTradesOfAnUnknownToken(t *testing.T) {
	eventVenue(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*queries.TradePage]{}
		f := run(t, follow.Trades(s.ctx, s.source(), []string{"T"}, r.list))
		s.connect(tapeOf("T"))
		if f.want(showTrades, "INITIAL ?"); market.CodeOf(f.err) != market.CodeBadUserInput {
			t.Errorf("the subscription to an unknown token ended with %v, want BAD_USER_INPUT", f.err)
		}
	})
}
