package loaders

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// shelfSource is a Source in memory, whose answers a test changes. It must not be asked to fetch anything.
type shelfSource[K comparable, T any] struct {
	t       *testing.T
	held    map[K]market.Read[*T]
	lookups int
}

func (s *shelfSource[K, T]) Lookup(_ context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	s.lookups++
	for i, key := range keys {
		if read, ok := s.held[key]; ok {
			out[i].Value = read
		} else {
			missing = append(missing, i)
		}
	}
	return missing
}

// Refresh implements Source.
func (*shelfSource[K, T]) Refresh(context.Context, []K) {}

func (s *shelfSource[K, T]) Fetch(_ context.Context, keys []K) []market.Result[market.Read[*T]] {
	s.t.Errorf("%v are fetched", keys)
	return make([]market.Result[market.Read[*T]], len(keys))
}

func (s *shelfSource[K, T]) put(key K, value *T) *market.Handle {
	if s.held == nil {
		s.held = map[K]market.Read[*T]{}
	}
	h := market.NewHandle(time.Time{})
	s.held[key] = market.Read[*T]{Value: value, Meta: market.Meta{Handle: h}}
	return h
}

func prices(t *testing.T, ids ...string) *shelfSource[string, market.Price] {
	s := &shelfSource[string, market.Price]{t: t}
	for _, id := range ids {
		s.put(id, &market.Price{TokenID: id})
	}
	return s
}

func fromMemory(t *testing.T, s Sources) (*Set, *market.Recorder) {
	t.Helper()
	ctx, set, recorder := FromMemory(t.Context(), s)
	if From(ctx) != set || !set.InMemory() || set.Missed() {
		t.Fatal("the context has another set, or one that waits")
	}
	t.Cleanup(set.Release)
	return set, recorder
}

func TestMemoryAnswersEachKeyOnce(t *testing.T) {
	source := prices(t, "a", "b", "c")
	first := source.held["a"].Handle
	set, recorder := fromMemory(t, Sources{Prices: source})
	if read, err := set.Prices.Get("a"); err != nil || read.Value.TokenID != "a" {
		t.Fatalf("%+v, %v", read, err)
	}
	source.put("a", &market.Price{TokenID: "newer"})
	keys := []string{"b", "a", "b", "c"}
	out := make([]market.Result[market.Read[*market.Price]], len(keys))
	out[0].Err = errors.New("what stood there before")
	set.Prices.GetMany(keys, out)
	source.put("c", &market.Price{TokenID: "newer"})
	for i, key := range keys {
		again, err := set.Prices.Get(key)
		if out[i].Err != nil || err != nil || out[i].Value.Value.TokenID != key || again.Value != out[i].Value.Value {
			t.Errorf("%s is %+v, then %+v, %v", key, out[i], again.Value, err)
		}
	}
	if peeked, ok := set.Prices.Peek("a"); !ok || peeked.Handle != first {
		t.Errorf("a glance at a gives %v, %v", peeked.Handle, ok)
	}
	if source.lookups != 2 {
		t.Errorf("%d look-ups", source.lookups)
	}
	if got := recorder.Handles(); len(got) != 3 || !slices.Contains(got, first) {
		t.Errorf("recorded %v", got)
	}
	if set.Missed() {
		t.Error("something was missed")
	}
}

// TestMemoryGetManyOfNewKeys is the case in which the results are in their places already.
func TestMemoryGetManyOfNewKeys(t *testing.T) {
	set, _ := fromMemory(t, Sources{Prices: prices(t, "a", "b")})
	out := make([]market.Result[market.Read[*market.Price]], 2)
	set.Prices.GetMany([]string{"b", "a"}, out)
	again, err := set.Prices.Get("a")
	if out[0].Value.Value.TokenID != "b" || out[1].Value.Value.TokenID != "a" || again.Value != out[1].Value.Value || err != nil {
		t.Errorf("%+v, %+v, %v", out, again, err)
	}
}

func ignore(int, *market.Read[*market.Price]) {}

