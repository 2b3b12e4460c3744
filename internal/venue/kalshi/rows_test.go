package kalshi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

// The rows of this file have the members of Kalshi's OpenAPI description (schemas Market, EventData and Series). The repository
// TexasCoding/kalshi-python-sdk has copies of this description, as specs/openapi.yaml. The values are invented.

// changed returns the JSON of a row with other members. A member whose new value is absent is removed.
func changed(t *testing.T, row string, change map[string]any) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(row), &members); err != nil {
		t.Fatal(err)
	}
	maps.Copy(members, change)
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == absent })
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const absent = "\x00absent"

const marketJSON = `{"ticker":"KXRAIN-26NOV30-T2.5","event_ticker":"KXRAIN-26NOV30","market_type":"binary","title":"Will it rain?","subtitle":"old",
	"yes_sub_title":"Above 2.5 cm","no_sub_title":"At most 2.5 cm","created_time":"2026-11-20T09:00:00Z","updated_time":"2026-11-21T10:15:00.25Z",
	"open_time":"2026-11-20T12:00:00Z","close_time":"2026-11-30T23:59:00Z","latest_expiration_time":"2026-12-07T00:00:00Z","settlement_timer_seconds":3600,
	"status":"active","yes_bid_dollars":"0.4300","yes_bid_size_fp":"120.00","yes_ask_dollars":"0.4650","yes_ask_size_fp":"75.50","no_bid_dollars":"0.5350",
	"no_ask_dollars":"0.5700","last_price_dollars":"0.4400","previous_yes_bid_dollars":"0.1000","previous_yes_ask_dollars":"0.2000",
	"previous_price_dollars":"0.1500","volume_fp":"1834.50","volume_24h_fp":"210.00","open_interest_fp":"944.00","liquidity_dollars":"0.0000",
	"notional_value_dollars":"1.0000","result":"","can_close_early":true,"expiration_value":"","rules_primary":"If the gauge reads more.",
	"rules_secondary":"Revisions are ignored.","price_level_structure":"deci_cent","price_ranges":[{"start":"0.0000","end":"1.0000","step":"0.0010"}]}`

// describeMarket returns all fields of a market as text.
func describeMarket(m *market.Market) string {
	out := fmt.Sprintf("%s %s %q %q %q\n", m.MarketID, m.Slug, m.Question, m.GroupItemTitle, m.Description)
	out += fmt.Sprintf("%s %s accepting %s\n", m.Status, m.StatusRaw, tool.Text(m.AcceptingOrders))
	out += fmt.Sprintf("times %s %s %s\n", tool.Text(m.StartsAt), tool.Text(m.EndsAt), tool.Text(m.UpdatedAt))
	out += fmt.Sprintf("figures %s %s %s tick %s order %s\n", tool.Text(m.Volume), tool.Text(m.Volume24h), tool.Text(m.Liquidity), tool.Text(m.TickSize), tool.Text(m.MinOrderSize))
	out += fmt.Sprintf("event %s %s %q %q %q image %q summary %t\n", m.EventID, m.EventSlug, m.EventTitle, m.Category, m.Tags, m.Image, m.Summary)
	for _, o := range m.Outcomes {
		out += fmt.Sprintf("outcome %s %s price %s winner %s\n", o.TokenID, o.Label, tool.Text(o.Price), tool.Text(o.Winner))
	}
	if r := m.Resolution; r != nil {
		out += fmt.Sprintf("resolution %q at %s by %q\n", r.Outcome, tool.Text(r.ResolvedAt), r.Source)
	}
	return out
}

