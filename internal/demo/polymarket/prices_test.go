package polymarket_test

import (
	"net/http"
	"slices"
	"testing"

	"oddsgraph/internal/demo/polymarket"
)

func TestRateLimits(t *testing.T) {
	r := newRig(t)
	r.behave(func(b *polymarket.Behaviour) { b.PerTenSeconds, b.DelayOverLimit = 2, false })
	status := func() (status int, page string) {
		response, err := http.Get(r.server.URL + "/book?token_id=" + r.TokenIDs()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode, response.Header.Get("Content-Type") + response.Header.Get("Retry-After")
	}
	var got []int
	for range 3 {
		s, _ := status()
		got = append(got, s)
	}
	if !slices.Equal(got, []int{200, 200, 429}) {
		t.Errorf("got statuses %v, want 200, 200 and 429", got)
	}
	if _, page := status(); page != "text/html0" {
		t.Errorf("a refused request has Content-Type and Retry-After %q, want text/html and 0", page)
	}
	r.clock.Advance(10_000_000_000)
	if s, _ := status(); s != 200 {
		t.Errorf("in the next ten seconds: got status %d, want 200", s)
	}
	r.behave(func(b *polymarket.Behaviour) { b.RefuseAll, b.PerTenSeconds = true, 0 })
	if s, _ := status(); s != 429 {
		t.Errorf("with RefuseAll: got status %d, want 429", s)
	}
}

func TestValueIsTheSumOfPositions(t *testing.T) {
	r := newRig(t)
	sum := 0.0
	for _, p := range r.pages("/v2/positions?limit=500&user="+address, "data", "cursor", dataCursor) {
		sum += p["current_value"].(float64)
	}
	value := r.get("/v2/value?user=" + address)["data"].(object)["value"].(float64)
	if diff := sum - value; diff > 0.01 || diff < -0.01 {
		t.Errorf("got value %v, want %v as the sum of the positions", value, sum)
	}
}

func TestControl(t *testing.T) {
	r := newRig(t)
	m := r.markets("limit=1&order=volume24hr")[0]
	if status, answer := r.call("/__control/price", object{"tokenId": m.tokens[0], "price": 0.5}); status != 200 {
		t.Fatal(answer)
	}
	demoID, ok := r.DemoTokenID(m.tokens[0])
	if r.ID(demoID) != m.tokens[0] || r.ID("unknown") != "" {
		t.Errorf("ID(%s): got %s, want %s; and ID(unknown): got %q, want none", demoID, r.ID(demoID), m.tokens[0], r.ID("unknown"))
	}
	if q, _ := r.Engine().Quote(demoID); !ok || q.Price.String() != "0.5" {
		t.Errorf("got price %v, want 0.5", q.Price)
	}
	for _, body := range []object{{"lostFrames": 101}, {"emptySide": "left"}, {"assetLimit": -1}, {"unknown": 1}} {
		if status, _ := r.call("/__control/faults", body); status != 400 {
			t.Errorf("faults %v: got status %d, want 400", body, status)
		}
	}
	if status, _ := r.call("/__control/faults", object{"lostFrames": 2, "freeze": true}); status != 200 || r.Behaviour().LostFrames != 2 {
		t.Errorf("faults: got status %d and behaviour %+v, want 200 and lostFrames 2", status, r.Behaviour())
	}
	if o := r.get("/__control/faults"); o["lostFrames"] != 2.0 || o["crossingBursts"] != true {
		t.Errorf("GET faults: got %v, want lostFrames 2 and crossingBursts true", o)
	}
	if status, _ := r.call("/__control/reset", object{}); status != 200 || r.Behaviour() != polymarket.Documented() || len(r.Stats().Requests) > 0 {
		t.Errorf("reset: got status %d, behaviour %+v and %v, want 200, the documented behaviour and no counts", status, r.Behaviour(), r.Stats().Requests)
	}
	if status, _ := r.call("/__control/step", object{"steps": 3}); status != 200 {
		t.Errorf("step: got status %d, want 200", status)
	}
	if status, _ := r.call("/__control/nothing", object{}); status != 404 {
		t.Errorf("unknown control request: got status %d, want 404", status)
	}
}
