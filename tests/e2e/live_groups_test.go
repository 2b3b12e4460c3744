package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/httpapi"
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

// TestExecutionsPerClient checks the bounds on executions and on the ids that they follow. An execution counts for each client that has
// a subscription to it.
func TestExecutionsPerClient(t *testing.T) {
	s, _ := startLiveRigged(t, func(w *app.Wiring) {
		w.Front = func(front *httpapi.Config) { front.Clients.Executions, front.Clients.Watched = 3, 10 }
	})
	s.waitForStream(t)
	ids := s.openTokens(9)
	socket := func() *socket { return s.dial(t, anonymous) }
	literal := ""
	for _, id := range ids[:6] {
		literal += fmt.Sprintf("%q ", id)
	}
	six := `subscription { ...on Subscription { priceChanged(tokenIds: [` + literal + `]) { reason } } }`
	first := socket()
	first.subscribe(t, six, nil).value(t)
	four := socket().subscribe(t, subTrades, vars{"ids": ids[:4]}) // the test does not wait for the first event
	eventually(t, "a second execution", func() bool { return s.executions() == 2 })

	// The client watches as many ids as the limit allows. It cannot start another execution, but it can join an existing execution.
	socket().subscribe(t, subPrices, vars{"ids": ids[:1]}).wantEnd(t, "RATE_LIMITED")
	socket().subscribe(t, subStatus, nil).wantEnd(t, "RATE_LIMITED")
	s.sse(t, subStatus, nil, anonymous).wantEnd(t, "RATE_LIMITED")
	again := socket().subscribe(t, six, nil)
	again.value(t)

	// The ids of an execution no longer count when its last subscription has ended.
	again.stop()
	first.close()
	open := socket()
	eventually(t, "room for a second execution", func() bool {
		return !open.subscribe(t, subPrices, vars{"ids": ids[:1]}).next(t).refused
	})
	open.subscribe(t, subPrices, vars{"ids": ids[1:2]}).value(t)
	open.subscribe(t, subPrices, vars{"ids": ids[2:3]}).wantEnd(t, "RATE_LIMITED") // this would be a fourth execution
	four.stop()
}

// TestALoneCallerHasAllOfTheStream checks that one client may use all topics of the stream. When other clients subscribe, the
// service must take topics from the first client, which must still get all prices.
func TestALoneCallerHasAllOfTheStream(t *testing.T) {
	t.Parallel()
	const maxTopics = 20
	s, _ := startLiveRigged(t, func(w *app.Wiring) { w.Stream.TopicsPerConnection, w.Stream.Connections = maxTopics, 1 }, "--trusted-proxies=127.0.0.1")
	s.waitForStream(t)
	ids := s.openTokens(maxTopics + maxTopics/4)
	alone := s.dial(t, anonymous).subscribe(t, subPrices, vars{"ids": ids[:maxTopics]})
	// waitForPrices waits until the first client has the current price of every token to which it subscribes.
	last := make(map[string]string)
	waitForPrices := func() {
		t.Helper()
		alone.until(t, "the present price of every token", func(v any) bool {
			last[text(v, "price.tokenId")] = text(v, "price.price")
			for _, id := range ids[:maxTopics] {
				if q, _ := s.venue.Quote(id); last[id] != plain(q.Price) {
					return false
				}
			}
			return true
		})
	}
	waitForPrices()
	topics := func() map[string]int64 { return s.venue.Stats().Stream.Topics }
	if n := topics(); n["prices"]+n["orderbook"] != maxTopics {
		t.Errorf("a lone caller uses the topics %v, want %d in total", n, maxTopics)
	}
	for _, id := range ids[maxTopics:] { // each request comes from a different address
		book := s.sse(t, subBook, vars{"id": id}, anonymous).reason(t, "INITIAL")
		if source := text(book, "book.freshness.source"); source != "STREAM" {
			t.Errorf("a caller within its share got a book from %s, want STREAM; the topics are %v", source, topics())
		}
	}
	if n := topics(); n["prices"]+n["orderbook"] != maxTopics || n["prices"] == maxTopics {
		t.Errorf("with other callers, the topics are %v, want %d in total and topics of books", n, maxTopics)
	}
	for i, id := range ids[:maxTopics] {
		if err := s.venue.SetPrice(id, demo.Price(2000+100*i)); err != nil {
			t.Fatal(err)
		}
	}
	waitForPrices()
}

// TestStreamTopics checks that one client with more tokens than --stream-topics gets exactly this number of topics. The service
// must use as few connections as possible, with at most 200 topics each.
func TestStreamTopics(t *testing.T) {
	t.Parallel()
	const tokenCount = 2400
	for _, test := range []struct{ topics, connections int }{{150, 1}, {450, 3}, {2200, 11}} {
		t.Run(fmt.Sprint(test.topics), func(t *testing.T) {
			t.Parallel()
			s := startLive(t, "--demo-markets=1400", fmt.Sprintf("--stream-topics=%d", test.topics))
			s.waitForStream(t)
			var ids []string
			for _, token := range s.venue.Tokens() {
				if token.Status == "OPEN" && len(ids) < tokenCount {
					ids = append(ids, token.TokenID)
				}
			}
			if len(ids) != tokenCount {
				t.Fatalf("the venue has %d open tokens, want %d", len(ids), tokenCount)
			}
			client := s.dial(t, anonymous)
			for part := range slices.Chunk(ids, 500) {
				events := client.subscribe(t, `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) { reason price { tokenId } } }`, vars{"ids": part})
				for n := 0; n < len(part); { // a RESYNC of one token may come before the INITIAL of another
					if text(events.value(t), "reason") == "INITIAL" {
						n++
					}
				}
			}
			eventually(t, "the venue streams as many topics as --stream-topics allows", func() bool {
				// Count the topics of books, too: while less than half of the allowed topics are in use, a subscription to a
				// token's price also opens the topic of the token's book.
				n := s.venue.Stats().Stream.Topics
				sum := n["prices"] + n["orderbook"]
				if sum > int64(test.topics) {
					t.Fatalf("the venue streams the topics %v, want at most %d", n, test.topics)
				}
				return sum == int64(test.topics)
			})
			wantJSON(t, "connections", at(s.ask(t, queryStatus, nil, anonymous), "serviceStatus.stream.connections"), fmt.Sprint(test.connections))
		})
	}
}
