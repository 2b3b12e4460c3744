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
	"oddsgraph/internal/market/reqctx"
)

// TestFetchDoesNotWaitForTheSlowest checks that Fetch does not wait for a slow event. After the first value, Fetch must wait for
// patienceOf times the duration of the last pass. If some events have arrived and others have not, Fetch must wait longer: up to
// half of the time that ctx has left.
func TestFetchDoesNotWaitForTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{}, 1)
		events := &source[market.EventRef, market.Event]{}
		events.fetch = func(_ context.Context, keys []market.EventRef) []market.Result[market.Read[*market.Event]] {
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
			return []market.Result[market.Read[*market.Event]]{events.answer(keys[0])}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		ctx, set, _ := With(ctx, Sources{Events: events, Prices: prices()})
		defer set.Done()
		start := time.Now()
		// pass reads the events with the given ids, and a price. The missing keys must be those that pending lists. After that,
		// pass calls Fetch, which must return at the given time after start.
		pass := func(returns time.Duration, pending string, ids ...string) {
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
				t.Errorf("pending: %q, want %q", got, pending)
			}
			if err := set.Fetch(ctx); err != nil || time.Since(start) != returns {
				t.Errorf("Fetch returned %v after %s, want it after %s", err, time.Since(start), returns)
			}
		}
		time.Sleep(time.Second / 2) // the first pass takes this time
		at := time.Second/2 + patienceOf*time.Second/2
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
			t.Errorf("fetched %v", events.fetches)
		}
	})
}

// TestFail checks what reads return after Fail: the values that have arrived, the errors of cancelled calls, and the given error
// for keys that were not sent.
func TestFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, quick := prices("hit"), &source[string, market.Spread]{}
		s.gate = make(chan struct{})
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
			t.Errorf("%v", err)
		}
		if err := set.Fetch(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		set.Prices.Prefetch([]string{"unsent"})
		over := errors.New("over")
		set.Fail(over)
		rs := getMany(set, "hit", "sent", "unsent", "new")
		if rs[0].Err != nil || market.CodeOf(rs[1].Err) != market.CodeUpstreamTimeout || rs[2].Err != over || rs[3].Err != over || set.Pending() {
			t.Errorf("%+v, pending %v", rs, set.Pending())
		}
		if _, err := set.Spreads.Get("quick"); err != nil {
			t.Error(err)
		}
		if _, err := set.Book("a", 5); err != over || set.Pending() {
			t.Errorf("%v, pending %v", err, set.Pending())
		}
		if _, err := set.Book("a", 60); err != over || set.Pending() {
			t.Errorf("%v, pending %v", err, set.Pending())
		}
		if _, ok := recorder.Snapshot(); ok || len(s.fetches) != 1 {
			t.Errorf("recorded as if all were known; fetched %v", s.fetches)
		}
	})
}

// TestDoneEndsTheCallsUnderWay checks that Done cancels the calls of its response, but not the calls of other responses.
func TestDoneEndsTheCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := prices()
		s.gate = make(chan struct{})
		other, _ := with(t, Sources{Prices: s})
		getMany(other, "a")
		var theirs error
		go func() { theirs = other.Fetch(t.Context()) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, set, recorder := With(t.Context(), Sources{Prices: s})
		getMany(set, "a")
		if err := set.Fetch(ctx); err == nil {
			t.Error("no error")
		}
		set.Done()
		if b, ok := recorder.Snapshot(); !ok || len(b.Handles) != 0 {
			t.Errorf("what came too late is recorded: %+v, %v", b, ok)
		}
		<-s.gate
		synctest.Wait()
		if theirs != nil {
			t.Error(theirs)
		}
		wantTokens(t, getMany(other, "a"), "a")
	})
}

// TestKeysLeaveAsTheirKindDoes checks that one call of Source.Fetch gets all prices, however many, and that each book takes its own
// call.
func TestKeysLeaveAsTheirKindDoes(t *testing.T) {
	const n = 10_000
	s, books := prices(), &source[queries.Book, market.Book]{}
	set, _ := with(t, Sources{Prices: s, Books: books})
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
		t.Errorf("%d calls for prices, %v for books", len(s.fetches), books.fetches)
	}
}

