package cache

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

func depth(n int) queries.Book { return queries.Book{TokenID: "t", Depth: n} }

// depths returns the depths of all calls for books, in order.
func (v *testVenue) depths() []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.bookDepths)
}

func TestBookDepths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		expect := func(when string, want ...int) {
			t.Helper()
			synctest.Wait()
			if got := v.depths(); !slices.Equal(got, want) {
				t.Fatalf("%s: got calls for depths %v, want %v", when, got, want)
			}
		}
		first := mustRead(t, c.Books(), depth(7))
		expect("after a read of depth 7", 20)
		mustRead(t, c.Books(), depth(20))
		mustRead(t, c.Books(), depth(1))
		expect("after reads that the cached book covers", 20)
		second := mustRead(t, c.Books(), depth(21))
		expect("after a read of depth 21", 20, 50)
		if first.Handle.Valid() || second.Value.Depth != 50 {
			t.Error("the deeper book did not replace the shallow book, or the handle does not show the replacement")
		}
		mustRead(t, c.Books(), depth(20))
		expect("after another read of depth 20", 20, 50)
		time.Sleep(500 * time.Millisecond)
		if r := mustRead(t, c.Books(), depth(1)); !r.Stale || r.Value.Depth != 50 {
			t.Errorf("got %+v, want a stale book of depth 50", r)
		}
		expect("after the refresh of the stale book", 20, 50, 50)
		mustRead(t, c.Books(), depth(200))
		expect("after a read of depth 200", 20, 50, 50, 200)
	})
}

// TestRefreshOfUnknownBook refreshes a book that the venue has stopped to know after it was read.
func TestRefreshOfUnknownBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{unknown: map[string]bool{"t": true}}
		c := open(t, v)
		if r := mustRead(t, c.Books(), depth(20)); r.Value != nil {
			t.Fatal("got a book, want none")
		}
		time.Sleep(DefaultConfig().NotFound)
		c.Books().Refresh(t.Context(), []queries.Book{depth(20)})
		synctest.Wait()
		if got := v.depths(); !slices.Equal(got, []int{20, 20}) {
			t.Errorf("got calls for depths %v, want two calls for depth 20", got)
		}
	})
}

func TestWholeBookCoversAnyDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{book: func(token string, depth int) *market.Book {
			return &market.Book{TokenID: token, Depth: depth, Bids: market.NewSide(make([]market.Level, 3)), Asks: market.NewSide(make([]market.Level, 19))}
		}}
		c := open(t, v)
		mustRead(t, c.Books(), depth(20))
		if r := mustRead(t, c.Books(), depth(200)); r.Value.Depth != 20 || len(v.calls()) != 1 {
			t.Errorf("got %+v and %d calls, want depth 20 and 1", r.Value, len(v.calls()))
		}
		// A refresh requests the depth of the read, because the book may have more levels than before.
		time.Sleep(500 * time.Millisecond)
		mustRead(t, c.Books(), depth(200))
		synctest.Wait()
		if got := v.depths(); !slices.Equal(got, []int{20, 200}) {
			t.Errorf("got calls for depths %v, want 20 and 200", got)
		}
	})
}