// TestMarketRow checks every field of a market. Kalshi's volumes are numbers of contracts, so the driver does not use them.
func TestMarketRow(t *testing.T) {
	var notes []string
	r := parseRow(t, marketJSON, &notes)
	m := readMarket(r, nil)
	want := `KXRAIN-26NOV30-T2.5 kxrain-26nov30-t2.5 "Will it rain?" "Above 2.5 cm" "If the gauge reads more.\n\nRevisions are ignored."
OPEN active accepting true
times 2026-11-20T12:00:00Z 2026-11-30T23:59:00Z 2026-11-21T10:15:00.25Z
figures - - - tick 0.0010 order 0.01
event KXRAIN-26NOV30 kxrain-26nov30 "" "" [] image "" summary false
outcome KXRAIN-26NOV30-T2.5:yes Yes price 0.4475 winner -
outcome KXRAIN-26NOV30-T2.5:no No price 0.5525 winner -
`
	if got := describeMarket(m); got != want || r.Err != nil || len(notes) > 0 {
		t.Errorf("the market is\n%s, the error is %v and the drift %q; want\n%s", got, r.Err, notes, want)
	}
}

// TestMarketBranches checks the market for a changed member. prefix selects the line of describeMarket that the member affects. If
// it is empty, this is the line with the status.
func TestMarketBranches(t *testing.T) {
	settled := func(status, result string, value any) map[string]any {
		return map[string]any{"status": status, "result": result, "settlement_value_dollars": value, "settlement_ts": "2026-12-01T01:00:00Z"}
	}
	const yesWon = "price 1.0000 winner true; price 0.0000 winner false; resolution \"Yes\" at 2026-12-01T01:00:00Z by \"\""
	for _, test := range []struct {
		change map[string]any
		prefix string
		want   string
		notes  string
	}{
		{map[string]any{"status": "initialized"}, "", "UPCOMING initialized accepting false", ""},
		{map[string]any{"status": "active"}, "", "OPEN active accepting true", ""},
		{map[string]any{"status": "inactive"}, "", "OPEN inactive accepting false", ""},
		{map[string]any{"status": "closed"}, "", "CLOSED closed accepting false", ""},
		{map[string]any{"status": "disputed"}, "", "DISPUTED disputed accepting false", ""},
		{map[string]any{"status": "determined"}, "", "RESOLVED determined accepting false", ""},
		{map[string]any{"status": "amended"}, "", "RESOLVED amended accepting false", ""},
		{map[string]any{"status": "finalized"}, "", "RESOLVED finalized accepting false", ""},
		{map[string]any{"status": "suspended"}, "", "UNKNOWN suspended accepting false", ""},
		{map[string]any{"status": absent}, "", "error status is missing", ""},
		{map[string]any{"ticker": absent}, "", "error ticker is missing", ""},
		{map[string]any{"ticker": "kx rain"}, "", "error ticker is not a ticker", ""},

		{map[string]any{"title": absent}, "KX", `KXRAIN-26NOV30-T2.5 kxrain-26nov30-t2.5 "Above 2.5 cm" "Above 2.5 cm" "If the gauge reads more.\n\nRevisions are ignored."`, ""},
		{map[string]any{"title": absent, "yes_sub_title": absent}, "KX", `KXRAIN-26NOV30-T2.5 kxrain-26nov30-t2.5 "" "" "If the gauge reads more.\n\nRevisions are ignored."`, ""},
		{map[string]any{"rules_secondary": ""}, "KX", `KXRAIN-26NOV30-T2.5 kxrain-26nov30-t2.5 "Will it rain?" "Above 2.5 cm" "If the gauge reads more."`, ""},
		{map[string]any{"rules_primary": absent}, "KX", `KXRAIN-26NOV30-T2.5 kxrain-26nov30-t2.5 "Will it rain?" "Above 2.5 cm" "Revisions are ignored."`, ""},
		{map[string]any{"title": 7}, "KX", `KXRAIN-26NOV30-T2.5 kxrain-26nov30-t2.5 "Above 2.5 cm" "Above 2.5 cm" "If the gauge reads more.\n\nRevisions are ignored."`, "title unreadable"},

		{map[string]any{"open_time": absent}, "times", "times - 2026-11-30T23:59:00Z 2026-11-21T10:15:00.25Z", ""},
		{map[string]any{"close_time": "soon"}, "times", "times 2026-11-20T12:00:00Z - 2026-11-21T10:15:00.25Z", "close_time unreadable"},
		{map[string]any{"updated_time": nil}, "times", "times 2026-11-20T12:00:00Z 2026-11-30T23:59:00Z -", ""},

		{map[string]any{"price_ranges": []any{}}, "figures", "figures - - - tick - order 0.01", ""},
		{map[string]any{"price_ranges": nil}, "figures", "figures - - - tick - order 0.01", ""},
		{map[string]any{"price_ranges": "deci_cent"}, "figures", "figures - - - tick - order 0.01", "price_ranges unreadable"},
		{map[string]any{"price_ranges": []any{map[string]any{"step": "0.0100"}, map[string]any{"step": "0.0100"}}}, "figures", "figures - - - tick 0.0100 order 0.01", ""},
		{map[string]any{"price_ranges": []any{map[string]any{"step": "0.0010"}, map[string]any{"step": "0.0100"}}}, "figures", "figures - - - tick - order 0.01", ""},
		{map[string]any{"price_ranges": []any{map[string]any{"step": "small"}}}, "figures", "figures - - - tick - order 0.01", ""},

		{map[string]any{"event_ticker": absent}, "event", `event   "" "" [] image "" summary false`, ""},

		{settled("finalized", "yes", "1.0000"), "outcome", yesWon, ""},
		{settled("determined", "yes", "1.0000"), "outcome", yesWon, ""},
		{settled("amended", "no", "0.0000"), "outcome", "price 0.0000 winner false; price 1.0000 winner true; resolution \"No\" at 2026-12-01T01:00:00Z by \"\"", ""},
		{settled("finalized", "scalar", "0.3700"), "outcome", "price 0.3700 winner -; price 0.6300 winner -; resolution \"\" at 2026-12-01T01:00:00Z by \"\"", ""},
		{settled("finalized", "", nil), "outcome", "price 0.4475 winner -; price 0.5525 winner -; resolution \"\" at 2026-12-01T01:00:00Z by \"\"", ""},
		{settled("disputed", "yes", "1.0000"), "outcome", "price 0.4475 winner -; price 0.5525 winner -", ""},
		{settled("finalized", "yes", "1.5000"), "", "error settlement_value_dollars is not from 0 to 1", ""},
		{map[string]any{"status": "finalized", "result": "yes", "settlement_value_dollars": "1.0000"}, "resolution", `resolution "Yes" at - by ""`, ""},
		{map[string]any{"last_price_dollars": "44"}, "", "error last_price_dollars is not from 0 to 1", ""},
	} {
		var notes []string
		r := parseRow(t, changed(t, marketJSON, test.change), &notes)
		m := readMarket(r, nil)
		got := ""
		switch {
		case r.Err != nil:
			got = "error " + r.Err.Error()
		case test.prefix == "outcome":
			got = describeOutcomes(m)
		case test.prefix == "":
			got = strings.Split(describeMarket(m), "\n")[1]
		default:
			for line := range strings.Lines(describeMarket(m)) {
				if strings.HasPrefix(line, test.prefix) {
					got = strings.TrimSpace(line)
				}
			}
		}
		if got != test.want || strings.Join(notes, ", ") != test.notes {
			t.Errorf("with %v, the market has %q and the drift %q, want %q and %q", test.change, got, notes, test.want, test.notes)
		}
	}
}

