package polymarket

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
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

func number(d *market.Decimal) string {
	if d == nil {
		return "-"
	}
	return d.String()
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func flag(b *bool) string {
	if b == nil {
		return "-"
	}
	return fmt.Sprint(*b)
}

// showMarket returns the important fields of a market as text.
func showMarket(m *market.Market) string {
	out := fmt.Sprintf("%s %s %s/%s", m.MarketID, m.Slug, m.Status, m.StatusRaw)
	for _, o := range m.Outcomes {
		out += fmt.Sprintf(" %s=%s@%s/%s", o.Label, o.TokenID, number(o.Price), flag(o.Winner))
	}
	if r := m.Resolution; r != nil {
		out += fmt.Sprintf(" resolution=%s,%s,%s", r.Outcome, instant(r.ResolvedAt), r.Source)
	}
	if m.Summary {
		out += " summary"
	}
	return out
}

func TestMarketsOfGamma(t *testing.T) {
	rows, next, err := readMarkets(parse(t, "testdata", "markets.json"), ignore)
	if err != nil || next != "b3Blbg==" {
		t.Fatalf("readMarkets returns the cursor %q and the error %v, want the cursor b3Blbg==", next, err)
	}
	var got []string
	for _, row := range rows {
		if row.market == nil {
			got = append(got, "bad: "+row.row.Err.Error())
			continue
		}
		line := showMarket(row.market)
		if row.undecided != nil {
			line += " undecided"
		}
		got = append(got, line)
	}
	equal(t, got,
		"0xaa01 rain-springfield-friday OPEN/ Yes=1001@0.305/- No=1002@0.695/-",
		"0xaa02 snow RESOLVED/resolved Yes=1003@0/false No=1004@1/true resolution=No,2030-04-20T02:07:01Z,0xfeed",
		"0xaa03 no-result CLOSED/ Up=1005@1/- Down=1006@0/- summary undecided",
		"0xaa04 half CANCELLED/resolved A=1007@0.5/- B=1008@0.5/- resolution=,-,",
		"0xaa05 doubt DISPUTED/disputed Yes=1009@0.99/- No=1010@0.01/-",
		"0xaa06 early OPEN/resolved Yes=1011@1/- No=1012@0/-",
		"0xaa07 inexact CLOSED/resolved Yes=1013@0.9995/- No=1014@0/- summary undecided",
		"0xaa08 no-tokens OPEN/ Yes=0xaa08:0@-/- No=0xaa08:1@-/-",
		"bad: outcomes are missing or do not match their tokens",
		"510  UNKNOWN/ Yes=1016@-/- No=1017@-/- summary",
	)
	m := rows[0].market
	equal(t, []string{
		m.Question, m.Description, m.Image, strings.Join(m.Tags, ","), flag(m.AcceptingOrders), instant(m.StartsAt), instant(m.EndsAt), instant(m.UpdatedAt),
		number(m.Volume), number(m.Volume24h), number(m.Liquidity), number(m.TickSize), number(m.MinOrderSize), m.EventID, m.EventSlug, m.EventTitle,
	},
		"Will it rain in Springfield on Friday?", "Resolves to Yes if it rains.", "https://images.invalid/rain.png", "Weather,US Cities", "true",
		"2030-04-28T09:30:00.125Z", "2030-05-03T12:00:00Z", "2030-04-29T10:00:00Z", "1234.567891", "12.5", "99.25", "0.001", "5", "31", "weather-springfield",
		"Weather in Springfield")
	if tokens := tokenIDs(rows[8].row); !slices.Equal(tokens, []string{"1015"}) {
		t.Errorf("the tokens of a bad market are %q, want 1015", tokens)
	}
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
	return fmt.Sprintf("%s bids%s asks%s spread %s top %s/%s at %s hash %s depth %d", b.TokenID, side(b.Bids.Levels()), side(b.Asks.Levels()), number(b.Spread),
		number(s.BestBid), number(s.BestAsk), instant(b.Timestamp), b.Hash, b.Depth)
}

func TestBooks(t *testing.T) {
	asked := []string{"1001", "1002", "1003", "1004", "1005"}
	books, err := readBooks(parse(t, "testdata", "books.json"), ignore)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range asked {
		switch r, ok := books[id]; {
		case !ok:
			got = append(got, id+" absent")
		case r.Err != nil:
			got = append(got, id+" "+r.Err.Error())
		default:
			got = append(got, showBook(r.Value))
		}
	}
	equal(t, got,
		"1001 bids 0.305*20 0.1*1000 asks 0.31*7 0.99*5000 spread 0.005 top 0.305/0.31 at 2030-03-17T17:46:40.123Z hash h1 depth 200",
		"1002 bids 0.69*2.5 0.6*10 asks spread - top 0.69/- at 2030-03-17T17:46:40.123Z hash h2 depth 200",
		"1003 the best bid is above the best ask",
		"1004 bids has a bad level: size is negative",
		"1005 absent",
	)
}

func TestPriceHistory(t *testing.T) {
	history := fieldHistory.Of(parse(t, "testdata", "histories.json"))
	day, _ := market.ParseDate("2030-03-17")
	points, bad := readPoints(history.Member("1001").Elements(), day, day+1, ignore)
	var got []string
	for _, point := range points {
		got = append(got, instant(point.Timestamp)+" "+point.Price.String())
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
	return fmt.Sprintf("%s %s %q %s avg %s now %s pnl %s", p.MarketID, p.TokenID, p.Outcome, p.Size, number(p.AvgPrice), number(p.CurrentPrice), number(p.UnrealizedPnl))
}

func showTrade(t market.Trade) string {
	return fmt.Sprintf("%s %s %s %s*%s %q at %s in %s", t.MarketID, t.TokenID, t.Side, t.Price, t.Size, t.Outcome, instant(t.Timestamp), t.TransactionHash)
}

func showRecord(h market.HistoryRecord) string {
	return fmt.Sprintf("%s/%s %s amount %s %s %s %q %s %s*%s", h.Kind, h.KindRaw, instant(h.Timestamp), number(h.Amount), h.MarketID, h.TokenID, h.Outcome,
		h.Side, number(h.Price), number(h.Size))
}
