package loaders

import (
	"context"
	"errors"
	"reflect"
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

// TestRoute checks that each of three venues gets its keys of a mixed list, and that the results, the missing keys and the handles are
// in the order of the list.
func TestRoute(t *testing.T) {
	names := market.Names{"", "v", "w"}
	first, v, w := prices("b", "x:b"), prices("v:a"), prices()
	for _, s := range []*source[string, market.Price]{v, w} {
		s.fetch = func(ctx context.Context, keys []string) []reads.Result[*market.Price] {
			if request.CredentialsFrom(ctx) != nil {
				t.Errorf("a further venue gets the credentials of the client with %v", keys)
			}
			return []reads.Result[*market.Price]{{Err: market.Errorf(market.CodeRateLimited, "wait")}}
		}
	}
	sources := Route(names, []Sources{{MaxCalls: 9, Prices: first}, {Prices: v}, {Prices: w}})
	ctx := request.WithCredentials(t.Context(), &market.Credentials{})
	ctx, set, recorder := With(ctx, sources)
	defer set.Done()
	keys := []string{"a", "v:a", "b", "v:b", "w:a", "x:b"}
	out := make([]reads.Result[*market.Price], len(keys))
	set.Prices.GetMany(keys, out)
	for i, want := range []bool{false, true, true, false, false, true} {
		if got := out[i].Err == nil && out[i].Value.Value.TokenID == keys[i]; got != want || !want && out[i].Err != ErrPending {
			t.Errorf("%s: got %+v, want a value: %v", keys[i], out[i], want)
		}
	}
	if got := set.Waits(); got != 0b111 {
		t.Errorf("waits for the venues %b, want all three", got)
	}
	if snapshot, ok := recorder.Snapshot(); !ok || !slices.Equal(snapshot.Handles, []*reads.Handle{v.handles["v:a"], first.handles["b"], first.handles["x:b"]}) {
		t.Errorf("got the dependencies %v, want those of the three values", snapshot.Handles)
	}
	for set.Pending() {
		if err := set.Fetch(ctx); err != nil {
			t.Fatal(err)
		}
		set.Prices.GetMany(keys, out)
	}
	at, ok := errors.AsType[*market.VenueError](out[3].Err)
	if err := out[3].Err; market.CodeOf(err) != market.CodeRateLimited || !ok || at.Venue != "v" {
		t.Errorf("got error %v, want RATE_LIMITED of the venue v", err)
	}
	for i, s := range []*source[string, market.Price]{first, v, w} {
		if want := [][][]string{{{"a"}}, {{"v:b"}}, {{"w:a"}}}[i]; !reflect.DeepEqual(s.fetches, want) {
			t.Errorf("venue %d: fetched %v, want %v", i, s.fetches, want)
		}
	}
	if set.Calls() != 3 || set.Waits() != 0 || sources.MaxCalls != 9 {
		t.Errorf("got %d calls, waiting for %b, and a limit of %d", set.Calls(), set.Waits(), sources.MaxCalls)
	}
	if one := (Sources{Prices: first}); Route(nil, []Sources{one}).Prices != one.Prices {
		t.Error("the source of one venue is wrapped")
	}
}

// TestRouteOfKeys checks to which venue the keys of each kind belong.
func TestRouteOfKeys(t *testing.T) {
	one, two := Sources{}, Sources{}
	for _, s := range []*Sources{&one, &two} {
		s.Books, s.Histories, s.Markets, s.Events = &source[queries.Book, market.Book]{}, &source[queries.PriceHistory, market.PriceHistory]{}, &source[market.MarketRef, market.Market]{}, &source[market.EventRef, market.Event]{}
		s.Searches, s.EventSearches, s.Categories = &source[queries.SearchKey, queries.SearchPage]{}, &source[queries.SearchKey, queries.EventPage]{}, &source[string, queries.Categories]{}
		s.MarketTrades, s.Trades, s.Records = &source[queries.MarketTrades, queries.TradePage]{}, &source[queries.TradesKey, queries.TradePage]{}, &source[queries.HistoryKey, queries.HistoryPage]{}
		s.Prices, s.Spreads, s.Balances = prices(), &source[string, market.Spread]{}, &source[market.Address, market.Balance]{}
		s.Positions, s.Orders = &source[market.Address, []market.Position]{}, &source[market.Address, []market.Order]{}
	}
	set, recorder := newSet(t, Route(market.Names{"", "v"}, []Sources{one, two}))
	read := func(prefix string) {
		_, _ = set.Prices.Get(prefix + "a")
		_, _ = set.Spreads.Get(prefix + "a")
		_, _ = set.Book(prefix+"a", 1)
		_, _ = set.Histories.Get(queries.PriceHistory{TokenID: prefix + "a"})
		_, _ = set.Markets.Get(market.MarketRef{By: market.BySlug, Value: prefix + "a"})
		_, _ = set.Events.Get(market.EventRef{EventID: prefix + "a"})
		_, _ = set.Events.Get(market.EventRef{EventSlug: prefix + "a"})
		name := strings.TrimSuffix(prefix, ":")
		_, _ = set.Search(name, queries.Search{})
		_, _ = set.SearchEvents(name, queries.Search{})
		_, _ = set.Categories(name)
		_, _ = set.MarketTrades(queries.MarketTrades{MarketID: prefix + "a"})
		a := market.Address(prefix + "0x1")
		_, _ = set.Balances.Get(a)
		_, _ = set.Positions.Get(a)
		_, _ = set.Orders.Get(a)
		_, _ = set.Trades(a, queries.Trades{})
		_, _ = set.History(a, queries.History{})
	}
	if read(""); set.Waits() != 0b01 {
		t.Errorf("keys of the first venue wait for the venues %b", set.Waits())
	}
	set.Complete(t.Context(), func() { read("") })
	if _, ok := recorder.AnsweredAccount(); !ok {
		t.Error("an account of the first venue is not recorded as answered")
	}
	set, recorder = newSet(t, Route(market.Names{"", "v"}, []Sources{one, two}))
	if read("v:"); set.Waits() != 0b10 {
		t.Errorf("keys of the second venue wait for the venues %b", set.Waits())
	}
	set.Complete(t.Context(), func() { read("v:") })
	if a, ok := recorder.AnsweredAccount(); ok {
		t.Errorf("the account %s of the second venue counts as an answer to the client's credentials", a)
	}
}

// TestArrivesAlone checks that the reads below the values of a venue begin although another venue hangs, whether that venue has
// answered nothing or a part, and that the time in a queue for a place makes no pass longer.
func TestArrivesAlone(t *testing.T) {
	const queued = 100 * time.Millisecond
	for _, ids := range [][]string{{"a", "v:hangs"}, {"a", "v:quick", "v:hangs"}} {
		synctest.Test(t, func(t *testing.T) {
			first, v := &source[market.EventRef, market.Event]{}, &source[market.EventRef, market.Event]{}
			v.fetch = func(ctx context.Context, keys []market.EventRef) []reads.Result[*market.Event] {
				if keys[0].EventID == "v:hangs" {
					<-ctx.Done()
				}
				return make([]reads.Result[*market.Event], 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			ctx, set, _ := With(ctx, Route(market.Names{"", "v"}, []Sources{{Events: first, Prices: prices()}, {Events: v, Prices: prices()}}))
			defer set.Done()
			start := time.Now()
			for _, token := range []string{"", "below", "below that"} {
				for _, id := range ids {
					_, _ = set.Events.Get(market.EventRef{EventID: id})
				}
				if token != "" {
					_, _ = set.Prices.Get(token)
				}
				set.Waits()
				time.Sleep(queued)
				if err := set.Fetch(ctx); err != nil {
					t.Fatal(err)
				}
			}
			_, hung := set.Events.Peek(market.EventRef{EventID: "v:hangs"})
			if _, ok := set.Prices.Peek("below that"); !ok || time.Since(start) > 3*(queued+minPatience) || hung {
				t.Errorf("%v: after %s, the price is there: %v, and the event of the venue that hangs: %v", ids, time.Since(start), ok, hung)
			}
		})
	}
}
