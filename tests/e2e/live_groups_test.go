package e2e

import (
	"context"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// executions returns how many subscriptions the service has executed since its start. Equal subscriptions share an execution.
func (s *service) executions() uint64 { return s.API.Stats().Groups.Executions }

// TestAJoinerReplaysFromTheMiddle checks that clients that join a busy order book subscription can replay its deltas. After each
// event, the replayed book must equal the book in the event.
func TestAJoinerReplaysFromTheMiddle(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	token := s.openTokens(1)[0]
	before := s.executions()

	k := s.dial(t, anonymous)
	first := k.subscribe(t, subBook, vars{"id": token, "depth": 3, "deltas": true})
	replayed := &replay{depth: 3}
	replayed.take(t, first.reason(t, "INITIAL"))

	ctx, stop := context.WithCancel(t.Context())
	moved := make(chan error, 1)
	go func() {
		defer close(moved)
		for i := 0; ctx.Err() == nil; i++ {
			price := demo.Price(4000 + 100*(i%20))
			if err := s.venue.SetPrice(token, price); err != nil {
				moved <- err
				return
			}
			time.Sleep(20 * time.Millisecond) // the venue merges changes that follow each other faster
		}
	}()

	const joiners, eventsEach = 12, 15
	type joiner struct {
		sub  *events
		book *replay
	}
	var all []joiner
	for i := range joiners {
		if i%3 == 0 {
			k = s.dial(t, anonymous) // every third client opens a socket, and the next two clients share it
		}
		j := joiner{k.subscribe(t, subBook, vars{"id": token, "depth": 3, "deltas": true}), &replay{depth: 3}}
		v := j.sub.reason(t, "INITIAL")
		if text(v, "kind") != "SNAPSHOT" {
			t.Errorf("the first event of joiner %d is %s, want a SNAPSHOT", i, asJSON(v))
		}
		j.book.take(t, v)
		all = append(all, j)
		replayed.take(t, first.value(t))
	}
	for range eventsEach {
		for i, j := range all {
			v := j.sub.reason(t, "CHANGE")
			j.book.take(t, v)
			if got := text(v, "kind"); got != "DELTA" {
				t.Errorf("joiner %d got an event of the kind %s, want DELTA", i, got)
			}
		}
		replayed.take(t, first.value(t))
	}
	stop()
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	if got := s.executions() - before; got != 1 {
		t.Errorf("got %d executions for %d equal subscriptions, want 1", got, joiners+1)
	}
}

// TestEverySubscriptionShowsAJoinerThePresentState checks the first event of clients that join an execution, over a WebSocket and
// over SSE. This event must have the same state as the last event of the first client.
func TestEverySubscriptionShowsAJoinerThePresentState(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	token := s.openTokens(1)[0]
	marketID := s.openMarkets(1)[0]
	for _, test := range []struct {
		name, query string
		variables   vars
		state       string // path of the value that must be equal in both events
	}{
		{"priceChanged", subPrices, vars{"ids": []string{token}}, "price.price"},
		{"pricesChanged", subPriceLists, vars{"ids": []string{token}}, "prices"},
		{"orderbookChanged", subBook, vars{"id": token, "depth": 5}, "sequence"},
		{"marketChanged", subMarkets, vars{"ids": []string{marketID}}, "market.marketId"},
		{"tradesAdded", subTrades, vars{"ids": []string{token}}, "trades"},
		{"portfolioChanged", subPortfolio, vars{"a": addressOf50}, "summary.positionsValue"},
		{"ordersChanged", subOrders, vars{"a": addressOf50}, "changed"},
		{"userTradesAdded", subUserTrades, vars{"a": addressOf50}, "trades"},
		{"balanceChanged", subBalance, vars{"a": addressOf50}, "balance.cashBalance"},
		{"streamStatusChanged", subStatus, nil, "state"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := s.executions()
			first := s.dial(t, keyOf50).subscribe(t, test.query, test.variables)
			v := first.value(t)
			if test.name == "priceChanged" || test.name == "orderbookChanged" {
				s.move(t, token)
				v = first.until(t, "a change", func(v any) bool { return text(v, "reason") == "CHANGE" })
			}
			for transport, second := range map[string]*events{
				"a socket":        s.dial(t, keyOf50).subscribe(t, test.query, test.variables),
				"an event stream": s.sse(t, test.query, test.variables, keyOf50),
			} {
				shown := second.value(t)
				if reason, ok := at(shown, "reason").(string); ok && reason != "INITIAL" {
					t.Errorf("over %s, the first event of a joiner has the reason %s, want INITIAL", transport, reason)
				}
				if got, want := asJSON(at(shown, test.state)), asJSON(at(v, test.state)); got != want {
					t.Errorf("over %s, the first event of a joiner has the value %s, want %s", transport, got, want)
				}
			}
			if got := s.executions() - before; got != 1 {
				t.Errorf("got %d executions, want 1", got)
			}
		})
	}
}

// TestCallersShareNoExecution checks that equal subscriptions of two accounts have separate executions, because accounts have
// different rights.
func TestCallersShareNoExecution(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	before := s.executions()
	own := s.dial(t, keyOf50).subscribe(t, subBalance, vars{"a": addressOf50})
	own.reason(t, "INITIAL")
	other := s.dial(t, keyOf3).subscribe(t, subBalance, vars{"a": addressOf50})
	other.wantEnd(t, "FORBIDDEN")
	again := s.dial(t, keyOf50).subscribe(t, subBalance, vars{"a": addressOf50})
	again.reason(t, "INITIAL")
	if got := s.executions() - before; got != 2 {
		t.Errorf("got %d executions, want 2, one for each caller", got)
	}
}