// describeOutcomes returns the prices and winners of the outcomes and the resolution as text.
func describeOutcomes(m *market.Market) string {
	var parts []string
	for _, o := range m.Outcomes {
		parts = append(parts, "price "+tool.Text(o.Price)+" winner "+tool.Text(o.Winner))
	}
	if r := m.Resolution; r != nil {
		parts = append(parts, fmt.Sprintf("resolution %q at %s by %q", r.Outcome, tool.Text(r.ResolvedAt), r.Source))
	}
	return strings.Join(parts, "; ")
}

// TestQuotes checks the price and the best prices of both outcomes. If a side of the book is empty, Kalshi sends a bid of 0 or an
// ask of 0 or 1. If a market never traded, Kalshi sends a last price of 0.
func TestQuotes(t *testing.T) {
	for _, test := range []struct{ row, yes, no, notes string }{
		{`"yes_bid_dollars":"0.4300","yes_ask_dollars":"0.4650","last_price_dollars":"0.4400"`, "0.4475 MIDPOINT of 0.4300 0.4650 0.035", "0.5525 MIDPOINT of 0.5350 0.5700 0.035", ""},
		{`"yes_bid_dollars":"0.4300","yes_ask_dollars":"0.4300"`, "0.43 MIDPOINT of 0.4300 0.4300 0", "0.57 MIDPOINT of 0.5700 0.5700 0", ""},
		{`"yes_bid_dollars":"0.0000","yes_ask_dollars":"0.0900","last_price_dollars":"0.0800"`, "0.0800 LAST of - 0.0900 -", "0.9200 LAST of 0.9100 - -", ""},
		{`"yes_bid_dollars":"0.9000","yes_ask_dollars":"1.0000","last_price_dollars":"0.9100"`, "0.9100 LAST of 0.9000 - -", "0.0900 LAST of - 0.1000 -", ""},
		{`"yes_bid_dollars":"0.0000","yes_ask_dollars":"0.0900","last_price_dollars":"0.0000"`, "0.0900 BEST_ASK of - 0.0900 -", "0.9100 BEST_BID of 0.9100 - -", ""},
		{`"yes_bid_dollars":"0.9000","yes_ask_dollars":"0.0000"`, "0.9000 BEST_BID of 0.9000 - -", "0.1000 BEST_ASK of - 0.1000 -", ""},
		{`"yes_bid_dollars":"0.0000","yes_ask_dollars":"1.0000","last_price_dollars":"0.0000"`, "none of - - -", "none of - - -", ""},
		{`"yes_bid_dollars":"0.0000","yes_ask_dollars":"1.0000","last_price_dollars":"0.0300"`, "0.0300 LAST of - - -", "0.9700 LAST of - - -", ""},
		{`"yes_bid_dollars":"0.5000","yes_ask_dollars":"0.4000","last_price_dollars":"0.4500"`, "0.4500 LAST of - - -", "0.5500 LAST of - - -", "crossed quote"},
		{`"status":"finalized","settlement_value_dollars":"0.3700","last_price_dollars":"0.4500"`, "0.3700 SETTLEMENT of - - -", "0.6300 SETTLEMENT of - - -", ""},
		{`"status":"determined","settlement_value_dollars":"1.0000","yes_bid_dollars":"0.9800","yes_ask_dollars":"0.9900"`, "1.0000 SETTLEMENT of 0.9800 0.9900 0.01", "0.0000 SETTLEMENT of 0.0100 0.0200 0.01", ""},
		{`"status":"active","settlement_value_dollars":"1.0000","last_price_dollars":"0.4500"`, "0.4500 LAST of - - -", "0.5500 LAST of - - -", ""},
		{`"price_dollars":"0.0800","yes_bid_dollars":"0.0000","yes_ask_dollars":"1.0000"`, "0.0800 LAST of - - -", "0.9200 LAST of - - -", ""}, // a frame
		{`"yes_ask_dollars":"1.0100"`, "error yes_ask_dollars is not from 0 to 1", "error yes_ask_dollars is not from 0 to 1", ""},
		{`"last_price_dollars":"-0.1"`, "error last_price_dollars is not from 0 to 1", "error last_price_dollars is not from 0 to 1", ""},
	} {
		var notes []string
		r := parseRow(t, `{`+test.row+`}`, &notes)
		q := readQuote(r)
		var got [2]string
		for _, s := range sides {
			if r.Err != nil {
				got[s] = "error " + r.Err.Error()
				continue
			}
			price, spread := "none", q.spread("T", s)
			if p := q.price("T", s); p != nil {
				if price = p.Price.String() + " " + string(p.Basis); p.TokenID != s.token("T") || !p.Timestamp.IsZero() {
					t.Errorf("with %s, the price is of the token %s at %s, want %s without a time", test.row, p.TokenID, p.Timestamp, s.token("T"))
				}
			}
			got[s] = fmt.Sprintf("%s of %s %s %s", price, tool.Text(spread.BestBid), tool.Text(spread.BestAsk), tool.Text(spread.Spread))
			if spread.TokenID != s.token("T") || spread.FromBook {
				t.Errorf("with %s, the best prices are %+v, want the token %s", test.row, spread, s.token("T"))
			}
		}
		if got != [2]string{test.yes, test.no} || strings.Join(notes, ", ") != test.notes {
			t.Errorf("with %s, the prices are %q and the drift is %q, want %q, %q and %q", test.row, got, notes, test.yes, test.no, test.notes)
		}
	}
}

