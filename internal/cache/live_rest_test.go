package cache

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
)

// quoteVenue is a venue whose price, spread and book the test sets.
type quoteVenue struct {
	*testVenue
	price  *market.Price
	spread *market.Spread
	book   *market.Book
}

func (q *quoteVenue) Prices(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Price], error) {
	return eachOf(q.testVenue, ctx, call, upstream.EndpointPrices, ids, func(string) *market.Price { return q.price })
}

func (q *quoteVenue) Spreads(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Spread], error) {
	return eachOf(q.testVenue, ctx, call, upstream.EndpointSpreads, ids, func(string) *market.Spread { return q.spread })
}

func (q *quoteVenue) Books(ctx context.Context, call upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error) {
	return eachOf(q.testVenue, ctx, call, upstream.EndpointBook, []string{books[0].TokenID}, func(string) *market.Book {
		b := *q.book.Cut(books[0].Depth)
		b.Depth = books[0].Depth
		return &b
	})
}

func openQuotes(t *testing.T, q *quoteVenue) *Cache {
	t.Helper()
	q.testVenue = &testVenue{}
	return open(t, q)
}

func at(second int) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC)
}

func newPrice(price string, second int) *market.Price {
	return &market.Price{TokenID: "t", Price: market.MustDecimal(price), Timestamp: at(second)}
}

func newSpread(bid, ask string, second int) *market.Spread {
	s := &market.Spread{TokenID: "t", Timestamp: at(second)}
	if bid != "" {
		d := market.MustDecimal(bid)
		s.BestBid = &d
	}
	if ask != "" {
		d := market.MustDecimal(ask)
		s.BestAsk = &d
	}
	return s
}

// newBook returns a book with bids of the given sizes.
func newBook(epoch string, seq uint64, second, depth int, sizes ...int64) *market.Book {
	b := &market.Book{TokenID: "t", Epoch: epoch, Seq: seq, Timestamp: at(second), Depth: depth}
	var bids []market.Level
	for i, size := range sizes {
		bids = append(bids, market.Level{Price: market.NewDecimal(int64(50-i), -2), Size: market.NewDecimal(size, 0)})
	}
	b.Bids = market.NewSide(bids)
	return b
}

func TestOlderValues(t *testing.T) {
	many := func(n int, first int64) []int64 {
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = first + int64(i)
		}
		return sizes
	}
	for _, x := range []struct {
		name string
		got  bool
		want bool
	}{
		{"an earlier price", priceKind{}.older(newPrice(".5", 1), newPrice(".6", 2)), true},
		{"a later price", priceKind{}.older(newPrice(".5", 2), newPrice(".6", 1)), false},
		{"a price of the same time", priceKind{}.older(newPrice(".5", 1), newPrice(".6", 1)), false},
		{"the same price", priceKind{}.older(newPrice(".5", 1), newPrice(".50", 2)), false},
		{"a price without a timestamp", priceKind{}.older(newPrice(".5", 0), newPrice(".6", 2)), false},
		{"a price compared with a price without a timestamp", priceKind{}.older(newPrice(".5", 1), newPrice(".6", 0)), false},
		{"an earlier spread", spreadKind{}.older(newSpread(".4", ".6", 1), newSpread(".4", ".5", 2)), true},
		{"an earlier spread of one side", spreadKind{}.older(newSpread("", ".6", 1), newSpread(".4", ".6", 2)), true},
		{"the same spread", spreadKind{}.older(newSpread(".4", ".6", 1), newSpread(".40", ".60", 2)), false},
		{"the same spread of one side", spreadKind{}.older(newSpread("", ".6", 1), newSpread("", ".60", 2)), false},
		{"a lower sequence number", bookKind{}.older(newBook("A", 7, 9, 20, 1), newBook("A", 8, 1, 20, 1)), true},
		{"the same sequence number", bookKind{}.older(newBook("A", 8, 1, 20, 1), newBook("A", 8, 9, 20, 2)), false},
		{"a higher sequence number", bookKind{}.older(newBook("A", 9, 1, 20, 1), newBook("A", 8, 9, 20, 2)), false},
		{"another epoch, earlier", bookKind{}.older(newBook("A", 9, 1, 20, 1), newBook("B", 2, 2, 20, 2)), true},
		{"another epoch, later", bookKind{}.older(newBook("B", 2, 2, 20, 1), newBook("A", 9, 1, 20, 2)), false},
		{"no sequence numbers, earlier", bookKind{}.older(newBook("", 0, 1, 20, 1), newBook("", 0, 2, 20, 2)), true},
		{"only one book has a sequence number, earlier", bookKind{}.older(newBook("A", 7, 1, 20, 1), newBook("", 0, 2, 20, 2)), true},
		{"no sequence numbers, the same book", bookKind{}.older(newBook("", 0, 1, 20, 1, 2), newBook("", 0, 2, 200, 1, 2)), false},
		{"no sequence numbers, the later book has one level more", bookKind{}.older(newBook("", 0, 1, 20, 1), newBook("", 0, 2, 20, 1, 2)), true},
		{"no sequence numbers, the later book has one level less", bookKind{}.older(newBook("", 0, 1, 20, 1, 2), newBook("", 0, 2, 20, 1)), true},
		{"no sequence numbers, the later book is shallower and has the same levels", bookKind{}.older(newBook("", 0, 1, 200, many(30, 1)...), newBook("", 0, 2, 20, many(20, 1)...)), false},
		{"no sequence numbers, the later book is deeper and begins with the same levels", bookKind{}.older(newBook("", 0, 1, 20, many(20, 1)...), newBook("", 0, 2, 200, many(30, 1)...)), false},
		{"no sequence numbers, the later book is shallower and has other levels", bookKind{}.older(newBook("", 0, 1, 200, many(30, 2)...), newBook("", 0, 2, 20, many(20, 1)...)), true},
		{"no sequence numbers and no timestamps", bookKind{}.older(newBook("", 0, 0, 20, 1), newBook("", 0, 0, 20, 2)), false},
	} {
		if x.got != x.want {
			t.Errorf("%s: got older %t, want %t", x.name, x.got, x.want)
		}
	}
}

