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

func TestResultOfTheOrderBookAPI(t *testing.T) {
	rows, _, _ := readMarkets(parse(t, "testdata", "markets.json"), ignore)
	m, undecided := rows[2].market, rows[2].undecided
	got, err := readClobResult(parse(t, "testdata", "clob_market.json"), "0xAA03", ignore)
	if err != nil {
		t.Fatal(err)
	}
	got.apply(m, undecided)
	equal(t, []string{showMarket(m)}, "0xaa03 no-result RESOLVED/ Up=1005@1/false Down=1006@0/true resolution=Down,-,CLOB")
	if _, err := readClobResult(parse(t, "testdata", "clob_market.json"), "0xaa04", ignore); err == nil {
		t.Error("the result of another market was read")
	}
}

// TestEventOfGamma reads an augmented event. Its placeholder Person A is not active, like the reserved outcomes of the events that
// Polymarket documents. Names of real outcomes may have the form of a placeholder, such as Plan B.
func TestEventOfGamma(t *testing.T) {
	events, err := readEvents(parse(t, "testdata", "event.json"))
	if err != nil || len(events) != 1 {
		t.Fatalf("readEvents returns %d events and the error %v, want one event", len(events), err)
	}
	e, err := readEvent(events[0], ignore)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{fmt.Sprint(e.event.EventID, " ", e.event.Slug, " ", e.event.Title, " exclusive=", flag(e.event.Exclusive))}
	for _, row := range e.rows {
		if row.market == nil {
			got = append(got, "bad")
			continue
		}
		m := row.market
		got = append(got, fmt.Sprint(m.MarketID, " ", m.GroupItemTitle, " ", m.EventID, " ", m.Category, " ", m.Tags, " ", instant(m.EndsAt)))
	}
	equal(t, got,
		"77 mayor-of-springfield Mayor of Springfield exclusive=true",
		"0xbb01 Quimby 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"0xbb02 Terwilliger 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"0xbb05 Malcolm X 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"0xbb07 Plan B 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"0xbb08 Vitamin D 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"0xbb09 Hepatitis C 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"0xbb10 Candidate Smith 77 Politics [Politics] 2030-11-05T00:00:00Z",
		"bad",
	)
}

// showPrices returns a line for each token. The line contains the price, or why the price is missing.
func showPrices(got rest.Values[market.Price], tokens []string) (lines []string) {
	for _, id := range tokens {
		switch r, ok := got[id]; {
		case !ok:
			lines = append(lines, id+" absent")
		case r.Err != nil:
			lines = append(lines, id+" "+r.Err.Error())
		default:
			lines = append(lines, fmt.Sprint(r.Value.TokenID, " ", r.Value.Price, " ", r.Value.Basis))
		}
	}
	return lines
}

func TestMidpoints(t *testing.T) {
	asked := []string{"1001", "1002", "1003", "1004", "1005", "1006"}
	got, err := readMidpoints(parse(t, "testdata", "midpoints.json"), asked, ignore)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, showPrices(got, asked),
		"1001 0.3055 MIDPOINT", "1002 0.6945 MIDPOINT", "1003 price is not from 0 to 1", "1004 price is not a number", "1005 absent", "1006 absent")
	if _, err := readMidpoints(parse(t, "testdata", "midpoints.json"), []string{"5"}, ignore); err == nil {
		t.Error("readMidpoints accepts a response without the requested token")
	}
}

func TestATokenThatNeverTradedHasNoPrice(t *testing.T) {
	asked := []string{"1005", "1006", "1007", "1008"}
	got, err := readLastTrades(parse(t, "testdata", "last_trades.json"), asked, ignore)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, showPrices(got, asked), "1005 absent", "1006 0.42 LAST", "1007 price is not from 0 to 1", "1008 absent")
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
	books, err := readBooks(parse(t, "testdata", "books.json"), asked, ignore)
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

func TestABookWithoutATokenFailsTheMissingTokens(t *testing.T) {
	v, _ := wire.Parse([]byte(`[{"bids":[],"asks":[]},{"asset_id":"1","bids":[],"asks":[]}]`))
	got, err := readBooks(v, []string{"1", "2"}, ignore)
	if err != nil || got["1"].Value == nil || got["1"].Err != nil || got["2"].Err == nil {
		t.Errorf("readBooks returns %v and the error %v, want a book of token 1 and an error of token 2", got, err)
	}
}