// TestBookDepths checks that all reads of a token's book in a response return the deepest book.
func TestBookDepths(t *testing.T) {
	levels := make([]market.Level, 200)
	of := func(covers int) func(q queries.Book) *market.Book {
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
		"nothing cached":                 {of(0), nil, []int{5, 60, 30}, 2, 1, 200},
		"deepest first":                  {of(0), nil, []int{60, 5, 30}, 2, 1, 200},
		"deepest last":                   {of(0), nil, []int{5, 30, 60}, 2, 1, 200},
		"a shallow one cached":           {of(0), cached(20), []int{5, 60, 20}, 2, 1, 200},
		"two cached":                     {of(0), cached(20, 200), []int{5, 60, 20}, 2, 0, 200},
		"a deep one cached":              {of(0), cached(200), []int{60, 5, 20}, 1, 0, 200},
		"a shallow question, a deep one": {of(200), cached(20), []int{5, 60, 120}, 1, 0, 200},
		"one depth":                      {of(0), nil, []int{20, 5}, 2, 1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&source[queries.Book, market.Book]{value: test.value}).cache(test.cached...)
			set, _ := with(t, Sources{Books: s})
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
					t.Errorf("%d books, one with %d levels", len(books), book.Depth)
				}
			}
			if passes != test.passes || len(s.fetches) != test.fetches {
				t.Errorf("%d passes, fetched %v", passes, s.fetches)
			}
		})
	}
	s := (&source[queries.Book, market.Book]{}).cache(cached(20)...) // the cache knows that the venue does not have this book
	set, _ := with(t, Sources{Books: s})
	for _, depth := range []int{5, 60} {
		if read, err := set.Book("a", depth); err != nil || read.Value != nil || set.Pending() {
			t.Errorf("%+v, %v", read, err)
		}
	}
}

