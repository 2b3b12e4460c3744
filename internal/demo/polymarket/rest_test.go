package polymarket_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/polymarket"
)

// formatNumbers formats the numbers from 0 to n-1 with a format string.
func formatNumbers(n int, format string) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf(format, i))
	}
	return ids
}

func TestLimitsOfACall(t *testing.T) {
	r := newRig(t)
	ids := r.TokenIDs()
	for _, path := range []string{"/books", "/midpoints", "/prices", "/spreads", "/last-trades-prices"} {
		if status, answer := r.call(path, tokens(ids[:500]...)); status != 200 {
			t.Errorf("%s with 500 tokens: got %d %v, want 200", path, status, answer)
		}
		if status, _ := r.call(path, tokens(ids[:501]...)); status != 400 {
			t.Errorf("%s with 501 tokens: got %d, want 400", path, status)
		}
		if status, _ := r.call(path, object{"token_id": ids[0]}); status != 400 {
			t.Errorf("%s without a list: got %d, want 400", path, status)
		}
	}
	for n, want := range map[int]int{20: 200, 21: 400} {
		if status, _ := r.call("/batch-prices-history", object{"markets": ids[:n], "interval": "1d", "fidelity": 60}); status != want {
			t.Errorf("price history of %d tokens: got %d, want %d", n, status, want)
		}
	}
	beyond := base64.URLEncoding.EncodeToString([]byte("k9223372036854775808")) // 1 << 63, which overflows an int64
	for path, want := range map[string]int{
		"/markets/keyset?limit=100":              200,
		"/markets/keyset?limit=101":              422,
		"/markets/keyset?offset=10":              422,
		"/markets/keyset?order=colour":           422,
		"/markets/keyset?after_cursor=x":         422,
		"/markets/keyset?after_cursor=" + beyond: 422,
		"/markets/keyset?condition_ids=" + strings.Join(formatNumbers(90, "0x%064d"), ","):  200,
		"/markets/keyset?condition_ids=" + strings.Join(formatNumbers(200, "0x%064d"), ","): 414,
		"/events/keyset?limit=500":                            200,
		"/events/keyset?limit=501":                            422,
		"/events/keyset?offset=0":                             422,
		"/events/keyset?after_cursor=" + beyond:               422,
		"/v2/positions?cursor=" + beyond + "&user=" + address: 422,
		"/v2/positions?limit=500&user=" + address:             200,
		"/v2/positions?limit=501&user=" + address:             422,
		"/v2/positions?user=0x12":                             400,
		"/v2/trades?limit=101&user=" + address:                422,
		"/v2/trades":                                          400,
		"/v2/trades?condition=0x12":                           200,
		"/v2/trades?condition=0x12&limit=101":                 422,
		"/v2/trades?condition=0x12&cursor=!":                  422,
		"/book?token_id=1":                                    404,
		"/markets/0x12":                                       404,
		"/tags/slug/nothing":                                  404,
		"/orders":                                             404,
	} {
		if status, answer := r.call(path, nil); status != want {
			t.Errorf("GET %.60s: got %d %v, want %d", path, status, answer, want)
		}
	}
	if keys := r.Stats().Keys["POST /books"]; keys != 500+501+1 {
		t.Errorf("Stats counts %d keys of POST /books, want %d", keys, 500+501+1)
	}
}

// pages reads all pages of a list and returns their rows. name is the member of a page that contains the rows. parameter is the
// query parameter for the cursor.
func (r *rig) pages(path, name, parameter string, cursorOf func(object) any) (rows []object) {
	cursor := ""
	for range 1000 {
		page := r.get(path + "&" + parameter + "=" + url.QueryEscape(cursor))
		rows = append(rows, rowsOf(page, name)...)
		next, _ := cursorOf(page).(string)
		if next == "" || next == cursor { // the last page of a keyset list repeats its cursor
			return rows
		}
		cursor = next
	}
	r.t.Fatalf("%s has more than 1,000 pages", path)
	return nil
}

func keysetCursor(page object) any { return page["next_cursor"] }
func dataCursor(page object) any   { return page["pagination"].(object)["next_cursor"] }

