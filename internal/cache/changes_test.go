package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

var marketM = market.MarketRef{By: market.ByMarketID, Value: "m"}

// saying is a venue whose market is what says sets.
func saying(v *venue) (says func(status market.Status, words string)) {
	return func(status market.Status, words string) {
		v.market = func(string) *market.Market {
			return &market.Market{MarketID: "m", Status: status, Description: words, Outcomes: []market.Outcome{{TokenID: "yes", Label: "YES"}, {TokenID: "no", Label: "NO"}}}
		}
	}
}

// TestAnswersThatAreOlderThanAChange: an answer that a cache may have given before a change is stale, and the venue is asked again
// when it has a newer one, not before.
func TestAnswersThatAreOlderThanAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		says := saying(v)
		says(market.StatusOpen, "old")
		c := open(t, v)
		must(t, c.Markets(), marketM)
		c.StreamMarket(new(market.Session), "m", nil)
		v.age = market.Age{Known: true, Least: 3 * time.Second, Most: 4 * time.Second, Renewed: 7 * time.Second}
		for range 3 { // the first asks the venue, the others find its answer
			if r := must(t, c.Markets(), marketM); !r.Stale || r.Handle.Version() == 0 || r.Handle.Age().Renewed != 7*time.Second || len(v.calls()) != 2 {
				t.Fatalf("after the change: %+v, %d calls", r, len(v.calls()))
			}
			c.Markets().Refresh(t.Context(), []market.MarketRef{marketM})
			synctest.Wait()
			time.Sleep(2 * time.Second)
		}
		// Another change does not wait for that.
		says(market.StatusOpen, "new")
		c.StreamMarket(new(market.Session), "m", nil)
		if r := must(t, c.Markets(), marketM); !r.Stale || r.Value.Description != "new" || len(v.calls()) != 3 {
			t.Errorf("after the next change: %+v, %d calls", r, len(v.calls()))
		}
		time.Sleep(7 * time.Second)
		if r := must(t, c.Markets(), marketM); r.Stale || len(v.calls()) != 4 {
			t.Errorf("when the answer is new: %+v, %d calls", r, len(v.calls()))
		}
		if r := must(t, c.Markets(), marketM); r.Stale || len(v.calls()) != 4 {
			t.Errorf("later: %+v, %d calls", r, len(v.calls()))
		}
	})
}

// TestWordsOfTheStream: what the stream has said of a market holds against answers that say otherwise and may be older.
func TestWordsOfTheStream(t *testing.T) {
	closed := &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed}
	for name, test := range map[string]struct {
		said  []*market.MarketChange
		rest  market.Status
		age   market.Age
		end   bool // of the stream's session, at once
		after time.Duration
		want  market.Status
		stale bool
	}{
		"at once":                      {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, false, 0, market.StatusClosed, true},
		"as long as the stream lives":  {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, false, time.Hour, market.StatusClosed, true},
		"for a minute after it":        {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, true, 50 * time.Second, market.StatusClosed, true},
		"no longer":                    {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, true, 2 * time.Minute, market.StatusOpen, false},
		"against a new answer at once": {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{Known: true}, false, time.Second, market.StatusClosed, true},
		"not against a new answer":     {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{Known: true}, false, time.Minute, market.StatusOpen, false},
		"against a later step":         {[]*market.MarketChange{closed}, market.StatusResolved, market.Age{}, false, 0, market.StatusClosed, true},
		"not for long":                 {[]*market.MarketChange{closed}, market.StatusResolved, market.Age{}, false, 2 * time.Minute, market.StatusResolved, false},
		"beside a further change":      {[]*market.MarketChange{closed, {Kind: "METADATA"}, nil}, market.StatusOpen, market.Age{}, false, 0, market.StatusClosed, true},
		"the last of two":              {[]*market.MarketChange{closed, {Kind: "STATUS", Status: market.StatusOpen}}, market.StatusClosed, market.Age{}, false, 0, market.StatusOpen, true},
		"not one that is not known":    {[]*market.MarketChange{{Kind: "STATUS", Status: market.StatusUnknown, StatusRaw: "HALTED"}}, market.StatusOpen, market.Age{}, false, 0, market.StatusOpen, false},
		"agreeing":                     {[]*market.MarketChange{closed}, market.StatusClosed, market.Age{}, false, 0, market.StatusClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &venue{age: test.age}
				saying(v)(test.rest, "")
				c, session := open(t, v), new(market.Session)
				for _, change := range test.said {
					c.StreamMarket(session, "m", change)
				}
				if test.end {
					session.End(time.Now())
				}
				time.Sleep(test.after)
				if r := must(t, c.Markets(), marketM); r.Value.Status != test.want || r.Stale != test.stale {
					t.Errorf("%s, stale %v; want %s, %v", r.Value.Status, r.Stale, test.want, test.stale)
				}
			})
		})
	}
}

