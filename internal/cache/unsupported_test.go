package cache

import (
	"context"
	"testing"
	"testing/synctest"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestUnsupported checks that reads that the venue does not support fail with UNSUPPORTED, without a call or a reservation.
func TestUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{unsupported: map[upstream.Endpoint]bool{}}, newAdmission()
		for e := range upstream.Endpoint(upstream.Endpoints) {
			v.unsupported[e] = e != upstream.EndpointMarketsByID
		}
		c := open(t, v, withAdmission(a))
		wantUnsupported := func(what string, err error) {
			t.Helper()
			if market.CodeOf(err) != market.CodeUnsupported {
				t.Errorf("%s: got error %v, want UNSUPPORTED", what, err)
			}
		}
		for range 2 {
			_, err := readOne(t.Context(), c.Prices(), "a")
			wantUnsupported("price", err)
			_, err = readOne(t.Context(), c.Books(), queries.Book{TokenID: "a", Depth: 20})
			wantUnsupported("book", err)
			_, err = readOne(t.Context(), c.Events(), market.EventRef{EventID: "e"})
			wantUnsupported("event", err)
			_, err = readOne(t.Context(), c.MarketTrades(), queries.MarketTrades{MarketID: "m"})
			wantUnsupported("public trades", err)
			_, err = readOne(t.Context(), c.Balances(), "0xa")
			wantUnsupported("balance", err)
			_, err = readOne(t.Context(), c.Markets(), bySlug("s"))
			wantUnsupported("slug", err)
		}
		if n, released, _ := a.state(); n != 0 || released != 0 || len(v.calls()) != 0 {
			t.Errorf("got %d reservations, %d released, %d calls; want none", n, released, len(v.calls()))
		}
		calls := []int{c.Prices().Calls([]string{"a", "b"}), c.Balances().Calls([]market.Address{"0xa"}), c.Markets().Calls([]market.MarketRef{bySlug("s"), byID("m")})}
		if calls[0] != 0 || calls[1] != 0 || calls[2] != 1 {
			t.Errorf("got %d calls for prices, balances and markets; want 0, 0, 1", calls)
		}
	})
}

// TestBatchedBooks checks that one call reads several books if the venue's MaxKeys permits it.
func TestBatchedBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &bookLists{testVenue: &testVenue{}}
		c := open(t, v)
		keys := []queries.Book{{TokenID: "a", Depth: 20}, {TokenID: "b", Depth: 50}, {TokenID: "unknown", Depth: 20}, {TokenID: "c", Depth: 20}}
		for i, r := range readAll(t.Context(), c.Books(), keys...) {
			if got, want := r.Value.Value, keys[i]; r.Err != nil || (got == nil) != (want.TokenID == "unknown") || got != nil && (got.TokenID != want.TokenID || got.Depth != want.Depth) {
				t.Errorf("query %+v: got %+v, want a book with this token and depth, or none for an unknown token", want, r)
			}
		}
		if calls := v.calls(); len(calls) != 2 || len(calls[0].keys) != 2 || len(calls[1].keys) != 2 {
			t.Errorf("got calls %+v, want two with two books each", calls)
		}
	})
}

// bookLists is a venue with at most three books in one call.
type bookLists struct{ *testVenue }

func (v *bookLists) MaxKeys(upstream.Endpoint) int { return 3 }

func (v *bookLists) Books(ctx context.Context, call upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error) {
	ids, i := make([]string, len(books)), 0
	for n, q := range books {
		ids[n] = q.TokenID
	}
	v.setUnknown("unknown", true)
	return eachOf(v.testVenue, ctx, call, upstream.EndpointBook, ids, func(id string) *market.Book {
		for books[i].TokenID != id {
			i++
		}
		return &market.Book{TokenID: id, Depth: books[i].Depth}
	})
}
