package loaders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// TestFetchDoesNotWaitForTheSlowest checks that Fetch does not wait for a slow event. After the first value, Fetch must wait for
// patienceFactor times the duration of the last pass. If some events have arrived and others have not, Fetch must wait longer: up
// to half of the time that ctx has left.
func TestFetchDoesNotWaitForTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{}, 1)
		events := &source[market.EventRef, market.Event]{}
		events.fetch = func(_ context.Context, keys []market.EventRef) []reads.Result[*market.Event] {
			switch keys[0].EventID {
			case "slow", "slow again":
				<-release
			case "late":
				time.Sleep(10 * time.Second)
			default:
				time.Sleep(time.Second)
			}
			events.mu.Lock()
			defer events.mu.Unlock()
			return []reads.Result[*market.Event]{events.answer(keys[0])}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		ctx, set, _ := With(ctx, Sources{Events: events, Prices: prices()})
		defer set.Done()
		start := time.Now()
		// pass reads the events with the given ids, and a price. It checks that pending lists the missing keys. After that, pass
		// calls Fetch, which must return after the given time since start.
		pass := func(wantReturn time.Duration, pending string, ids ...string) {
			t.Helper()
			got := ""
			for _, id := range ids {
				if _, err := set.Events.Get(market.EventRef{EventID: id}); err == ErrPending {
					got += id + " "
				}
			}
			if _, err := set.Prices.Get("quick"); err == ErrPending {
				got += "quick"
			}
			if got != pending {
				t.Errorf("got pending keys %q, want %q", got, pending)
			}
			if err := set.Fetch(ctx); err != nil || time.Since(start) != wantReturn {
				t.Errorf("Fetch returned the error %v after %s, want no error after %s", err, time.Since(start), wantReturn)
			}
		}
		time.Sleep(time.Second / 2) // the first pass takes this time
		at := time.Second/2 + patienceFactor*time.Second/2
		pass(at, "slow quick", "slow")
		at += 10 * time.Second // Fetch returns when the event "late" arrives, because all other keys have arrived
		release <- struct{}{}
		pass(at, "slow a late ", "slow", "a", "late")
		at += time.Second + minPatience
		at += (4*time.Minute - at) / 2
		pass(at, "b slow again ", "b", "slow again")
		release <- struct{}{}
		pass(at, "slow again ", "b", "slow again")
		if len(events.fetches) != 5 {
			t.Errorf("fetched %v, want 5 events", events.fetches)
		}
	})
}

// TestFail checks what reads return after Fail: the values that have arrived, the errors of cancelled calls, and the given error
// for keys that were not sent.
func TestFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, quick := prices("hit"), &source[string, market.Spread]{}
		s.blocked = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, set, recorder := With(ctx, Sources{Prices: s, Spreads: quick, Books: &source[queries.Book, market.Book]{}})
		defer set.Done()
		_, _ = set.Spreads.Get("quick")
		getMany(set, "sent", "hit")
		if err := set.Fetch(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := set.Prices.Get("sent"); err != ErrPending {
			t.Errorf("a read of a key in flight: got error %v, want ErrPending", err)
		}
		if err := set.Fetch(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Fetch returned the error %v, want DeadlineExceeded", err)
		}
		set.Prices.Prefetch([]string{"unsent"})
		over := errors.New("over")
		set.Fail(over)
		rs := getMany(set, "hit", "sent", "unsent", "new")
		if rs[0].Err != nil || market.CodeOf(rs[1].Err) != market.CodeUpstreamTimeout || rs[2].Err != over || rs[3].Err != over || set.Pending() {
			t.Errorf("after Fail: got %+v, pending %v; want a value, a timeout, the error twice, and no pending read", rs, set.Pending())
		}
		if _, err := set.Spreads.Get("quick"); err != nil {
			t.Error(err)
		}
		if _, err := set.Book("a", 5); err != over || set.Pending() {
			t.Errorf("a read of a book after Fail: got error %v, pending %v; want the error of Fail", err, set.Pending())
		}
		if _, err := set.Book("a", 60); err != over || set.Pending() {
			t.Errorf("a read of a book after Fail: got error %v, pending %v; want the error of Fail", err, set.Pending())
		}
		if _, ok := recorder.Snapshot(); ok || len(s.fetches) != 1 {
			t.Errorf("after failed reads: Snapshot returned ok %v and %v was fetched, want false and one call", ok, s.fetches)
		}
	})
}

