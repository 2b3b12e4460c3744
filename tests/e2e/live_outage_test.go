package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

const queryStatus = `{ serviceStatus { stream { state connections reconnects watchedTokens } } }`

// firstEvents starts seven subscriptions that work without the stream, and takes the first event of each.
func (s *service) firstEvents(t testing.TB, k *socket, token, marketID, address string) map[string]*events {
	t.Helper()
	all := map[string]*events{
		"prices":    k.subscribe(t, subPrices, vars{"ids": []string{token}}),
		"book":      k.subscribe(t, subBook, vars{"id": token, "deltas": true}),
		"markets":   k.subscribe(t, subMarkets, vars{"ids": []string{marketID}}),
		"portfolio": k.subscribe(t, subPortfolio, vars{"a": address}),
		"orders":    k.subscribe(t, subOrders, vars{"a": address}),
		"trades":    k.subscribe(t, subUserTrades, vars{"a": address}),
		"balance":   k.subscribe(t, subBalance, vars{"a": address}),
	}
	for _, sub := range all {
		sub.reason(t, "INITIAL")
	}
	return all
}

func TestTheStreamIsSwitchedOff(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits
	s := startLive(t, "--demo-stream=false")
	wantText(t, s.ask(t, queryStatus, nil, anonymous), "serviceStatus.stream.state", "DISCONNECTED")
	id, marketID := s.openTokens(1)[0], s.openMarkets(1)[0]
	k := s.dial(t, keyOf3)
	wantText(t, k.subscribe(t, subStatus, nil).value(t), "state", "DISCONNECTED")
	subs := s.firstEvents(t, k, id, marketID, addressOf3)
	k.subscribe(t, subTrades, vars{"ids": []string{id}}).wantEnd(t, "UNSUPPORTED")
	price := s.move(t, id)
	wantText(t, subs["prices"].change(t), "price.price", plain(price))
	wantBook(t, subs["book"].change(t), "book.", s.bookOf(t, id, 20))
	if err := s.venue.SetStatus(marketID, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	wantText(t, subs["markets"].change(t), "market.status", "CLOSED")
}

func TestTheStreamDropsUnderSubscribers(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	id, marketID := s.openTokens(1)[0], s.openMarkets(2)[1]
	k := s.dial(t, keyOf3)
	status := k.subscribe(t, subStatus, nil)
	status.until(t, "the live stream", func(v any) bool { return text(v, "state") == "LIVE" })
	subs := s.firstEvents(t, k, id, marketID, addressOf3)
	tape := k.subscribe(t, subTrades, vars{"ids": []string{id}})
	tape.reason(t, "INITIAL")
	eventually(t, "the prices of the positions are streamed", func() bool {
		data := s.ask(t, `query($a: Address!) { user(address: $a) { positions(first: 10) { nodes { token { price { freshness { source } } } } } } }`, vars{"a": addressOf3}, keyOf3)
		return slices.Equal(pluck(data, "user.positions.nodes", "token.price.freshness.source"), []string{"STREAM", "STREAM", "STREAM"})
	})

	s.setFaults(t, faults.Fault{On: faults.OnOpens, Kind: faults.Status, Status: http.StatusServiceUnavailable})
	s.venue.Restart(demo.CloseSlow)
	stalePaths := map[string]string{ // the path of the field stale in the events of each subscription
		"prices": "price.freshness.stale", "book": "book.freshness.stale", "markets": "market.freshness.stale",
		"portfolio": "summary.freshness.stale", "balance": "balance.freshness.stale", "orders": "", "trades": "",
	}
	for name, sub := range subs {
		path, seen := stalePaths[name], map[string]bool{}
		sub.until(t, name+": a FRESHNESS event with stale values", func(v any) bool {
			if name == "portfolio" { // each price becomes stale at its own time
				noteStale(v, seen)
				return at(v, path) == true && len(seen) == 3
			}
			return text(v, "reason") == "FRESHNESS" && (path == "" || at(v, path) == true)
		})
	}
	tape.until(t, "FRESHNESS of the trades", func(v any) bool { return text(v, "reason") == "FRESHNESS" })
	status.until(t, "the loss of the stream", func(v any) bool { return text(v, "state") == "DISCONNECTED" })
	eventually(t, "queries fall back to REST", func() bool {
		return text(s.ask(t, queryLive, vars{"id": id}, anonymous), "token.price.freshness.source") == "REST"
	})
	s.move(t, id)
	if err := s.venue.Trade(addressOf2000, id, demo.Buy, 700); err != nil {
		t.Fatal(err)
	}

	s.setFaults(t)
	for name, sub := range subs {
		v := sub.until(t, name+": RESYNC", func(v any) bool { return text(v, "reason") == "RESYNC" })
		switch path := stalePaths[name]; {
		case path == "" || at(v, path) == false:
		case name == "portfolio": // the account may be fresh before the prices of its positions are fresh
			sub.until(t, "a portfolio of fresh prices", func(v any) bool { return at(v, path) == false })
		default:
			t.Errorf("%s: stale after the RESYNC: %s", name, asJSON(v))
		}
	}
	v := tape.reason(t, "RESYNC")
	wantText(t, v, fmt.Sprintf("trades.%d.size", len(list(v, "trades"))-1), "7")
	status.until(t, "the return of the stream", func(v any) bool { return text(v, "state") == "LIVE" })
}

// noteStale records the ids of those positions in an event that have a stale valuation.
func noteStale(v any, stale map[string]bool) {
	for _, p := range list(v, "changed") {
		if at(p, "valuation.freshness.stale") == true {
			stale[text(p, "id")] = true
		}
	}
}
