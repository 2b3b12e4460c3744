package loaders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
)

// shelf is a Source of books that knows none, and answers with as many levels as it is asked for.
type shelf struct {
	mu      sync.Mutex
	fetched []market.BookQuery
}

func (s *shelf) Lookup(_ context.Context, keys []market.BookQuery, _ []market.Result[market.Read[*market.Book]], missing []int) []int {
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}

// Refresh implements Source.
func (*shelf) Refresh(context.Context, []market.BookQuery) {}

func (s *shelf) Fetch(_ context.Context, keys []market.BookQuery) []market.Result[market.Read[*market.Book]] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, keys...)
	out := make([]market.Result[market.Read[*market.Book]], len(keys))
	for i, k := range keys {
		out[i].Value.Value = &market.Book{TokenID: k.TokenID, Depth: k.Depth}
	}
	return out
}

func TestBookDepths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		set := New(t.Context(), Sources{Books: s})
		read := func(token string, depth, want int) *market.Book {
			t.Helper()
			r, err := set.Book(token, depth)
			if err != nil || r.Value.TokenID != token || r.Value.Depth != want {
				t.Fatalf("%s, %d levels: %+v, %v", token, depth, r.Value, err)
			}
			return r.Value
		}
		set.PrefetchBooks([]string{"a", "b"}, 60)
		set.PrefetchBooks([]string{"a"}, 10) // less than is on its way
		deep := read("a", 1, 200)
		if read("a", 200, 200) != deep || read("a", 15, 200) != deep {
			t.Error("a book has two values")
		}
		read("c", 7, 20)
		read("c", 30, 50)
		read("c", 7, 50)
		read("b", 20, 200)
		want := []market.BookQuery{{TokenID: "a", Depth: 200}, {TokenID: "b", Depth: 200}, {TokenID: "c", Depth: 20}, {TokenID: "c", Depth: 50}}
		if !slices.Equal(s.fetched, want) {
			t.Errorf("fetched %v", s.fetched)
		}
		set.PrefetchBooks(nil, 20)
	})
}

// turner is a Pages that counts, and gives each read another page.
type turner struct {
	mu    sync.Mutex
	asked []string
	fail  error
}

func turn[T any](p *turner, value *T, query ...any) (market.Read[*T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprint(query...))
	return market.Read[*T]{Value: value, Meta: market.Meta{Handle: market.NewHandle(time.Time{})}}, p.fail
}

func (p *turner) Search(_ context.Context, q market.Search) (market.Read[*market.SearchPage], error) {
	return turn(p, &market.SearchPage{Next: q.Text}, "search", q)
}

func (p *turner) Trades(_ context.Context, a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error) {
	return turn(p, &market.TradePage{Next: string(a)}, "trades", a, q)
}

func (p *turner) History(_ context.Context, a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error) {
	return turn(p, &market.HistoryPage{Next: string(a)}, "history", a, q)
}

