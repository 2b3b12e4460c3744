package e2e

import (
	"testing"
	"time"
)

const subPriceLists = `subscription($ids: [String!]!) { pricesChanged(tokenIds: $ids) {
	reason prices { reason previousPrice price { tokenId price freshness { source stale } } token { tokenId price { price } } } } }`

// TestPricesChanged checks that a subscription to many tokens gets at most about four events a second, and ends with the venue's
// prices.
func TestPricesChanged(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	ids := s.openTokens(20)
	sub := s.dial(t, anonymous).subscribe(t, subPriceLists, vars{"ids": ids})
	shown, events, entries := map[string]string{}, 0, 0
	apply := func(v any) {
		events++
		for _, p := range list(v, "prices") {
			entries++
			id := text(p, "price.tokenId")
			if before, ok := shown[id]; ok != (at(p, "previousPrice") != nil) || ok && text(p, "previousPrice") != before {
				t.Errorf("previousPrice is %v, want %q, in %s", at(p, "previousPrice"), before, asJSON(p))
			}
			shown[id] = text(p, "price.price")
			wantText(t, p, "token.price.price", shown[id])
		}
	}
	isCurrent := func() bool {
		for _, id := range ids {
			if q, _ := s.venue.Quote(id); shown[id] != plain(q.Price) {
				return false
			}
		}
		return true
	}
	apply(sub.reason(t, "INITIAL"))
	for !isCurrent() {
		apply(sub.value(t))
	}
	events, entries = 0, 0
	begin := time.Now()
	for range 5 {
		for _, id := range ids {
			s.move(t, id)
		}
		for !isCurrent() {
			v := sub.value(t)
			wantText(t, v, "reason", "CHANGE")
			apply(v)
		}
	}
	if most := int(time.Since(begin)/(250*time.Millisecond)) + 2; events > most || entries < 5*len(ids) {
		t.Errorf("%d events with %d prices in %v, want at most %d events with at least %d prices", events, entries, time.Since(begin), most, 5*len(ids))
	}
}
