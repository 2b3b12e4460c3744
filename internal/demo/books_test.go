package demo

import (
	"slices"
	"testing"
)

// checkBook checks the book of a token. The books of the two tokens of a binary market must be mirror images.
func checkBook(t *testing.T, tok *token) {
	t.Helper()
	b, price := tok.book(), tok.lastPrice()
	if tok.market.status != statusOpen {
		if len(b.Bids)+len(b.Asks) > 0 {
			t.Fatalf("token %s: the market has the status %s, but the book is not empty", tok.id, tok.market.status)
		}
		return
	}
	down := func(a, b Level) int { return int(b.Price - a.Price) }
	up := func(a, b Level) int { return int(a.Price - b.Price) }
	if !slices.IsSortedFunc(b.Bids, down) || !slices.IsSortedFunc(b.Asks, up) {
		t.Fatalf("token %s: levels are not in order", tok.id)
	}
	for _, l := range slices.Concat(b.Bids, b.Asks) {
		if l.Price <= 0 || l.Price >= payout || l.Price%tok.market.tick != 0 || l.Size <= 0 {
			t.Fatalf("token %s: level %v is off the grid or empty", tok.id, l)
		}
	}
	if len(b.Bids) > 0 && b.Bids[0].Price > price || len(b.Asks) > 0 && b.Asks[0].Price < price {
		t.Fatalf("token %s: price %v lies outside the book", tok.id, price)
	}
	if len(b.Bids)+len(b.Asks) == 0 {
		t.Fatalf("token %s: the market is open, but the book is empty", tok.id)
	}
	if m := tok.market; m.binary() {
		twin := m.tokens[1-tok.outcome]
		mirrored := twin.book()
		for i, l := range b.Bids {
			if mirrored.Asks[i] != (Level{payout - l.Price, l.Size}) {
				t.Fatalf("market %s: ask %d of one token is %v, bid of the other %v", m.slug, i, mirrored.Asks[i], l)
			}
		}
		if tok.price()+twin.price() != payout || b.Seq != mirrored.Seq || len(b.Bids) != len(mirrored.Asks) || len(b.Asks) != len(mirrored.Bids) {
			t.Fatalf("market %s: the tokens have prices with another sum than 1, or different numbers of levels or sequence numbers", m.slug)
		}
	}
	spread, ok := tok.spread()
	if ok != (len(b.Bids) > 0 && len(b.Asks) > 0) {
		t.Fatalf("token %s: spread() reports a spread: %v; the book has %d bids and %d asks", tok.id, ok, len(b.Bids), len(b.Asks))
	}
	if ok && (spread != b.Asks[0].Price-b.Bids[0].Price || spread <= 0) {
		t.Fatalf("token %s: got spread %v, want the best ask minus the best bid", tok.id, spread)
	}
}
