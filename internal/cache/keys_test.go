package cache

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// TestKeysAreCopies checks that no stored key shares memory with the text that a client sent.
func TestKeysAreCopies(t *testing.T) {
	c := open(t, &testVenue{})
	sent := strings.Clone("0x1111111111111111111111111111111111111111 and all else that a client has sent")
	user := userKey{Address: market.Address(sent[:42])}
	keepsNothing(t, c.prices, sent, sent[:5])
	keepsNothing(t, c.spreads, sent, sent[:5])
	keepsNothing(t, c.books, sent, queries.Book{TokenID: sent[:5], Depth: 20})
	keepsNothing(t, c.histories, sent, queries.PriceHistory{TokenID: sent[:5]})
	for _, by := range []market.MarketRefKind{market.ByMarketID, market.BySlug, market.ByToken} {
		keepsNothing(t, c.markets, sent, market.MarketRef{By: by, Value: sent[:5]})
	}
	keepsNothing(t, c.events, sent, market.EventRef{EventID: sent[:5], EventSlug: sent[5:9]})
	keepsNothing(t, c.searches, sent, queries.SearchKey{Venue: sent[:4], Text: sent[:5], Status: sent[:6], Category: sent[:7], Tag: sent[:8], EventID: sent[:9], EventSlug: sent[:10], Page: sent[:11]})
	keepsNothing(t, c.categories, sent, sent[:5])
	keepsNothing(t, c.marketTrades, sent, queries.MarketTrades{MarketID: sent[:5], TokenID: sent[:6], Page: sent[:7]})
	keepsNothing(t, c.balances, sent, user)
	keepsNothing(t, c.positions, sent, user)
	keepsNothing(t, c.orders, sent, user)
	keepsNothing(t, c.trades, sent, tradesKey{userKey: user, Query: queries.Trades{MarketID: sent[:5], Page: sent[:6]}})
	keepsNothing(t, c.userHistories, sent, historyKey{userKey: user, key: queries.HistoryKey{Address: user.Address, Kinds: sent[:4], Page: queries.Trades{Page: sent[:6]}}})
}

func keepsNothing[K comparable, T any](t *testing.T, s *store[K, T], sent string, key K) {
	t.Helper()
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			at, from := uintptr(unsafe.Pointer(unsafe.StringData(v.String()))), uintptr(unsafe.Pointer(unsafe.StringData(sent)))
			if at >= from && at < from+uintptr(len(sent)) {
				t.Errorf("%s: %T keeps a part of the client's text", s.name, key)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		}
	}
	for _, value := range []*T{nil, new(T)} {
		s.accept(key, value, origin{})
		if !reflect.DeepEqual(append(s.entries.keys(), s.absent.keys()...), []K{s.slotOf(key)}) {
			t.Errorf("%s: got keys %v and %v, want %v", s.name, s.entries.keys(), s.absent.keys(), key)
		}
		for _, kept := range append(s.entries.keys(), s.absent.keys()...) {
			walk(reflect.ValueOf(kept))
		}
	}
	s.flush("")
}

// TestKeySharesID checks that a cached price or book and its key share the memory of the token id.
func TestKeySharesID(t *testing.T) {
	c := open(t, &testVenue{})
	id := strings.Clone("token")
	c.prices.accept("token", &market.Price{TokenID: id}, origin{})
	c.books.accept(queries.Book{TokenID: "token", Depth: 20}, &market.Book{TokenID: id, Depth: 20}, origin{})
	if a, b := c.prices.entries.keys()[0], c.books.entries.keys()[0].TokenID; unsafe.StringData(a) != unsafe.StringData(id) || unsafe.StringData(b) != unsafe.StringData(id) {
		t.Error("a key is a copy of its value's id")
	}
}
