package polymarket_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

func TestPricesOf500TokensAreOneCall(t *testing.T) {
	d, s, _ := open(t, answers{"POST /midpoints": func(_ url.Values, body []byte) answer {
		out := map[string]string{}
		for _, id := range tokensOf(body) {
			out[id] = "0.25"
		}
		return ok(out)
	}})
	ids := make([]string, 501)
	for i := range ids {
		ids[i] = strconv.Itoa(1000 + i)
	}
	for _, n := range []int{500, 501} {
		s.calls = nil
		results, err := d.Prices(t.Context(), upstream.Call{}, ids[:n])
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Err != nil || r.Value == nil || r.Value.TokenID != ids[i] || r.Value.Basis != market.BasisMidpoint {
				t.Fatalf("the result of token %s is %+v", ids[i], r)
			}
		}
		check(t, len(s.calls), d.Cost(upstream.EndpointPrices, n, 0))
	}
	check(t, d.Cost(upstream.EndpointPrices, 500, 0), 1)
	check(t, s.hosts, map[string]bool{"clob.polymarket.com": true})
}

func TestATokenWithoutMidpointHasItsLastTrade(t *testing.T) {
	var asked []string
	d, s, _ := open(t, answers{
		"POST /midpoints": func(url.Values, []byte) answer { return ok(map[string]string{"1": "0.3"}) },
		"POST /last-trades-prices": func(_ url.Values, body []byte) answer {
			asked = tokensOf(body)
			return answer{status: 200, body: `[{"token_id":"3","price":"0.5","side":""},{"token_id":"2","price":"0.42","side":"SELL"}]`}
		},
	})
	results, err := d.Prices(t.Context(), upstream.Call{}, []string{"1", "2", "3", "2", "not-a-token"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		switch {
		case r.Err != nil:
			got = append(got, r.Err.Error())
		case r.Value == nil:
			got = append(got, "absent")
		default:
			got = append(got, fmt.Sprint(r.Value.Price, " ", r.Value.Basis))
		}
	}
	check(t, got, []string{"0.3 MIDPOINT", "0.42 LAST", "absent", "0.42 LAST", "absent"})
	slices.Sort(asked)
	check(t, slices.Compact(asked), []string{"2", "3"})
	check(t, s.calls, []string{"POST /midpoints", "POST /last-trades-prices"})
}

func TestABadTokenDoesNotSpoilTheList(t *testing.T) {
	d, s, _ := open(t, answers{"POST /books": func(_ url.Values, body []byte) answer {
		ids := tokensOf(body)
		if slices.Contains(ids, "7") {
			return answer{status: http.StatusBadRequest, body: `{"error":"invalid token id"}`}
		}
		rows := []map[string]any{}
		for _, id := range ids {
			rows = append(rows, map[string]any{"asset_id": id, "timestamp": "1900000000000", "bids": []any{}, "asks": []any{}})
		}
		return ok(rows)
	}})
	var list []queries.Book
	for i := range 8 {
		list = append(list, queries.Book{TokenID: strconv.Itoa(i + 1), Depth: 20})
	}
	results, err := d.Books(t.Context(), upstream.Call{}, list)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if bad := list[i].TokenID == "7"; bad != (r.Err != nil) || bad != (r.Value == nil) {
			t.Errorf("the result of token %s is %+v; want an error for token 7, and books for the other tokens", list[i].TokenID, r)
		}
	}
	check(t, len(s.calls), 7) // the driver bisects to find the bad id: calls with 8, 4+4, 2+2 and 1+1 ids
}

func TestNoOrderBookIsAbsent(t *testing.T) {
	d, _, _ := open(t, answers{"POST /books": func(url.Values, []byte) answer {
		return answer{status: http.StatusNotFound, body: `{"error":"No orderbook exists for the requested token id"}`}
	}})
	results, err := d.Spreads(t.Context(), upstream.Call{}, []string{"5"})
	if err != nil || results[0].Err != nil || results[0].Value != nil {
		t.Errorf("Spreads of a token without a book returns %+v and the error %v, want no value and no error", results, err)
	}
}

// TestTextsThatAreNoIDs checks a text that cannot be an id. The result of the text must have no value and no error, even if the
// call for the other ids fails.
func TestTextsThatAreNoIDs(t *testing.T) {
	d, _, _ := open(t, answers{"POST /books": func(url.Values, []byte) answer { return answer{status: http.StatusInternalServerError} }})
	results, err := d.Spreads(t.Context(), upstream.Call{}, []string{"5", "no id"})
	if err != nil || results[0].Err == nil || results[1].Err != nil {
		t.Errorf("Spreads returns %+v and the error %v, want an error for token 5 only", results, err)
	}
}

func TestRefusedAndEarlyCalls(t *testing.T) {
	tries := 0
	d, _, _ := open(t, answers{
		"POST /midpoints": func(_ url.Values, body []byte) answer {
			check(t, tokensOf(body), "[1]")
			if tries++; tries == 1 {
				return answer{status: http.StatusTooEarly, body: `{"error":"the matching engine restarts"}`}
			}
			return ok(map[string]string{"1": "0.3"})
		},
		"POST /books": func(url.Values, []byte) answer {
			return answer{http.StatusTooManyRequests, "<html><body>Too Many Requests</body></html>", http.Header{"Content-Type": {"text/html"}, "Retry-After": {"0"}}}
		},
	})
	results, err := d.Prices(t.Context(), upstream.Call{}, []string{"1"})
	if err != nil || results[0].Value == nil || tries != 2 {
		t.Errorf("after a response with status 425, Prices returns %+v and the error %v after %d calls, want a price after 2 calls", results, err, tries)
	}
	_, err = d.Spreads(t.Context(), upstream.Call{}, []string{"1", "2"})
	check(t, market.CodeOf(err), market.CodeRateLimited)
}

func TestPriceHistoriesShareCalls(t *testing.T) {
	var bodies []map[string]any
	d, s, _ := open(t, answers{"POST /batch-prices-history": func(_ url.Values, body []byte) answer {
		var in map[string]any
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		bodies = append(bodies, in)
		out := map[string]any{}
		for _, id := range in["markets"].([]any) {
			if id != "9" {
				out[id.(string)] = []any{map[string]any{"t": in["start_ts"], "p": 0.5}}
			}
		}
		return ok(map[string]any{"history": out})
	}})
	day, _ := market.ParseDate("2030-03-17")
	var list []queries.PriceHistory
	for i := range 21 {
		list = append(list, queries.PriceHistory{TokenID: strconv.Itoa(i), From: day, To: day + 1})
	}
	list = append(list, queries.PriceHistory{TokenID: "1", From: day - 89, To: day}, queries.PriceHistory{TokenID: "1", From: day, To: day - 1})
	results, err := d.PriceHistories(t.Context(), upstream.Call{}, list)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results[:22] {
		if absent := i == 9; r.Err != nil || absent != (r.Value == nil) || !absent && len(r.Value.Points) != 1 {
			t.Errorf("the result of token %d is %+v", i, r)
		}
	}
	check(t, market.CodeOf(results[22].Err), market.CodeBadUserInput)
	check(t, len(s.calls), 3)
	for _, b := range bodies {
		want := "1.899936e+09 1.900108799e+09 5"
		if len(b["markets"].([]any)) == 1 && b["fidelity"] != 5.0 {
			want = fmt.Sprint(float64((day - 89).Start().Unix()), " ", float64((day+1).Start().Unix()-1), " 1440")
		}
		check(t, fmt.Sprint(b["start_ts"], " ", b["end_ts"], " ", b["fidelity"]), want)
	}
}
