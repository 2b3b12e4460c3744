package e2e

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// knownPosition is a position as a client knows it from the events so far.
type knownPosition struct{ size, avg, price *big.Rat }

// TestTheLivePortfolioOfManyPositions checks the sums in each event against the sums over all positions that a client has received.
// Prices move, and a trade closes one of 2,000 positions.
func TestTheLivePortfolioOfManyPositions(t *testing.T) {
	t.Parallel()
	s := startLive(t, "--demo-markets=1200", "--venue-timeout=1m", "--request-timeout=2m") // a busy machine takes seconds for the first event
	s.waitForStream(t)
	portfolio := s.dial(t, keyOf2000).subscribe(t, subPortfolio, vars{"a": addressOf2000})
	positions := map[string]knownPosition{}
	// take applies an event as a client does, and compares the sums in the event with the sums over all positions.
	take := func() (v any, changed int) {
		v = portfolio.value(t)
		if reason := text(v, "reason"); reason == "INITIAL" || reason == "RESYNC" {
			clear(positions)
		}
		for _, p := range list(v, "changed") {
			price := number(t, at(p, "valuation.price"))
			positions[text(p, "id")] = knownPosition{number(t, at(p, "size")), number(t, at(p, "avgPrice")), price}
			wantNumber(t, "value", at(p, "valuation.value"), mul(number(t, at(p, "size")), price))
			if text(p, "valuation.basis") == "VENUE" && text(p, "token.price.price") != text(p, "valuation.price") {
				t.Errorf("the token's price differs from the price of its valuation: %s", asJSON(p))
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
		t.Fatalf("the first event is %s with %d positions, want INITIAL with 2000", text(v, "reason"), n)
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

	// A trade sells one whole position. An event must report the position as closed, and the sums must stay correct.
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

// TestThePageOfALargePortfolio checks a subscription to 20 of 2,000 positions. The first event must have less than 50 KiB, and
// later events less than 5 KiB a second. The sums must cover all positions. The service must refuse every id that does not name
// one of the wallet's positions.
func TestThePageOfALargePortfolio(t *testing.T) {
	t.Parallel()
	s := startLive(t, "--demo-markets=1200", "--venue-timeout=1m", "--request-timeout=2m") // a busy machine takes seconds for the first event
	s.waitForStream(t)
	const page = `query($a: Address!) { user(address: $a) { positions(first: 20, sort: VALUE) { nodes { id tokenId } } portfolio { positionsValue } } }`
	data := s.ask(t, page, vars{"a": addressOf2000}, keyOf2000)
	var ids []any
	shown := map[string]bool{}
	for _, p := range list(data, "user.positions.nodes") {
		ids = append(ids, at(p, "id"))
		shown[text(p, "id")] = true
	}
	const query = `subscription($a: Address!, $ids: [ID!]) { portfolioChanged(address: $a, positionIds: $ids) { reason closedPositionIds
		changed { id size outcome token { id price { id price } } market { id question slug } valuation { id price basis value unrealizedPnl freshness { stale } } freshness { source stale } }
		summary { id positionsValue costBasis unrealizedPnl freshness { source stale } } } }`
	k := s.dial(t, keyOf2000)
	portfolio := k.subscribe(t, query, vars{"a": addressOf2000, "ids": ids})
	first := portfolio.value(t)
	if n := len(asJSON(first)); text(first, "reason") != "INITIAL" || len(list(first, "changed")) != 20 || n >= 50<<10 {
		t.Fatalf("the first event is %s with %d positions and %d bytes, want INITIAL with 20 positions and less than 50 KiB", text(first, "reason"), len(list(first, "changed")), n)
	}
	wantText(t, first, "summary.positionsValue", text(data, "user.portfolio.positionsValue"))

	next := func() any {
		t.Helper()
		for range 4 { // with two events a second, these are eight steps a second; demo.Venue.Run makes about seven
			s.venue.Step()
		}
		event := portfolio.value(t)
		for _, p := range list(event, "changed") {
			if !shown[text(p, "id")] {
				t.Fatalf("an event has the position %s, which is not on the page", text(p, "id"))
			}
		}
		return event
	}
	// On a busy machine, prices may become stale before the stream sends their first values. The next two events report these
	// changes.
	s.waitForStream(t)
	next()
	next()

	size, newSums, begin, before := 0, 0, time.Now(), text(first, "summary.positionsValue")
	for range 10 {
		event := next()
		if text(event, "summary.positionsValue") != before {
			newSums++
		}
		size += len(asJSON(event))
	}
	rate := float64(size) / time.Since(begin).Seconds()
	t.Logf("the first event has %d bytes; ten later ones have %d, or %.0f a second", len(asJSON(first)), size, rate)
	if newSums == 0 || rate >= 5<<10 {
		t.Errorf("ten events have %.0f bytes a second and %d new sums, want less than 5 KiB a second and at least one new sum", rate, newSums)
	}

	for _, bad := range []struct{ id, want string }{
		{"nonsense", "is not the id of a position"},
		{text(s.ask(t, `{ user(address: "`+addressOf2000+`") { id } }`, nil, anonymous), "user.id"), "is not the id of a position"},
		{text(s.ask(t, `query($a: Address!) { user(address: $a) { positions(first: 1) { nodes { id } } } }`, vars{"a": addressOf3}, keyOf3), "user.positions.nodes.0.id"), "is a position of another wallet"},
	} {
		ev := k.subscribe(t, query, vars{"a": addressOf2000, "ids": []any{bad.id}}).next(t)
		if len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "BAD_USER_INPUT" || !strings.Contains(ev.errors[0].Message, bad.want) {
			t.Errorf("position id %s: got the errors %+v, want the message %q", bad.id, ev.errors, bad.want)
		}
	}
}