// TestShallowBookAfterADeepOne checks when a shallow book replaces a deeper book that arrived earlier.
func TestShallowBookAfterADeepOne(t *testing.T) {
	for _, tt := range []struct {
		name     string
		deep     market.Book
		shallow  market.Book
		replaced bool
	}{
		{"the shallow book is older", market.Book{Epoch: "e", Seq: 8}, market.Book{Epoch: "e", Seq: 7}, false},
		{"the shallow book has the same sequence number", market.Book{Epoch: "e", Seq: 8}, market.Book{Epoch: "e", Seq: 8}, false},
		{"the shallow book is newer", market.Book{Epoch: "e", Seq: 8}, market.Book{Epoch: "e", Seq: 9}, true},
		{"the books have different epochs", market.Book{Epoch: "e", Seq: 8}, market.Book{Epoch: "f", Seq: 7}, true},
		{"the books have no sequence numbers", market.Book{}, market.Book{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{}
				v.book = func(token string, depth int) *market.Book {
					b := tt.shallow
					if depth == 200 {
						b = tt.deep
					}
					b.TokenID, b.Depth, b.Bids, b.Asks = token, depth, market.NewSide(make([]market.Level, depth)), market.NewSide(make([]market.Level, depth))
					return &b
				}
				c := open(t, v)
				deep := mustRead(t, c.Books(), depth(200))
				c.Books().Fetch(t.Context(), []queries.Book{depth(20)})
				if n := len(v.calls()); n != 1 {
					t.Fatalf("got %d calls, want 1: the deeper book is fresh", n)
				}
				// This is the response of a shallow call that started before the deep book arrived.
				shallow := c.books.accept(depth(20), v.book("t", 20), origin{})
				if (!deep.Handle.Valid()) != tt.replaced {
					t.Errorf("the deep book was replaced: %v, want %v", !deep.Handle.Valid(), tt.replaced)
				}
				now, _ := readOne(t.Context(), c.Books(), depth(20))
				if now.Handle != shallow.Handle || !shallow.Handle.Valid() {
					t.Error("the book that accept returned is not the cached book")
				}
				if wantDepth := map[bool]int{true: 20, false: 200}[tt.replaced]; now.Value.Depth != wantDepth {
					t.Errorf("got cached depth %d, want %d", now.Value.Depth, wantDepth)
				}
				// The cached book has expired, so the first read calls the venue. The other reads make no call.
				time.Sleep(11 * time.Second)
				for range 3 {
					mustRead(t, c.Books(), depth(20))
				}
				if n := len(v.calls()); n != 2 {
					t.Errorf("got %d calls, want 2", n)
				}
			})
		})
	}
}

func TestAbsentBookIsAbsentAtEveryDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		v.setUnknown("t", true)
		c := open(t, v)
		absent := mustRead(t, c.Books(), depth(20))
		mustRead(t, c.Books(), depth(200))
		if absent.Value != nil || len(v.calls()) != 1 {
			t.Errorf("absent book: got %d calls, want 1", len(v.calls()))
		}
		v.setUnknown("t", false)
		time.Sleep(5 * time.Second)
		if r := mustRead(t, c.Books(), depth(200)); r.Value == nil || absent.Handle.Valid() {
			t.Error("the handle of the absence does not show the book")
		}
	})
}

func byID(id string) market.MarketRef    { return market.MarketRef{By: market.ByMarketID, Value: id} }
func bySlug(s string) market.MarketRef   { return market.MarketRef{By: market.BySlug, Value: s} }
func byToken(id string) market.MarketRef { return market.MarketRef{By: market.ByToken, Value: id} }

// election returns the market m1 for every id, slug and token.
func election(string) *market.Market {
	return &market.Market{MarketID: "m1", Slug: "election", EventID: "e1", Outcomes: []market.Outcome{{TokenID: "yes"}, {TokenID: "no"}, {}}}
}

var names = []market.MarketRef{byID("m1"), bySlug("election"), byToken("yes"), byToken("no")}

// TestMarketHasOneEntry checks that reads of a market by its id, slug or tokens share one entry.
func TestMarketHasOneEntry(t *testing.T) {
	for _, first := range names {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{market: election}
				c := open(t, v)
				want := mustRead(t, c.Markets(), first)
				for _, ref := range names {
					if got := mustRead(t, c.Markets(), ref); got.Handle != want.Handle || got.Value != want.Value {
						t.Errorf("%+v: got another entry", ref)
					}
				}
				if n := len(v.calls()); n != 1 || c.markets.entries.len() != 1 {
					t.Errorf("got %d calls and %d entries, want 1 and 1", n, c.markets.entries.len())
				}
				// A refresh by the id, the slug or a token replaces the one entry of the market.
				time.Sleep(time.Minute)
				for _, ref := range names {
					mustRead(t, c.Markets(), ref)
				}
				synctest.Wait()
				for _, ref := range names {
					if got := mustRead(t, c.Markets(), ref); got.Stale || !got.ReceivedAt.After(want.ReceivedAt) {
						t.Errorf("%+v: got the old entry", ref)
					}
				}
				if n := len(v.calls()); n != 2 || v.calls()[1].endpoint != upstream.EndpointMarketsByID {
					t.Errorf("got %d calls, want 2, the second by id", n)
				}
			})
		})
	}
}

