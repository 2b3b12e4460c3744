package demo

import (
	"maps"
	"slices"
	"testing"
)

// levels maps sides and prices to the sizes of the levels of a book.
type levels map[Side]map[Price]Size

func levelsOf(b Book) levels {
	l := levels{Buy: {}, Sell: {}}
	for _, x := range b.Bids {
		l[Buy][x.Price] = x.Size
	}
	for _, x := range b.Asks {
		l[Sell][x.Price] = x.Size
	}
	return l
}

func (l levels) apply(c levelChange) {
	if c.size == 0 {
		delete(l[c.side], c.price)
	} else {
		l[c.side][c.price] = c.size
	}
}

// TestBooksStayConsistent checks all books during 1,000 steps. The levels of a book must be sorted and lie on the price grid, and
// the price of the token must lie between the best bid and the best ask. The test also applies all recorded changes to copies of
// the first books. The copies must equal the last books. Without Config.MarketEvery, no market may change.
func TestBooksStayConsistent(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock(), Seed: 7})
	replayed, seqs := make(map[*token]levels), make(map[*token]uint64)
	for _, tok := range v.listing.tokens {
		checkBook(t, tok)
		replayed[tok], seqs[tok] = levelsOf(tok.book()), tok.bookSeq
	}
	moves, priceMoves := 0, 0
	for range 1000 {
		v.Step()
		for _, m := range v.moves {
			moves++
			if m.priced {
				priceMoves++
			}
			for _, tok := range m.token.market.tokens {
				if tok.instrument != m.instrument {
					continue
				}
				checkBook(t, tok)
				for _, c := range m.changes {
					replayed[tok].apply(tok.change(c))
				}
				if len(m.changes) > 0 {
					seqs[tok]++
				}
			}
		}
	}
	if moves < 1000 || priceMoves < 500 || priceMoves == moves {
		t.Fatalf("got %d moves in 1,000 steps, %d of them of prices; want at least 1,000, and 500 of prices, but not all", moves, priceMoves)
	}
	for _, tok := range v.listing.tokens {
		b := tok.book()
		now := levelsOf(b)
		for _, side := range []Side{Buy, Sell} {
			if !maps.Equal(now[side], replayed[tok][side]) {
				t.Fatalf("token %s: the replayed changes do not give the %s levels of the last book", tok.id, side)
			}
		}
		if b.Seq != seqs[tok] {
			t.Fatalf("token %s: got seq %d, want %d", tok.id, b.Seq, seqs[tok])
		}
		if m := tok.market; m.status != m.born.status || m.seq != 1 {
			t.Fatalf("market %s changed: got status %s and seq %d, want %s and 1", m.slug, m.status, m.seq, m.born.status)
		}
	}
}

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

// change converts a change of an instrument's book to a change of a token's book.
func (w view) change(c levelChange) levelChange {
	if w.mirrored {
		c.side, c.price = c.side.opposite(), payout-c.price
	}
	return c
}
