package kalshi

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// document parses a file of testdata.
func document(t *testing.T, name string) wire.Value {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	v, err := wire.Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// golden collects values as JSON and compares them with a golden file.
type golden struct {
	t    *testing.T
	name string
	text strings.Builder
}

func (g *golden) add(what string, v any) {
	g.t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		g.t.Fatal(err)
	}
	fmt.Fprintf(&g.text, "%s: %s\n", what, b)
}

func (g *golden) compare() {
	g.t.Helper()
	file := filepath.Join("testdata", g.name)
	if *update {
		if err := os.WriteFile(file, []byte(g.text.String()), 0o644); err != nil {
			g.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		g.t.Fatal(err)
	}
	if got := g.text.String(); got != string(want) {
		g.t.Errorf("%s differs; run the test with -update and look at the difference\n%s", g.name, got)
	}
}

// rows calls read for each row of a list. It returns a golden that contains the results, the errors and the drift of the rows.
func rows(t *testing.T, name string, list []wire.Value, read func(r *wire.Row) any) *golden {
	t.Helper()
	g := &golden{t: t, name: name}
	for i, v := range list {
		r := wire.NewRow(v, func(what string) { fmt.Fprintf(&g.text, "note: %s\n", what) })
		value := read(r)
		if r.Err != nil {
			fmt.Fprintf(&g.text, "row %d: bad: %v\n", i, r.Err)
			continue
		}
		g.add(fmt.Sprintf("row %d", i), value)
	}
	return g
}

func TestMarketRows(t *testing.T) {
	rows(t, "markets.golden", document(t, "markets.json").Member("markets").Elements(), func(r *wire.Row) any {
		return readMarket(r, nil)
	}).compare()
}

func TestEventRow(t *testing.T) {
	v := document(t, "event.json").Member("event")
	r := wire.NewRow(v, func(what string) { t.Errorf("readEvent notes the drift %q, want none", what) })
	e := readEvent(r)
	e.readSeries(r.Child(document(t, "series.json").Member("series")))
	var markets []*market.Market
	for _, v := range v.Member("markets").Elements() {
		in := r.Child(v)
		if m := readMarket(in, e); in.Err == nil {
			markets = append(markets, m)
		}
	}
	g := &golden{t: t, name: "event.golden"}
	g.add("event", e.toEvent(markets, nil))
	g.compare()
}

func TestQuotes(t *testing.T) {
	rows(t, "quotes.golden", document(t, "markets.json").Member("markets").Elements(), func(r *wire.Row) any {
		q := readQuote(r)
		var out []any
		for _, s := range sides {
			out = append(out, q.price("T", s), q.spread("T", s))
		}
		return out
	}).compare()
}

func TestBooks(t *testing.T) {
	rows(t, "orderbooks.golden", document(t, "orderbooks.json").Member("orderbooks").Elements(), func(r *wire.Row) any {
		in := r.Child(r.Object.Member("orderbook_fp"))
		b := readBids(in, false)
		r.Err = in.Err
		books := [...]*market.Book{b.book("T", yes, 2), b.book("T", no, 2)}
		for _, b := range books {
			b.Rendered = nil
		}
		return books
	}).compare()
}

// TestUnifiedPrices checks that readBids converts the prices of NO bids if the venue sends these bids at YES prices.
func TestUnifiedPrices(t *testing.T) {
	of := func(text string, unified bool) string {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := wire.NewRow(v, func(string) {})
		b := readBids(r, unified)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		out, _ := json.Marshal(b)
		return string(out)
	}
	separate := of(`{"yes_dollars_fp":[["0.0800","300.00"]],"no_dollars_fp":[["0.5400","20.00"],["0.5600","146.00"]]}`, false)
	unified := of(`{"yes_dollars_fp":[["0.0800","300.00"]],"no_dollars_fp":[["0.4600","20.00"],["0.4400","146.00"]]}`, true)
	if separate != unified {
		t.Errorf("readBids returns %s for NO prices and %s for YES prices of NO bids; want equal bids", separate, unified)
	}
}

func TestTokens(t *testing.T) {
	for _, test := range []struct {
		id, ticker string
		side       side
		ok         bool
	}{
		{"KXRAINLIS-26NOV30-T2.5:yes", "KXRAINLIS-26NOV30-T2.5", yes, true},
		{"KXRAINLIS-26NOV30-T2.5:no", "KXRAINLIS-26NOV30-T2.5", no, true},
		{"KXRAINLIS-26NOV30-T2.5", "", yes, false},
		{":yes", "", yes, false},
		{"kxrain:no", "", yes, false},
		{"A&B:no", "", yes, false},
		{strings.Repeat("A", maxTicker+1) + ":no", "", yes, false},
	} {
		ticker, s, ok := parseToken(test.id)
		if ticker != test.ticker || s != test.side || ok != test.ok {
			t.Errorf("parseToken(%q) returns the ticker %q, the side %d and ok %t; want %q, %d and %t", test.id, ticker, s, ok, test.ticker, test.side, test.ok)
		}
		if ok && s.token(ticker) != test.id {
			t.Errorf("the token of the parsed id %s is %s", test.id, s.token(ticker))
		}
	}
}
