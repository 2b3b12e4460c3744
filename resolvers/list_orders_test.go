package resolvers

import (
	"slices"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

func keyOfList(i int) orderKey { return orderKey{address: "192.0.2.1", list: uint64(i)} }

// TestListOrdersAreBounded checks the number and the size of the kept orders. The order that was used longest ago is dropped first.
func TestListOrdersAreBounded(t *testing.T) {
	o := NewListOrders(tool.NewClock(time.Unix(0, 0)))
	for i := range 300 {
		o.keep(keyOfList(i), make([]uint64, 10))
		o.find(keyOfList(0))
	}
	if n := o.lru.Len(); n != maxListOrders || o.find(keyOfList(0)) == nil || o.find(keyOfList(1)) != nil || o.find(keyOfList(299)) == nil {
		t.Errorf("%d orders are kept, want the 255 newest and order 0", n)
	}
	const large = 100_000
	for i := range 20 {
		o.keep(keyOfList(i), make([]uint64, large))
		total := 0
		for _, key := range o.lru.Keys() {
			order, _ := o.lru.Peek(key)
			total += sizeOfOrder(key, order.hashes)
		}
		if total != o.bytes || total > MaxListOrderBytes {
			t.Fatalf("%d orders have %d bytes, counted as %d, want at most %d", o.lru.Len(), total, o.bytes, MaxListOrderBytes)
		}
	}
	if n := o.lru.Len(); n != 5 {
		t.Errorf("%d orders of %d elements are kept, want 5", n, large)
	}
	o.keep(keyOfList(19), make([]uint64, MaxListOrderBytes/8))
	if o.find(keyOfList(19)) != nil || o.lru.Len() != 4 {
		t.Errorf("an order that is larger than the memory: %d orders are kept, want only the 4 other orders", o.lru.Len())
	}
}

// TestListOrdersEnd checks that an order is kept for a minute after each use, and that a new order of the list replaces it.
func TestListOrdersEnd(t *testing.T) {
	clock := tool.NewClock(time.Unix(0, 0))
	o := NewListOrders(clock)
	o.keep(keyOfList(1), []uint64{1, 2})
	for range 3 {
		clock.Advance(listOrderTime)
		if got := o.find(keyOfList(1)); !slices.Equal(got, []uint64{1, 2}) {
			t.Errorf("a minute after the last use: got %v, want the order", got)
		}
	}
	o.keep(keyOfList(1), []uint64{2, 1})
	if got := o.find(keyOfList(1)); !slices.Equal(got, []uint64{2, 1}) {
		t.Errorf("after a new first page: got %v, want its order", got)
	}
	if o.find(keyOfList(2)) != nil || o.find(orderKey{address: "192.0.2.2", list: 1}) != nil || o.find(orderKey{credentials: 1, list: 1}) != nil {
		t.Error("the order is found for another list or another caller")
	}
	clock.Advance(listOrderTime + 1)
	if o.find(keyOfList(1)) != nil || o.bytes != 0 {
		t.Errorf("more than a minute after the last use, the order is kept, or %d bytes are counted", o.bytes)
	}
}

// TestPositionHash checks that the hash is the one of cursors from earlier releases.
func TestPositionHash(t *testing.T) {
	for _, p := range []market.Position{{MarketID: "M", Outcome: "Yes"}, {MarketID: "M", Outcome: "Yes", Ordinal: 2}, {}} {
		if got, want := positionHash(&p), keyHash(p.Key().String()); got != want {
			t.Errorf("the hash of %+v is %x, want %x", p, got, want)
		}
	}
}

// TestListOrdersOfVenues checks that lists of one address at two venues have orders of their own.
func TestListOrdersOfVenues(t *testing.T) {
	r := twoVenues(new([]*market.Credentials))
	r.Venues[0].PublicAccounts, r.ListOrders = true, NewListOrders(market.SystemClock{})
	place := func(venue *string) listOrderPlace {
		a, err := r.account(wallet, venue)
		if err != nil {
			t.Fatal(err)
		}
		return r.listOrderOf(t.Context(), a, listHash("positions", string(a)))
	}
	for i, venue := range []*string{nil, new("b")} {
		r.ListOrders.keep(place(venue).key, []uint64{uint64(i)})
	}
	for i, venue := range []*string{nil, new("b")} {
		if got := r.ListOrders.find(place(venue).key); !slices.Equal(got, []uint64{uint64(i)}) {
			t.Errorf("venue %d has the order %v", i, got)
		}
	}
}