// TestSetReadsFromItsSources checks that a Set reads each kind of data from its source once, with the context and the dependencies
// of the response.
func TestSetReadsFromItsSources(t *testing.T) {
	type mark struct{}
	ctx := context.WithValue(t.Context(), mark{}, "mine")
	looked := func(ctx context.Context) {
		if ctx.Value(mark{}) != "mine" || reqctx.DependenciesFrom(ctx) == nil {
			t.Error("looked up under another context")
		}
	}
	at := time.Unix(1, 0)
	histories, searches := &source[queries.PriceHistory, market.PriceHistory]{look: looked}, &source[queries.SearchKey, queries.SearchPage]{look: looked}
	found, topics := &source[queries.SearchKey, queries.EventPage]{look: looked}, &source[struct{}, queries.Categories]{look: looked}
	tape := &source[queries.MarketTrades, queries.TradePage]{look: looked}
	trades, records := &source[queries.TradesKey, queries.TradePage]{look: looked}, &source[queries.HistoryKey, queries.HistoryPage]{look: looked}
	_, set, recorder := With(ctx, Sources{
		Prices: &source[string, market.Price]{look: looked}, Spreads: &source[string, market.Spread]{look: looked}, Books: &source[queries.Book, market.Book]{look: looked},
		Histories: histories, Markets: &source[market.MarketRef, market.Market]{look: looked}, Events: &source[market.EventRef, market.Event]{look: looked},
		Searches: searches, EventSearches: found, Categories: topics, MarketTrades: tape, Balances: &source[market.Address, market.Balance]{look: looked}, Positions: &source[market.Address, []market.Position]{look: looked},
		Orders: &source[market.Address, []market.Order]{look: looked}, Trades: trades, Records: records,
	})
	defer set.Done()
	kinds := []func() (*market.Handle, error){
		func() (*market.Handle, error) { r, err := set.Prices.Get("k"); return r.Handle, err },
		func() (*market.Handle, error) { r, err := set.Spreads.Get("k"); return r.Handle, err },
		func() (*market.Handle, error) { r, err := set.Book("k", 1); return r.Handle, err },
		func() (*market.Handle, error) {
			r, err := set.Histories.Get(queries.PriceHistory{})
			return r.Handle, err
		},
		func() (*market.Handle, error) { r, err := set.Markets.Get(market.MarketRef{}); return r.Handle, err },
		func() (*market.Handle, error) { r, err := set.Events.Get(market.EventRef{}); return r.Handle, err },
		func() (*market.Handle, error) { r, err := set.Balances.Get("0x1"); return r.Handle, err },
		func() (*market.Handle, error) { r, err := set.Positions.Get("0x1"); return r.Handle, err },
		func() (*market.Handle, error) { r, err := set.Orders.Get("0x1"); return r.Handle, err },
		func() (*market.Handle, error) {
			r, err := set.SearchEvents(queries.Search{Text: "x"})
			return r.Handle, err
		},
		func() (*market.Handle, error) { r, err := set.Categories(); return r.Handle, err },
		func() (*market.Handle, error) {
			r, err := set.MarketTrades(queries.MarketTrades{MarketID: "m"})
			return r.Handle, err
		},
		func() (*market.Handle, error) {
			r, err := set.MarketTrades(queries.MarketTrades{MarketID: "m", TokenID: "k"})
			return r.Handle, err
		},
	}
	for _, q := range []queries.Search{{Text: "x"}, {Text: "y"}, {Text: "x", Status: []market.Status{"a b"}}, {Text: "x", Status: []market.Status{"a", "b"}},
		{Text: "x", EndsAfter: at}, {Text: "x", EndsAfter: at.Add(1)}, {Text: "x", Page: "2"}} {
		kinds = append(kinds, func() (*market.Handle, error) { r, err := set.Search(q); return r.Handle, err })
	}
	for _, a := range []market.Address{"0x1", "0x2"} {
		for _, page := range []string{"", "2"} {
			kinds = append(kinds,
				func() (*market.Handle, error) {
					r, err := set.Trades(a, queries.Trades{Page: page})
					return r.Handle, err
				},
				func() (*market.Handle, error) {
					r, err := set.History(a, queries.History{Page: page})
					return r.Handle, err
				},
				func() (*market.Handle, error) {
					r, err := set.History(a, queries.History{Page: page, Kinds: []market.HistoryKind{market.HistoryFee}})
					return r.Handle, err
				})
		}
	}
	seen := map[*market.Handle]bool{}
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
	if len(seen) != len(kinds) || len(recorder.Handles()) != len(kinds) || len(searches.fetches) != 7 || len(trades.fetches) != 4 || len(tape.fetches) != 2 || len(records.fetches) != 8 {
		t.Errorf("%d of %d values, %d recorded", len(seen), len(kinds), len(recorder.Handles()))
	}
}

