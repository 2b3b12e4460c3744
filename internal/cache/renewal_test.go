package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
)

// TestRefreshByHandle checks that reads.Refresh refreshes a stale value, and that its handle stays valid only if the new value is
// equal.
func TestRefreshByHandle(t *testing.T) {
	for _, changed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			at := time.Now()
			v := &testVenue{book: func(token string, depth int) *market.Book {
				return &market.Book{TokenID: token, Depth: depth, Timestamp: at}
			}}
			c := open(t, v)
			first := mustRead(t, c.Books(), queries.Book{TokenID: "t", Depth: 50})
			h := first.Handle
			time.Sleep(500 * time.Millisecond)
			if !h.Valid() || !h.Usable(time.Now()) || !h.Due(time.Now()) {
				t.Fatal("a stale book is not valid, usable and due")
			}
			if changed {
				at = time.Now()
			}
			reads.Refresh(t.Context(), []*reads.Handle{h})
			synctest.Wait()
			if calls := v.calls(); len(calls) != 2 || calls[1].endpoint != upstream.EndpointBook || v.depths()[1] != 50 {
				t.Fatalf("got calls %v with depths %v, want a second call of the same depth", calls, v.depths())
			}
			second := mustRead(t, c.Books(), queries.Book{TokenID: "t", Depth: 50})
			if second.Stale || !second.ReceivedAt.Equal(time.Now()) || h.Valid() == changed || (second.Handle == h) == changed {
				t.Errorf("changed %v: got %+v and valid %v; want a fresh book, with the same handle if it is equal", changed, second, h.Valid())
			}
			if !changed && (h.Due(time.Now()) || h.FreshUntil() != time.Now().Add(500*time.Millisecond).UnixNano()) {
				t.Errorf("the handle is fresh until %d, want %d", h.FreshUntil(), time.Now().Add(500*time.Millisecond).UnixNano())
			}
		})
	}
}
