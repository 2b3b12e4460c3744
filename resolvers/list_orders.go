package resolvers

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// MaxListOrderBytes is the greatest size in bytes of all orders that a ListOrders keeps.
const MaxListOrderBytes = 4 << 20

const (
	maxListOrders = 256
	// listOrderTime is how long an order is kept after a page was read in it.
	listOrderTime = time.Minute
	// listOrderBytes is the approximate size in bytes of an order without its hashes, but with its entry in the list and the map.
	listOrderBytes = 300
)

// ListOrders keeps the orders in which the first pages of lists were cut. Prices move while a client reads a list that is sorted by
// them, page by page. If each page were cut from the list in its present order, the pages could skip and repeat elements. When an
// order is not kept any more, or is kept by another replica, the next page begins after the cursor's element in the present order.
// A ListOrders is safe for concurrent use. A nil ListOrders keeps nothing.
type ListOrders struct {
	clock market.Clock
	seed  maphash.Seed

	mu    sync.Mutex
	lru   *simplelru.LRU[orderKey, listOrder]
	bytes int
}

type orderKey struct {
	// credentials is a hash of the caller's credentials. address is the name of a caller without credentials; see Request.Caller.
	credentials uint64
	address     string
	// list is a hash of the list with its sort and its filters.
	list uint64
}

// listOrder is the order of a list's elements, as the hashes of their keys.
type listOrder struct {
	hashes []uint64
	until  time.Time
}

// NewListOrders returns a ListOrders without orders.
func NewListOrders(clock market.Clock) *ListOrders {
	o := &ListOrders{clock: clock, seed: maphash.MakeSeed()}
	o.lru, _ = simplelru.NewLRU(maxListOrders, func(key orderKey, order listOrder) { o.bytes -= sizeOfOrder(key, order.hashes) }) // fails for sizes below 1
	return o
}

func sizeOfOrder(key orderKey, hashes []uint64) int {
	return listOrderBytes + len(key.address) + 8*len(hashes)
}

// keep stores an order in place of the last order with this key. It does not store an order that is larger than the whole memory.
func (o *ListOrders) keep(key orderKey, hashes []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lru.Remove(key)
	size := sizeOfOrder(key, hashes)
	if size > MaxListOrderBytes {
		return
	}
	for o.bytes+size > MaxListOrderBytes {
		o.lru.RemoveOldest()
	}
	o.bytes += size
	o.lru.Add(key, listOrder{hashes, o.clock.Now().Add(listOrderTime)})
}

// find returns an order and keeps it for another listOrderTime. It returns nil if the order is not kept. The result must not be
// changed.
func (o *ListOrders) find(key orderKey) []uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	order, ok := o.lru.Get(key)
	now := o.clock.Now()
	if !ok {
		return nil
	}
	if now.After(order.until) {
		o.lru.Remove(key)
		return nil
	}
	order.until = now.Add(listOrderTime)
	o.lru.Add(key, order)
	return order.hashes
}

// listOrderOf returns the place where the order of a list of the account a is kept for the caller of ctx. The parameter list is the
// listHash. The parameter arguments contains the sort and the filters.
func (r *Resolver) listOrderOf(ctx context.Context, a market.Address, list uint64, arguments ...[]string) listOrderPlace {
	if r.ListOrders == nil {
		return listOrderPlace{}
	}
	for _, texts := range arguments {
		for _, text := range texts {
			list = addToHash(addToHash(list, text), "\n")
		}
	}
	if r.venueOf(string(a)).PublicAccounts { // the response must not depend on credentials
		return listOrderPlace{r.ListOrders, orderKey{address: request.From(ctx).Caller, list: list}}
	}
	c := request.CredentialsFrom(ctx)
	if c == nil {
		return listOrderPlace{}
	}
	return listOrderPlace{r.ListOrders, orderKey{credentials: maphash.String(r.ListOrders.seed, c.Wire()), list: list}}
}

// listOrderPlace is the place of one order in a ListOrders. The zero value keeps nothing.
type listOrderPlace struct {
	in  *ListOrders
	key orderKey
}

// arrange returns the elements of a list and their hashes in the kept order. Elements that are not in this order come last, so a
// client that has read the elements before them still gets them. Without a kept order, arrange returns the list as it is.
func arrange[T any](items []T, hashes *keyHashes, place listOrderPlace) ([]T, *keyHashes) {
	if place.in == nil {
		return items, hashes
	}
	order := place.in.find(place.key)
	if order == nil {
		return items, hashes
	}
	ranks := make(map[uint64]int, len(order))
	for rank, hash := range order {
		ranks[hash] = rank
	}
	type ranked struct {
		item T
		hash uint64
		rank int
	}
	list := make([]ranked, len(items))
	for i, item := range items {
		hash := hashes.at(i)
		rank, known := ranks[hash]
		if !known {
			rank = len(order)
		}
		list[i] = ranked{item, hash, rank}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	arranged, computed := make([]T, len(list)), make([]uint64, len(list))
	for i := range list {
		arranged[i], computed[i] = list[i].item, list[i].hash
	}
	return arranged, &keyHashes{hashes.hash, computed}
}
