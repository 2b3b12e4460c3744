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
// the first books. The copies must equal the last books.
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
	}
}

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
	spread, ok := tok.spread()
	if ok != (len(b.Bids) > 0 && len(b.Asks) > 0) {
		t.Fatalf("token %s: spread() reports a spread: %v; the book has %d bids and %d asks", tok.id, ok, len(b.Bids), len(b.Asks))
	}
	if ok && (spread != b.Asks[0].Price-b.Bids[0].Price || spread <= 0) {
		t.Fatalf("token %s: got spread %v, want the best ask minus the best bid", tok.id, spread)
	}
}

// TestBinaryTokensMirrorEachOther checks that the books of YES and NO are mirror images with the same sequence number.
func TestBinaryTokensMirrorEachOther(t *testing.T) {
	v := New(Config{Markets: 80, Clock: newClock()})
	for range 300 {
		v.Step()
	}
	checked := 0
	for _, m := range v.listing.markets {
		if !m.binary() || m.status != statusOpen {
			continue
		}
		checked++
		yes, no := m.tokens[0], m.tokens[1]
		if yes.price()+no.price() != payout {
			t.Fatalf("market %s: got prices %v of YES and %v of NO, want a sum of 1", m.slug, yes.price(), no.price())
		}
		y, n := yes.book(), no.book()
		for i, l := range y.Bids {
			if n.Asks[i] != (Level{payout - l.Price, l.Size}) {
				t.Fatalf("market %s: ask %d of NO is %v, bid of YES %v", m.slug, i, n.Asks[i], l)
			}
		}
		for i, l := range y.Asks {
			if n.Bids[i] != (Level{payout - l.Price, l.Size}) {
				t.Fatalf("market %s: bid %d of NO is %v, ask of YES %v", m.slug, i, n.Bids[i], l)
			}
		}
		if y.Seq != n.Seq || len(y.Bids) != len(n.Asks) || len(y.Asks) != len(n.Bids) {
			t.Fatalf("market %s: the books of YES and NO have different numbers of levels or sequence numbers", m.slug)
		}
	}
	if checked < 40 {
		t.Fatalf("got only %d open binary markets, want at least 40", checked)
	}
}

func TestSetPrice(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 40, Clock: c})
	yes := first(t, v, func(tok *token) bool { return isOpen(tok) && tok.market.binary() && tok.market.tick == 100 })
	no := yes.market.tokens[1]
	for _, price := range []Price{100, 9900, 5000, 5400, 200} {
		c.Advance(1e9)
		seq := no.bookSeq
		if err := v.SetPrice(no.id, price); err != nil {
			t.Fatal(err)
		}
		q, _ := v.Quote(no.id)
		if q.Price != price || yes.price() != payout-price || !q.At.Equal(c.Now()) || no.bookSeq != seq+1 {
			t.Fatalf("after SetPrice(NO, %v): got price %v of NO, price %v of YES, time %v, and seq %d after seq %d", price, q.Price, yes.price(), q.At, no.bookSeq, seq)
		}
		checkBook(t, yes)
		checkBook(t, no)
	}
	settled := first(t, v, func(tok *token) bool { return tok.market.status == statusResolved })
	for _, bad := range []struct {
		id    string
		price Price
		want  error
	}{{"nobody", 5000, ErrUnknownToken}, {no.id, 0, ErrPrice}, {no.id, payout, ErrPrice}, {no.id, 5050, ErrPrice}, {settled.id, 5000, ErrNotTrading}} {
		if err := v.SetPrice(bad.id, bad.price); err != bad.want {
			t.Errorf("SetPrice(%s, %v): got %v, want %v", bad.id, bad.price, err, bad.want)
		}
	}
}

// TestPricesFollowSchedule checks that the price of each open token stays near the price that market.priceAt returns.
func TestPricesFollowSchedule(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 40, Clock: c})
	for range 5000 {
		v.Step()
	}
	now := millisOf(c.Now())
	for _, tok := range v.listing.tradable {
		margin := 2 * tok.market.tick
		if tok.market.tick < 100 {
			margin = 15 * tok.market.tick
		}
		if d := tok.lastPrice() - tok.market.priceAt(tok.outcome, now); d > margin || d < -margin {
			t.Errorf("token %s: the price differs from priceAt by %v, want at most %v", tok.id, d, margin)
		}
	}
}

// change converts a change of an instrument's book to a change of a token's book.
func (w view) change(c levelChange) levelChange {
	if w.mirrored {
		c.side, c.price = c.side.opposite(), payout-c.price
	}
	return c
}