// A page has one value in a response too, and is recorded; another question has another.
func TestPagesAreReadOnce(t *testing.T) {
	p := &turner{}
	ctx, set, recorder := With(t.Context(), Sources{Pages: p})
	if From(ctx) != set {
		t.Error("the context has another set")
	}
	at := time.Unix(1, 0)
	reads := map[string]func() (any, error){
		"search":        func() (any, error) { r, err := set.Search(market.Search{Text: "x"}); return r.Value, err },
		"search, other": func() (any, error) { r, err := set.Search(market.Search{Text: "y"}); return r.Value, err },
		"search, split": func() (any, error) { r, err := set.Search(market.Search{Text: `x" "`}); return r.Value, err },
		"search, status": func() (any, error) {
			r, err := set.Search(market.Search{Text: "x", Status: []market.Status{"a b"}})
			return r.Value, err
		},
		"search, statuses": func() (any, error) {
			r, err := set.Search(market.Search{Text: "x", Status: []market.Status{"a", "b"}})
			return r.Value, err
		},
		"search, ends": func() (any, error) {
			r, err := set.Search(market.Search{Text: "x", EndsAfter: at})
			return r.Value, err
		},
		"search, ends at": func() (any, error) {
			r, err := set.Search(market.Search{Text: "x", EndsAfter: at.Add(1)})
			return r.Value, err
		},
		"trades":         func() (any, error) { r, err := set.Trades("0x1", market.TradeQuery{}); return r.Value, err },
		"trades, other":  func() (any, error) { r, err := set.Trades("0x2", market.TradeQuery{}); return r.Value, err },
		"trades, next":   func() (any, error) { r, err := set.Trades("0x1", market.TradeQuery{Page: "2"}); return r.Value, err },
		"history":        func() (any, error) { r, err := set.History("0x1", market.HistoryQuery{}); return r.Value, err },
		"history, other": func() (any, error) { r, err := set.History("0x2", market.HistoryQuery{}); return r.Value, err },
		"history, one kind": func() (any, error) {
			r, err := set.History("0x1", market.HistoryQuery{Kinds: []market.HistoryKind{market.HistoryFee}})
			return r.Value, err
		},
	}
	first := map[string]any{}
	values := map[any]bool{}
	for name, read := range reads {
		v, err := read()
		if err != nil {
			t.Fatal(err)
		}
		first[name], values[v] = v, true
	}
	var wg sync.WaitGroup
	for name, read := range reads {
		for range 3 {
			wg.Go(func() {
				if v, err := read(); err != nil || v != first[name] {
					t.Errorf("%s: another page, %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	if len(values) != len(reads) || len(p.asked) != len(reads) || len(recorder.Handles()) != len(reads) {
		t.Errorf("%d pages of %d questions, %d recorded: %q", len(values), len(reads), len(recorder.Handles()), p.asked)
	}
	if _, next, _ := With(t.Context(), Sources{Pages: p}); next != nil {
		if r, err := next.Search(market.Search{Text: "x"}); err != nil || r.Value == first["search"] {
			t.Error("another response has the page of this one")
		}
	}
}

func TestErrorOfAPageEndsWithTheSet(t *testing.T) {
	p := &turner{fail: errors.New("down")}
	set := New(t.Context(), Sources{Pages: p})
	for range 2 {
		if _, err := set.Search(market.Search{}); err == nil {
			t.Error("no error")
		}
	}
	p.fail = nil
	if _, err := New(t.Context(), Sources{Pages: p}).Search(market.Search{}); err != nil || len(p.asked) != 2 {
		t.Errorf("%v, asked %v", err, p.asked)
	}
}

// Every kind of data is read from its own source, under the response's context and into its recorder.
func TestSetReadsFromItsSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type mark struct{}
		ctx := context.WithValue(t.Context(), mark{}, "mine")
		handles := map[string]*market.Handle{}
		for _, kind := range []string{"prices", "spreads", "books", "histories", "markets", "events", "balances", "positions", "orders"} {
			handles[kind] = market.NewHandle(time.Time{})
		}
		ok := func(ctx context.Context) bool { return ctx.Value(mark{}) == "mine" && market.RecorderFrom(ctx) != nil }
		_, set, recorder := With(ctx, Sources{
			Prices: plain[string, market.Price]{handles["prices"], ok}, Spreads: plain[string, market.Spread]{handles["spreads"], ok},
			Books:     plain[market.BookQuery, market.Book]{handles["books"], ok},
			Histories: plain[market.PriceHistoryQuery, market.PriceHistory]{handles["histories"], ok},
			Markets:   plain[market.MarketRef, market.Market]{handles["markets"], ok}, Events: plain[market.EventRef, market.Event]{handles["events"], ok},
			Balances:  plain[market.Address, market.Balance]{handles["balances"], ok},
			Positions: plain[market.Address, []market.Position]{handles["positions"], ok}, Orders: plain[market.Address, []market.Order]{handles["orders"], ok},
		})
		expect := func(kind string, h *market.Handle, err error) {
			t.Helper()
			if err != nil || h != handles[kind] || !slices.Contains(recorder.Handles(), h) {
				t.Errorf("%s: %v", kind, err)
			}
		}
		prices, err := set.Prices.Get("k")
		expect("prices", prices.Handle, err)
		spreads, err := set.Spreads.Get("k")
		expect("spreads", spreads.Handle, err)
		books, err := set.Book("k", 1)
		expect("books", books.Handle, err)
		histories, err := set.Histories.Get(market.PriceHistoryQuery{})
		expect("histories", histories.Handle, err)
		markets, err := set.Markets.Get(market.MarketRef{})
		expect("markets", markets.Handle, err)
		events, err := set.Events.Get(market.EventRef{})
		expect("events", events.Handle, err)
		balances, err := set.Balances.Get("0x1")
		expect("balances", balances.Handle, err)
		positions, err := set.Positions.Get("0x1")
		expect("positions", positions.Handle, err)
		orders, err := set.Orders.Get("0x1")
		expect("orders", orders.Handle, err)
		if n := len(recorder.Handles()); n != len(handles) {
			t.Errorf("%d handles", n)
		}
	})
}

// plain is a Source that answers every fetch with one handle.
type plain[K comparable, T any] struct {
	handle *market.Handle
	ok     func(context.Context) bool
}

func (p plain[K, T]) Lookup(ctx context.Context, keys []K, _ []market.Result[market.Read[*T]], missing []int) []int {
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}

// Refresh implements Source.
func (plain[K, T]) Refresh(context.Context, []K) {}

func (p plain[K, T]) Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]] {
	out := make([]market.Result[market.Read[*T]], len(keys))
	for i := range out {
		if out[i].Value.Handle = p.handle; !p.ok(ctx) {
			out[i].Err = errors.New("read under another context")
		}
	}
	return out
}

func TestFromPanicsWithoutASet(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	From(t.Context())
}