// TestBooks checks the books of both outcomes. Kalshi sends bids only, worst first. A bid for NO at p is an ask for YES at 1 − p.
func TestBooks(t *testing.T) {
	for _, test := range []struct{ row, yes, no, notes string }{
		{
			`{"yes_dollars":[["0.4100","40.00"],["0.4290","0.25"],["0.4300","120.00"]],"no_dollars":[["0.5100","9.00"],["0.5200","300.00"],["0.5350","75.50"]]}`,
			"0.43×120 0.429×0.25 | 0.465×75.5 0.48×300 | 0.035", "0.535×75.5 0.52×300 | 0.57×120 0.571×0.25 | 0.035", "",
		},
		{`{"yes_dollars":[["0.4300","1.00"],["0.4100","2.00"]],"no_dollars":null}`, "0.43×1 0.41×2 |  | -", " | 0.57×1 0.59×2 | -", ""},
		{`{"no_dollars":[["0.9100","8.00"]]}`, " | 0.09×8 | -", "0.91×8 |  | -", ""},
		{`{"yes_dollars":[],"no_dollars":[]}`, " |  | -", " |  | -", ""},
		{`{"yes_dollars":[["0.4300","0.00"],["0.4100","2.00"],["0.4100","1.50"]],"no_dollars":[]}`, "0.41×3.5 |  | -", " | 0.59×3.5 | -", "repeated level"},
		{`{"yes_dollars":[["0.6000","1.00"]],"no_dollars":[["0.5000","1.00"]]}`, "0.6×1 | 0.5×1 | -", "0.5×1 | 0.4×1 | -", ""}, // crossed
		{`{"yes_dollars":[["0.5000","1.00"]],"no_dollars":[["0.5000","1.00"]]}`, "0.5×1 | 0.5×1 | 0", "0.5×1 | 0.5×1 | 0", ""},
		{`{"yes_dollars_fp":[["0.4300","1.00"]],"no_dollars_fp":[["0.5000","2.00"]]}`, "0.43×1 | 0.5×2 | 0.07", "0.5×2 | 0.57×1 | 0.07", ""},
		{`{"yes_dollars":{}}`, "error yes_dollars is not a list", "error yes_dollars is not a list", ""},
		{`{"no_dollars":[["0.4300"]]}`, "error no_dollars has a bad level", "error no_dollars has a bad level", ""},
		{`{"yes_dollars":[["1.4300","1.00"]]}`, "error yes_dollars has a bad level", "error yes_dollars has a bad level", ""},
		{`{"yes_dollars":[["0.4300","-1.00"]]}`, "error yes_dollars has a bad level", "error yes_dollars has a bad level", ""},
		{`{"yes_dollars":[["0.4300","many"]]}`, "error yes_dollars has a bad level", "error yes_dollars has a bad level", ""},
	} {
		var notes []string
		r := parseRow(t, test.row, &notes)
		b := readBids(r, false)
		for _, s := range sides {
			want := [2]string{test.yes, test.no}[s]
			if r.Err != nil {
				if got := "error " + r.Err.Error(); !strings.HasPrefix(want, "error") || !strings.HasPrefix(got, want) {
					t.Errorf("the book %s has the error %q, want %q", test.row, got, want)
				}
				continue
			}
			book := b.book("T", s, 2)
			got := levelText(book.Bids.Levels()) + " | " + levelText(book.Asks.Levels()) + " | " + tool.Text(book.Spread)
			if got != want || book.TokenID != s.token("T") || book.Depth != 2 || !book.Timestamp.IsZero() || book.Seq != 0 {
				t.Errorf("the book of %s for %s is %q of %+v, want %q", s.token("T"), test.row, got, book, want)
			}
		}
		if strings.Join(notes, ", ") != test.notes {
			t.Errorf("the book %s has the drift %q, want %q", test.row, notes, test.notes)
		}
	}
}

