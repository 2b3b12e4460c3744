package questions

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

var venues = Venues{Names: market.Names{"kalshi", "other"}}

const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// valid is a file with one question of each match.
const valid = `{"version": 1, "questions": [
  {"id": "a", "title": "A?", "match": "EXACT", "differences": [], "checkedAt": "2026-11-20", "checkedBy": "jd",
   "legs": [{"token": "1", "rulesSha256": "` + hash + `", "takerFeeRate": "0"}, {"token": "kalshi:K:yes", "takerFeeRate": "0.07"}]},
  {"id": "b", "title": "B?", "match": "NEAR", "differences": ["ends a day later"], "checkedAt": "2026-11-20",
   "legs": [{"token": "1"}, {"token": "other:O"}]},
  {"id": "c", "title": "C?", "match": "RELATED", "checkedAt": "2026-11-20", "legs": [{"token": "2"}, {"token": "other:P"}]}
]}`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(valid), venues)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Find("a")
	if len(s.All()) != 3 || a.Match != Exact || a.Legs[0].RulesSHA256 != hash || a.Legs[1].TakerFeeRate.String() != "0.07" || a.CheckedAt.String() != "2026-11-20" {
		t.Errorf("got %d questions, the first one %+v", len(s.All()), a)
	}
	if of := s.OfToken("1"); len(of) != 2 || of[0] != a || of[1] != s.Find("b") || s.OfToken("3") != nil {
		t.Errorf("the token 1 has the questions %v, want a and b", of)
	}
	if s = nil; s.All() != nil || s.Find("a") != nil || s.OfToken("1") != nil {
		t.Error("a nil Set is not empty")
	}
	var many []string
	for i := range MaxQuestions + 1 {
		many = append(many, fmt.Sprintf(`{"id":"q%d","title":"A","match":"RELATED","checkedAt":"2026-11-20","legs":[{"token":"1"},{"token":"other:P"}]}`, i))
	}
	if _, err := Parse([]byte(`{"version":1,"questions":[`+strings.Join(many, ",")+`]}`), venues); err == nil || !strings.Contains(err.Error(), "questions: must be a list of at most 10000 elements") {
		t.Errorf("%d questions: got %v", MaxQuestions+1, err)
	}
	if _, err := Parse(bytes.Repeat([]byte(" "), MaxFile+1), venues); err == nil {
		t.Error("a file that is too large is accepted")
	}
}

func TestParseErrors(t *testing.T) {
	leg := `{"token": "2"}, {"token": "other:P"}`
	for _, tt := range []struct{ old, new, want string }{
		{`{"version"`, `"version"`, "line 1, column 10: must not be a string"},
		{`"version": 1`, `"version": 2`, "line 1, column 13: version: must be the number 1"},
		{`"version": 1, `, ``, "line 1, column 1: version: must be the number 1"},
		{"]}\n]}", "]}\n]} 1", "line 7, column 5: there is something after the end"},
		{`"jd",`, `"jd"`, "line 3, column 4: it is not JSON"},
		{"]}\n]}", "]}", "unexpected EOF"},
		{`"checkedBy"`, `"checker"`, `unknown field "checker"`},
		{`"checkedBy"`, `"title"`, "questions[0].title: is there twice"},
		{`"A?"`, `""`, "questions[0].title: has 0 bytes"},
		{`"id": "a"`, `"id": "a b"`, "questions[0].id: must be 1 to 64 letters"},
		{`"id": "b"`, `"id": "a"`, `questions[1]: the id "a" is that of an earlier question`},
		{`"NEAR"`, `"near"`, "questions[1].match: must be EXACT, NEAR or RELATED"},
		{`"NEAR"`, `null`, "questions[1].match: must be EXACT, NEAR or RELATED"},
		{`"NEAR"`, `"EXACT"`, "questions[1]: is EXACT with differences"},
		{`"differences": ["ends a day later"], `, ``, "line 4, column 3: questions[1]: is NEAR without differences"},
		{`["ends a day later"]`, `[""]`, "questions[1].differences[0]: has 0 bytes"},
		{`"NEAR", "differences": ["ends a day later"]`, `"EXACT"`, `questions[1]: the token 1 is a leg of "a", and both are EXACT`},
		{`2026-11-20`, `2026-11-31`, "questions[0].checkedAt: must be a day"},
		{leg, `{"token": "2"}`, "questions[2]: has 1 legs; it must have at least 2"},
		{leg, leg + `, {"token": "other:Q"}`, "questions[2]: has two legs at the venue of other:Q"},
		{leg, `{"token": "2"}, {"token": "3"}`, "questions[2]: has two legs at the venue of 3"},
		{leg, `{"token": "2"}, {"rulesSha256": "` + hash + `"}`, "line 6, column 102: questions[2].legs[1].token: an id has 1 to 256 bytes"},
		{"other:P", "polymarket:P", `line 6, column 112: questions[2].legs[1].token: "polymarket" is no further venue; the further venues are: kalshi, other`},
		{"other:P", "other:P/Q", "questions[2].legs[1].token: an id has no comma, slash"},
		{hash, strings.ToUpper(hash), "questions[0].legs[0].rulesSha256: must be 64 lower-case hexadecimal digits"},
		{`"0.07"`, `0.07`, "line 3, column 179: must not be a number"},
		{`"0.07"`, `"1.01"`, "questions[0].legs[1].takerFeeRate: must be a decimal number from 0 to 1"},
		{`"0.07"`, `"-0.07"`, "questions[0].legs[1].takerFeeRate: must be a decimal number from 0 to 1"},
		{"A?", "\xff", "it is not UTF-8"},
	} {
		text := strings.Replace(valid, tt.old, tt.new, 1)
		if _, err := Parse([]byte(text), venues); text == valid || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s instead of %s: got %v, want %s", tt.new, tt.old, err, tt.want)
		}
	}
	if _, err := Parse([]byte(strings.Replace(valid, "other:P", "p:yes", 1)), Venues{Names: venues.Names, AnyID: true}); err == nil || !strings.Contains(err.Error(), "has two legs at the venue of p:yes") {
		t.Errorf("an id with a colon of the first venue: got %v, want two legs at the first venue", err)
	}
}