// TestDoneCancelsCalls checks that Done cancels the calls of its response, but not the calls of other responses.
func TestDoneCancelsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := prices()
		s.blocked = make(chan struct{})
		other, _ := newSet(t, Sources{Prices: s})
		getMany(other, "a")
		var theirs error
		go func() { theirs = other.Fetch(t.Context()) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, set, recorder := With(t.Context(), Sources{Prices: s})
		getMany(set, "a")
		if err := set.Fetch(ctx); err == nil {
			t.Error("Fetch returned no error after the deadline")
		}
		set.Done()
		if b, ok := recorder.Snapshot(); !ok || len(b.Handles) != 0 {
			t.Errorf("after Done: got snapshot %+v, ok %v; want no handles", b, ok)
		}
		<-s.blocked
		synctest.Wait()
		if theirs != nil {
			t.Error(theirs)
		}
		wantTokens(t, getMany(other, "a"), "a")
	})
}

// TestBatches checks that each call of Source.Fetch gets one of the source's batches, and that a slow batch delays only its own keys.
func TestBatches(t *testing.T) {
	const n = 10_000
	s, books := prices(), &source[queries.Book, market.Book]{}
	set, _ := newSet(t, Sources{Prices: s, Books: books})
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	getMany(set, keys...)
	for _, token := range []string{"a", "b", "c"} {
		_, _ = set.Book(token, 20)
	}
	fetch(t, set)
	if len(s.fetches) != 1 || len(s.fetches[0]) != n || len(books.fetches) != 3 {
		t.Errorf("got %d fetches of prices and %v of books, want 1 and 3", len(s.fetches), books.fetches)
	}
	synctest.Test(t, func(t *testing.T) {
		s := prices()
		s.max = 2
		s.fetch = func(_ context.Context, keys []string) []reads.Result[*market.Price] {
			if keys[0] == "c" {
				time.Sleep(10 * time.Second)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return []reads.Result[*market.Price]{s.answer(keys[0]), s.answer(keys[len(keys)-1])}[:len(keys)]
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		ctx, set, _ := With(ctx, Sources{Prices: s})
		defer set.Done()
		getMany(set, "a", "b", "c", "d", "e")
		err := set.Fetch(ctx)
		s.mu.Lock() // one fetch still runs
		fetches := slices.Clone(s.fetches)
		s.mu.Unlock()
		if err != nil || len(fetches) != 3 {
			t.Fatalf("Fetch returned %v after the fetches %v, want three of at most two keys", err, fetches)
		}
		for i, r := range getMany(set, "a", "b", "c", "d", "e") {
			if pending := i == 2 || i == 3; (r.Err == ErrPending) != pending {
				t.Errorf("key %d: got %+v, want pending %v", i, r, pending)
			}
		}
	})
}

// TestBookDepths checks that all reads of a token's book in a response return the deepest book.
func TestBookDepths(t *testing.T) {
	levels := make([]market.Level, 200)
	bookCovering := func(covers int) func(q queries.Book) *market.Book {
		return func(q queries.Book) *market.Book {
			depth := max(q.Depth, covers)
			return &market.Book{TokenID: q.TokenID, Depth: depth, Bids: market.NewSide(levels[:depth])}
		}
	}
	cached := func(depths ...int) (keys []queries.Book) {
		for _, d := range depths {
			keys = append(keys, queries.Book{TokenID: "a", Depth: d})
		}
		return keys
	}
	for name, test := range map[string]struct {
		value   func(queries.Book) *market.Book
		cached  []queries.Book
		depths  []int
		passes  int
		fetches int
		depth   int
	}{
		"nothing is cached":                      {bookCovering(0), nil, []int{5, 60, 30}, 2, 1, 200},
		"the deepest read is first":              {bookCovering(0), nil, []int{60, 5, 30}, 2, 1, 200},
		"the deepest read is last":               {bookCovering(0), nil, []int{5, 30, 60}, 2, 1, 200},
		"a shallow book is cached":               {bookCovering(0), cached(20), []int{5, 60, 20}, 2, 1, 200},
		"two books are cached":                   {bookCovering(0), cached(20, 200), []int{5, 60, 20}, 2, 0, 200},
		"a deep book is cached":                  {bookCovering(0), cached(200), []int{60, 5, 20}, 1, 0, 200},
		"the cached book is deeper than its key": {bookCovering(200), cached(20), []int{5, 60, 120}, 1, 0, 200},
		"all reads need the same depth":          {bookCovering(0), nil, []int{20, 5}, 2, 1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&source[queries.Book, market.Book]{value: test.value}).setCached(test.cached...)
			set, _ := newSet(t, Sources{Books: s})
			passes, books := 0, map[*market.Book]bool{}
			set.Complete(t.Context(), func() {
				passes++
				clear(books)
				for _, depth := range test.depths {
					read, err := set.Book("a", depth)
					if err == nil {
						books[read.Value] = true
					} else if err != ErrPending {
						t.Fatal(err)
					}
				}
			})
			for book := range books {
				if book.Depth != test.depth || len(books) != 1 {
					t.Errorf("the last pass got %d books, one of them with depth %d; want 1 with depth %d", len(books), book.Depth, test.depth)
				}
			}
			if passes != test.passes || len(s.fetches) != test.fetches {
				t.Errorf("got %d passes and fetches %v, want %d passes and %d fetches", passes, s.fetches, test.passes, test.fetches)
			}
		})
	}
	s := (&source[queries.Book, market.Book]{}).setCached(cached(20)...) // the cache knows that the venue does not have this book
	set, _ := newSet(t, Sources{Books: s})
	for _, depth := range []int{5, 60} {
		if read, err := set.Book("a", depth); err != nil || read.Value != nil || set.Pending() {
			t.Errorf("depth %d of an absent book: got %+v, error %v, pending %v; want nil", depth, read, err, set.Pending())
		}
	}
}

