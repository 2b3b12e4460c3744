package polymarket_test

import (
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
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
