package cache

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// setTexts sets all texts in a value to id, and gives each list one element.
func setTexts(v reflect.Value, id string) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			setTexts(v.Field(i), id)
		}
	case !v.CanSet():
	case v.Kind() == reflect.String:
		v.SetString(id)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setTexts(v.Elem(), id)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setTexts(v.Index(0), id)
	}
}

// checkTexts checks every text in a value: ids, which are the fields ID, Slug and those that end so, and the others. The id of an order
// is none here, because global ids put it behind the address.
func checkTexts(t *testing.T, what string, v reflect.Value, name, id, other string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		isID := name != "Order.OrderID" && (name == "MarketRef.Value" || name == "userKey.Address" || strings.HasSuffix(name, "ID") || strings.HasSuffix(name, "Slug"))
		if want := map[bool]string{true: id, false: other}[isID]; v.String() != want {
			t.Errorf("%s: %s is %q, want %q", what, name, v, want)
		}
	case reflect.Pointer:
		checkTexts(t, what, v.Elem(), name, id, other)
	case reflect.Slice:
		for i := range v.Len() {
			checkTexts(t, what, v.Index(i), name, id, other)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				checkTexts(t, what, v.Field(i), v.Type().Name()+"."+f.Name, id, other)
			}
		}
	}
}

// echo is a kind of which the venue has one value, with the text x everywhere.
type echo[K comparable, T any] struct {
	kind[K, T]
	asked []K
}

func (e *echo[K, T]) fetch(_ context.Context, _ upstream.Call, _ venue.Reader, _ upstream.Endpoint, keys []K) ([]upstream.Result[*T], error) {
	e.asked = append(e.asked, keys...)
	value := new(T)
	setTexts(reflect.ValueOf(value).Elem(), "x")
	return []upstream.Result[*T]{{Value: value}}, nil
}

// checkIDs checks that the venue is asked for its own ids, and that all ids in its answers get the name of the venue.
func checkIDs[K comparable, T any](t *testing.T, s *store[K, T]) {
	t.Helper()
	e := &echo[K, T]{kind: s.kind}
	s.kind = e
	keys := make([]K, 1)
	setTexts(reflect.ValueOf(&keys).Elem().Index(0), "v:x")
	answers, err := s.ask(t.Context(), upstream.Call{}, s.routes[0].endpoint, keys)
	if err != nil {
		t.Fatal(err)
	}
	what, own := s.name.String(), map[bool]string{true: "v:x", false: "x"}[s.unkeyed]
	checkTexts(t, what, reflect.ValueOf(e.asked), "ID", own, "v:x")
	checkTexts(t, what, reflect.ValueOf(answers[0].Value), "", "v:x", "x")
}

// TestFurtherVenue checks the ids of every kind of data, whose keys and values have the name of a further venue, and their costs.
func TestFurtherVenue(t *testing.T) {
	v := &testVenue{}
	c := New(v, Config{Name: "v"})
	defer c.Close()
	for _, id := range []string{"m", "v:"} {
		page, err := readOne(t.Context(), c.Trades(), queries.Trades{MarketID: id}.Key("v:0x1"))
		if err != nil || page.Value != nil || len(v.asked) != 0 {
			t.Errorf("for the market %q, got %+v, %v and the calls %v, want no value and no call", id, page, err, v.asked)
		}
	}
	checkIDs(t, c.prices)
	checkIDs(t, c.spreads)
	checkIDs(t, c.books)
	checkIDs(t, c.histories)
	checkIDs(t, c.markets)
	checkIDs(t, c.events)
	checkIDs(t, c.searches)
	checkIDs(t, c.eventSearches)
	checkIDs(t, c.categories)
	checkIDs(t, c.marketTrades)
	checkIDs(t, c.balances)
	checkIDs(t, c.positions)
	checkIDs(t, c.orders)
	checkIDs(t, c.trades)
	checkIDs(t, c.userHistories)
	for _, name := range []string{"v", "a-venue"} {
		v := &lengths{}
		c := New(v, Config{Name: name})
		defer c.Close()
		bytes, want := 0, 0
		for _, id := range []string{"a", "b:c", "d e"} {
			bytes, want = bytes+bytesOf(market.Qualify(name, id)), want+bytesOf(id)
		}
		if c.prices.routes[0].cost(3, bytes); v.bytes != want {
			t.Errorf("%q: the driver computes the cost of %d bytes, want %d", name, v.bytes, want)
		}
	}
}

// lengths notes the lengths whose cost is asked.
type lengths struct {
	testVenue
	bytes int
}

func (l *lengths) Cost(_ upstream.Endpoint, _, bytes int) int {
	l.bytes = bytes
	return 1
}
