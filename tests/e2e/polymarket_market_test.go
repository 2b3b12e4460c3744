package e2e

import (
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// TestMarketChangedOfPolymarket checks the changes of two markets that nobody has read before the subscription. The outcomes of one
// market are not called Yes and No. A change of the tick size and the resolution must arrive from the stream, with their values,
// although REST answers from an old copy.
func TestMarketChangedOfPolymarket(t *testing.T) {
	t.Parallel()
	const fine demo.Price = 10 // 0.001
	s := startLive(t, "--venue-driver=polymarket", "--demo-driver=polymarket", "--demo-control=false", "--demo-markets=60")
	s.waitForStream(t)
	reader := s.Live.Feed.NewReader("test")
	defer reader.Close()
	tested := map[bool]bool{}
	for _, m := range s.openBinaryMarkets(60) {
		labels := s.Demo.Polymarket.Labels(m.tokens[0])
		named := labels[0] == "Yes"
		state := s.engineMarket(t, m.engineToken)
		if tested[named] || state.TickSize == fine {
			continue
		}
		tested[named] = true
		watched, err := reader.Watch(messages.Topic{Channel: messages.ChannelMarket, ID: m.id}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sub := s.dial(t, anonymous).subscribe(t, `subscription($ids: [String!]!) { marketChanged(marketIds: $ids) {
			reason change market { status tickSize tokens { outcome winner } resolution { winningOutcome resolvedAt } } } }`, vars{"ids": []string{m.id}})
		sub.reason(t, "INITIAL")
		eventually(t, "the stream follows the market", func() bool {
			state, err := watched.State()
			return err == nil && state.Live
		})
		if err := s.Demo.Venue.SetTickSize(state.MarketID, fine); err != nil {
			t.Fatal(err)
		}
		v := sub.change(t)
		wantText(t, v, "change", "TICK_SIZE")
		if got := text(v, "market.tickSize"); market.MustDecimal(got).Cmp(market.MustDecimal(fine.String())) != 0 {
			t.Errorf("%v: the tick size is %s, want %s", labels, got, fine)
		}
		if err := s.Demo.Venue.Resolve(state.MarketID, state.TokenIDs[1]); err != nil {
			t.Fatal(err)
		}
		v = sub.until(t, "the resolution", func(v any) bool { return text(v, "change") == "RESOLVED" })
		wantText(t, v, "market.status", "RESOLVED")
		wantText(t, v, "market.resolution.winningOutcome", labels[1])
		if resolved, err := time.Parse(time.RFC3339, text(v, "market.resolution.resolvedAt")); err != nil || time.Since(resolved) > patience {
			t.Errorf("%v: the market was resolved at %s, want now", labels, text(v, "market.resolution.resolvedAt"))
		}
		if at(v, "market.tokens.1.winner") != true || at(v, "market.tokens.0.winner") != false {
			t.Errorf("%v: got %s, want the second token as the winner", labels, asJSON(v))
		}
	}
	if len(tested) != 2 {
		t.Errorf("tested markets named Yes and No, and others: %v, want both", tested)
	}
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
