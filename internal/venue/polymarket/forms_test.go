package polymarket

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// parse returns the JSON value of a file.
func parse(t *testing.T, path ...string) wire.Value {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	v, err := wire.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ignore(string) {}

// equal fails the test if the lines in got and want differ.
func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("line %d is missing: %s", i+1, want[i])
		case i >= len(want):
			t.Errorf("line %d is not expected: %s", i+1, got[i])
		case got[i] != want[i]:
			t.Errorf("line %d\n got %s\nwant %s", i+1, got[i], want[i])
		}
	}
}

// showMarket returns the important fields of a market as text.
func showMarket(m *market.Market) string {
	out := fmt.Sprintf("%s %s %s/%s", m.MarketID, m.Slug, m.Status, m.StatusRaw)
	for _, o := range m.Outcomes {
		out += fmt.Sprintf(" %s=%s@%s/%s", o.Label, o.TokenID, tool.Text(o.Price), tool.Text(o.Winner))
	}
	if r := m.Resolution; r != nil {
		out += fmt.Sprintf(" resolution=%s,%s,%s", r.Outcome, tool.Text(r.ResolvedAt), r.Source)
	}
	if m.Summary {
		out += " summary"
	}
	return out
}

// showBook returns a book and its best prices as text.
func showBook(b *market.Book) string {
	side := func(levels []market.Level) (out string) {
		for _, l := range levels {
			out += fmt.Sprintf(" %s*%s", l.Price, l.Size)
		}
		return out
	}
	s := rest.SpreadOf(b)
	return fmt.Sprintf("%s bids%s asks%s spread %s top %s/%s at %s hash %s depth %d", b.TokenID, side(b.Bids.Levels()), side(b.Asks.Levels()), tool.Text(b.Spread),
		tool.Text(s.BestBid), tool.Text(s.BestAsk), tool.Text(b.Timestamp), b.Hash, b.Depth)
}

func TestPriceHistory(t *testing.T) {
	history := fieldHistory.Of(parse(t, "testdata", "histories.json"))
	day, _ := market.ParseDate("2030-03-17")
	points, bad := readPoints(history.Member("1001").Elements(), day, day+1, ignore)
	var got []string
	for _, point := range points {
		got = append(got, tool.Text(point.Timestamp)+" "+point.Price.String())
	}
	equal(t, got, "2030-03-17T17:46:40Z 0.3", "2030-03-17T17:51:40Z 0.303", "2030-03-18T00:00:00Z 0.31", "2030-03-18T17:46:40Z 0.9")
	if len(bad) != 1 || bad[0].Where != "row 6" {
		t.Errorf("the bad points are %v, want only row 6", bad)
	}
}

func showRows[T any](rows []wire.Value, read func(*wire.Row) T, show func(T) string) (got []string) {
	for _, v := range rows {
		r := wire.NewRow(v, ignore)
		value := read(r)
		if r.Err != nil {
			got = append(got, "bad: "+r.Err.Error())
			continue
		}
		got = append(got, show(value))
	}
	return got
}

func showPosition(p market.Position) string {
	return fmt.Sprintf("%s %s %q %s avg %s now %s pnl %s", p.MarketID, p.TokenID, p.Outcome, p.Size, tool.Text(p.AvgPrice), tool.Text(p.CurrentPrice), tool.Text(p.UnrealizedPnl))
}

func showTrade(t market.Trade) string {
	return fmt.Sprintf("%s %s %s %s*%s %q at %s in %s", t.MarketID, t.TokenID, t.Side, t.Price, t.Size, t.Outcome, tool.Text(t.Timestamp), t.TransactionHash)
}

func showRecord(h market.HistoryRecord) string {
	return fmt.Sprintf("%s/%s %s amount %s %s %s %q %s %s*%s", h.Kind, h.KindRaw, tool.Text(h.Timestamp), tool.Text(h.Amount), h.MarketID, h.TokenID, h.Outcome,
		h.Side, tool.Text(h.Price), tool.Text(h.Size))
}
