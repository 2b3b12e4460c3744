package e2e

import (
	"math/big"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// held is a position as a client knows it from the events so far.
type held struct{ size, avg, price *big.Rat }

// TestTheLivePortfolioOfManyPositions subscribes to 2,000 positions while prices move and trades change the positions.
func TestTheLivePortfolioOfManyPositions(t *testing.T) {
	t.Parallel()
	s := startLive(t, "--demo-markets=1200", "--venue-timeout=1m", "--request-timeout=2m") // a busy machine takes seconds for the first event
	s.streaming(t)
	portfolio := s.dial(t, keyOf2000).subscribe(t, subPortfolio, vars{"a": addressOf2000})
	positions := map[string]held{}
	// take applies an event as a client does, and computes the sums itself.
	take := func() (v any, changed int) {
		v = portfolio.value(t)
		if reason := text(v, "reason"); reason == "INITIAL" || reason == "RESYNC" {
			clear(positions)
		}
		for _, p := range list(v, "changed") {
			price := number(t, at(p, "valuation.price"))
			positions[text(p, "id")] = held{number(t, at(p, "size")), number(t, at(p, "avgPrice")), price}
			wantNumber(t, "value", at(p, "valuation.value"), mul(number(t, at(p, "size")), price))
			if text(p, "valuation.basis") == "VENUE" && text(p, "token.price.price") != text(p, "valuation.price") {
				t.Errorf("the event shows another price than it counts with: %s", asJSON(p))
			}
		}
		for _, id := range list(v, "closedPositionIds") {
			delete(positions, id.(string))
		}
		value, cost, pnl := new(big.Rat), new(big.Rat), new(big.Rat)
		for _, p := range positions {
			worth := mul(p.size, p.price)
			value = add(value, worth)
			if p.avg != nil {
				cost = add(cost, mul(p.size, p.avg))
				pnl = add(pnl, sub(worth, mul(p.size, p.avg)))
			}
		}
		wantNumber(t, "positionsValue", at(v, "summary.positionsValue"), value)
		wantNumber(t, "costBasis", at(v, "summary.costBasis"), cost)
		wantNumber(t, "unrealizedPnl", at(v, "summary.unrealizedPnl"), pnl)
		return v, len(list(v, "changed"))
	}
	v, n := take()
	if text(v, "reason") != "INITIAL" || n != 2000 || len(positions) != 2000 {
		t.Fatalf("the first event is %s with %d positions", text(v, "reason"), n)
	}

	begin := time.Now()
	for event := range 10 {
		for range 10 {
			s.venue.Step()
		}
		_, n := take()
		if event < 3 {
			t.Logf("event %d: %d positions after %v", event, n, time.Since(begin))
		}
	}
	t.Logf("10 events in %v", time.Since(begin))

	// The next events and the sums contain a trade.
	for _, p := range s.venue.Positions(addressOf2000) {
		if s.venue.Trade(addressOf2000, p.TokenID, demo.Sell, p.Size) == nil {
			closed := 0
			for closed == 0 {
				v, _ := take()
				closed += len(list(v, "closedPositionIds"))
			}
			break
		}
	}
	want := len(s.venue.Positions(addressOf2000))
	for len(positions) != want {
		take()
	}
}