// TestMemoryRecall has keys looked up in one go that are read one by one then.
func TestMemoryRecall(t *testing.T) {
	source := prices(t, "a", "b", "c")
	set, recorder := fromMemory(t, Sources{Prices: source})
	if _, err := set.Prices.Get("a"); err != nil {
		t.Fatal(err)
	}
	var got []string
	set.Prices.Recall([]string{"b", "a", "c", "b"}, func(i int, read *market.Read[*market.Price]) { got = append(got, fmt.Sprint(i, read.Value.TokenID)) })
	if want := []string{"0b", "1a", "2c", "3b"}; !slices.Equal(got, want) {
		t.Errorf("read %v", got)
	}
	set.Prices.Recall([]string{"c"}, ignore)
	set.Prices.Recall(nil, ignore)
	for _, key := range []string{"a", "b", "c"} {
		source.put(key, &market.Price{TokenID: "newer"})
		if read, err := set.Prices.Get(key); err != nil || read.Value.TokenID != key {
			t.Errorf("%s is %+v, %v", key, read.Value, err)
		}
	}
	if handles := recorder.Handles(); source.lookups != 2 || len(handles) != 3 || set.Missed() {
		t.Errorf("%d look-ups, %d handles, missed %v", source.lookups, len(handles), set.Missed())
	}
	set.Prices.Recall([]string{"a", "x"}, func(int, *market.Read[*market.Price]) { t.Error("something is read where something is missed") })
	if _, err := set.Prices.Get("a"); err == nil || !set.Missed() {
		t.Error("what is not in memory is not missed")
	}
	set.Prices.Recall([]string{"y"}, ignore)
	if source.lookups != 3 {
		t.Error("a response that is void is looked up for")
	}
	_, waits, _ := With(t.Context(), Sources{Prices: source})
	if waits.Prices.Recall([]string{"x"}, ignore); source.lookups != 3 {
		t.Error("a set that waits looks ahead of its reads")
	}
}

// TestMemoryMisses has nothing fetched, by whatever read, and everything fail from the first miss on.
func TestMemoryMisses(t *testing.T) {
	source := prices(t, "a")
	s := Sources{Prices: source, Books: &shelfSource[market.BookQuery, market.Book]{t: t}, Markets: &shelfSource[market.MarketRef, market.Market]{t: t}, Pages: waitingPages{}}
	for name, read := range map[string]func(*Set) error{
		"one":       func(set *Set) error { _, err := set.Prices.Get("b"); return err },
		"books":     func(set *Set) error { _, err := set.Book("b", 20); return err },
		"searches":  func(set *Set) error { _, err := set.Search(market.Search{}); return err },
		"trades":    func(set *Set) error { _, err := set.Trades("a", market.TradeQuery{}); return err },
		"histories": func(set *Set) error { _, err := set.History("a", market.HistoryQuery{}); return err },
		"many": func(set *Set) error {
			out := make([]market.Result[market.Read[*market.Price]], 2)
			set.Prices.GetMany([]string{"a", "b"}, out)
			return errors.Join(out[0].Err, out[1].Err)
		},
	} {
		set, _ := fromMemory(t, s)
		if err := read(set); err == nil || !set.Missed() {
			t.Errorf("%s: %v, missed %v", name, err, set.Missed())
		}
		looked := source.lookups
		if _, err := set.Prices.Get("a"); err == nil || source.lookups != looked {
			t.Errorf("%s: a read after the miss gives %v", name, err)
		}
		if _, ok := set.Prices.Peek("a"); ok {
			t.Errorf("%s: a glance after the miss finds something", name)
		}
	}
	set, _ := fromMemory(t, s)
	set.Prices.Prefetch([]string{"b"})
	set.PrefetchBooks([]string{"b"}, 20)
	set.FollowMarkets([]market.MarketRef{{Value: "m"}}, func([]market.Result[market.Read[*market.Market]]) { t.Error("somebody looks ahead") })
	if set.Missed() {
		t.Error("sending ahead misses something")
	}
}

// waitingPages are answered when their context ends.
type waitingPages struct{}

func (waitingPages) Search(ctx context.Context, _ market.Search) (r market.Read[*market.SearchPage], err error) {
	<-ctx.Done()
	return r, ctx.Err()
}

func (waitingPages) Trades(ctx context.Context, _ market.Address, _ market.TradeQuery) (r market.Read[*market.TradePage], err error) {
	<-ctx.Done()
	return r, ctx.Err()
}

func (waitingPages) History(ctx context.Context, _ market.Address, _ market.HistoryQuery) (r market.Read[*market.HistoryPage], err error) {
	<-ctx.Done()
	return r, ctx.Err()
}

