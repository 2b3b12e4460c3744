package polymarket_test

import (
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/polymarket"
)

// all returns all open or all closed markets.
func (r *rig) all(query string) (list []gammaMarket) {
	cursor := ""
	for {
		page := r.get("/markets/keyset?limit=100&" + query + "&after_cursor=" + cursor)
		list = append(list, r.decode(rowsOf(page, "markets"))...)
		next, _ := page["next_cursor"].(string)
		if next == "" || next == cursor {
			return list
		}
		cursor = next
	}
}

// TestProtocolV2 checks the forms of markets of protocol V2 against adriancova/polymarket-bot-v2, docs/venue/verified-2026-10-05.md:
// the fields of Gamma, the layout of the ids, and the width of the condition id in each API.
func TestProtocolV2(t *testing.T) {
	r := newRig(t)
	withOld, statuses := 0, map[any]int{}
	for _, m := range append(r.all(""), r.all("closed=true")...) {
		if m.object["version"] != "v2" {
			if m.object["positionIds"] != nil || m.object["resolutionStatus"] != nil {
				t.Errorf("the market %v of another version has positionIds or resolutionStatus", m.object["slug"])
			}
			continue
		}
		statuses[m.object["resolutionStatus"]]++
		if m.object["umaResolutionStatus"] != nil {
			t.Errorf("the market %v has umaResolutionStatus", m.object["slug"])
		}
		if m.object["clobTokenIds"] != nil {
			withOld++
		}
		condition := m.object["conditionId"].(string)
		for i, id := range m.tokens {
			n, _ := new(big.Int).SetString(id, 10)
			if text := fmt.Sprintf("0x%064x", n); text != condition+fmt.Sprintf("%02x", i) || condition[:4] != "0x01" || strings.Trim(condition[36:], "0") != "" {
				t.Errorf("the position %s of the condition %s is %s", id, condition, text)
			}
		}
	}
	if withOld == 0 || withOld == statuses["inactive"]+statuses["active"]+statuses["resolved"] || statuses["inactive"] == 0 || len(statuses) < 2 {
		t.Errorf("the markets of V2 have the resolutionStatus %v, and %d have tokens of V1; want at least two statuses, and some with such tokens", statuses, withOld)
	}
}

// TestWidthsOfAConditionID checks which API knows which form of a condition id of V2.
func TestWidthsOfAConditionID(t *testing.T) {
	r := newRig(t)
	open := r.all("order=volume24hr")
	m := open[slices.IndexFunc(open, func(m gammaMarket) bool {
		return m.object["version"] == "v2" && m.object["clobTokenIds"] != nil && m.object["acceptingOrders"] == true
	})]
	short, long := m.object["conditionId"].(string), padded(m.object["conditionId"].(string))
	for path, want := range map[string]int{"/markets/" + short: http.StatusNotFound, "/markets/" + long: http.StatusOK} {
		if status, answer := r.call(path, nil); status != want {
			t.Errorf("GET %s: got %d %v, want %d", path, status, answer, want)
		}
	}
	r.step(600)
	for query, want := range map[string]bool{short: false, long: true} {
		if rows := rowsOf(r.get("/v2/trades?condition="+query), "data"); len(rows) > 0 != want || want && rows[0]["condition_id"] != long {
			t.Errorf("the condition %s has %d trades, want some: %v", query, len(rows), want)
		}
	}
	old := strings.Split(strings.Trim(m.object["clobTokenIds"].(string), `[]"`), `","`)[0]
	for query, want := range map[string]int{
		"condition_ids=" + short: 1, "position_ids=" + m.tokens[1]: 1, "clob_token_ids=" + old: 1, "clob_token_ids=" + m.tokens[0]: 0, "position_ids=" + old: 0,
	} {
		if found := r.markets(query); len(found) != want {
			t.Errorf("the filter %s finds %d markets, want %d", query, len(found), want)
		}
	}
	_, books := r.call("/books", tokens(m.tokens[0], old))
	if list := books.([]any); len(list) != 1 || list[0].(object)["version"] != "v2" || list[0].(object)["market"] != long {
		t.Errorf("got %d books, want the book of the position only, with the version v2 and the market %s", len(list), long)
	}
}

