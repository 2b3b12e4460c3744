package polymarket_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// showLookup returns a line for each result: the market and its tokens, or why there is none.
func showLookup(results []upstream.Result[*market.Market], err error) (lines []string) {
	if err != nil {
		lines = append(lines, "error "+string(market.CodeOf(err)))
	}
	for _, r := range results {
		switch {
		case r.Err != nil:
			lines = append(lines, string(market.CodeOf(r.Err)))
		case r.Value == nil:
			lines = append(lines, "absent")
		default:
			line := fmt.Sprint(r.Value.MarketID, " ", r.Value.Status)
			for _, o := range r.Value.Outcomes {
				line += " " + o.TokenID
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// untraded are the members of a Gamma market without an order book.
var untraded = map[string]any{"clobTokenIds": ""}

// TestMarketsOfOutcomesWithoutTokens looks up markets by the ids of outcomes that have no token. Polymarket does not know these ids,
// so the requests must name the markets instead.
func TestMarketsOfOutcomesWithoutTokens(t *testing.T) {
	var filters []string
	rows := []any{gammaMarket(1, false, untraded), gammaMarket(2, false, nil)}
	rows[0].(map[string]any)["id"], rows[1].(map[string]any)["id"] = "501", "502"
	unnamed := gammaMarket(3, false, untraded)
	unnamed["conditionId"], unnamed["id"] = "", "503"
	d, _, _ := open(t, answers{"GET /markets/keyset": func(q url.Values, _ []byte) answer {
		filters = append(filters, q.Get("closed")+" "+fmt.Sprint(q["condition_ids"], q["id"], q["clob_token_ids"]))
		switch {
		case q.Get("closed") == "true":
			return ok(map[string]any{"markets": []any{}})
		case q.Get("id") == "501":
			return ok(map[string]any{"markets": rows[:1]})
		case q.Has("id"):
			return ok(map[string]any{"markets": []any{unnamed}})
		}
		return ok(map[string]any{"markets": rows})
	}})
	check(t, showLookup(d.MarketsByToken(t.Context(), upstream.Call{}, []string{"0xa1:1", "0xa1:0", "0xa2:0", "503:1", "0xa1:2"})), []string{
		"0xa1 OPEN 0xa1:0 0xa1:1", "0xa1 OPEN 0xa1:0 0xa1:1", "absent", "503 OPEN 503:0 503:1", "absent",
	})
	wanted := map[string]bool{"false [0xa1 0xa2] [] []": true, "false [] [503] []": true, "true [0xa2 0xa1] [] []": true}
	for _, f := range filters {
		if !wanted[f] {
			t.Errorf("the driver requests the markets %s", f)
		}
	}
	check(t, len(filters), 3)

	filters = nil
	check(t, showLookup(d.MarketsByID(t.Context(), upstream.Call{}, []string{"503", "0xa1:0", "x", "1234567890123456789"})),
		[]string{"503 OPEN 503:0 503:1", "absent", "absent", "absent"})
	check(t, filters, []string{"false [] [503] []"})
	check(t, showLookup(d.MarketsByID(t.Context(), upstream.Call{}, []string{"501"})), []string{"absent"}) // the id of this market is its condition
}

// TestAClosedMarketWithoutACondition checks that the driver does not request the market from the CLOB API, whose ids of markets are
// conditions.
func TestAClosedMarketWithoutACondition(t *testing.T) {
	m := gammaMarket(3, true, untraded)
	m["conditionId"], m["id"] = "", "503"
	d, s, _ := open(t, answers{"GET /markets/keyset": keyset(nil, []map[string]any{m})})
	check(t, showLookup(d.MarketsByID(t.Context(), upstream.Call{}, []string{"503"})), []string{"503 CLOSED 503:0 503:1"})
	check(t, len(s.calls), 2)
}

// TestFailedLookupsOfSeveralForms checks that one failed call does not fail the ids of another form.
func TestFailedLookupsOfSeveralForms(t *testing.T) {
	all := false
	d, _, c := open(t, answers{"GET /markets/keyset": func(q url.Values, _ []byte) answer {
		if all || q.Has("id") {
			return answer{status: 400, body: `{"error":"bad"}`}
		}
		return ok(map[string]any{"markets": []any{gammaMarket(1, false, nil)}})
	}})
	check(t, showLookup(d.MarketsByID(t.Context(), upstream.Call{}, []string{"503", "0xa1"})), []string{"UPSTREAM_BAD_RESPONSE", "0xa1 OPEN 2 3"})
	all = true
	c.Advance(1e12)
	check(t, showLookup(d.MarketsByID(t.Context(), upstream.Call{}, []string{"503", "0xa1"})), []string{"error UPSTREAM_BAD_RESPONSE", "UPSTREAM_BAD_RESPONSE", "UPSTREAM_BAD_RESPONSE"})
}

// TestReadsOfOutcomesWithoutTokens checks that the driver answers without a call and without an error, because no order book can have
// these ids.
func TestReadsOfOutcomesWithoutTokens(t *testing.T) {
	d, s, _ := open(t, nil)
	ids := []string{"0xa1:0", "503:1"}
	prices, err1 := d.Prices(t.Context(), upstream.Call{}, ids)
	spreads, err2 := d.Spreads(t.Context(), upstream.Call{}, ids)
	books, err3 := d.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: ids[0], Depth: 20}, {TokenID: ids[1], Depth: 20}})
	day, _ := market.ParseDate("2030-03-17")
	histories, err4 := d.PriceHistories(t.Context(), upstream.Call{}, []queries.PriceHistory{{TokenID: ids[0], From: day, To: day}, {TokenID: ids[1], From: day, To: day}})
	for i := range ids {
		if prices[i].Value != nil || prices[i].Err != nil || spreads[i].Value != nil || spreads[i].Err != nil || books[i].Value != nil || books[i].Err != nil ||
			histories[i].Value != nil || histories[i].Err != nil {
			t.Errorf("the reads of %s return %+v, %+v, %+v and %+v, want no value and no error", ids[i], prices[i], spreads[i], books[i], histories[i])
		}
	}
	trades, err5 := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "0xa1", TokenID: ids[0]})
	if trades == nil || len(trades.Trades) != 0 || trades.Next != "" {
		t.Errorf("MarketTrades of %s returns %+v, want an empty page", ids[0], trades)
	}
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Error(err)
		}
	}
	check(t, s.calls, []string{})
}

