package polymarket_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

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