func TestTeamsAndQuietMarkets(t *testing.T) {
	r := newRig(t)
	teams, quiet := 0, []string{}
	for _, m := range r.all("") {
		if !strings.Contains(m.object["outcomes"].(string), "Yes") {
			teams++
		}
		if m.object["acceptingOrders"] == true {
			quiet = append(quiet, m.tokens...)
		}
	}
	if teams == 0 {
		t.Error("no market has teams as outcomes")
	}
	before := map[string]demo.Book{}
	for _, id := range quiet {
		before[id], _ = r.Book(id)
	}
	r.step(800)
	quiet = slices.DeleteFunc(quiet, func(id string) bool { b, _ := r.Book(id); return !b.At.Equal(before[id].At) })
	if len(quiet) < 4 || len(quiet) > 60 {
		t.Fatalf("after 800 steps, the books of %d tokens have not changed, want some", len(quiet))
	}
	s := r.dial()
	s.subscribe(quiet[:2]...)
	if frames := s.drain(); len(frames) != 2 {
		t.Errorf("a subscription to two quiet tokens gets %d messages, want their books", len(frames))
	}
	r.step(200)
	if frames := s.drain(); len(frames) != 0 {
		t.Errorf("two quiet tokens get the messages %v, want none", frames)
	}
	demoID, _ := r.DemoTokenID(quiet[0])
	if err := r.Engine().SetPrice(demoID, 5000); err != nil {
		t.Fatal(err)
	}
	if frames := s.drain(); len(frames) == 0 {
		t.Error("SetPrice does not move a quiet market")
	}
}

// TestOldMarkets checks the markets without an order book: only Gamma knows them, they have a result, and two of them have a condition.
func TestOldMarkets(t *testing.T) {
	r := newRig(t)
	forms := map[string]bool{}
	for _, m := range r.all("closed=true") {
		if m.object["version"] != nil {
			continue
		}
		ids, present := m.object["clobTokenIds"]
		forms[fmt.Sprintf("%v %v %v", present, ids, m.object["conditionId"] != "")] = true
		if m.object["umaResolutionStatus"] != "resolved" || m.object["closedTime"] == nil || !slices.Contains(m.prices, "1") {
			t.Errorf("the old market %v has no result", m.object)
		}
		if status, _ := r.call("/markets/"+m.object["conditionId"].(string), nil); status != http.StatusNotFound {
			t.Errorf("the CLOB API answers %d for the old market %v, want 404", status, m.object["slug"])
		}
		if found := r.markets("closed=true&id=" + m.object["id"].(string)); len(found) != 1 || found[0].object["slug"] != m.object["slug"] {
			t.Errorf("the filter by the id %v finds %d markets", m.object["id"], len(found))
		}
		if e := rowsOf(r.get("/events/keyset?closed=true&slug="+m.object["slug"].(string)), "events"); len(e) != 1 {
			t.Errorf("the event of the old market %v is missing", m.object["slug"])
		}
	}
	want := map[string]bool{"true <nil> true": true, "false <nil> true": true, "true [] false": true}
	if fmt.Sprint(forms) != fmt.Sprint(want) {
		t.Errorf("the old markets have the forms %v, want %v", forms, want)
	}
}

// TestLastPageRepeatsItsCursor checks the last pages of the keyset lists, as users of Polymarket report them.
func TestLastPageRepeatsItsCursor(t *testing.T) {
	r := newRig(t)
	for path, n := range map[string]int{"/markets/keyset?limit=100": 0, "/events/keyset?limit=20": 0} {
		cursor, next := "", ""
		for next = "first"; next != "" && next != cursor; n++ {
			if next != "first" {
				cursor = next
			}
			next, _ = r.get(path + "&after_cursor=" + cursor)["next_cursor"].(string)
		}
		if n < 2 || cursor == "" || next != cursor {
			t.Errorf("%s: the last of %d pages has the cursor %q after the cursor %q, want a repeated cursor", path, n, next, cursor)
		}
	}
	if o := r.get("/markets/keyset?limit=1&slug=nothing"); o["next_cursor"] != nil {
		t.Errorf("the only page of a list has the cursor %v", o["next_cursor"])
	}
}

