package questions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestSet(t *testing.T) {
	s := NewSet(Question{ID: "a", Legs: []Leg{{Token: "1"}, {Token: "b:1"}}}, Question{ID: "b", Legs: []Leg{{Token: "1"}, {Token: "c:1"}}})
	if all := s.All(); len(all) != 2 || all[0] != s.Find("a") || all[1].ID != "b" || s.Find("c") != nil {
		t.Errorf("got the questions %v", all)
	}
	if of := s.OfToken("1"); !slices.Equal(of, s.All()) || s.OfToken("2") != nil {
		t.Errorf("the token 1 has the questions %v, want a and b", of)
	}
	if s = new(Set); s.All() != nil || s.Find("a") != nil || s.OfToken("1") != nil {
		t.Error("the zero Set is not empty")
	}
}

func TestRulesHashAndFee(t *testing.T) {
	if got := RulesHash("test"); got != hash {
		t.Errorf("got %s, want %s", got, hash)
	}
	rate := market.MustDecimal("0.07")
	for price, want := range map[string]string{"0.5": "0.5175", "0.9": "0.9063", "1": "1", "0": "0"} {
		if got := Best([]LegBook{{TakerFeeRate: &rate, Book: book("", price+"x1")}}, market.SideBuy); got.PriceAfterFee.String() != want {
			t.Errorf("after the fee at %s: got %s, want %s", price, got.PriceAfterFee, want)
		}
	}
}

func book(bids, asks string) *market.Book {
	side := func(s string) market.Side {
		var out []market.Level
		for l := range strings.FieldsSeq(s) {
			price, size, _ := strings.Cut(l, "x")
			out = append(out, market.Level{Price: market.MustDecimal(price), Size: market.MustDecimal(size)})
		}
		return market.NewSide(out)
	}
	return &market.Book{Bids: side(bids), Asks: side(asks)}
}

func text(levels []Level) string {
	var out []string
	for _, l := range levels {
		fee := "-"
		if l.PriceAfterFee != nil {
			fee = l.PriceAfterFee.String()
		}
		out = append(out, fmt.Sprintf("%s:%sx%s/%s", l.Venue, l.Price, l.Size, fee))
	}
	return strings.Join(out, " ")
}

func TestMerge(t *testing.T) {
	rate := func(s string) *market.Decimal { return new(market.MustDecimal(s)) }
	books := []LegBook{
		{"a", rate("0.1"), book("0.5x1 0.4x2", "0.6x1")}, {"b", rate("0"), book("0.50x3", "0.60x3 0.7x1")}, {"c", nil, book("0.5x5 0.45x1", "")},
	}
	m := Merge(books, 3)
	if got, want := text(m.Bids), "a:0.5x1/0.475 b:0.50x3/0.5 c:0.5x5/-"; got != want {
		t.Errorf("bids: got %s, want %s", got, want)
	}
	if got, want := text(m.Asks), "a:0.6x1/0.624 b:0.60x3/0.6 b:0.7x1/0.7"; got != want {
		t.Errorf("asks: got %s, want %s", got, want)
	}
	if m.Spread().String() != "0.1" || Merge(books[2:], 3).Spread() != nil {
		t.Errorf("spread: got %s, want 0.1, and nil without asks", m.Spread())
	}
}

func TestBest(t *testing.T) {
	rate := func(s string) *market.Decimal { return new(market.MustDecimal(s)) }
	for name, tt := range map[string]struct {
		rates   []*market.Decimal
		buy, at int
	}{
		"after the fee":   {[]*market.Decimal{rate("0.07"), rate("0")}, 1, 1},
		"a rate unknown":  {[]*market.Decimal{rate("0.07"), nil}, 0, 0},
		"without any fee": {[]*market.Decimal{nil, nil}, 0, 0},
	} {
		books := []LegBook{{"a", tt.rates[0], book("0.49x1", "0.5x1")}, {"b", tt.rates[1], book("0.48x1", "0.51x1")}}
		if buy, sell := Best(books, market.SideBuy), Best(books, market.SideSell); buy.Leg != tt.buy || sell.Leg != tt.at {
			t.Errorf("%s: got the legs %d and %d, want %d and %d", name, buy.Leg, sell.Leg, tt.buy, tt.at)
		}
	}
	if Best(make([]LegBook, 2), market.SideBuy) != nil {
		t.Error("without books there is a best price")
	}
}

// TestMergeKeepsAllLevels checks that Merge keeps each level with its leg and size, in the order of prices.
func TestMergeKeepsAllLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		books, count := make([]LegBook, 3), 0
		for i := range books {
			b := &market.Book{}
			for range r.IntN(20) {
				b.Asks = b.Asks.Set(market.SideSell, market.Level{Price: market.NewDecimal(r.Int64N(99)+1, -2), Size: market.NewDecimal(r.Int64N(9)+1, 0)})
			}
			books[i].Book, count = b, count+b.Asks.Len()
		}
		asks := Merge(books, 100).Asks
		if len(asks) != count || !slices.IsSortedFunc(asks, func(a, b Level) int { return a.Price.Cmp(b.Price) }) {
			t.Fatalf("got %d levels, want %d in order: %s", len(asks), count, text(asks))
		}
		for i, b := range books {
			var own []market.Level
			for _, l := range asks {
				if l.Leg == i {
					own = append(own, l.Level)
				}
			}
			if !market.NewSide(own).Equal(b.Asks) {
				t.Fatalf("leg %d: got %v, want %v", i, own, b.Asks)
			}
		}
	}
}