// TestStreamStartsWithOlderValue checks that older streamed values do not replace REST values, but equal streamed values do. After
// that, each streamed value must replace the value before it.
func TestStreamStartsWithOlderValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quoteVenue{price: newPrice(".6", 5), spread: newSpread(".5", ".7", 5), book: newBook("A", 8, 5, 200, 1)}
		c := openQuotes(t, q)
		mustRead(t, c.Prices(), "t")
		mustRead(t, c.Spreads(), "t")
		mustRead(t, c.Books(), depth(20))
		session := &reads.Session{}
		c.StreamPrice(session, newPrice(".5", 4), streamed(at(4)))
		c.StreamSpread(session, newSpread(".4", ".6", 4), streamed(at(4)))
		c.StreamBook(session, newBook("A", 7, 9, 200, 2), streamed(at(9)))
		if p, s, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Spreads(), "t"), mustRead(t, c.Books(), depth(20)); p.Source != market.SourceREST ||
			s.Source != market.SourceREST || b.Source != market.SourceREST || !p.Handle.Valid() || !s.Handle.Valid() || !b.Handle.Valid() {
			t.Errorf("got %v %v %v, want the newer values of REST", p, s, b)
		}
		// A streamed value replaces the REST value if both are equal.
		price, spread, book := newPrice(".60", 1), newSpread(".50", ".70", 1), newBook("A", 8, 1, 200, 1)
		c.StreamPrice(session, price, streamed(at(1)))
		c.StreamSpread(session, spread, streamed(at(1)))
		c.StreamBook(session, book, streamed(at(1)))
		if p, s, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Spreads(), "t"), mustRead(t, c.Books(), depth(20)); p.Value != price || s.Value != spread || b.Value != book {
			t.Errorf("got %v %v %v, want the values of the stream", p, s, b)
		}
		// Each later value of the stream replaces the value before it, whatever the timestamps.
		price, spread, book = newPrice(".4", 0), newSpread(".3", ".5", 0), newBook("A", 3, 0, 200, 4)
		for range 2 {
			c.StreamPrice(session, price, streamed(at(1)))
			c.StreamSpread(session, spread, streamed(at(1)))
			c.StreamBook(session, book, streamed(at(1)))
			if p, s, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Spreads(), "t"), mustRead(t, c.Books(), depth(20)); p.Value != price || s.Value != spread || b.Value != book {
				t.Errorf("got %v %v %v, want the last values of the stream", p, s, b)
			}
			price, spread, book = newPrice(".45", -1), newSpread(".35", ".5", -1), newBook("A", 2, -1, 200, 5)
			session = &reads.Session{} // the second iteration streams in a new session
		}
	})
}