func TestPlaceholdersAreNotActive(t *testing.T) {
	r, placeholders := newRig(t), 0
	for _, e := range rowsOf(r.get("/events/keyset?limit=500"), "events") {
		for _, m := range rowsOf(e, "markets") {
			unnamed := m["groupItemTitle"] == "Outcome A"
			if m["active"] == unnamed {
				t.Errorf("the market %v has active %v", m["groupItemTitle"], m["active"])
			}
			if unnamed {
				placeholders++
			}
		}
	}
	if placeholders == 0 {
		t.Error("no event has a placeholder")
	}
}

// TestLeastSizes checks that the Data API leaves out small positions and trades unless the request has a smaller filter_amount.
func TestLeastSizes(t *testing.T) {
	r := newRig(t)
	count := func(query string) int {
		return len(r.pages(query+"&limit=100&user="+address, "data", "cursor", dataCursor))
	}
	all := count("/v2/positions?filter_type=TOKENS&filter_amount=0.000001")
	p := r.Positions()[0]
	if err := r.Engine().Trade(address, p.TokenID, demo.Sell, p.Size-5); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"filter_amount=0.000001": all, "": all - 1, "filter_amount=0": all - 1, "filter_amount=x": all - 1, "filter_amount=0.05": all, "filter_amount=1000000": 0,
	} {
		if got := count("/v2/positions?" + query); got != want {
			t.Errorf("%s: got %d positions, want %d", query, got, want)
		}
	}
	trades, large := count("/v2/trades?"), count("/v2/trades?filter_amount=100")
	if cash := count("/v2/trades?filter_amount=100&filter_type=CASH"); large == 0 || large >= trades || cash >= large {
		t.Errorf("got %d trades, %d of at least 100 shares and %d of at least 100 USDC; want fewer each time", trades, large, cash)
	}
}

func TestActivityWithoutTrades(t *testing.T) {
	r := newRig(t)
	for query, want := range map[string]string{"": "CONVERSION MIGRATION", "&type=TIP": "TIP"} {
		types := map[string]object{}
		for _, row := range r.pages("/v2/activity?limit=100&user="+address+query, "data", "cursor", dataCursor) {
			types[row["type"].(string)] = row
		}
		if query == "" && types["TIP"] != nil {
			t.Error("a request without types gets tips")
		}
		for name := range strings.FieldsSeq(want) {
			row := types[name]
			if row == nil || row["size"].(float64) <= 0 || row["usdc_size"] != 0.0 || row["token_id"] != "" || row["price"] != 0.0 {
				t.Errorf("the activity %s is %v", name, row)
				continue
			}
			if side := row["side"]; name == "TIP" != (side == "IN" || side == "OUT") || name == "TIP" != (row["condition_id"] == "") {
				t.Errorf("the activity %s has the side %v and the condition %v", name, side, row["condition_id"])
			}
		}
	}
}

// TestLimits checks that the simulator delays the requests beyond the limit of a path, and of the Data API, whose paths share a limit
// of 1,000 requests in 10 seconds.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := polymarket.New(demo.Config{Markets: 40, Seed: 1})
		for _, c := range []struct {
			paths []string
			limit int
		}{{[]string{"/v2/value", "/v2/activity"}, 1000}, {[]string{"/public-search"}, 350}} {
			delayed := 0
			for i := range c.limit + 10 {
				began := time.Now()
				r := httptest.NewRequest(http.MethodGet, c.paths[i%len(c.paths)]+"?q=x&limit=1&user="+address, nil)
				v.ServeHTTP(httptest.NewRecorder(), r)
				if time.Since(began) > 0 {
					delayed++
				}
			}
			if delayed == 0 || delayed > 10 {
				t.Errorf("%v: %d requests beyond the limit were delayed, want some of 10", c.paths, delayed)
			}
		}
	})
}