// TestAWinnerThatTheVenueDoesNotNameYet: a market that the stream has resolved has its winner, also where the venue fails.
func TestAWinnerThatTheVenueDoesNotNameYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		says := saying(v)
		says(market.StatusOpen, "")
		c := open(t, v)
		must(t, c.Markets(), marketM)
		c.StreamMarket(new(market.Session), "m", &market.MarketChange{Kind: "RESOLVED", WinningTokenID: "no"})
		want := func(when string) {
			t.Helper()
			r := must(t, c.Markets(), marketM)
			if w := r.Value.Winner(); !r.Stale || r.Value.Status != market.StatusResolved || w == nil || w.TokenID != "no" {
				t.Errorf("%s: %+v", when, r.Value)
			}
		}
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		want("where the venue fails")
		v.fail = nil
		want("where it is behind")
	})
}

// TestAVenueThatContradictsItsStream is asked less and less often.
func TestAVenueThatContradictsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		saying(v)(market.StatusOpen, "")
		c := open(t, v)
		c.StreamMarket(new(market.Session), "m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
		for range 3600 {
			must(t, c.Markets(), marketM)
			time.Sleep(time.Second)
		}
		if n := len(v.calls()); n < 15 || n > 25 || c.markets.stats().Late != uint64(n) {
			t.Errorf("%d calls in an hour, %d answers were behind the stream", n, c.markets.stats().Late)
		}
	})
}

// TestAGapEndsTheStreamsWords: after a gap the stream may have said otherwise.
func TestAGapEndsTheStreamsWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		saying(v)(market.StatusOpen, "")
		c, session := open(t, v), new(market.Session)
		c.StreamMarket(session, "m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
		c.StreamStale(messages.Topic{Channel: messages.ChannelMarket, ID: "m"})
		c.StreamMarket(session, "m", nil)
		if r := must(t, c.Markets(), marketM); r.Value.Status != market.StatusClosed || !r.Stale {
			t.Errorf("right after the gap: %+v", r)
		}
		time.Sleep(2 * time.Minute)
		if r := must(t, c.Markets(), marketM); r.Value.Status != market.StatusOpen || r.Stale {
			t.Errorf("two minutes later: %+v", r)
		}
	})
}

// TestAnswersOlderThanTheEndOfAStream: a value that was streamed until just now is not replaced by an answer from before.
func TestAnswersOlderThanTheEndOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{age: market.Age{Known: true, Least: 10 * time.Second, Most: 11 * time.Second, Renewed: 10 * time.Second}}
		c, session := open(t, v), new(market.Session)
		ctx := as(t, "alice")
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(ctx, wallet)}
		streamed := &market.Balance{}
		c.StreamAccount(session, topic, nil, nil, streamed, market.Meta{ReceivedAt: time.Now(), Source: market.SourceStream})
		time.Sleep(time.Minute)
		session.End(time.Now())
		for range 4 {
			time.Sleep(2 * time.Second)
			if r, err := readOne(ctx, c.Balances(), wallet); err != nil || r.Value != streamed {
				t.Errorf("an answer from before the stream's end: %+v, %v", r, err)
			}
		}
		time.Sleep(4 * time.Second)
		if r, err := readOne(ctx, c.Balances(), wallet); err != nil || r.Value == streamed {
			t.Errorf("an answer from after it: %+v, %v", r, err)
		}
	})
}