// TestSetReadsFromItsSources checks that a Set reads each kind of data from its source once, with the context and the dependencies
// of the response.
func TestSetReadsFromItsSources(t *testing.T) {
	type mark struct{}
	ctx := context.WithValue(t.Context(), mark{}, "mine")
	checkContext := func(ctx context.Context) {
		if ctx.Value(mark{}) != "mine" || request.From(ctx).Dependencies == nil {
			t.Error("Lookup got a context without the values or the dependencies of the response")
		}
	}
	at := time.Unix(1, 0)
	histories, searches := &source[queries.PriceHistory, market.PriceHistory]{look: checkContext}, &source[queries.SearchKey, queries.SearchPage]{look: checkContext}
	eventSearches, categories := &source[queries.SearchKey, queries.EventPage]{look: checkContext}, &source[string, queries.Categories]{look: checkContext}
	marketTrades := &source[queries.MarketTrades, queries.TradePage]{look: checkContext}
	trades, records := &source[queries.TradesKey, queries.TradePage]{look: checkContext}, &source[queries.HistoryKey, queries.HistoryPage]{look: checkContext}
	_, set, recorder := With(ctx, Sources{
		Prices: &source[string, market.Price]{look: checkContext}, Spreads: &source[string, market.Spread]{look: checkContext}, Books: &source[queries.Book, market.Book]{look: checkContext},
		Histories: histories, Markets: &source[market.MarketRef, market.Market]{look: checkContext}, Events: &source[market.EventRef, market.Event]{look: checkContext},
		Searches: searches, EventSearches: eventSearches, Categories: categories, MarketTrades: marketTrades, Balances: &source[market.Address, market.Balance]{look: checkContext}, Positions: &source[market.Address, []market.Position]{look: checkContext},
		Orders: &source[market.Address, []market.Order]{look: checkContext}, Trades: trades, Records: records,
	})
	defer set.Done()
	kinds := []func() (*reads.Handle, error){
		func() (*reads.Handle, error) { r, err := set.Prices.Get("k"); return r.Handle, err },
		func() (*reads.Handle, error) { r, err := set.Spreads.Get("k"); return r.Handle, err },
		func() (*reads.Handle, error) { r, err := set.Book("k", 1); return r.Handle, err },
		func() (*reads.Handle, error) {
			r, err := set.Histories.Get(queries.PriceHistory{})
			return r.Handle, err
		},
		func() (*reads.Handle, error) { r, err := set.Markets.Get(market.MarketRef{}); return r.Handle, err },
		func() (*reads.Handle, error) { r, err := set.Events.Get(market.EventRef{}); return r.Handle, err },
		func() (*reads.Handle, error) { r, err := set.Balances.Get("0x1"); return r.Handle, err },
		func() (*reads.Handle, error) { r, err := set.Positions.Get("0x1"); return r.Handle, err },
		func() (*reads.Handle, error) { r, err := set.Orders.Get("0x1"); return r.Handle, err },
		func() (*reads.Handle, error) {
			r, err := set.SearchEvents("", queries.Search{Text: "x"})
			return r.Handle, err
		},
		func() (*reads.Handle, error) { r, err := set.Categories(""); return r.Handle, err },
		func() (*reads.Handle, error) {
			r, err := set.MarketTrades(queries.MarketTrades{MarketID: "m"})
			return r.Handle, err
		},
		func() (*reads.Handle, error) {
			r, err := set.MarketTrades(queries.MarketTrades{MarketID: "m", TokenID: "k"})
			return r.Handle, err
		},
	}
	for _, q := range []queries.Search{{Text: "x"}, {Text: "y"}, {Text: "x", Status: []market.Status{"a b"}}, {Text: "x", Status: []market.Status{"a", "b"}},
		{Text: "x", EndsAfter: queries.At(at)}, {Text: "x", EndsAfter: queries.At(at.Add(1))}, {Text: "x", Page: "2"}} {
		kinds = append(kinds, func() (*reads.Handle, error) { r, err := set.Search("", q); return r.Handle, err })
	}
	for _, a := range []market.Address{"0x1", "0x2"} {
		for _, page := range []string{"", "2"} {
			kinds = append(kinds,
				func() (*reads.Handle, error) {
					r, err := set.Trades(a, queries.Trades{Page: page})
					return r.Handle, err
				},
				func() (*reads.Handle, error) {
					r, err := set.History(a, queries.History{Page: page})
					return r.Handle, err
				},
				func() (*reads.Handle, error) {
					r, err := set.History(a, queries.History{Page: page, Kinds: []market.HistoryKind{market.HistoryFee}})
					return r.Handle, err
				})
		}
	}
	seen := map[*reads.Handle]bool{}
	set.Complete(ctx, func() {
		for range 2 {
			for _, read := range kinds {
				if h, err := read(); err == nil {
					seen[h] = true
				} else if err != ErrPending {
					t.Error(err)
				}
			}
		}
	})
	if len(seen) != len(kinds) || len(handlesOf(recorder)) != len(kinds) || len(searches.fetches) != 7 || len(trades.fetches) != 4 || len(marketTrades.fetches) != 2 || len(records.fetches) != 8 {
		t.Errorf("got %d values and %d recorded handles, want %d of both; or a source got a wrong number of fetches", len(seen), len(handlesOf(recorder)), len(kinds))
	}
}

