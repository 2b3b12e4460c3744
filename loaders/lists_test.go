package loaders

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// countingSource has nothing in memory and counts the batches that it is asked for.
type countingSource struct {
	mu      sync.Mutex
	batches [][]int
}

func (c *countingSource) Lookup(_ context.Context, keys []int, _ []market.Result[market.Read[*int]], missing []int) []int {
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}

// Refresh implements Source.
func (*countingSource) Refresh(context.Context, []int) {}

func (c *countingSource) Fetch(_ context.Context, keys []int) []market.Result[market.Read[*int]] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, keys)
	return make([]market.Result[market.Read[*int]], len(keys))
}

// TestALongListTravelsWhole enters so many keys that it takes longer than stragglers are waited for.
func TestALongListTravelsWhole(t *testing.T) {
	const n = 100_000
	source := &countingSource{}
	keys := make([]int, n)
	for i := range keys {
		keys[i] = i
	}
	newLoader(&response{ctx: t.Context()}, market.KindPrice, source, true).GetMany(keys, make([]market.Result[market.Read[*int]], n))
	if len(source.batches) != 1 || len(source.batches[0]) != n {
		t.Errorf("%d keys travelled in %d batches", n, len(source.batches))
	}
}

// TestFollowersGoFirst has a follower of three keys, one of which is being read already. It must have gone on before those
// who wait for the last of them do.
func TestFollowersGoFirst(t *testing.T) {
	l := newLoader(&response{ctx: t.Context()}, market.KindPrice, &countingSource{}, true)
	got := make(chan int, 1)
	l.Prefetch([]int{2})
	l.follow([]int{1, 2, 1}, func(results []market.Result[market.Read[*int]]) { got <- len(results) })
	if _, err := l.Get(1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get(2); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-got:
		if n != 3 {
			t.Errorf("%d results", n)
		}
	default:
		t.Error("both keys were answered, and the follower not")
	}
	l.follow([]int{2, 1}, func(results []market.Result[market.Read[*int]]) { got <- len(results) })
	if n := <-got; n != 2 {
		t.Errorf("%d results of what has arrived", n)
	}
}

// TestPanicsOfFollowersAreTold has what follows markets panic: at once, and when they arrive. It costs nobody anything.
func TestPanicsOfFollowersAreTold(t *testing.T) {
	set := New(t.Context(), Sources{Markets: plain[market.MarketRef, market.Market]{market.NewHandle(time.Time{}), func(context.Context) bool { return true }}})
	ref := market.MarketRef{Value: "m"}
	set.FollowMarkets(nil, func([]market.Result[market.Read[*market.Market]]) { panic("boom") })
	set.FollowMarkets([]market.MarketRef{ref}, func([]market.Result[market.Read[*market.Market]]) { panic("bang") })
	if _, err := set.Markets.Get(ref); err != nil {
		t.Error(err)
	}
	err := set.Failed()
	for _, want := range []string{"boom", "bang", "lists_test.go"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}