func levelText(levels []market.Level) string {
	var out []string
	for _, l := range levels {
		out = append(out, l.Price.Reduce().String()+"×"+l.Size.Reduce().String())
	}
	return strings.Join(out, " ")
}

// levelsOf returns both sides of a book as text.
func levelsOf(b *market.Book) string {
	var out strings.Builder
	for _, side := range [][]market.Level{b.Bids.Levels(), b.Asks.Levels()} {
		for _, l := range side {
			fmt.Fprintf(&out, "%s×%s ", l.Price.Reduce(), l.Size.Reduce())
		}
		out.WriteString("| ")
	}
	return out.String()
}

const (
	eventJSON = `{"event_ticker":"KXRAIN-26NOV30","series_ticker":"KXRAIN","sub_title":"On 30 November","title":"Rain in Lisbon","collateral_return_type":"binary",
		"mutually_exclusive":true,"category":"Weather","strike_date":"2026-11-30T23:59:00Z","available_on_brokers":true,"product_metadata":null}`
	seriesJSON = `{"ticker":"KXRAIN","frequency":"daily","title":"Rain","category":"Climate and Weather","tags":["Rain","Daily"],
		"settlement_sources":[{"name":"Instituto do Mar","url":"https://weather.example/"},{"url":"https://nameless.example/"},{"name":"City gauge","url":""}],
		"contract_url":"","contract_terms_url":"","fee_type":"quadratic","fee_multiplier":1,"additional_prohibitions":[]}`
)

