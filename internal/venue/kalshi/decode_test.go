package kalshi

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/internal/venue/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden collects text and compares it with a golden file.
type golden struct {
	t    *testing.T
	name string
	text strings.Builder
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
