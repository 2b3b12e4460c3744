package cache

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestFlushForgetsNames checks that a flush also forgets which market a slug or token belongs to.
func TestFlushForgetsNames(t *testing.T) {
	for _, key := range []string{"", "m1"} {
		for _, ref := range names[1:] {
			t.Run(fmt.Sprintf("%q %v", key, ref), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					id := "m1"
					v := &testVenue{market: func(string) *market.Market {
						m := election("")
						m.MarketID = id
						return m
					}}
					c := open(t, v)
					mustRead(t, c.Markets(), ref)
					flushed := key
					if key != "" {
						flushed = ref.Value // flush by the slug or token instead of the id
					}
					if n, err := c.Flush("market", flushed); err != nil || n != 1 {
						t.Fatalf("got %d entries, %v; want 1", n, err)
					}
					id = "m2"
					if r := mustRead(t, c.Markets(), ref); r.Value.MarketID != "m2" {
						t.Errorf("%v: got market %s, want m2", ref, r.Value.MarketID)
					}
					calls := v.calls()
					if last := calls[len(calls)-1]; len(calls) != 2 || last.endpoint == upstream.EndpointMarketsByID || !slices.Equal(last.keys, []string{ref.Value}) {
						t.Errorf("got %d calls, the last %+v; want 2 calls, the last for %v", len(calls), last, ref)
					}
				})
			})
		}
	}
}

// TestFlushOfOneMarket checks that a flush by the id, the slug or a token of a market removes only this market.
func TestFlushOfOneMarket(t *testing.T) {
	for _, key := range []string{"m1", "election", "yes", "no"} {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{market: func(id string) *market.Market {
				if id == "other" {
					return &market.Market{MarketID: id}
				}
				return election(id)
			}}
			c := open(t, v)
			mustRead(t, c.Markets(), byID("m1"))
			mustRead(t, c.Markets(), byID("other"))
			if n, err := c.Flush("market", key); err != nil || n != 1 {
				t.Fatalf("%s: got %d entries, %v; want 1", key, n, err)
			}
			mustRead(t, c.Markets(), byID("other"))
			mustRead(t, c.Markets(), byID("m1"))
			if n := len(v.calls()); n != 3 {
				t.Errorf("%s: got %d calls, want 3", key, n)
			}
		})
	}
}

// TestFlushOfAbsences checks that absences are removed by a flush of their key and by a flush of their kind.
func TestFlushOfAbsences(t *testing.T) {
	for _, key := range []string{"", "t1"} {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{}
			v.setUnknown("t1", true)
			c := open(t, v)
			mustRead(t, c.Prices(), "t1")
			v.setUnknown("t1", false)
			if n, err := c.Flush("price", key); err != nil || n != 1 {
				t.Errorf("%q: got %d entries, %v; want 1", key, n, err)
			}
			if r := mustRead(t, c.Prices(), "t1"); r.Value == nil {
				t.Errorf("%q: the token is still unknown", key)
			}
		})
	}
}

// TestFlushOfEachKind checks for each kind of public data that a value is fetched again after a flush of the kind. If the kind has
// keys, a flush of the key must have the same effect.
func TestFlushOfEachKind(t *testing.T) {
	const token, address = "t1", "0x1111111111111111111111111111111111111111"
	for _, test := range []struct {
		kind, key string // key is empty if the kind has no keys
		read      func(t *testing.T, c *Cache)
	}{
		{"price", token, func(t *testing.T, c *Cache) { mustRead(t, c.Prices(), token) }},
		{"spread", token, func(t *testing.T, c *Cache) { mustRead(t, c.Spreads(), token) }},
		{"book", token, func(t *testing.T, c *Cache) { mustRead(t, c.Books(), queries.Book{TokenID: token, Depth: 5}) }},
		{"history", token, func(t *testing.T, c *Cache) { mustRead(t, c.Histories(), queries.PriceHistory{TokenID: token}) }},
		{"market", "m1", func(t *testing.T, c *Cache) { mustRead(t, c.Markets(), byID("m1")) }},
		{"event", "e1", func(t *testing.T, c *Cache) { mustRead(t, c.Events(), market.EventRef{EventID: "e1"}) }},
		{"event", "elections", func(t *testing.T, c *Cache) { mustRead(t, c.Events(), market.EventRef{EventSlug: "elections"}) }},
		{"search", "", func(t *testing.T, c *Cache) { mustRead(t, c.Searches(), queries.Search{Text: "x"}.Key()) }},
		{"event_search", "", func(t *testing.T, c *Cache) { mustRead(t, c.EventSearches(), queries.Search{Text: "x"}.Key()) }},
		{"categories", "", func(t *testing.T, c *Cache) { mustRead(t, c.Categories(), "") }},
		{"market_trades", "m1", func(t *testing.T, c *Cache) { mustRead(t, c.MarketTrades(), queries.MarketTrades{MarketID: "m1"}) }},
		{"market_trades", token, func(t *testing.T, c *Cache) {
			mustRead(t, c.MarketTrades(), queries.MarketTrades{MarketID: "m1", TokenID: token})
		}},
	} {
		t.Run(test.kind+" "+test.key, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{}
				c := open(t, v)
				readAndCheckCall := func(want bool) {
					t.Helper()
					before := len(v.calls())
					test.read(t, c)
					if got := len(v.calls()) > before; got != want {
						t.Errorf("a read made a call: %v, want %v", got, want)
					}
				}
				flush := func(key string, want int) {
					t.Helper()
					if n, err := c.Flush(test.kind, key); err != nil || n != want {
						t.Errorf("flush %q: got %d entries, %v; want %d", key, n, err, want)
					}
				}
				readAndCheckCall(true)
				readAndCheckCall(false)
				flush("", 1)
				readAndCheckCall(true)
				if test.key == "" {
					if _, err := c.Flush(test.kind, "x"); err == nil {
						t.Error("a kind without keys was flushed by key")
					}
					return
				}
				flush("another", 0)
				readAndCheckCall(false)
				flush(test.key, 1)
				readAndCheckCall(true)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{})
		if _, err := c.Flush("fame", ""); err == nil {
			t.Error("an unknown kind was flushed")
		}
		if n, err := c.Flush("balance", address); n != 0 || err != nil {
			t.Errorf("flush of an empty cache: got %d entries, error %v; want 0 entries", n, err)
		}
	})
}
