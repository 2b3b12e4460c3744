package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	simulator "oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// listed returns all markets of the simulator, as the driver's search reads them.
func (s *simulatedDriver) listed() (all []*market.Market) {
	s.t.Helper()
	for q := (queries.Search{Limit: 100}); ; {
		page, err := s.Search(context.Background(), q)
		if err != nil || len(page.LeftOut) > 0 {
			s.t.Fatalf("a search got the error %v and left out %v", err, page.LeftOut)
		}
		all = append(all, page.Markets...)
		if q.Page = page.Next; q.Page == "" {
			return all
		}
	}
}

// TestPolymarketDriverReadsEveryKindOfMarket looks up all markets of the simulator by their ids and by the ids of their outcomes: those
// of protocol V1 and V2, and old ones without an order book.
func TestPolymarketDriverReadsEveryKindOfMarket(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	all := s.listed()
	var ids, short, tokens []string
	byToken, v2, old, teams := map[string]*market.Market{}, 0, 0, 0
	for _, m := range all {
		ids = append(ids, m.MarketID)
		for _, o := range m.Outcomes {
			if byToken[o.TokenID] != nil || o.TokenID == "" {
				t.Errorf("the token %q of the market %s is empty or belongs to two markets", o.TokenID, m.Slug)
			}
			tokens, byToken[o.TokenID] = append(tokens, o.TokenID), m
		}
		if m.Outcomes[0].Label != "Yes" {
			teams++
		}
		switch {
		case len(m.Outcomes[0].TokenID) == 75:
			v2, short = v2+1, append(short, strings.TrimSuffix(m.MarketID, "00"))
		case strings.HasPrefix(m.Slug, "old-market-"):
			old++
			if m.Status != market.StatusResolved || m.Winner() == nil || m.Resolution.ResolvedAt.IsZero() || m.Outcomes[0].TokenID != m.MarketID+":0" {
				t.Errorf("the old market is %+v, want a resolved market with a winner, and outcomes with ids of their own", m)
			}
		}
	}
	if v2 < 5 || teams < 5 || old != simulator.OldMarkets {
		t.Fatalf("the simulator has %d markets of V2, %d with teams and %d old ones", v2, teams, old)
	}
	rows, err := s.MarketsByID(ctx, slices.Concat(ids, short))
	for id, m := range results(t, slices.Concat(ids, short), rows, err) {
		if m == nil || m.MarketID != id && m.MarketID != id+"00" {
			t.Errorf("the market %s is %+v", id, m)
		}
	}
	rows, err = s.MarketsByToken(ctx, tokens)
	for id, m := range results(t, tokens, rows, err) {
		if m == nil || m.MarketID != byToken[id].MarketID || m.OutcomeByToken(id) == nil {
			t.Errorf("the market of the token %s is %+v", id, m)
		}
	}
	s.wantNoDrift()
}

// TestPolymarketDriverReadsTradesOfV2 reads the public trades of a market of protocol V2 by both forms of its id.
func TestPolymarketDriverReadsTradesOfV2(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	found := 0
	for _, m := range s.listed() {
		if len(m.Outcomes[0].TokenID) != 75 || m.Status != market.StatusOpen {
			continue
		}
		page, err := s.MarketTrades(ctx, queries.MarketTrades{MarketID: m.MarketID, Limit: 50})
		short, err2 := s.MarketTrades(ctx, queries.MarketTrades{MarketID: strings.TrimSuffix(m.MarketID, "00"), Limit: 50})
		if err != nil || err2 != nil || len(page.LeftOut) > 0 || len(page.Trades) != len(short.Trades) {
			t.Errorf("the market %s has the trades %+v and %+v and the errors %v and %v", m.Slug, page, short, err, err2)
			continue
		}
		for _, trade := range page.Trades {
			if found++; trade.MarketID != m.MarketID || m.OutcomeByToken(trade.TokenID) == nil {
				t.Errorf("the trade %+v is not of the market %s", trade, m.MarketID)
			}
		}
	}
	if found == 0 {
		t.Error("no market of V2 has a trade")
	}
	s.wantNoDrift()
}

// TestPolymarketDriverReadsAllActivity reads the whole activity of an account, each kind with the sign and the size of its form.
func TestPolymarketDriverReadsAllActivity(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	const address = "0x3333333333333333333333333333333333333333"
	seen := map[string]int{}
	for _, kinds := range [][]market.HistoryKind{nil, {market.HistoryTransfer}} {
		for q := (queries.History{Limit: 100, Kinds: kinds}); ; {
			page, err := s.History(ctx, address, q)
			if err != nil || len(page.LeftOut) > 0 {
				t.Fatalf("got the history %+v and the error %v", page, err)
			}
			for _, h := range page.Records {
				seen[h.KindRaw]++
				switch h.Kind {
				case market.HistoryTransfer:
					seen[map[bool]string{true: "sent", false: "received"}[h.Amount.Sign() < 0]]++
				case market.HistoryConversion:
					if h.Amount == nil || !h.Amount.IsZero() || h.Size == nil || h.Size.Sign() <= 0 {
						t.Errorf("the conversion %+v has no size or an amount", h)
					}
				case market.HistoryUnknown:
					t.Errorf("the kind of %+v is unknown", h)
				}
			}
			if q.Page = page.Next; q.Page == "" {
				break
			}
		}
	}
	for _, name := range []string{"TRADE", "REWARD", "DEPOSIT", "WITHDRAWAL", "CONVERSION", "MIGRATION", "TIP", "sent", "received"} {
		if seen[name] == 0 {
			t.Errorf("the history has no record %s", name)
		}
	}
	s.wantNoDrift()
}
