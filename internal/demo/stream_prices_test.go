package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStreamedPrices checks the sequence numbers of price frames. The prices, best prices and timestamps must equal those from
// REST.
func TestStreamedPrices(t *testing.T) {
	c := newClock()
	s := open(t, Config{Clock: c, Seed: 5})
	l := s.dial(t)
	seqs, frames := map[string]uint64{}, 0
	l.subscribe("prices", 0, idsOf(s.listing.tokens[:150])...)
	for range 120 {
		for _, f := range l.settle() {
			id, seq := f["tokenId"].(string), number(t, f, "seq")
			if frames++; seqs[id] != 0 && seq != seqs[id]+1 {
				t.Fatalf("after seq %d: got frame %v", seqs[id], f)
			}
			seqs[id] = seq
			rest := get[object](t, s, "/api/exchange/prices?tokenId="+id)
			spread := get[object](t, s, "/api/exchange/spreads?tokenId="+id)
			if f["price"] != rest["price"] || f["timestamp"] != rest["timestamp"] || f["bestBid"] != spread["bestBid"] || f["bestAsk"] != spread["bestAsk"] {
				t.Fatalf("got frame %v, want the values from REST: price %v and spread %v", f, rest, spread)
			}
		}
		c.Advance(pace)
		s.Step()
	}
	if len(seqs) != 150 || frames < 200 {
		t.Errorf("got %d frames of %d tokens, want at least 200 of 150", frames, len(seqs))
	}
}

// TestTape checks the sequence numbers and the ids of the public trades of all open tokens. The public trades must include the
// trades of accounts. A snapshot for a late subscriber must have the last trades and the current sequence number.
func TestTape(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 40, Clock: c, Seed: 2})
	l := s.dial(t)
	tokens := slices.DeleteFunc(slices.Clone(s.listing.tokens), func(tok *token) bool { return !isOpen(tok) })
	l.subscribe("trades", 0, idsOf(tokens)...)
	seqs, tapes, ids := map[string]uint64{}, map[string][]any{}, map[any]bool{}
	for _, tok := range tokens {
		f := l.take("trades_snapshot")
		tapes[tok.id], seqs[tok.id] = f["trades"].([]any), number(t, f, "seq")
		for _, trade := range tapes[tok.id] {
			ids[trade.(object)["tradeId"]] = true
		}
	}
	known := len(ids)
	take := func() (taken []object) {
		taken = l.settle()
		for _, f := range taken {
			id := f["tokenId"].(string)
			if f["type"] != "trade" || number(t, f, "prevSeq") != seqs[id] || number(t, f, "seq") != seqs[id]+1 || ids[f["tradeId"]] {
				t.Fatalf("after seq %d: got frame %v, want the next trade", seqs[id], f)
			}
			seqs[id]++
			ids[f["tradeId"]] = true
			trade := object{}
			for _, name := range []string{"tradeId", "price", "size", "side", "outcome", "timestamp"} {
				trade[name] = f[name]
			}
			tapes[id] = append(tapes[id], trade)
		}
		return taken
	}
	for range 200 {
		c.Advance(pace)
		s.Step()
		take()
	}
	if known != len(tokens)*tapeLength || len(ids) < known+50 {
		t.Errorf("got %d different trades in the snapshots and %d later, want %d and at least 50", known, len(ids)-known, len(tokens)*tapeLength)
	}
	if err := s.Trade(small, s.accounts[small].positions[0].token.id, Buy, 1234); err != nil {
		t.Fatal(err)
	}
	taken := take()
	mine := get[recordsAnswer](t, s, "/api/user/trades?limit=1&address="+small+credentials("demo")).Trades[0]
	if len(taken) != 1 || taken[0]["tradeId"] != mine.TradeID || taken[0]["size"] != json.Number("12.34") || taken[0]["side"] != "BUY" {
		t.Errorf("got the public trades %v, want only the trade of the account %+v", taken, mine)
	}
	late := s.dial(t)
	late.subscribe("trades", 0, idsOf(tokens)...)
	for _, tok := range tokens {
		f := late.take("trades_snapshot")
		tape := tapes[tok.id]
		if number(t, f, "seq") != seqs[tok.id] || fmt.Sprint(f["trades"]) != fmt.Sprint(tape[len(tape)-tapeLength:]) {
			t.Errorf("got snapshot %v, want %v", f, tape[len(tape)-tapeLength:])
		}
	}
}

// TestHeartbeat checks that consecutive heartbeats together have the sequence numbers of all topics. One heartbeat must have at
// most 100 numbers for a channel.
func TestHeartbeat(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 300, Clock: c, Heartbeat: 2 * time.Millisecond})
	l := s.dial(t)
	if n := number(t, l.hello, "heartbeatMs"); n != 2 {
		t.Errorf("got heartbeatMs %d, want 2", n)
	}
	if f := l.until("heartbeat"); number(t, f, "ts") != uint64(c.Now().UnixMilli()) || fmt.Sprint(f["seqs"]) != "map[]" {
		t.Errorf("without subscriptions: got heartbeat %v, want no sequence numbers", f)
	}
	for range 40 {
		s.Step()
	}
	tokens := s.listing.tokens[:230]
	l.send("subscribe", `"channel":"orderbook","tokenIds":["`+strings.Join(idsOf(tokens), `","`)+`"]`)
	l.send("subscribe", `"channel":"trades","tokenIds":["`+tokens[4].id+`"]`)
	l.send("subscribe", `"channel":"market","marketIds":["`+tokens[4].market.id+`"]`)
	l.subscribeWithoutReading(t)
	user := number(t, l.until("user_snapshot"), "seq")
	found := map[string]json.Number{}
	for beats := 0; len(found) < len(tokens); beats++ {
		if beats == 4 {
			t.Fatalf("%d heartbeats have the sequence numbers of %d of %d tokens", beats, len(found), len(tokens))
		}
		seqs := l.until("heartbeat")["seqs"].(object)
		books := seqs["orderbook"].(object)
		if len(books) > 100 || fmt.Sprint(seqs["trades"]) != fmt.Sprintf("map[%s:%d]", tokens[4].id, tokens[4].tape.seq) ||
			fmt.Sprint(seqs["market"]) != "map["+tokens[4].market.id+":1]" || fmt.Sprint(seqs["user"]) != fmt.Sprintf("map[%s:%d]", small, user) {
			t.Fatalf("got a heartbeat with the sequence numbers %v", seqs)
		}
		for id, n := range books {
			found[id] = n.(json.Number)
		}
	}
	for _, tok := range tokens {
		if b, _ := s.Book(tok.id); found[tok.id].String() != strconv.FormatUint(b.Seq, 10) {
			t.Errorf("token %s: got seq %s in the heartbeats, want %d", tok.id, found[tok.id], b.Seq)
		}
	}
}
