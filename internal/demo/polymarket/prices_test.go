package polymarket_test

import "testing"

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
