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
	s := open(t, Config{Markets: 600, Clock: c, Seed: 5})
	l := s.dial(t)
	seqs := map[string]uint64{}
	ids := idsOf(s.listing.tokens[:250])
	l.subscribe("prices", 0, ids...)
	take := func() {
		step := map[string]bool{} // the tokens whose prices have changed in this step
		for _, f := range l.settle() {
			id := f["tokenId"].(string)
			if step[id] {
				t.Fatalf("got a second frame of a token in one step: %v", f)
			}
			step[id] = true
			if seq := number(t, f, "seq"); seqs[id] != 0 && seq != seqs[id]+1 {
				t.Fatalf("after seq %d: got frame %v", seqs[id], f)
			}
			seqs[id] = number(t, f, "seq")
			rest := get[object](t, s, "/api/exchange/prices?tokenId="+id)
			spread := get[object](t, s, "/api/exchange/spreads?tokenId="+id)
			if f["price"] != rest["price"] || f["timestamp"] != rest["timestamp"] || f["bestBid"] != spread["bestBid"] || f["bestAsk"] != spread["bestAsk"] {
				t.Fatalf("got frame %v, want the values from REST: price %v and spread %v", f, rest, spread)
			}
		}
	}
	take()
	for range 300 {
		c.Advance(pace)
		s.Step()
		take()
	}
	if len(seqs) != len(ids) {
		t.Errorf("got frames of %d tokens, want %d", len(seqs), len(ids))
	}
}

// TestTape checks the sequence numbers and the prices of the public trades of all open tokens. The public trades must include the
// trades of accounts. A snapshot for a late subscriber must have the last trades and the current sequence number.
func TestTape(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 40, Clock: c, Seed: 2})
	l := s.dial(t)
	tokens := slices.DeleteFunc(slices.Clone(s.listing.tokens), func(tok *token) bool { return !isOpen(tok) })
	l.subscribe("trades", 0, idsOf(tokens)...)
	seqs, tapes := map[string]uint64{}, map[string][]object{}
	ids := map[any]bool{}
	for _, tok := range tokens {
		f := l.take("trades_snapshot")
		previous := ""
		for _, x := range f["trades"].([]any) {
			trade := x.(object)
			if at := trade["timestamp"].(string); at < previous || at > c.Now().Format(time.RFC3339) {
				t.Fatalf("got trade %v after a trade at %s, want a later time that has passed", trade, previous)
			} else {
				previous = at
			}
			tapes[tok.id] = append(tapes[tok.id], trade)
			if ids[trade["tradeId"]] {
				t.Fatalf("%v: duplicate tradeId", trade)
			}
			ids[trade["tradeId"]] = true
		}
		if n := len(tapes[tok.id]); n != tapeLength || f["tokenId"] != tok.id {
			t.Fatalf("got %d trades in the snapshot %v, want %d of token %s", n, f, tapeLength, tok.id)
		}
		seqs[tok.id] = number(t, f, "seq")
	}
	take := func() (taken []object) {
		for _, f := range l.settle() {
			id := f["tokenId"].(string)
			if f["type"] != "trade" || number(t, f, "prevSeq") != seqs[id] || number(t, f, "seq") != seqs[id]+1 {
				t.Fatalf("after seq %d: got frame %v, want the next trade", seqs[id], f)
			}
			seqs[id]++
			if ids[f["tradeId"]] {
				t.Fatalf("%v: duplicate tradeId", f)
			}
			ids[f["tradeId"]] = true
			trade := object{}
			for _, name := range []string{"tradeId", "price", "size", "side", "outcome", "timestamp"} {
				trade[name] = f[name]
			}
			if size := fixed(t, f["size"].(json.Number), 2); size <= 0 {
				t.Fatalf("got a size that is not positive in %v", f)
			}
			tapes[id] = append(tapes[id], trade)
			taken = append(taken, f)
		}
		return taken
	}
	// In this loop no account trades, so the price of every trade must lie between the best bid and the best ask. (The order of an
	// account may trade at another price.)
	v := s.Venue
	for range 300 {
		c.Advance(pace)
		_ = v.change(func(now millis) error {
			v.moves = v.moves[:0]
			v.move(tokens[v.random.intn(len(tokens))].market.tokens[0], 1+v.random.intn(90), now)
			v.printTrades(now)
			return nil
		})
		for _, f := range take() {
			q, _ := s.Quote(f["tokenId"].(string))
			if price := Price(fixed(t, f["price"].(json.Number), 4)); q.BestBid > 0 && price < q.BestBid || q.BestAsk > 0 && price > q.BestAsk {
				t.Fatalf("got trade %v, want a price between the best prices of %+v", f, q)
			}
		}
	}
	prints := len(ids)
	for range 200 {
		c.Advance(pace)
		s.Step()
		take()
	}
	tok := s.accounts[small].positions[0].token
	if err := s.Trade(small, tok.id, Buy, 1234); err != nil {
		t.Fatal(err)
	}
	taken := take()
	mine := get[recordsAnswer](t, s, "/api/user/trades?limit=1&address="+small+credentials("demo")).Trades[0]
	if len(taken) != 1 || taken[0]["tradeId"] != mine.TradeID || taken[0]["size"] != json.Number("12.34") || taken[0]["side"] != "BUY" {
		t.Errorf("got the public trades %v, want only the trade of the account %+v", taken, mine)
	}
	if prints-len(tokens)*tapeLength < 50 || len(ids) == prints {
		t.Errorf("got %d trades in the first loop and %d later, want at least 50 and 1", prints-len(tokens)*tapeLength, len(ids)-prints)
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
