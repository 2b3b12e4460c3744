package polymarket_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"oddsgraph/internal/demo/polymarket"
)

// bookCopy is a client's copy of a book. bids and asks map prices to sizes.
type bookCopy struct {
	bids, asks map[string]string
	stamp      string
}

func copyOf(book object) *bookCopy {
	c := &bookCopy{map[string]string{}, map[string]string{}, book["timestamp"].(string)}
	for name, side := range map[string]map[string]string{"bids": c.bids, "asks": c.asks} {
		for _, l := range rowsOf(book, name) {
			side[l["price"].(string)] = l["size"].(string)
		}
	}
	return c
}

// top returns the best prices in the format of a price_change message.
func (c *bookCopy) top(t *testing.T) (bid, ask string) {
	bid, ask = "0", "1"
	value := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for p := range c.bids {
		if value(p) > value(bid) {
			bid = p
		}
	}
	for p := range c.asks {
		if value(p) < value(ask) {
			ask = p
		}
	}
	return bid, ask
}

// replay applies messages to copies of books. A burst is a series of consecutive price_change messages with the same market and
// timestamp. replay returns three counts: the bursts, the changes after which a book was crossed, and the books whose best prices
// after a burst differ from the best prices in the last message.
func replay(t *testing.T, books map[string]*bookCopy, messages []object) (bursts, crossed, wrong int) {
	t.Helper()
	for i, m := range messages {
		if m["event_type"] == "book" {
			books[m["asset_id"].(string)] = copyOf(m)
		}
		if m["event_type"] != "price_change" {
			continue
		}
		last := i+1 == len(messages) || messages[i+1]["event_type"] != "price_change" || messages[i+1]["timestamp"] != m["timestamp"] ||
			messages[i+1]["market"] != m["market"]
		rows := rowsOf(m, "price_changes")
		for _, row := range rows {
			c := books[row["asset_id"].(string)]
			if c == nil {
				continue
			}
			side := c.bids
			if row["side"] == "SELL" {
				side = c.asks
			}
			c.stamp = m["timestamp"].(string)
			if side[row["price"].(string)] = row["size"].(string); row["size"] == "0" {
				delete(side, row["price"].(string))
			}
			bid, ask := c.top(t)
			if low, _ := strconv.ParseFloat(ask, 64); low > 0 {
				if high, _ := strconv.ParseFloat(bid, 64); high >= low {
					crossed++
				}
			}
		}
		if !last {
			continue
		}
		bursts++
		for _, row := range rows {
			if c := books[row["asset_id"].(string)]; c != nil {
				if bid, ask := c.top(t); bid != row["best_bid"] || ask != row["best_ask"] {
					wrong++
				}
			}
		}
	}
	return bursts, crossed, wrong
}

func TestLostFramesLeaveWrongTops(t *testing.T) {
	r := newRig(t)
	s := r.dial()
	s.subscribe(r.TokenIDs()[:100]...)
	books := map[string]*bookCopy{}
	replay(t, books, s.drain())
	r.behave(func(b *polymarket.Behaviour) { b.LostFrames = 30 })
	r.step(60)
	if bursts, _, wrong := replay(t, books, s.drain()); wrong == 0 {
		t.Errorf("got %d bursts, all with the right best prices, want some wrong best prices after lost frames", bursts)
	}
}

func TestFrozenSocketAnswersPing(t *testing.T) {
	r := newRig(t)
	ids := r.TokenIDs()[:60]
	frozen := r.dial()
	frozen.subscribe(ids...)
	frozen.drain()
	r.Freeze()
	r.step(30)
	later := r.dial()
	later.subscribe(ids...)
	later.drain()
	r.step(30)
	if n := len(frozen.drain()); n != 0 {
		t.Errorf("got %d messages on a frozen socket, want none", n)
	}
	if n := len(later.drain()); n == 0 {
		t.Error("got no message on a socket that was opened after Freeze")
	}
}

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
	if n := r.Stats().Stream.Subscriptions; n != 500 {
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
	r := newRig(t)
	r.behave(func(b *polymarket.Behaviour) { b.ResolutionByPolling = true })
	if messages := resolveOne(t, r); resolved(messages) {
		t.Errorf("with ResolutionByPolling: got a market_resolved in %v", messages)
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

func TestDisconnectAndClose(t *testing.T) {
	r := newRig(t)
	s := r.dial()
	s.drain()
	if status, _ := r.call("/__control/faults", object{"disconnect": true}); status != 200 {
		t.Errorf("disconnect: got status %d, want 200", status)
	}
	if _, _, err := s.ws.Read(context.Background()); err == nil {
		t.Error("the socket is still open after disconnect")
	}
	r.Close()
	if n := r.Stats().Stream.Connections; n != 0 {
		t.Errorf("after Close: got %d open sockets, want none", n)
	}
}
