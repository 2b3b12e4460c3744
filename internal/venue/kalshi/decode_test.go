package kalshi

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
