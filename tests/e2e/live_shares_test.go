package e2e

import (
	"fmt"
	"testing"

	"oddsgraph/app"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
)

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