// TestDoneForgets checks that a reused Set has no data of the previous response, and that the previous context has no Set.
func TestDoneForgets(t *testing.T) {
	for range 100 {
		s, books := prices("a"), (&source[queries.Book, market.Book]{}).setCached(queries.Book{TokenID: "a", Depth: 20})
		ctx, set, recorder := With(request.With(t.Context(), func(r *request.Request) { r.Caller = "ann" }), Sources{Prices: s, Books: books})
		if len(handlesOf(recorder)) != 0 || set.Pending() {
			t.Fatal("a reused set has handles or a pending read of the previous response")
		}
		_, err := set.Prices.Get("a")
		_, bookErr := set.Book("a", 20)
		if err != nil || bookErr != nil || len(s.lookups) != 1 || len(books.lookups) != 1 {
			t.Fatalf("got errors %v and %v, look-ups %v and %v; want no errors and one look-up of each key", err, bookErr, s.lookups, books.lookups)
		}
		_, _ = set.Prices.Get("b")
		set.Done()
		if From(ctx) != nil || request.From(ctx).Caller != "ann" || len(handlesOf(recorder)) != 2 {
			t.Fatal("the context still has a set, or has lost its other values")
		}
		if _, ok := set.Prices.Peek("a"); ok || *set.Prices.source != nil || slices.Contains(set.Prices.results[:cap(set.Prices.results)], reads.Result[*market.Price]{Err: ErrPending}) {
			t.Fatal("the set still has values of the response")
		}
	}
}

// TestRead checks that Read repeats its function until no value is missing. If ctx has ended, the last call of the function must
// get errors.
func TestRead(t *testing.T) {
	s := prices()
	var rs results
	calls := 0
	Read(t.Context(), Sources{Prices: s}, func(set *Set) { rs = getMany(set, "a", "b"); calls++ })
	wantTokens(t, rs, "a", "b")
	if calls != 2 || len(s.fetches) != 1 {
		t.Errorf("the function was called %d times and %v was fetched, want 2 calls and one fetch", calls, s.fetches)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Read(ctx, Sources{Prices: s}, func(set *Set) { rs = getMany(set, "a") })
	if !errors.Is(rs[0].Err, context.Canceled) || len(s.fetches) != 1 {
		t.Errorf("with a cancelled context: got %+v and fetches %v, want Canceled and no further fetch", rs[0], s.fetches)
	}
}

func TestFromPanicsWithoutASet(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("From did not panic")
		}
	}()
	From(t.Context())
}

