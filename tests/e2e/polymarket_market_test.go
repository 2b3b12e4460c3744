package e2e

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
)

// TestMarketChangedOfPolymarket checks the changes of markets that nobody has read before the subscription. The outcomes of one market
// are not called Yes and No, and one market has protocol V2 and is named by the id of the Gamma API, which has two digits less. The new tick size and the resolution must arrive from the stream with their values, long before
// a poll.
func TestMarketChangedOfPolymarket(t *testing.T) {
	t.Parallel()
	const fine demo.Price = 10 // 0.001
	synctest.Test(t, func(t *testing.T) {
		s := startOverSimulator(t, "--demo-markets=60")
		s.connectInBubble(t)
		tested := map[string]bool{}
		for _, m := range s.openBinaryMarkets(60) {
			labels, state := s.Demo.Polymarket.Labels(m.tokens[0]), s.engineMarket(t, m.engineToken)
			kind, id := labels[0], m.id
			switch {
			case len(m.tokens[0]) == 75:
				kind, id = "V2", strings.TrimSuffix(m.id, "00")
			case kind != "Yes":
				kind = "teams"
			}
			if tested[kind] || state.TickSize == fine {
				continue
			}
			tested[kind] = true
			sub := s.dial(t, anonymous).subscribe(t, `subscription($ids: [String!]!) { marketChanged(marketIds: $ids) {
				reason change market { status tickSize tokens { winner } resolution { winningOutcome resolvedAt } } } }`, vars{"ids": []string{id}})
			sub.reason(t, "INITIAL")
			sub.reason(t, "RESYNC") // the stream follows the market
			change := func(kind string, err error) any {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if len(sub.came) == 0 {
					t.Fatalf("%v: the change %s did not arrive within half a second", labels, kind)
				}
				v := sub.change(t)
				wantText(t, v, "change", kind)
				return v
			}
			v := change("TICK_SIZE", s.Demo.Venue.SetTickSize(state.MarketID, fine))
			if got := text(v, "market.tickSize"); market.MustDecimal(got).Cmp(market.MustDecimal(fine.String())) != 0 {
				t.Errorf("%v: the tick size is %s, want %s", labels, got, fine)
			}
			resolvedAt := time.Now()
			v = change("RESOLVED", s.Demo.Venue.Resolve(state.MarketID, state.TokenIDs[1]))
			wantText(t, v, "market.status", "RESOLVED")
			wantText(t, v, "market.resolution.winningOutcome", labels[1])
			wantText(t, v, "market.resolution.resolvedAt", resolvedAt.UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z"))
			if at(v, "market.tokens.1.winner") != true || at(v, "market.tokens.0.winner") != false {
				t.Errorf("%v: got %s, want the second token as the winner", labels, asJSON(v))
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			for len(sub.came) > 0 {
				if v := sub.value(t); text(v, "reason") == "CHANGE" {
					t.Errorf("%v: the change arrived again as %s", labels, asJSON(v))
				}
			}
		}
		if len(tested) != 3 {
			t.Errorf("tested the kinds of markets %v, want Yes, teams and V2", tested)
		}
	})
}

// engineMarket returns the market of a token from the engine that all demo venues share.
func (s *service) engineMarket(t *testing.T, token string) demo.Market {
	t.Helper()
	for _, m := range s.Demo.Venue.Markets() {
		if m.TokenIDs[0] == token {
			return m
		}
	}
	t.Fatalf("the demo venue has no market with the token %s", token)
	return demo.Market{}
}