// The ids of a market of protocol V2; see v2_forms_test.go.
const (
	shortV2 = "0x017089ce3ba22aaa0a4cba8250b8c8e1eb0000000000000000000000000000"
	longV2  = shortV2 + "00"
	yesV2   = "651150819117105875331414918119047680898421632356043490229292782433651916800"
	noV2    = "651150819117105875331414918119047680898421632356043490229292782433651916801"
)

// gammaV2 returns a market of protocol V2 in the form of the Gamma API. Its old tokens 111 and 112 are those of protocol V1.
func gammaV2(closed bool) map[string]any {
	return gammaMarket(0, closed, map[string]any{
		"version": "v2", "conditionId": shortV2, "clobTokenIds": `["111","112"]`, "positionIds": []string{yesV2, noV2}, "slug": "v2",
	})
}

// keysetV2 answers /markets/keyset with gammaV2(closed) if a filter has one of its ids in Gamma's form.
func keysetV2(closed bool) func(q url.Values, _ []byte) answer {
	return func(q url.Values, _ []byte) answer {
		rows := []any{}
		found := slices.Contains(q["condition_ids"], shortV2) || slices.Contains(q["position_ids"], yesV2) || slices.Contains(q["position_ids"], noV2) ||
			slices.Contains(q["clob_token_ids"], "111") || slices.Contains(q["slug"], "v2")
		if found && (q.Get("closed") == "true") == closed {
			rows = append(rows, gammaV2(closed))
		}
		return ok(map[string]any{"markets": rows})
	}
}