func TestPriceHistory(t *testing.T) {
	history := fieldHistory.Of(parse(t, "testdata", "histories.json"))
	p := readPoints(history.Member("1001").Elements(), ignore)
	day, _ := market.ParseDate("2030-03-17")
	var got []string
	for _, point := range p.between(day, day+1) {
		got = append(got, instant(point.Timestamp)+" "+point.Price.String())
	}
	equal(t, got, "2030-03-17T17:46:40Z 0.3", "2030-03-17T17:51:40Z 0.303", "2030-03-18T00:00:00Z 0.31", "2030-03-18T17:46:40Z 0.9")
	if len(p.bad) != 1 || p.bad[0].Where != "row 6" {
		t.Errorf("the bad points are %v, want only row 6", p.bad)
	}
}

// rowsOf reads a page of the Data API. It returns the rows as text, and the cursor of the next page.
func rowsOf[T any](t *testing.T, v wire.Value, read func(*wire.Row) T, show func(T) string) (got []string, next string) {
	t.Helper()
	p, err := readPage(v)
	if err != nil {
		t.Fatal(err)
	}
	return showRows(p.rows, read, show), p.next
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

func TestPositionsPage(t *testing.T) {
	got, next := rowsOf(t, parse(t, "testdata", "positions.json"), readPosition, showPosition)
	equal(t, got, `0xaa01 1001 "Yes" 12.5 avg 0.25 now 0.305 pnl 0.6875`, `0xaa02 1004 "" 0.01 avg - now - pnl -`)
	if next != "cDI=" {
		t.Errorf("the cursor of the next page is %q, want cDI=", next)
	}
}

func TestTradesPage(t *testing.T) {
	got, next := rowsOf(t, parse(t, "testdata", "trades.json"), (*wire.Row).UserTrade, showTrade)
	trade := `0xaa01 1001 BUY 0.62*78.55 "Yes" at 2030-03-17T17:46:54Z in 0xt1`
	equal(t, got, trade, trade, "bad: size is not a number")
	if next != "" {
		t.Errorf("the cursor of the next page is %q, want none", next)
	}
}

func TestActivityPage(t *testing.T) {
	got, _ := rowsOf(t, parse(t, "testdata", "activity.json"), readRecord, showRecord)
	equal(t, got,
		`TRADE/TRADE 2030-03-17T17:48:20Z amount 13.285715 0xaa01 1001 "Yes" BUY 0.93*14.285715`,
		`SPLIT/SPLIT 2030-03-17T17:48:10Z amount 3 0xaa01  ""  -*3`,
		`REDEEM/REDEEM 2030-03-17T17:48:00Z amount 8 0xaa02  ""  -*8`,
		`REWARD/MAKER_REBATE 2030-03-17T17:47:50Z amount 0.5   ""  -*-`,
		`TRANSFER/TIP 2030-03-17T17:47:40Z amount -2.5   ""  -*-`,
		`CONVERSION/CONVERSION 2030-03-17T17:47:30Z amount 0 0xbb01  ""  -*4`,
		`DEPOSIT/DEPOSIT 2030-03-17T17:47:20Z amount 1000   ""  -*-`,
	)
}

func TestAPageWithoutItsCursorIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"data":[],"pagination":{"has_more":true,"next_cursor":null}}`, `{"data":[],"pagination":{"next_cursor":7}}`, `{"data":{}}`, `[]`, `{}`,
	} {
		v, _ := wire.Parse([]byte(text))
		if p, err := readPage(v); err == nil {
			t.Errorf("readPage accepts %s and returns %+v", text, p)
		}
	}
}

func TestValue(t *testing.T) {
	v, _ := wire.Parse([]byte(`{"proxy_wallet":"0xABC","value":684953.8942}`))
	b, err := readValue(v, "0xabc", ignore)
	if err != nil || number(b.PositionsValue) != "684953.8942" || b.CashBalance != nil || b.TotalValue != nil || b.PortfolioValue != nil {
		t.Errorf("readValue returns %+v and the error %v, want only the value of the positions", b, err)
	}
	if _, err := readValue(v, "0xabd", ignore); err == nil {
		t.Error("the value of another account was read")
	}
}
