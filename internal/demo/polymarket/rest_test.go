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

func TestIdentifiers(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range newRig(t).markets("limit=100") {
		id := m.object["conditionId"].(string)
		digits, tokenDigits := 64, 77
		if m.object["version"] == "v2" {
			digits, tokenDigits = 62, 75
		}
		if len(id) != 2+digits || !strings.HasPrefix(id, "0x") || seen[id] {
			t.Errorf("the condition id %s is a duplicate or not 0x and %d digits", id, digits)
		}
		seen[id] = true
		for _, token := range m.tokens {
			if len(token) != tokenDigits || strings.Trim(token, "0123456789") != "" || seen[token] {
				t.Errorf("the token id %s is a duplicate or not %d digits", token, tokenDigits)
			}
			seen[token] = true
		}
	}
	if len(seen) != 300 {
		t.Errorf("got %d different identifiers, want 300", len(seen))
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
	r.behave(func(b *polymarket.Behaviour) { b.LeaveOutClosed = false })
	if got := r.markets(both); len(got) != 2 {
		t.Errorf("without LeaveOutClosed: got %d markets, want 2", len(got))
	}
	r.behave(func(b *polymarket.Behaviour) { b.IgnoreFilters = true })
	if got := r.markets(both); len(got) != 20 {
		t.Errorf("with IgnoreFilters: got %d markets, want 20", len(got))
	}
	r.behave(func(b *polymarket.Behaviour) { b.RefuseOffset = false })
	if got := r.markets("offset=10"); len(got) != 20 {
		t.Errorf("without RefuseOffset: got %d markets, want 20", len(got))
	}
	r.behave(func(b *polymarket.Behaviour) { *b = polymarket.Documented() })
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

func TestResults(t *testing.T) {
	r := newRig(t)
	resolved, onlyCLOB, exclusive, cancelled := 0, 0, 0, 0 // onlyCLOB counts results that only the CLOB API has
	for _, row := range r.pages("/markets/keyset?limit=100&closed=true", "markets", "after_cursor", keysetCursor) {
		if row["version"] == nil {
			continue // the CLOB API does not know the old markets
		}
		at := r.get("/markets/" + padded(row["conditionId"].(string)))
		winners := 0
		for _, token := range rowsOf(at, "tokens") {
			if token["winner"] == true {
				winners++
			}
		}
		exact := row["outcomePrices"] == `["1","0"]` || row["outcomePrices"] == `["0","1"]`
		if exact != (winners == 1) {
			t.Errorf("got prices %v and %d winners; the prices must be 1 and 0 exactly if there is one winner", row["outcomePrices"], winners)
		}
		if winners == 1 {
			if resolved++; row["umaResolutionStatus"] != "resolved" {
				onlyCLOB++
			}
		}
		if row["negRisk"] == true {
			exclusive++
		}
		if at["is_50_50_outcome"] == true {
			cancelled++
		}
	}
	if resolved == 0 || onlyCLOB == 0 || onlyCLOB == resolved || exclusive == 0 || cancelled == 0 {
		t.Errorf("got %d results, %d of them only from the CLOB API, %d negRisk markets and %d cancelled markets; want some of each", resolved, onlyCLOB, exclusive, cancelled)
	}
}

// padded returns a condition id of the Gamma API as the other APIs have it: with 64 digits.
func padded(id string) string { return id + strings.Repeat("0", 66-len(id)) }

func TestEventsAreExclusiveOrNot(t *testing.T) {
	r := newRig(t)
	exclusive, other, augmented := 0, 0, 0
	for _, e := range r.pages("/events/keyset?limit=100", "events", "after_cursor", keysetCursor) {
		if e["negRisk"] != true {
			other++
			continue
		}
		exclusive++
		last := rowsOf(e, "markets")[len(rowsOf(e, "markets"))-1]
		if e["negRiskAugmented"] == true {
			augmented++
		}
		if unnamed := last["groupItemTitle"] == "Outcome A"; unnamed != (e["negRiskAugmented"] == true) {
			t.Errorf("the last market is %v in an event with negRiskAugmented %v; it must be Outcome A exactly if negRiskAugmented is true", last["groupItemTitle"], e["negRiskAugmented"])
		}
		if e["negRiskMarketID"] == "" || len(rowsOf(e, "markets")) < 3 {
			t.Errorf("got negRisk event %v, want a negRiskMarketID and at least 3 markets", e)
		}
	}
	if exclusive == 0 || other == 0 || augmented == 0 || augmented == exclusive {
		t.Errorf("got %d exclusive events, %d of them augmented, and %d other events; want some of each", exclusive, augmented, other)
	}
	e := rowsOf(r.get("/events/keyset?limit=1"), "events")[0]
	for _, query := range []string{"id=" + e["id"].(string), "slug=" + e["slug"].(string)} {
		if found := rowsOf(r.get("/events/keyset?"+query), "events"); len(found) != 1 || found[0]["id"] != e["id"] {
			t.Errorf("filter %s: got %d events, want one", query, len(found))
		}
	}
}

func TestSearch(t *testing.T) {
	r := newRig(t)
	first := r.get("/public-search?q=wil&limit_per_type=1&events_status=active")
	pages := first["pagination"].(object)
	if len(rowsOf(first, "events")) != 1 || pages["hasMore"] != true || pages["totalResults"].(float64) < 2 {
		t.Errorf("got pagination %v and %d events, want hasMore, at least 2 results and one event", pages, len(rowsOf(first, "events")))
	}
	second := r.get("/public-search?q=wil&limit_per_type=1&page=2&events_status=active")
	if rowsOf(second, "events")[0]["id"] == rowsOf(first, "events")[0]["id"] {
		t.Error("the second page has the same event as the first page")
	}
	if none := r.get("/public-search?q=nothingatall"); len(rowsOf(none, "events")) != 0 {
		t.Errorf("got search results %v, want none", none)
	}
}