// TestFlightBeforeStream checks that a REST response does not replace a value that was streamed during the call.
func TestFlightBeforeStream(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		t.Run(fmt.Sprintf("unknown %t", unknown), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &quoteVenue{price: newPrice(".9", 9), book: newBook("", 0, 9, 200, 9)}
				c := openQuotes(t, q)
				q.latency = time.Second
				q.setUnknown("t", unknown)
				var readers [3]reads.Value[*market.Price]
				var book reads.Value[*market.Book]
				for i := range readers {
					go func() { readers[i], _ = readOne(t.Context(), c.Prices(), "t") }()
				}
				go func() { book, _ = readOne(t.Context(), c.Books(), depth(20)) }()
				time.Sleep(500 * time.Millisecond)
				session, live, liveBook := &reads.Session{}, newPrice(".5", 1), newBook("A", 1, 1, 200, 1)
				c.StreamPrice(session, live, streamed(time.Now()))
				c.StreamBook(session, liveBook, streamed(time.Now()))
				time.Sleep(time.Second)
				synctest.Wait()
				for _, r := range readers {
					if r.Value != live || r.Source != market.SourceStream || !r.Handle.Valid() {
						t.Errorf("waiting caller: got %+v, want the streamed price", r)
					}
				}
				if book.Value != liveBook || mustRead(t, c.Prices(), "t").Value != live || mustRead(t, c.Books(), depth(20)).Value != liveBook {
					t.Error("a REST result replaced a streamed value")
				}
			})
		})
	}
}

// TestRESTBehindStream checks that the cache keeps a streamed value after the end of the session, until REST returns a newer value
// or restLag has passed.
func TestRESTBehindStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quoteVenue{price: newPrice(".4", 3), book: newBook("A", 6, 3, 200, 6)}
		c := openQuotes(t, q)
		session, price, book := &reads.Session{}, newPrice(".5", 5), newBook("A", 8, 5, 200, 8)
		c.StreamPrice(session, price, streamed(at(5)))
		c.StreamBook(session, book, streamed(at(5)))
		session.End(time.Now())
		calls := len(q.calls())
		for n := range 10 {
			mustRead(t, c.Prices(), "t")
			mustRead(t, c.Books(), depth(20))
			synctest.Wait()
			p, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Books(), depth(20))
			if p.Value != price || b.Value != book || p.Stale || b.Stale || p.Source != market.SourceREST || !p.AsOf.Equal(at(5)) {
				t.Fatalf("read %d: got %+v %+v, want the last streamed values", n, p, b)
			}
			if now := len(q.calls()); now != calls+2 {
				t.Fatalf("read %d: got %d calls, want 2", n, now-calls)
			}
			calls += 2
			time.Sleep(2 * time.Second)
		}
		// A REST book that is older but deeper than the streamed book is returned to its reader and not cached.
		shallow := newBook("A", 9, 6, 50, make([]int64, 50)...)
		again := &reads.Session{}
		c.StreamBook(again, shallow, streamed(at(6)))
		again.End(time.Now())
		deep, err := readOne(t.Context(), c.Books(), depth(200))
		if err != nil || deep.Value.Seq != 6 || deep.Value.Depth != 200 || deep.Handle.Valid() {
			t.Errorf("got %+v, %v; want the deep book, not cached", deep, err)
		}
		if b := mustRead(t, c.Books(), depth(20)); b.Value != shallow || !b.Stale {
			t.Errorf("got %+v, want the streamed book, stale", b)
		}
		synctest.Wait() // wait for the refresh of the book
		time.Sleep(2 * time.Second)
		// Now REST has newer values.
		q.price, q.book = newPrice(".3", 7), newBook("A", 9, 7, 200, 9)
		mustRead(t, c.Prices(), "t")
		mustRead(t, c.Books(), depth(20))
		synctest.Wait()
		if p, b := mustRead(t, c.Prices(), "t"), mustRead(t, c.Books(), depth(20)); p.Value != q.price || b.Value.Timestamp != at(7) {
			t.Errorf("got %+v %+v, want the values of REST", p, b)
		}
		// After restLag, REST replaces even a streamed price whose timestamp is far in the future.
		late := &reads.Session{}
		c.StreamPrice(late, &market.Price{TokenID: "t", Price: market.MustDecimal(".99"), Timestamp: at(0).AddDate(4000, 0, 0)}, streamed(time.Now()))
		late.End(time.Now())
		for range 100 {
			mustRead(t, c.Prices(), "t")
			time.Sleep(time.Second)
		}
		if p := mustRead(t, c.Prices(), "t"); p.Value != q.price {
			t.Errorf("got %+v, want the price of REST", p)
		}
	})
}
