package e2e

import (
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
)

const subTape = `subscription($ids: [String!]!) { tradesAdded(tokenIds: $ids) { reason known gap trades { tradeId tokenId timestamp } } }`

// startTraded starts the service with the simulator of a driver, and returns a market that has trades.
func startTraded(t *testing.T, driver string) (*service, quietMarket) {
	t.Helper()
	s := startLive(t, "--venue-driver="+driver, "--demo-driver="+driver, "--demo-control=false", "--demo-markets=60")
	s.waitForStream(t)
	positions := s.Demo.Venue.Positions(addressOf2000)
	for _, m := range s.openBinaryMarkets(60) {
		if slices.ContainsFunc(positions, func(p demo.Position) bool { return p.TokenID == m.engineToken }) &&
			s.Demo.Venue.Trade(addressOf2000, m.engineToken, demo.Buy, 100) == nil {
			return s, m
		}
	}
	t.Fatal("the demo venue has no market to trade")
	return s, quietMarket{}
}

// idsOf returns the ids of the trades in an event.
func idsOf(v any) (ids []string) {
	for _, trade := range list(v, "trades") {
		ids = append(ids, text(trade, "tokenId")+" "+text(trade, "tradeId"))
	}
	return ids
}

// TestTapesFromREST checks subscriptions to the trades of both tokens of a market at venues whose streams begin with no trades. The
// first event is empty and not known. Then one call gives the latest trades of both tokens. After an interruption of the stream,
// the next event has the missed trades, without the mark of a gap.
func TestTapesFromREST(t *testing.T) {
	for _, venue := range capabilities {
		t.Run(venue.Driver, func(t *testing.T) {
			s, m := startTraded(t, venue.Driver)
			var sub *events
			var seen []string
			made := s.simulatorCalls(t, func() {
				sub = s.dial(t, anonymous).subscribe(t, subTape, vars{"ids": m.tokens})
				if v := sub.reason(t, "INITIAL"); at(v, "known") != false || len(list(v, "trades")) > 0 {
					t.Errorf("the first event is %s, want no trades, not known", asJSON(v))
				}
				v := sub.until(t, "the trades of REST", func(v any) bool {
					seen = append(seen, idsOf(v)...)
					return at(v, "known") == true
				})
				if text(v, "reason") != "RESYNC" || at(v, "gap") != false {
					t.Errorf("the trades of REST came as %s, want a RESYNC without a gap", asJSON(v))
				}
			})
			trades := "GET /v2/trades"
			if s.Demo.Kalshi != nil {
				trades = "GET /markets/trades"
			}
			if made[trades] != 1 {
				t.Errorf("got the calls %v, want one for trades", made)
			}
			if len(seen) == 0 || !slices.ContainsFunc(seen, func(id string) bool { return strings.HasPrefix(id, m.tokens[0]+" ") }) {
				t.Errorf("REST gave the trades %q, want trades of %s", seen, m.tokens[0])
			}
			trade := func() {
				t.Helper()
				if err := s.Demo.Venue.Trade(addressOf2000, m.engineToken, demo.Buy, 250); err != nil {
					t.Fatal(err)
				}
			}
			trade()
			sub.change(t)
			s.breakStream(t, func() { trade(); trade() })
			missed := 0
			sub.until(t, "the missed trades", func(v any) bool {
				if at(v, "gap") == true || at(v, "known") != true {
					t.Errorf("got %s, want known trades without a gap", asJSON(v))
				}
				for _, id := range idsOf(v) {
					if strings.HasPrefix(id, m.tokens[0]+" ") && !slices.Contains(seen, id) {
						missed++
					}
				}
				return missed >= 2
			})
			trade()
			if v := sub.change(t); at(v, "gap") != false || at(v, "known") != true {
				t.Errorf("after the interruption: got %s, want known trades without a gap", asJSON(v))
			}
		})
	}
}

// breakStream closes the sockets of the venue's stream and calls f before the service opens new ones.
func (s *service) breakStream(t *testing.T, f func()) {
	t.Helper()
	before := s.Venue.Live.Client.Stats().Reconnects
	s.faults.CloseStreams(0)
	f()
	eventually(t, "the stream is open again", func() bool { return s.Venue.Live.Client.Stats().Reconnects > before })
	s.waitForStream(t)
}
