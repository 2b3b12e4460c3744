package polymarket_test

import (
	"context"
	"testing"
)

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