// TestNamesAreLearnedFromLists checks that, after a list has returned a market, a read by slug or token calls the venue with the
// market's id.
func TestNamesAreLearnedFromLists(t *testing.T) {
	for name, learn := range map[string]func(t *testing.T, c *Cache){
		"search": func(t *testing.T, c *Cache) { mustRead(t, c.Searches(), queries.Search{Text: "x"}.Key()) },
		"event":  func(t *testing.T, c *Cache) { mustRead(t, c.Events(), market.EventRef{EventID: "e1"}) },
		"event search": func(t *testing.T, c *Cache) {
			if r := mustRead(t, c.EventSearches(), queries.Search{Text: "x"}.Key()); len(r.Value.Events) != 1 {
				t.Fatal(r)
			}
		},
	} {
		for _, ref := range names[1:] {
			t.Run(fmt.Sprint(name, ref), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := &testVenue{market: election, search: func(queries.Search) *queries.SearchPage {
						m := election("")
						m.Summary = true
						return &queries.SearchPage{Markets: []*market.Market{m}}
					}}
					c := open(t, v)
					v.setUnknown(ref.Value, true)
					absent := mustRead(t, c.Markets(), ref)
					v.setUnknown(ref.Value, false)
					learn(t, c)
					if absent.Value != nil || absent.Handle.Valid() {
						t.Error("the handle of the absence does not show the market")
					}
					if r := mustRead(t, c.Markets(), ref); r.Value == nil || r.Value.Summary {
						t.Errorf("got %+v, want a market with details", r.Value)
					}
					calls := v.calls()
					if last := calls[len(calls)-1]; len(calls) != 3 || last.endpoint != upstream.EndpointMarketsByID || !slices.Equal(last.keys, []string{"m1"}) {
						t.Errorf("got %d calls, the last %+v; want 3, the last for m1 by id", len(calls), last)
					}
					if c.names.get(byToken("")).bytes != 0 {
						t.Error("got an entry for an empty name")
					}
				})
			})
		}
	}
}

// TestMarketFoundByAnotherName checks that a cached absence of a market id is removed when a read by slug or token finds the
// market.
func TestMarketFoundByAnotherName(t *testing.T) {
	for _, ref := range names[1:] {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{market: election}
			v.setUnknown("m1", true)
			c := open(t, v)
			absent := mustRead(t, c.Markets(), byID("m1"))
			mustRead(t, c.Markets(), ref)
			if r := mustRead(t, c.Markets(), byID("m1")); r.Value == nil || absent.Value != nil || absent.Handle.Valid() {
				t.Errorf("%+v: the handle of the absence does not show the market", ref)
			}
		})
	}
}

// TestMarketsByMixedNames checks that a read by ids, slugs and tokens makes three concurrent calls and keeps the order of the keys.
func TestMarketsByMixedNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 20 * time.Millisecond}
		c := open(t, v)
		keys := []market.MarketRef{byToken("t1"), byID("a"), bySlug("s"), byID("b"), byToken("t2")}
		start := time.Now()
		for i, r := range readAll(t.Context(), c.Markets(), keys...) {
			if r.Err != nil || r.Value.Value.MarketID != keys[i].Value {
				t.Errorf("%+v: got %+v, want the market of this key", keys[i], r)
			}
		}
		if took := time.Since(start); took != 20*time.Millisecond || len(v.calls()) != 3 {
			t.Errorf("got %d calls in %s, want 3 in 20ms", len(v.calls()), took)
		}
	})
}