func TestPagesAreComplete(t *testing.T) {
	r := newRig(t)
	count := func(rows []object, key string) int {
		seen := map[any]bool{}
		for _, row := range rows {
			seen[row[key]] = true
		}
		if len(seen) != len(rows) {
			t.Errorf("got %d rows, but only %d different values of %s", len(rows), len(seen), key)
		}
		return len(seen)
	}
	open := count(r.pages("/markets/keyset?limit=33&order=volume24hr", "markets", "after_cursor", keysetCursor), "id")
	closed := count(r.pages("/markets/keyset?limit=33&closed=true", "markets", "after_cursor", keysetCursor), "id")
	want, all := 0, polymarket.OldMarkets
	for _, m := range r.Engine().Markets() {
		n := len(m.TokenIDs)
		if m.Binary {
			n = 1
		}
		if all += n; slices.Contains([]string{"OPEN", "UPCOMING", "DISPUTED"}, m.Status) {
			want += n
		}
	}
	if open != want || open+closed != all {
		t.Errorf("got %d open and %d closed markets, want %d and %d", open, closed, want, all-want)
	}
	if n := count(r.pages("/v2/positions?limit=300&user="+address, "data", "cursor", dataCursor), "token_id"); n != len(r.Positions()) {
		t.Errorf("got %d positions, want %d", n, len(r.Positions()))
	}
	trades := 0
	for _, record := range r.Engine().Records(address) {
		if record.Kind == "TRADE" {
			trades++
		}
	}
	if n := count(r.pages("/v2/trades?limit=100&user="+address, "data", "cursor", dataCursor), "transaction_hash"); n != trades {
		t.Errorf("got %d trades, want %d", n, trades)
	}
}

// Positions returns the positions of the demo account with 2,000 positions.
func (r *rig) Positions() []demo.Position { return r.Engine().Positions(address) }

func TestFiltersOfMarkets(t *testing.T) {
	r := newRig(t)
	closed, open := r.markets("closed=true&limit=1")[0], r.markets("limit=1")[0]
	ids := func(list []gammaMarket) (ids []any) {
		for _, m := range list {
			ids = append(ids, m.object["conditionId"])
		}
		return ids
	}
	both := fmt.Sprintf("condition_ids=%v&condition_ids=%v", closed.object["conditionId"], open.object["conditionId"])
	for query, want := range map[string][]any{
		both:                                   {open.object["conditionId"]},
		both + "&closed=true":                  {closed.object["conditionId"]},
		"clob_token_ids=" + open.tokens[1]:     {open.object["conditionId"]},
		"slug=" + open.object["slug"].(string): {open.object["conditionId"]},
		"condition_ids=0x12":                   nil,
	} {
		if got := ids(r.markets(query)); !slices.Equal(got, want) {
			t.Errorf("filter %s: got markets %v, want %v", query, got, want)
		}
	}
	known := rowsOf(r.markets("include_tag=true&limit=1")[0].object, "tags")[0]
	tag := r.get("/tags/slug/" + known["slug"].(string))
	tagged := r.markets("include_tag=true&tag_id=" + tag["id"].(string))
	for _, m := range tagged {
		if !slices.ContainsFunc(rowsOf(m.object, "tags"), func(o object) bool { return o["id"] == tag["id"] }) {
			t.Errorf("the market %v does not have the tag", m.object["slug"])
		}
	}
	if len(tagged) == 0 {
		t.Error("no market has the tag")
	}
}

// padded returns a condition id of the Gamma API as the other APIs have it: with 64 digits.
func padded(id string) string { return id + strings.Repeat("0", 66-len(id)) }

// TestSearchByText checks that the pages of a search have all events of the wanted status with the words of the query, and no others.
func TestSearchByText(t *testing.T) {
	r := newRig(t)
	for status, closed := range map[string]bool{"active": false, "resolved": true} {
		ids, total := map[any]bool{}, 0.0
		for page, more := 1, true; more; page++ {
			answer := r.get(fmt.Sprintf("/public-search?q=WILL&limit_per_type=3&page=%d&events_status=%s&keep_closed_markets=1", page, status))
			for _, row := range answer["events"].([]any) {
				event := row.(object)
				ids[event["id"]] = true
				if event["closed"] != closed || !strings.Contains(strings.ToLower(fmt.Sprint(event)), "will") {
					t.Errorf("%s: got the event %v", status, event)
				}
			}
			pagination := answer["pagination"].(object)
			more, total = pagination["hasMore"].(bool), pagination["totalResults"].(float64)
		}
		if len(ids) == 0 || float64(len(ids)) != total {
			t.Errorf("%s: the pages have %d different events, want totalResults %v and some", status, len(ids), total)
		}
	}
	if events := r.get("/public-search?q=will+zebra")["events"].([]any); len(events) > 0 {
		t.Errorf("got the events %v for a word that no market has", events)
	}
	if status, _ := r.call("/public-search?q=", nil); status != 422 {
		t.Errorf("without a text: got status %d, want 422", status)
	}
}
