package polymarket_test

import (
	"context"
	"slices"
	"testing"
)

func TestTheAssetBeyondTheLimitGetsNothing(t *testing.T) {
	r := newRig(t)
	ids := r.TokenIDs()
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

// resolveOne resolves a market. It returns the messages that a client gets if it subscribes only to one token of this market.
func resolveOne(t *testing.T, r *rig) []object {
	t.Helper()
	m := r.markets("limit=1")[0]
	s := r.dial()
	s.subscribe(m.tokens[1])
	s.drain()
	status, answer := r.call("/__control/market", object{"marketId": m.object["conditionId"], "winningTokenId": m.tokens[0]})
	if status != 200 {
		t.Fatal(answer)
	}
	return s.drain()
}

func TestResolution(t *testing.T) {
	resolved := func(messages []object) bool {
		return slices.ContainsFunc(messages, func(m object) bool { return m["event_type"] == "market_resolved" && m["winning_outcome"] == "Yes" })
	}
	if messages := resolveOne(t, newRig(t)); !resolved(messages) {
		t.Errorf("got no market_resolved for Yes in %v", messages)
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

func TestClose(t *testing.T) {
	r := newRig(t)
	s := r.dial()
	s.drain()
	r.Close()
	if _, _, err := s.ws.Read(context.Background()); err == nil {
		t.Error("the socket is still open after Close")
	}
	if n := r.Stats().Stream.Connections; n != 0 {
		t.Errorf("after Close: got %d open sockets, want none", n)
	}
}