func TestRulesHashAndFee(t *testing.T) {
	if got := RulesHash("test"); got != hash {
		t.Errorf("got %s, want %s", got, hash)
	}
	rate := market.MustDecimal("0.07")
	for price, want := range map[string]string{"0.5": "0.0175", "0.9": "0.0063", "1": "0", "0": "0"} {
		if got := TakerFee(&rate, market.MustDecimal(price)); got.String() != want {
			t.Errorf("fee at %s: got %s, want %s", price, got, want)
		}
	}
	if got := TakerFee(nil, rate); got != nil {
		t.Errorf("without a rate: got %s, want nil", got)
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
		out = append(out, fmt.Sprintf("%d:%sx%s/%s", l.Leg, l.Price, l.Size, fee))
	}
	return strings.Join(out, " ")
}

func TestMerge(t *testing.T) {
	rate := func(s string) *market.Decimal { return new(market.MustDecimal(s)) }
	q := &Question{Legs: []Leg{{TakerFeeRate: rate("0.1")}, {TakerFeeRate: rate("0")}, {}}}
	books := []*market.Book{book("0.5x1 0.4x2", "0.6x1"), book("0.50x3", "0.60x3 0.7x1"), book("0.5x5 0.45x1", "")}
	m := Merge(q, books, 3)
	if got, want := text(m.Bids), "1:0.50x3/0.5 0:0.5x1/0.475 2:0.5x5/-"; got != want {
		t.Errorf("bids: got %s, want %s", got, want)
	}
	if got, want := text(m.Asks), "1:0.60x3/0.6 0:0.6x1/0.624 1:0.7x1/0.7"; got != want {
		t.Errorf("asks: got %s, want %s", got, want)
	}
	if m.Spread().String() != "0.1" || Merge(q, []*market.Book{nil, nil, books[2]}, 3).Spread() != nil {
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
		q := &Question{Legs: []Leg{{TakerFeeRate: tt.rates[0]}, {TakerFeeRate: tt.rates[1]}}}
		books := []*market.Book{book("0.49x1", "0.5x1"), book("0.48x1", "0.51x1")}
		if buy, sell := Best(q, books, market.SideBuy), Best(q, books, market.SideSell); buy.Leg != tt.buy || sell.Leg != tt.at {
			t.Errorf("%s: got the legs %d and %d, want %d and %d", name, buy.Leg, sell.Leg, tt.buy, tt.at)
		}
	}
	if Best(&Question{Legs: make([]Leg, 2)}, make([]*market.Book, 2), market.SideBuy) != nil {
		t.Error("without books there is a best price")
	}
}

// TestMergeKeepsAllLevels checks that Merge keeps each level with its leg and size, in the order of prices.
func TestMergeKeepsAllLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		q := &Question{Legs: make([]Leg, 3)}
		books, count := make([]*market.Book, 3), 0
		for i := range books {
			b := &market.Book{}
			for range r.IntN(20) {
				b.Asks = b.Asks.Set(market.SideSell, market.Level{Price: market.NewDecimal(r.Int64N(99)+1, -2), Size: market.NewDecimal(r.Int64N(9)+1, 0)})
			}
			books[i], count = b, count+b.Asks.Len()
		}
		asks := Merge(q, books, 100).Asks
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

// TestAccept checks that Accept changes and adds hashes, and keeps every other byte.
func TestAccept(t *testing.T) {
	content := strings.Replace(valid, `{"token": "kalshi:K:yes", "takerFeeRate": "0.07"}`, "{ \"takerFeeRate\" :\"0.07\",\n\t\"token\" : \"kalshi:K:yes\"\n}", 1)
	content = strings.Replace(content, `{"token": "1", "rulesSha256": "`+hash+`"`, `{"rulesSha256" :"`+hash+`" , "token": "1"`, 1)
	s, err := Parse([]byte(content), venues)
	if err != nil {
		t.Fatal(err)
	}
	first, second := RulesHash("first"), RulesHash("second")
	want := strings.Replace(content, hash, first, 1)
	want = strings.Replace(want, `"kalshi:K:yes"`, `"kalshi:K:yes", "rulesSha256": "`+second+`"`, 1)
	got := Accept([]byte(content), s.Find("a"), []string{first, second})
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if _, err = Parse(got, venues); err != nil {
		t.Error(err)
	}
}