// TestMemoryBooks reads a token's book at several depths: from one entry or not at all.
func TestMemoryBooks(t *testing.T) {
	query := func(depth int) market.BookQuery { return market.BookQuery{TokenID: "a", Depth: depth} }
	levels := make([]market.Level, 30)
	shallow, deep := &market.Book{Depth: 20, Bids: levels[:20]}, &market.Book{Depth: 50, Bids: levels}
	for _, test := range []struct {
		name   string
		books  func(*shelfSource[market.BookQuery, market.Book])
		depths []int
		missed bool
		want   *market.Book
	}{
		{"deep, then shallow", func(s *shelfSource[market.BookQuery, market.Book]) { s.put(query(50), deep) }, []int{50, 20, 5}, false, deep},
		{"a shallow question that a deep book answers", func(s *shelfSource[market.BookQuery, market.Book]) { s.put(query(20), deep) }, []int{20, 50}, false, deep},
		{"one entry at both depths", func(s *shelfSource[market.BookQuery, market.Book]) {
			s.put(query(20), shallow)
			s.held[query(50)] = market.Read[*market.Book]{Value: deep, Meta: s.held[query(20)].Meta}
		}, []int{20, 50, 20}, false, deep},
		{"two entries", func(s *shelfSource[market.BookQuery, market.Book]) {
			s.put(query(20), shallow)
			s.put(query(50), deep)
		}, []int{20, 50}, true, nil},
		{"no deep one", func(s *shelfSource[market.BookQuery, market.Book]) { s.put(query(20), shallow) }, []int{20, 50}, true, nil},
		{"no book", func(s *shelfSource[market.BookQuery, market.Book]) { s.put(query(20), nil) }, []int{20, 50}, false, nil},
	} {
		source := &shelfSource[market.BookQuery, market.Book]{t: t}
		test.books(source)
		set, _ := fromMemory(t, Sources{Books: source})
		var last *market.Book
		for _, depth := range test.depths {
			read, _ := set.Book("a", depth)
			last = read.Value
		}
		if set.Missed() != test.missed || last != test.want {
			t.Errorf("%s: %+v, missed %v", test.name, last, set.Missed())
		}
	}
}

// TestMemoryForgets has sets used again: nothing of one response is known to the next.
func TestMemoryForgets(t *testing.T) {
	for range 100 {
		source, books := prices(t, "a"), &shelfSource[market.BookQuery, market.Book]{t: t}
		books.put(market.BookQuery{TokenID: "a", Depth: 20}, &market.Book{})
		_, set, recorder := FromMemory(t.Context(), Sources{Prices: source, Books: books})
		if len(recorder.Handles()) != 0 || set.Missed() || set.turned != nil {
			t.Fatal("the set is not new")
		}
		_, err := set.Prices.Get("a")
		_, bookErr := set.Book("a", 20)
		if err != nil || bookErr != nil || source.lookups != 1 || books.lookups != 1 {
			t.Fatalf("%v, %v: %d and %d look-ups", err, bookErr, source.lookups, books.lookups)
		}
		_, _ = set.Prices.Get("b")
		set.turned = map[string]any{"a": 1}
		set.Release()
	}
}

// TestMemoryLeavesNothing has a set used and released: it holds nothing of the response, and the context, which a refresh may
// hold for longer, leads neither to it nor to what others make of it.
func TestMemoryLeavesNothing(t *testing.T) {
	books := &shelfSource[market.BookQuery, market.Book]{t: t}
	books.put(market.BookQuery{TokenID: "a", Depth: 20}, &market.Book{})
	ctx, set, recorder := FromMemory(market.WithJournal(market.WithCaller(t.Context(), "ann"), &market.Journal{}), Sources{
		Prices: prices(t, "a"), Books: books, Pages: waitingPages{}, Counted: func(market.Kind, market.Reads) {},
	})
	_, _ = set.Prices.Get("a")
	_, _ = set.Book("a", 20)
	recorder.Tally()[market.KindPrice].Hits = 1
	f := set.found
	set.Release()
	if !reflect.ValueOf(set).Elem().IsZero() || f.reading != nil || f.missed || f.tally != (market.Tally{}) {
		t.Error("the set knows of the response still")
	}
	if len(f.prices.results)+len(f.prices.index)+len(f.books.results)+len(f.shelf) > 0 || f.prices.results[:1][0].Value.Value != nil {
		t.Error("what was found is there still")
	}
	if From(ctx) != nil || recorder.Tally() != nil {
		t.Error("the context leads to what is others' now")
	}
	if market.RecorderFrom(ctx) != recorder || len(recorder.Handles()) != 2 || market.CallerFrom(ctx) != "ann" {
		t.Error("the context has forgotten what is its own")
	}
}

// TestMemoryDoesNotAllocatePerKey reads again and again what was never seen by the set, whose loaders are not made anew.
func TestMemoryDoesNotAllocatePerKey(t *testing.T) {
	allocations := func(n int) float64 {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = string(rune('a' + i))
		}
		sources := Sources{Prices: prices(t, keys...)}
		return testing.AllocsPerRun(50, func() {
			_, set, _ := FromMemory(t.Context(), sources)
			for _, key := range keys {
				_, _ = set.Prices.Get(key)
			}
			set.Release()
		})
	}
	few, many := allocations(5), allocations(100)
	t.Logf("%v allocations for 5 keys, %v for 100", few, many)
	if many > few+15 {
		t.Error("each key allocates")
	}
	if few > 7 { // the race detector takes some of what is used again
		t.Error("each set allocates")
	}
}