// TestDoneForgets checks that a reused Set has no data of the previous response, and that the previous context has no Set.
func TestDoneForgets(t *testing.T) {
	for range 100 {
		s, books := prices("a"), (&source[queries.Book, market.Book]{}).cache(queries.Book{TokenID: "a", Depth: 20})
		ctx, set, recorder := With(reqctx.WithCaller(t.Context(), "ann"), Sources{Prices: s, Books: books})
		if len(recorder.Handles()) != 0 || set.Pending() {
			t.Fatal("the set is not new")
		}
		_, err := set.Prices.Get("a")
		_, bookErr := set.Book("a", 20)
		if err != nil || bookErr != nil || len(s.lookups) != 1 || len(books.lookups) != 1 {
			t.Fatalf("%v, %v: looked up %v and %v", err, bookErr, s.lookups, books.lookups)
		}
		_, _ = set.Prices.Get("b")
		set.Done()
		if got, _ := ctx.Value(setKey{}).(*Set); got != nil || reqctx.CallerFrom(ctx) != "ann" || len(recorder.Handles()) != 2 {
			t.Fatal("the context still has a set, or has lost its other values")
		}
		if _, ok := set.Prices.Peek("a"); ok || set.Prices.source != nil || slices.Contains(set.Prices.results[:cap(set.Prices.results)], market.Result[market.Read[*market.Price]]{Err: ErrPending}) {
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
		t.Errorf("%d calls, fetched %v", calls, s.fetches)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Read(ctx, Sources{Prices: s}, func(set *Set) { rs = getMany(set, "a") })
	if !errors.Is(rs[0].Err, context.Canceled) || len(s.fetches) != 1 {
		t.Errorf("%+v, fetched %v", rs[0], s.fetches)
	}
}

func TestFromPanicsWithoutASet(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	From(t.Context())
}

// TestTooManyCalls checks that Fetch sends no key if the missing keys exceed the limit of calls.
func TestTooManyCalls(t *testing.T) {
	s, events := prices("hit", "known"), &source[market.EventRef, market.Event]{}
	set, _ := with(t, Sources{Prices: s, Events: events, MaxCalls: 3})
	getMany(set, "hit", "a", "b", "c") // a, b and c are missing: two calls, because a call has at most two keys
	if err := set.Fetch(t.Context()); err != nil || set.Calls() != 2 {
		t.Fatalf("%v after %d calls", err, set.Calls())
	}
	getMany(set, "a", "known", "d")
	_, _ = set.Events.Get(market.EventRef{EventID: "1"})
	err := set.Fetch(t.Context())
	const says = "the operation needs at least 4 calls to the venue; at most 3 are accepted. 1 of them are for the kind price"
	if !errors.Is(err, ErrTooManyCalls) || market.CodeOf(err) != market.CodeBadUserInput || !strings.Contains(err.Error(), says) || set.Refused() != err {
		t.Errorf("%v", err)
	}
	set.Fail(err)
	if got := getMany(set, "a", "d"); got[0].Err != nil || got[1].Err != err || set.Pending() {
		t.Errorf("%+v, pending %v", got, set.Pending())
	}
	if len(s.fetches) != 1 || len(events.fetches) != 0 || set.Calls() != 2 {
		t.Errorf("fetched %v and %v in %d calls", s.fetches, events.fetches, set.Calls())
	}
}

// TestTooManyCallsEndsTheOthers checks that Fail cancels the calls in flight.
func TestTooManyCallsEndsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, quick := prices(), &source[string, market.Spread]{}
		s.gate = make(chan struct{})
		set, _ := with(t, Sources{Prices: s, Spreads: quick, MaxCalls: 2})
		getMany(set, "slow")
		_, _ = set.Spreads.Get("quick")
		if err := set.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		getMany(set, "slow", "more")
		set.Fail(set.Fetch(t.Context()))
		if got := getMany(set, "slow", "more"); market.CodeOf(got[0].Err) != market.CodeUpstreamTimeout || !errors.Is(got[1].Err, ErrTooManyCalls) {
			t.Errorf("%v and %v", got[0].Err, got[1].Err)
		}
	})
}

// TestFetchReturnsBeforeTheFirstEvent checks that a pass gets both events or neither if the first event arrives at the moment when
// Fetch stops waiting.
func TestFetchReturnsBeforeTheFirstEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 { // repeat, because the order of simultaneous timers is random
			events := &source[market.EventRef, market.Event]{}
			events.fetch = func(_ context.Context, keys []market.EventRef) []market.Result[market.Read[*market.Event]] {
				time.Sleep(patienceOf * time.Second)
				if keys[0].EventID == "second" {
					time.Sleep(time.Second)
				}
				events.mu.Lock()
				defer events.mu.Unlock()
				return []market.Result[market.Read[*market.Event]]{events.answer(keys[0])}
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
					t.Error("a pass saw the first event alone")
				}
				if err := set.Fetch(ctx); err != nil {
					t.Fatal(err)
				}
			}
			set.Done()
		}
	})
}