// TestSearchKeys checks that equivalent searches share an entry, and that searches that differ in any argument have different
// entries.
func TestSearchKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked queries.Search
		v := &testVenue{search: func(q queries.Search) *queries.SearchPage { asked = q; return &queries.SearchPage{} }}
		c := open(t, v)
		at := time.Now()
		base := func() queries.Search {
			return queries.Search{Text: "q", Status: []market.Status{market.StatusOpen, market.StatusClosed}, Category: "c", Tag: "t",
				EndsAfter: queries.At(at), EndsBefore: queries.At(at.Add(time.Hour)), EventID: "e", EventSlug: "s", Sort: queries.SortVolume, Direction: queries.Ascending, Limit: 7, Page: "p"}
		}
		change := []func(*queries.Search){
			func(*queries.Search) {},
			func(q *queries.Search) { q.Text = "r" },
			func(q *queries.Search) { q.Status = q.Status[:1] },
			func(q *queries.Search) { q.Status = nil },
			func(q *queries.Search) { q.Category = "d" },
			func(q *queries.Search) { q.Tag = "u" },
			func(q *queries.Search) { q.EndsAfter = queries.Bound{} },
			func(q *queries.Search) { q.EndsAfter = queries.At(time.Time{}) }, // differs from no bound
			func(q *queries.Search) { q.EndsBefore = queries.At(at) },
			func(q *queries.Search) { q.EventID = "f" },
			func(q *queries.Search) { q.EventSlug = "z" },
			func(q *queries.Search) { q.Sort = queries.SortEndsAt },
			func(q *queries.Search) { q.Direction = queries.Descending },
			func(q *queries.Search) { q.Limit = 8 },
			func(q *queries.Search) { q.Page = "" },
		}
		for i, f := range change {
			q := base()
			f(&q)
			for range 2 {
				mustRead(t, c.Searches(), q.Key())
				if len(v.calls()) != i+1 {
					t.Fatalf("change %d: got %d calls, want %d", i, len(v.calls()), i+1)
				}
				for _, b := range []*queries.Bound{&q.EndsAfter, &q.EndsBefore} { // the same instant in another zone
					if t, ok := b.Get(); ok {
						*b = queries.At(t.In(time.FixedZone("x", 3600)))
					}
				}
			}
			q = base()
			f(&q)
			if fmt.Sprint(asked.Status, asked.Text, asked.Category, asked.Tag, asked.EventID, asked.EventSlug, asked.Sort, asked.Direction, asked.Limit, asked.Page) !=
				fmt.Sprint(q.Status, q.Text, q.Category, q.Tag, q.EventID, q.EventSlug, q.Sort, q.Direction, q.Limit, q.Page) ||
				asked.EndsAfter != q.EndsAfter || asked.EndsBefore != q.EndsBefore {
				t.Errorf("got %+v, want %+v", asked, q)
			}
		}
	})
}

// TestBatches checks that each batch of markets has all keys of one endpoint, and that a batch has one key where the venue takes no
// lists.
func TestBatches(t *testing.T) {
	var keys []market.MarketRef
	for i := range 5 {
		keys = append(keys, byID(fmt.Sprint("m", i)), byToken(fmt.Sprint("t", i)))
	}
	for max, want := range map[int]int{1: 10, 2: 2} {
		batches := open(t, &testVenue{batch: max}).Markets().Batches(keys)
		if len(batches) != want {
			t.Errorf("lists of at most %d ids: got %d batches, want %d", max, len(batches), want)
		}
		var all []market.MarketRef
		for _, batch := range batches {
			if slices.ContainsFunc(batch, func(k market.MarketRef) bool { return k.By != batch[0].By }) {
				t.Errorf("got the batch %v, want keys of one endpoint", batch)
			}
			all = append(all, batch...)
		}
		if len(all) != 10 {
			t.Errorf("lists of at most %d ids: got the keys %v, want all ten", max, all)
		}
	}
}