// TestEventRow checks every field of an event and its series, for changed members. An event whose title contains the subtitle has
// only the title.
func TestEventRow(t *testing.T) {
	for _, test := range []struct {
		event, series map[string]any
		want          string
	}{
		{nil, nil, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon On 30 November" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true`},
		{map[string]any{"sub_title": "in Lisbon"}, nil, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true`},
		{map[string]any{"sub_title": ""}, nil, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true`},
		{map[string]any{"title": absent}, nil, `KXRAIN-26NOV30 KXRAIN "On 30 November" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true`},
		{map[string]any{"mutually_exclusive": false}, nil, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon On 30 November" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive false`},
		{map[string]any{"mutually_exclusive": absent, "series_ticker": absent}, nil, `KXRAIN-26NOV30  "Rain in Lisbon On 30 November" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive -`},
		{nil, map[string]any{"category": ""}, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon On 30 November" "Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true`},
		{map[string]any{"category": absent}, map[string]any{"category": absent}, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon On 30 November" "" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true`},
		{nil, map[string]any{"tags": nil, "settlement_sources": nil}, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon On 30 November" "Climate and Weather" [] "" exclusive true`},
		{nil, map[string]any{"tags": []any{"Rain", "", 7, "Daily"}}, `KXRAIN-26NOV30 KXRAIN "Rain in Lisbon On 30 November" "Climate and Weather" ["Rain" "Daily"] "Instituto do Mar, City gauge" exclusive true, drift ["tags unreadable" "tags unreadable"]`},
		{map[string]any{"event_ticker": absent}, nil, "error event_ticker is missing"},
	} {
		var notes []string
		r := parseRow(t, changed(t, eventJSON, test.event), &notes)
		e := readEvent(r)
		e.readSeries(parseRow(t, changed(t, seriesJSON, test.series), &notes))
		got := fmt.Sprintf("%s %s %q %q %q %q exclusive %s", e.EventID, e.series, e.Title, e.Category, e.tags, e.source, tool.Text(e.Exclusive))
		if r.Err != nil {
			got = "error " + r.Err.Error()
		}
		if len(notes) > 0 {
			got += fmt.Sprintf(", drift %q", notes)
		}
		if got != test.want {
			t.Errorf("with %v and %v, the event is\n%s, want\n%s", test.event, test.series, got, test.want)
		}
	}
}

// TestMarketsOfEvent checks the fields that the markets get from their event, and the fields that the event gets from its markets.
func TestMarketsOfEvent(t *testing.T) {
	var notes []string
	e := readEvent(parseRow(t, eventJSON, &notes))
	e.readSeries(parseRow(t, seriesJSON, &notes))
	var markets []*market.Market
	for _, change := range []map[string]any{
		{}, {"ticker": "KXRAIN-26NOV30-T5", "title": absent, "open_time": "2026-11-19T12:00:00Z", "status": "finalized", "result": "yes", "settlement_value_dollars": "1.0000"},
		{"ticker": "KXRAIN-26NOV30-T9", "close_time": "2026-12-01T23:59:00Z", "status": "closed"},
	} {
		markets = append(markets, readMarket(parseRow(t, changed(t, marketJSON, change), &notes), e))
	}
	ev := e.with(markets, market.LeftOut{errors.New("an unreadable market")})
	want := `KXRAIN-26NOV30 kxrain-26nov30 "Rain in Lisbon On 30 November" "Climate and Weather" exclusive true OPEN 2026-11-19T12:00:00Z 2026-12-01T23:59:00Z volumes - - left out 1`
	if got := fmt.Sprintf("%s %s %q %q exclusive %s %s %s %s volumes %s %s left out %d", ev.EventID, ev.Slug, ev.Title, ev.Category, tool.Text(ev.Exclusive), ev.Status(),
		tool.Text(ev.StartsAt), tool.Text(ev.EndsAt), tool.Text(ev.Volume), tool.Text(ev.Volume24h), len(ev.LeftOut)); got != want || len(notes) > 0 {
		t.Errorf("the event is\n%s and the drift %q, want\n%s", got, notes, want)
	}
	for i, question := range []string{"Will it rain?", "Rain in Lisbon On 30 November", "Will it rain?"} {
		m := ev.Markets[i]
		if m.Question != question || m.EventID != "KXRAIN-26NOV30" || m.EventSlug != "kxrain-26nov30" || m.EventTitle != "Rain in Lisbon On 30 November" ||
			m.Category != "Climate and Weather" || !slices.Equal(m.Tags, []string{"Rain", "Daily"}) {
			t.Errorf("market %d of the event is\n%s", i, describeMarket(m))
		}
	}
	if r := ev.Markets[1].Resolution; r == nil || r.Source != "Instituto do Mar, City gauge" || ev.Markets[0].Resolution != nil {
		t.Errorf("the resolutions are %+v and %+v, want the source of the series and none", r, ev.Markets[0].Resolution)
	}
}

const tradeJSON = `{"trade_id":"c0a3","ticker":"KXRAIN-1","count_fp":"57.51","yes_price_dollars":"0.9980","no_price_dollars":"0.0020",
	"taker_outcome_side":"yes","taker_book_side":"bid","taker_side":"yes","created_time":"2026-08-05T14:01:09.49656Z","is_block_trade":false}`

// describeTrade returns the fields of a trade that Kalshi has as text.
func describeTrade(x market.Trade) string {
	return fmt.Sprintf("%s.%d %s %s %s %s %s %s@%s %s", x.TradeID, x.Ordinal, x.MarketID, x.TokenID, x.Outcome, x.Side, x.SideRaw, x.Size, x.Price, tool.Text(x.Timestamp))
}

// TestTradeRow checks every field of the two trades of a row, for changed members. taker_side is the older name of
// taker_outcome_side. Frames of the stream have market_ticker and ts_ms instead of ticker and created_time.
func TestTradeRow(t *testing.T) {
	const at = "2026-08-05T14:01:09.49656Z"
	for _, test := range []struct {
		change  map[string]any
		yes, no string
	}{
		{nil, "c0a3.0 KXRAIN-1 KXRAIN-1:yes Yes BUY yes 57.51@0.9980 " + at, "c0a3.1 KXRAIN-1 KXRAIN-1:no No SELL yes 57.51@0.0020 " + at},
		{
			map[string]any{"taker_outcome_side": "no"},
			"c0a3.1 KXRAIN-1 KXRAIN-1:yes Yes SELL no 57.51@0.9980 " + at, "c0a3.0 KXRAIN-1 KXRAIN-1:no No BUY no 57.51@0.0020 " + at,
		},
		{
			map[string]any{"taker_outcome_side": absent, "taker_side": "no"},
			"c0a3.1 KXRAIN-1 KXRAIN-1:yes Yes SELL no 57.51@0.9980 " + at, "c0a3.0 KXRAIN-1 KXRAIN-1:no No BUY no 57.51@0.0020 " + at,
		},
		{
			map[string]any{"taker_outcome_side": "maybe"},
			"c0a3.0 KXRAIN-1 KXRAIN-1:yes Yes UNKNOWN maybe 57.51@0.9980 " + at, "c0a3.1 KXRAIN-1 KXRAIN-1:no No UNKNOWN maybe 57.51@0.0020 " + at,
		},
		{
			map[string]any{"ticker": absent, "market_ticker": "KXRAIN-2", "created_time": absent, "ts_ms": 1785938469496, "ts": 1785938469},
			"c0a3.0 KXRAIN-2 KXRAIN-2:yes Yes BUY yes 57.51@0.9980 2026-08-05T14:01:09.496Z", "c0a3.1 KXRAIN-2 KXRAIN-2:no No SELL yes 57.51@0.0020 2026-08-05T14:01:09.496Z",
		},
		{
			map[string]any{"count_fp": absent, "count": 12, "created_time": absent, "ts": 1785938469},
			"c0a3.0 KXRAIN-1 KXRAIN-1:yes Yes BUY yes 12@0.9980 2026-08-05T14:01:09Z", "c0a3.1 KXRAIN-1 KXRAIN-1:no No SELL yes 12@0.0020 2026-08-05T14:01:09Z",
		},
		{map[string]any{"trade_id": absent}, "error trade_id is missing", ""},
		{map[string]any{"ticker": absent}, "error market_ticker is missing", ""},
		{map[string]any{"count_fp": "-1.00"}, "error count_fp is negative", ""},
		{map[string]any{"count_fp": absent}, "error count_fp is missing", ""},
		{map[string]any{"yes_price_dollars": "1.2"}, "error yes_price_dollars is not from 0 to 1", ""},
		{map[string]any{"yes_price_dollars": absent}, "error yes_price_dollars is missing", ""},
		{map[string]any{"taker_outcome_side": absent, "taker_side": absent}, "error taker_outcome_side is missing", ""},
		{map[string]any{"created_time": "today"}, "error ts_ms is not a time", ""},
	} {
		var notes []string
		r := parseRow(t, changed(t, tradeJSON, test.change), &notes)
		both := readTrade(r)
		got := [2]string{describeTrade(both[yes]), describeTrade(both[no])}
		if r.Err != nil {
			got = [2]string{"error " + r.Err.Error()}
		}
		if got != [2]string{test.yes, test.no} || len(notes) > 0 {
			t.Errorf("with %v, the trades are %q and the drift %q, want %q and %q", test.change, got, notes, test.yes, test.no)
		}
	}
}