// TestLookupsOfProtocolV2 looks up a market of V2 by each of its ids. Gamma finds it only by the condition id with 62 digits and by
// the filter position_ids (Polymarket/ts-sdk, packages/client/src/actions/markets.ts).
func TestLookupsOfProtocolV2(t *testing.T) {
	d, s, _ := open(t, answers{"GET /markets/keyset": keysetV2(false)})
	want := longV2 + " OPEN " + yesV2 + " " + noV2
	check(t, showLookup(d.MarketsByID(t.Context(), upstream.Call{}, []string{longV2, shortV2, strings.ToUpper(longV2[2:])})), []string{want, want, "absent"})
	check(t, s.calls, []string{"GET /markets/keyset condition_ids=" + shortV2 + "&condition_ids=" + longV2 + "&closed=false&limit=2&include_tag=true"})
	check(t, showLookup(d.MarketsByToken(t.Context(), upstream.Call{}, []string{noV2, yesV2})), []string{want, want})
	if !strings.HasPrefix(s.calls[1], "GET /markets/keyset position_ids="+noV2+"&position_ids="+yesV2+"&closed=false") || len(s.calls) != 2 {
		t.Errorf("the driver looks up positions by the calls %q", s.calls[1:])
	}
	// The token of V1 is not a token of the market, and the answer of Gamma is no fault.
	check(t, showLookup(d.MarketsByToken(t.Context(), upstream.Call{}, []string{"111", yesV2})), []string{"absent", want})
	m, err := d.MarketBySlug(t.Context(), upstream.Call{}, "v2")
	if err != nil || m == nil || m.MarketID != longV2 || m.Outcomes[0].TokenID != yesV2 {
		t.Errorf("MarketBySlug returns %+v and the error %v, want the market %s", m, err, longV2)
	}
}

// TestResultOfProtocolV2InTheCLOB checks that the driver requests a missing result with the id of 64 digits. For 62 digits, the CLOB
// API answers 404.
func TestResultOfProtocolV2InTheCLOB(t *testing.T) {
	d, _, _ := open(t, answers{"GET /markets/keyset": keysetV2(true), "GET /markets/" + longV2: func(url.Values, []byte) answer {
		return answer{status: 200, body: `{"condition_id":"` + longV2 + `","closed":true,"tokens":[{"token_id":"` + yesV2 + `","winner":false},{"token_id":"` + noV2 + `","winner":true}]}`}
	}})
	results, err := d.MarketsByID(t.Context(), upstream.Call{}, []string{shortV2})
	if err != nil || results[0].Value == nil || results[0].Value.Winner() == nil || results[0].Value.Winner().TokenID != noV2 {
		t.Errorf("MarketsByID returns %+v and the error %v, want the winner %s", results, err, noV2)
	}
}

// TestTradesOfProtocolV2 requests trades with both forms of the condition id. The Data API knows only the form with 64 digits.
func TestTradesOfProtocolV2(t *testing.T) {
	d, s, _ := open(t, answers{"GET /v2/trades": func(q url.Values, _ []byte) answer {
		if q.Get("condition") != longV2 {
			return dataPage([]any{}, "")
		}
		return dataPage([]any{map[string]any{
			"side": "BUY", "token_id": yesV2, "condition_id": longV2, "size": 2, "price": 0.5, "timestamp": 1900000000, "outcome": "Yes", "transaction_hash": "0xt",
		}}, "")
	}})
	for _, id := range []string{shortV2, longV2} {
		own, err := d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{MarketID: id})
		if err != nil || len(own.Trades) != 1 || own.Trades[0].MarketID != longV2 || len(own.LeftOut) != 0 {
			t.Errorf("Trades of %s returns %+v and the error %v, want one trade of %s", id, own, err, longV2)
		}
		public, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: id, TokenID: yesV2})
		if err != nil || len(public.Trades) != 1 || public.Trades[0].MarketID != longV2 || len(public.LeftOut) != 0 {
			t.Errorf("MarketTrades of %s returns %+v and the error %v, want one trade of %s", id, public, err, longV2)
		}
	}
	check(t, len(s.calls), 4)
}