// TestTooManyCalls checks that Fetch sends no key if the missing keys exceed the limit of calls.
func TestTooManyCalls(t *testing.T) {
	s, events := prices("hit", "known"), &source[market.EventRef, market.Event]{}
	set, _ := newSet(t, Sources{Prices: s, Events: events, MaxCalls: 3})
	getMany(set, "hit", "a", "b", "c") // a, b and c are missing: two calls, because a call has at most two keys
	if err := set.Fetch(t.Context()); err != nil || set.Calls() != 2 {
		t.Fatalf("the first Fetch: got error %v and %d calls, want 2 calls", err, set.Calls())
	}
	getMany(set, "a", "known", "d")
	_, _ = set.Events.Get(market.EventRef{EventID: "1"})
	err := set.Fetch(t.Context())
	const says = "the operation needs at least 4 calls to the venue; at most 3 are accepted. 1 of them are for the kind price"
	if !errors.Is(err, ErrTooManyCalls) || market.CodeOf(err) != market.CodeBadUserInput || !strings.Contains(err.Error(), says) || set.Refused() != err {
		t.Errorf("the second Fetch: got error %v, want ErrTooManyCalls with the message %q", err, says)
	}
	set.Fail(err)
	if got := getMany(set, "a", "d"); got[0].Err != nil || got[1].Err != err || set.Pending() {
		t.Errorf("after Fail: got %+v, pending %v; want a value and the error", got, set.Pending())
	}
	if len(s.fetches) != 1 || len(events.fetches) != 0 || set.Calls() != 2 {
		t.Errorf("fetched prices %v and events %v in %d calls, want one fetch of prices in 2 calls", s.fetches, events.fetches, set.Calls())
	}
}

// TestFailAfterTooManyCalls checks that Fail cancels the calls in flight.
func TestFailAfterTooManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, quick := prices(), &source[string, market.Spread]{}
		s.blocked = make(chan struct{})
		set, _ := newSet(t, Sources{Prices: s, Spreads: quick, MaxCalls: 2})
		getMany(set, "slow")
		_, _ = set.Spreads.Get("quick")
		if err := set.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		getMany(set, "slow", "more")
		set.Fail(set.Fetch(t.Context()))
		if got := getMany(set, "slow", "more"); market.CodeOf(got[0].Err) != market.CodeUpstreamTimeout || !errors.Is(got[1].Err, ErrTooManyCalls) {
			t.Errorf("got errors %v and %v, want UPSTREAM_TIMEOUT and ErrTooManyCalls", got[0].Err, got[1].Err)
		}
	})
}

// TestFetchReturnsBeforeTheFirstEvent checks that a pass gets both events or neither if the first event arrives at the moment when
// Fetch stops waiting.
func TestFetchReturnsBeforeTheFirstEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 { // repeat, because the order of simultaneous timers is random
			events := &source[market.EventRef, market.Event]{}
			events.fetch = func(_ context.Context, keys []market.EventRef) []reads.Result[*market.Event] {
				time.Sleep(patienceFactor * time.Second)
				if keys[0].EventID == "second" {
					time.Sleep(time.Second)
				}
				events.mu.Lock()
				defer events.mu.Unlock()
				return []reads.Result[*market.Event]{events.answer(keys[0])}
			}
			ctx, set, _ := With(t.Context(), Sources{Events: events, Prices: prices()})
			time.Sleep(time.Second) // the first pass takes this time
			_, _ = set.Prices.Get("quick")
			read := func(id string) bool {
				_, err := set.Events.Get(market.EventRef{EventID: id})
				return err == nil
			}
			for first, second := read("first"), read("second"); !first || !second; first, second = read("first"), read("second") {
				if first {
					t.Error("a pass got the first event without the second event")
				}
				if err := set.Fetch(ctx); err != nil {
					t.Fatal(err)
				}
			}
			set.Done()
		}
	})
}

// handlesOf returns the handles that a recorder has recorded.
func handlesOf(recorder *request.Dependencies) []*reads.Handle {
	recorded, _ := recorder.Snapshot()
	return recorded.Handles
}
