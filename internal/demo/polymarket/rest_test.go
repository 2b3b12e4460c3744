package polymarket_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/polymarket"
)

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

// padded returns a condition id of the Gamma API as the other APIs have it: with 64 digits.
func padded(id string) string { return id + strings.Repeat("0", 66-len(id)) }

func TestControl(t *testing.T) {
	r := newRig(t)
	m := r.markets("limit=1&order=volume24hr")[0]
	if status, answer := r.call("/__control/price", object{"tokenId": m.tokens[0], "price": 0.5}); status != 200 {
		t.Fatal(answer)
	}
	demoID := r.DemoID(m.tokens[0])
	if r.ID(demoID) != m.tokens[0] || r.ID("unknown") != "" {
		t.Errorf("ID(%s): got %s, want %s; and ID(unknown): got %q, want none", demoID, r.ID(demoID), m.tokens[0], r.ID("unknown"))
	}
	if q, ok := r.Engine().Quote(demoID); !ok || q.Price.String() != "0.5" {
		t.Errorf("got price %v, want 0.5", q.Price)
	}
	if status, _ := r.call("/__control/reset", object{}); status != 200 || len(r.Stats().Requests) > 0 {
		t.Errorf("reset: got status %d and %v, want 200 and no counts", status, r.Stats().Requests)
	}
	condition := m.object["conditionId"].(string)
	if status, answer := r.call("/__control/market", object{"marketId": condition, "description": "Anew."}); status != 200 {
		t.Errorf("the condition id of Gamma: got %d %v, want 200", status, answer)
	}
	if status, _ := r.call("/__control/step", object{"steps": 3}); status != 200 {
		t.Errorf("step: got status %d, want 200", status)
	}
	if status, _ := r.call("/__control/nothing", object{}); status != 404 {
		t.Errorf("unknown control request: got status %d, want 404", status)
	}
}

func TestTheAssetBeyondTheLimitGetsNothing(t *testing.T) {
	r := newRig(t)
	ids := r.tokenIDs()
	if len(ids) < 501 {
		t.Fatalf("got only %d tokens, want at least 501", len(ids))
	}
	s := r.dial()
	s.subscribe(ids[:501]...)
	if n := len(s.drain()); n != 500 {
		t.Errorf("after subscribing 501 tokens: got %d books, want 500", n)
	}
	s.send(object{"operation": "unsubscribe", "assets_ids": ids[:1]})
	s.send(object{"operation": "subscribe", "assets_ids": ids[500:501]})
	if n := len(s.drain()); n != 1 {
		t.Errorf("after an unsubscribe and a subscribe: got %d books, want 1", n)
	}
	if n := r.Stats().Stream.Subscriptions["market"]; n != 500 {
		t.Errorf("got %d subscriptions, want 500", n)
	}
}

func TestWrongRequests(t *testing.T) {
	s := newRig(t).dial()
	s.send("HELLO")
	_, frame, err := s.ws.Read(context.Background())
	if err != nil || string(frame) != "INVALID OPERATION" {
		t.Errorf("got frame %s and error %v, want INVALID OPERATION", frame, err)
	}
}
