package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// openTokens returns so many tokens that trade, of markets of their own.
func openTokens(t testing.TB, v *Venue, n int) (tokens []*token) {
	t.Helper()
	for _, m := range v.listing.markets {
		if m.status == statusOpen && len(tokens) < n {
			tokens = append(tokens, m.tokens[0])
		}
	}
	if len(tokens) < n {
		t.Fatalf("only %d markets are open", len(tokens))
	}
	return tokens
}

func idsOf(tokens []*token) (ids []string) {
	for _, t := range tokens {
		ids = append(ids, t.id)
	}
	return ids
}

// nudge moves a token by some ticks, which always changes its book too.
func (s *stage) nudge(t testing.TB, tok *token) {
	t.Helper()
	price := tok.stated() + 5*tok.tick
	if tok.stated() > payout/2 {
		price = tok.stated() - 5*tok.tick
	}
	if err := s.SetPrice(tok.id, price); err != nil {
		t.Fatal(err)
	}
}

// goldenFrames are the frames that the project's client is tested with.
const goldenFrames = "../../tests/testdata/venue/stream/frames"

// Every frame that the client is tested with is one that the venue sends: of the same members with the same types.
func TestFramesHaveTheGoldenShapes(t *testing.T) {
	s := open(t, Config{Heartbeat: 5 * time.Millisecond}, func(l *streamLimits) { l.framesPerSecond = 60 })
	var sent []object
	note := func(f object) object { sent = append(sent, f); return f }
	tok := openTokens(t, s.Venue, 1)[0]

	l := s.dial(t)
	note(l.hello)
	note(object{"type": "subscribed", "rid": "1", "channel": "orderbook", "tokenIds": []any{"T1"}}) // as subscribe checks
	l.send("subscribe", `"channel":"orderbook","tokenIds":["`+tok.id+`","nobody"]`)
	l.send("subscribe", `"channel":"prices","tokenIds":["`+tok.id+`"]`)
	l.send("subscribe", `"channel":"trades","tokenIds":["`+tok.id+`"]`)
	l.send("subscribe", `"channel":"market","marketIds":["`+tok.market.id+`"]`)
	l.send("ping", "")
	for f := range l.all("pong") {
		note(f)
	}
	for side := range 400 { // until the best prices of one side have gone
		if err := s.SetPrice(tok.id, payout-tok.tick*Price(1+side%2)); err != nil {
			t.Fatal(err)
		}
	}
	v := s.Venue
	_ = v.change(func(now millis) error {
		v.printTrade(tok, tapeTrade{id: "x", price: tok.stated(), size: share, side: Buy, at: now})
		return nil
	})
	for f := range l.all("heartbeat") {
		note(f)
	}
	if err := s.SetStatus(tok.market.id, statusClosed); err != nil {
		t.Fatal(err)
	}
	if err := s.Resolve(tok.market.id, tok.id); err != nil {
		t.Fatal(err)
	}
	l.send("unsubscribe", `"channel":"orderbook","tokenIds":["`+tok.id+`"]`)
	l.send("resync", `"channel":"prices","tokenId":"`+tok.id+`"`)
	for f := range l.all("unsubscribed") {
		note(f)
	}
	empty := s.dial(t)
	empty.subscribe("orderbook", 0, tok.id)
	note(empty.take("orderbook_snapshot"))

	u := s.dial(t)
	u.send("auth", `"address":"`+small+`","credentials":{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}`)
	u.send("subscribe", `"channel":"user","address":"`+small+`"`)
	for f := range u.all("user_snapshot") {
		note(f)
	}
	for range 60 {
		s.Step()
	}
	for range 2 { // the first one may be without the topic
		for f := range u.all("heartbeat") {
			note(f)
		}
	}
	for range 70 {
		u.send("ping", "")
	}
	for f := range u.all("error") {
		note(f)
	}
	e := s.dial(t)
	e.send("auth", `"address":"`+small+`"`)
	note(e.take("error"))

	files, err := filepath.Glob(filepath.Join(goldenFrames, "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		golden := decode[struct{ Frame object }](t, string(raw)).Frame
		if withoutStamp[golden["type"].(string)] {
			delete(golden, "timestamp")
		}
		var candidates []string
		if !slices.ContainsFunc(sent, func(f object) bool {
			if f["type"] == golden["type"] {
				candidates = append(candidates, fmt.Sprint(f))
			}
			return f["type"] == golden["type"] && sameShape(f, golden)
		}) {
			t.Errorf("%s: no frame has this shape: %v; there are %v", filepath.Base(file), golden, candidates[:min(len(candidates), 2)])
		}
	}
}

// withoutStamp are frames that carry no timestamp, though the client reads one.
var withoutStamp = map[string]bool{
	"market_update": true, "market_resolved": true, "user_snapshot": true, "order_update": true, "fill": true,
	"position_update": true, "balance_update": true,
}

// all yields frames up to one of a type.
func (l *listener) all(last string) func(func(object) bool) {
	return func(yield func(object) bool) {
		for {
			f := l.next()
			if !yield(f) || f["type"] == last {
				return
			}
		}
	}
}

// sameShape reports whether two JSON values have the same members of the same types. An empty list fits any list. What stands
// under an identifier counts like what stands under any other.
func sameShape(a, b any) bool {
	switch b := b.(type) {
	case object:
		a, ok := a.(object)
		if !ok {
			return false
		}
		for name, value := range b {
			if name == "seqs" {
				return shapeOfSeqs(a[name], value)
			}
			other, ok := a[name]
			if !ok || !sameShape(other, value) {
				return false
			}
		}
		return len(a) == len(b)
	case []any:
		a, ok := a.([]any)
		if !ok {
			return false
		}
		if len(b) == 0 || len(a) == 0 {
			return len(a) == len(b)
		}
		for _, element := range a {
			if !sameShape(element, b[0]) {
				return false
			}
		}
		return true
	default:
		return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b)
	}
}

// shapeOfSeqs is sameShape for channels with identifiers with numbers: all channels of b must be there.
func shapeOfSeqs(a, b any) bool {
	given, ok := a.(object)
	if !ok {
		return false
	}
	for channel := range b.(object) {
		ids, ok := given[channel].(object)
		if !ok || len(ids) == 0 {
			return false
		}
		for _, n := range ids {
			if _, ok := n.(json.Number); !ok {
				return false
			}
		}
	}
	return true
}

func TestHello(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) { *l = standardLimits })
	hello := s.dial(t).hello
	want := `map[epoch:` + s.Epoch() + ` heartbeatMs:15000 limits:map[depth:200 frameBytes:65536 framesPerSecond:20 topics:500] type:hello]`
	if fmt.Sprint(hello) != want {
		t.Errorf("got %v, want %s", hello, want)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, StreamPath, nil))
		if w.Code < 400 || w.Code > 499 {
			t.Errorf("%s without an upgrade: %d", method, w.Code)
		}
	}
}

// A subscribe is acknowledged, then the present state follows, then changes; one that is repeated is only acknowledged.
// Identifiers that are not known are named, one by one, and keep nothing from the others.
func TestSubscribe(t *testing.T) {
	s := open(t, Config{})
	tokens := openTokens(t, s.Venue, 3)
	a, b := tokens[0], tokens[1]
	l := s.dial(t)

	for channel, snapshot := range map[string]string{"prices": "price_update", "orderbook": "orderbook_snapshot", "trades": "trades_snapshot"} {
		rid := l.send("subscribe", `"channel":"`+channel+`","tokenIds":["`+a.id+`","nobody","`+b.id+`","`+a.id+`","odd"]`)
		if f := l.take("subscribed"); f["rid"] != rid || fmt.Sprint(f["tokenIds"]) != fmt.Sprint([]string{a.id, b.id}) || f["channel"] != channel {
			t.Fatalf("%v", f)
		}
		for _, id := range []string{"nobody", "odd"} {
			if f := l.take("error"); f["rid"] != rid || f["code"] != "UNKNOWN_TOKEN" || f["tokenId"] != id {
				t.Fatalf("%v", f)
			}
		}
		for _, tok := range []*token{a, b} {
			if f := l.take(snapshot); f["tokenId"] != tok.id || f["marketId"] != tok.market.id {
				t.Fatalf("%v", f)
			}
		}
		l.subscribe(channel, 0, b.id, a.id)
		if frames := l.settle(); len(frames) > 0 {
			t.Fatalf("after a repeated subscribe: %v", frames)
		}
	}
	if n := s.Stats().Stream; n.Topics["orderbook"] != 2 || n.Subscriptions["trades"] != 2 || n.Subscribes["prices"] != 4 || n.Connections != 1 || n.Opened != 1 {
		t.Errorf("stats %+v", n)
	}
	s.nudge(t, a)
	frames := l.settle()
	if len(frames) != 2 || frames[0]["type"] != "orderbook_update" || frames[1]["type"] != "price_update" {
		t.Fatalf("after a move: %v", frames)
	}

	// Another depth is another book.
	l.subscribe("orderbook", 1, a.id)
	if f := l.take("orderbook_snapshot"); len(f["bids"].([]any)) != 1 {
		t.Fatalf("%v", f)
	}
	// A resync brings the present state again.
	for channel, snapshot := range map[string]string{"prices": "price_update", "orderbook": "orderbook_snapshot", "trades": "trades_snapshot"} {
		l.send("resync", `"channel":"`+channel+`","tokenId":"`+a.id+`"`)
		if f := l.take(snapshot); f["tokenId"] != a.id {
			t.Fatalf("%v", f)
		}
	}
	if s.Stats().Stream.Resyncs["trades"] != 1 {
		t.Errorf("stats %+v", s.Stats().Stream)
	}
	rid := l.send("resync", `"channel":"orderbook","tokenId":"`+tokens[2].id+`"`)
	if f := l.take("error"); f["rid"] != rid || f["code"] != "NOT_SUBSCRIBED" || f["tokenId"] != tokens[2].id {
		t.Fatalf("%v", f)
	}

	// What was left is quiet, the rest is not.
	rid = l.send("unsubscribe", `"channel":"orderbook","tokenIds":["`+a.id+`","`+tokens[2].id+`"]`)
	if f := l.take("unsubscribed"); f["rid"] != rid || f["channel"] != "orderbook" || fmt.Sprint(f["tokenIds"]) != fmt.Sprint([]string{a.id, tokens[2].id}) {
		t.Fatalf("%v", f)
	}
	s.nudge(t, a)
	s.nudge(t, b)
	frames = l.settle()
	if len(frames) != 3 || frames[0]["type"] != "price_update" || frames[1]["tokenId"] != b.id {
		t.Fatalf("after unsubscribing: %v", frames)
	}

	// A market stands for all of its tokens.
	m := a.market
	rid = l.send("subscribe", `"channel":"orderbook","marketIds":["`+m.id+`","none"]`)
	if f := l.take("subscribed"); f["rid"] != rid || len(f["tokenIds"].([]any)) != len(m.tokens) {
		t.Fatalf("%v", f)
	}
	if f := l.take("error"); f["code"] != "UNKNOWN_MARKET" || f["marketId"] != "none" {
		t.Fatalf("%v", f)
	}
	for range m.tokens {
		l.take("orderbook_snapshot")
	}
	_ = l.ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "the topics are closed", func() bool {
		n := s.Stats().Stream
		return n.Connections == 0 && len(n.Topics)+len(n.Subscriptions) == 0
	})
	for _, tok := range s.listing.tokens {
		if tok.topics != [tokenChannels]*topic{} {
			t.Fatalf("token %s has topics", tok.id)
		}
	}
}

// eventually waits for something that another goroutine brings about.
func (s *stage) eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not so; %+v", what, s.Stats().Stream)
		}
	}
}

func TestRefusedRequests(t *testing.T) {
	s := open(t, Config{})
	l := s.dial(t)
	id := s.listing.tokens[0].id
	for _, c := range []struct{ frame, code, rid string }{
		{`{"type":"subscribe","rid":"r","channel":"weather","tokenIds":["` + id + `"]}`, "UNKNOWN_CHANNEL", "r"},
		{`{"type":"subscribe","rid":"r","channel":"prices"}`, "BAD_REQUEST", "r"},
		{`{"type":"subscribe","rid":"r","channel":"market","tokenIds":["` + id + `"]}`, "BAD_REQUEST", "r"},
		{`{"type":"subscribe","rid":"r","channel":"market","marketIds":["none"]}`, "UNKNOWN_MARKET", "r"},
		{`{"type":"subscribe","rid":"r","channel":"prices","tokenIds":["none"]}`, "UNKNOWN_TOKEN", "r"},
		{`{"type":"resync","rid":"r","channel":"prices","tokenIds":["none"]}`, "UNKNOWN_TOKEN", "r"},
		{`{"type":"unsubscribe","rid":"r","channel":"prices","tokenIds":["none"]}`, "UNKNOWN_TOKEN", "r"},
		{`{"type":"subscribe","rid":"r","channel":"orderbook","tokenIds":["` + id + `"],"depth":-1}`, "BAD_REQUEST", "r"},
		{`{"type":"subscribe","rid":"r","channel":"user","address":"` + small + `"}`, "UNAUTHENTICATED", "r"},
		{`{"type":"hop","rid":"r"}`, "UNKNOWN_TYPE", "r"},
		{`{}`, "UNKNOWN_TYPE", ""},
		{`{"type":"ping","rid":7}`, "BAD_REQUEST", ""},
		{`{"type":"ping","rid":"` + strings.Repeat("x", 300) + `"}`, "BAD_REQUEST", ""},
		{`[]`, "BAD_REQUEST", ""}, {`{`, "BAD_REQUEST", ""}, {``, "BAD_REQUEST", ""},
	} {
		l.raw(c.frame)
		f := l.take("error")
		if rid, _ := f["rid"].(string); f["code"] != c.code || rid != c.rid || f["error"] == "" {
			t.Errorf("%.80s: %v", c.frame, f)
		}
		if frames := l.settle(); len(frames) > 0 {
			t.Errorf("%.80s: and then %v", c.frame, frames)
		}
	}
	if err := l.ws.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if f := l.take("error"); f["code"] != "BAD_REQUEST" {
		t.Errorf("a binary frame: %v", f)
	}
	l.raw(`{"type":"ping"}`)
	if f := l.take("pong"); len(f) != 1 {
		t.Errorf("a ping without a rid: %v", f)
	}
	l.raw(`{"type":"ping","rid":"` + strings.Repeat("x", 65<<10) + `"}`)
	if code := l.closed(); code != int(websocket.StatusMessageTooBig) {
		t.Errorf("a frame of 65 KB: closed with %d", code)
	}
}

func TestTopicLimit(t *testing.T) {
	s := open(t, Config{Markets: 400})
	l := s.dial(t)
	var all []string
	for _, tok := range s.listing.tokens[:600] {
		all = append(all, tok.id)
	}
	list := func(ids []string) string { return `"` + strings.Join(ids, `","`) + `"` }
	l.subscribe("prices", 0, all[:300]...)
	rid := l.send("subscribe", `"channel":"trades","tokenIds":[`+list(all[:250])+`]`)
	if n := len(l.until("subscribed")["tokenIds"].([]any)); n != 200 {
		t.Errorf("%d of 250 were taken", n)
	}
	f := l.take("error")
	if f["rid"] != rid || f["code"] != "TOO_MANY_TOPICS" || fmt.Sprint(f["tokenIds"]) != fmt.Sprint(all[200:250]) {
		t.Errorf("%v", f)
	}
	if n := len(l.settle()); n != 200 {
		t.Errorf("%d snapshots", n)
	}
	l.subscribe("prices", 0, all[5]) // those that are there can be repeated
	l.send("unsubscribe", `"channel":"prices","tokenIds":["`+all[5]+`"]`)
	l.take("unsubscribed")
	l.subscribe("orderbook", 0, all[0])
	l.take("orderbook_snapshot")
	rid = l.send("subscribe", `"channel":"market","marketIds":["`+s.listing.markets[0].id+`"]`)
	if f := l.take("error"); f["rid"] != rid || f["code"] != "TOO_MANY_TOPICS" {
		t.Errorf("%v", f)
	}
	if n := s.Stats().Stream.Subscriptions; n["prices"]+n["trades"]+n["orderbook"] != 500 {
		t.Errorf("%v", n)
	}
}

// A request for more than the queue holds is answered in full, since it waits for its own answers.
func TestLargeRequest(t *testing.T) {
	s := open(t, Config{Markets: 400}, func(l *streamLimits) { l.queue, l.queueBytes = 20, 40_000 })
	l := s.dial(t)
	tokens := openTokens(t, s.Venue, 200)
	l.subscribe("orderbook", 0, idsOf(tokens)...)
	for _, tok := range tokens {
		if f := l.take("orderbook_snapshot"); f["tokenId"] != tok.id {
			t.Fatalf("%v", f)
		}
	}
}

// Frames over the rate are refused with a time to wait; a client that sends twice as many is sent away.
func TestFrameRate(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) { l.framesPerSecond = standardLimits.framesPerSecond })
	l := s.dial(t)
	for range 41 {
		l.send("ping", "")
	}
	for n := range 41 {
		f := l.next()
		if n < 20 && f["type"] != "pong" || n >= 20 && (f["type"] != "error" || f["code"] != "RATE_LIMITED") || f["rid"] != strconv.Itoa(n+1) {
			t.Fatalf("answer %d: %v", n+1, f)
		}
		if n >= 20 && n < 40 {
			if wait := number(t, f, "retryAfterMs"); wait < 1 || wait > 1001 {
				t.Fatalf("answer %d: %v", n+1, f)
			}
		}
	}
	if code := l.closed(); code != CloseAbuse {
		t.Errorf("closed with %d", code)
	}
	if n := s.Stats().Stream.Closes; n["4008"] != 1 || len(n) != 1 {
		t.Errorf("closes %v", n)
	}
}

func TestAuthentication(t *testing.T) {
	s := open(t, Config{})
	key := func(name string) string {
		return `,"credentials":{"apiKey":"` + name + `","secret":"demo","passphrase":"demo","extra":"x"}`
	}
	l := s.dial(t)
	for _, c := range []struct{ address, key, code string }{{medium, "demo-3", "FORBIDDEN"}, {"0x1", "demo-3", "BAD_REQUEST"}} {
		rid := l.send("auth", `"address":"`+c.address+`"`+key(c.key))
		if f := l.take("error"); f["code"] != c.code || f["rid"] != rid {
			t.Errorf("%v", f)
		}
	}
	l.subscribeUser(small, "demo-3")
	rid := l.send("subscribe", `"channel":"user","address":"`+medium+`"`)
	if f := l.take("error"); f["code"] != "FORBIDDEN" || f["rid"] != rid || f["address"] != medium {
		t.Errorf("%v", f)
	}
	l.send("subscribe", `"channel":"user","address":"`+small+`"`)
	l.take("subscribed") // repeated
	l.send("resync", `"channel":"user","address":"`+small+`"`)
	l.take("user_snapshot")
	l.subscribeUser(other, "demo") // a second one on the same connection
	l.send("unsubscribe", `"channel":"user","address":"`+small+`"`)
	if f := l.take("unsubscribed"); f["address"] != small {
		t.Errorf("%v", f)
	}
	for i, credentials := range []string{``, `,"credentials":null`, `,"credentials":"x"`, key("nobody"),
		`,"credentials":{"apiKey":"demo-3","secret":"x","passphrase":"demo"}`, `,"credentials":{"apiKey":"` + strings.Repeat("x", 5000) + `"}`} {
		l := s.dial(t)
		rid := l.send("auth", `"address":"`+small+`"`+credentials)
		if f := l.take("error"); f["code"] != "UNAUTHENTICATED" || f["rid"] != rid {
			t.Errorf("credentials %d: %v", i, f)
		}
		if code := l.closed(); code != CloseCredentials {
			t.Errorf("credentials %d: closed with %d", i, code)
		}
	}
}

// Prices are numbered one by one, state the best prices and agree with REST in price and time.
func TestStreamedPrices(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 600, Clock: c, Seed: 5})
	l := s.dial(t)
	seqs := map[string]uint64{}
	ids := idsOf(s.listing.tokens[:250])
	l.subscribe("prices", 0, ids...)
	take := func() {
		step := map[string]bool{} // in which no price changes twice
		for _, f := range l.settle() {
			id := f["tokenId"].(string)
			if step[id] {
				t.Fatalf("twice in a step: %v", f)
			}
			step[id] = true
			if seq := number(t, f, "seq"); seqs[id] != 0 && seq != seqs[id]+1 {
				t.Fatalf("after %d: %v", seqs[id], f)
			}
			seqs[id] = number(t, f, "seq")
			rest := get[object](t, s, "/api/exchange/prices?tokenId="+id)
			spread := get[object](t, s, "/api/exchange/spreads?tokenId="+id)
			if f["price"] != rest["price"] || f["timestamp"] != rest["timestamp"] || f["bestBid"] != spread["bestBid"] || f["bestAsk"] != spread["bestAsk"] {
				t.Fatalf("streamed %v, REST %v and %v", f, rest, spread)
			}
		}
	}
	take()
	for range 300 {
		c.advance(pace)
		s.Step()
		take()
	}
	if len(seqs) != len(ids) {
		t.Errorf("%d of %d tokens were streamed", len(seqs), len(ids))
	}
}

// The tape runs on without gaps, between the best prices, and holds what accounts trade. A snapshot ends where it is.
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
				t.Fatalf("%v after %s", trade, previous)
			} else {
				previous = at
			}
			tapes[tok.id] = append(tapes[tok.id], trade)
			if ids[trade["tradeId"]] {
				t.Fatalf("%v: the identifier is taken", trade)
			}
			ids[trade["tradeId"]] = true
		}
		if n := len(tapes[tok.id]); n != tapeLength || f["tokenId"] != tok.id {
			t.Fatalf("%d trades of %s in %v", n, tok.id, f)
		}
		seqs[tok.id] = number(t, f, "seq")
	}
	take := func() (taken []object) {
		for _, f := range l.settle() {
			id := f["tokenId"].(string)
			if f["type"] != "trade" || number(t, f, "prevSeq") != seqs[id] || number(t, f, "seq") != seqs[id]+1 {
				t.Fatalf("after %d: %v", seqs[id], f)
			}
			seqs[id]++
			if ids[f["tradeId"]] {
				t.Fatalf("%v: the identifier is taken", f)
			}
			ids[f["tradeId"]] = true
			trade := object{}
			for _, name := range []string{"tradeId", "price", "size", "side", "outcome", "timestamp"} {
				trade[name] = f[name]
			}
			if size := fixed(t, f["size"].(json.Number), 2); size <= 0 {
				t.Fatalf("%v", f)
			}
			tapes[id] = append(tapes[id], trade)
			taken = append(taken, f)
		}
		return taken
	}
	// Without the accounts, whose orders trade at their own price, all trades lie within the spread.
	v := s.Venue
	for range 300 {
		c.advance(pace)
		_ = v.change(func(now millis) error {
			v.moves = v.moves[:0]
			v.move(tokens[v.random.intn(len(tokens))].market.tokens[0], 1+v.random.intn(90), now)
			v.printTrades(now)
			return nil
		})
		for _, f := range take() {
			q, _ := s.Quote(f["tokenId"].(string))
			if price := Price(fixed(t, f["price"].(json.Number), 4)); q.BestBid > 0 && price < q.BestBid || q.BestAsk > 0 && price > q.BestAsk {
				t.Fatalf("%v, quote %+v", f, q)
			}
		}
	}
	prints := len(ids)
	for range 200 {
		c.advance(pace)
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
		t.Errorf("the trade %+v is on the tape as %v", mine, taken)
	}
	if prints-len(tokens)*tapeLength < 50 || len(ids) == prints {
		t.Errorf("%d trades", prints-len(tokens)*tapeLength)
	}
	late := s.dial(t)
	late.subscribe("trades", 0, idsOf(tokens)...)
	for _, tok := range tokens {
		f := late.take("trades_snapshot")
		tape := tapes[tok.id]
		if number(t, f, "seq") != seqs[tok.id] || fmt.Sprint(f["trades"]) != fmt.Sprint(tape[len(tape)-tapeLength:]) {
			t.Errorf("snapshot %v, tape %v", f, tape[len(tape)-tapeLength:])
		}
	}
}

// Heartbeats state the numbers of all topics, at most 100 of a channel at a time.
func TestHeartbeat(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 300, Clock: c, Heartbeat: 2 * time.Millisecond})
	l := s.dial(t)
	if n := number(t, l.hello, "heartbeatMs"); n != 2 {
		t.Errorf("hello says %d", n)
	}
	if f := l.until("heartbeat"); number(t, f, "ts") != uint64(c.Now().UnixMilli()) || fmt.Sprint(f["seqs"]) != "map[]" {
		t.Errorf("%v", f)
	}
	for range 40 {
		s.Step()
	}
	tokens := s.listing.tokens[:230]
	l.send("subscribe", `"channel":"orderbook","tokenIds":["`+strings.Join(idsOf(tokens), `","`)+`"]`)
	l.send("subscribe", `"channel":"trades","tokenIds":["`+tokens[4].id+`"]`)
	l.send("subscribe", `"channel":"market","marketIds":["`+tokens[4].market.id+`"]`)
	l.send("auth", `"address":"`+small+`","credentials":{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}`)
	l.send("subscribe", `"channel":"user","address":"`+small+`"`)
	user := number(t, l.until("user_snapshot"), "seq")
	found := map[string]json.Number{}
	for beats := 0; len(found) < len(tokens); beats++ {
		if beats == 4 {
			t.Fatalf("%d tokens in %d heartbeats", len(found), beats)
		}
		seqs := l.until("heartbeat")["seqs"].(object)
		books := seqs["orderbook"].(object)
		if len(books) > 100 || fmt.Sprint(seqs["trades"]) != fmt.Sprintf("map[%s:%d]", tokens[4].id, tokens[4].tape.seq) ||
			fmt.Sprint(seqs["market"]) != "map["+tokens[4].market.id+":1]" || fmt.Sprint(seqs["user"]) != fmt.Sprintf("map[%s:%d]", small, user) {
			t.Fatalf("%v", seqs)
		}
		for id, n := range books {
			found[id] = n.(json.Number)
		}
	}
	for _, tok := range tokens {
		if b, _ := s.Book(tok.id); found[tok.id].String() != strconv.FormatUint(b.Seq, 10) {
			t.Errorf("token %s: %s, state %d", tok.id, found[tok.id], b.Seq)
		}
	}
}

// narrow makes the buffers of the connections that a server accepts small.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// A client that stops reading is closed with 4002 when it has too much to read. The others get everything as before.
func TestSlowReader(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	v.stream.limits.framesPerSecond, v.stream.limits.queue = 1000, 100
	server := httptest.NewUnstartedServer(v)
	server.Listener = narrow{server.Listener}
	server.Start()
	defer server.Close()
	defer v.Close()
	s := &stage{v, server.URL, server.Client()}
	tok := openTokens(t, v, 1)[0]

	good := s.dial(t)
	good.subscribe("orderbook", 0, tok.id)
	b := &copied{}
	b.take(t, good.take("orderbook_snapshot"))

	dialer := &net.Dialer{}
	s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}}}
	slow := s.dial(t)
	slow.subscribe("orderbook", 0, tok.id)
	lag := &copied{}
	lag.take(t, slow.take("orderbook_snapshot"))
	sent := 0
	for !s.ending() {
		if sent++; sent > 100_000 {
			t.Fatal("the slow client is never closed")
		}
		s.nudge(t, tok)
		for _, f := range good.settle() {
			if !b.take(t, f) {
				t.Fatalf("a gap for the good client: %v", f)
			}
		}
	}
	b.check(t, s, tok.id, 200, good.epoch)
	// What was written before comes without a gap, then the close.
	for {
		data, err := slow.bytes()
		if err != nil {
			if code := websocket.CloseStatus(err); code != CloseSlow {
				t.Fatalf("closed with %d: %v", code, err)
			}
			break
		}
		if !lag.take(t, decode[object](t, string(data))) {
			t.Fatalf("a gap before the close")
		}
	}
	if lag.seq >= b.seq {
		t.Error("nothing was lost")
	}
	s.eventually(t, "the slow client has gone", func() bool {
		n := s.Stats().Stream
		return n.Connections == 1 && n.Closes["4002"] == 1
	})
	s.nudge(t, tok)
	if frames := good.settle(); len(frames) != 1 || !b.take(t, frames[0]) {
		t.Errorf("then the good client gets %v", frames)
	}
}

// ending reports whether a connection is being closed.
func (s *stage) ending() bool {
	return slices.ContainsFunc(s.stream.all(), func(c *streamConn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ending
	})
}

// A client that takes nothing at all is cut off when a single frame can't be written in time.
func TestDeadReader(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) {
		l.write, l.queue, l.queueBytes = 20*time.Millisecond, 1<<30, 1<<40
	})
	tokens := openTokens(t, s.Venue, 30)
	l := s.dial(t)
	for n := 0; s.Stats().Stream.Connections > 0; n++ {
		if n == 10_000 {
			t.Fatal("the client is never cut off")
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := l.ws.Write(ctx, websocket.MessageText, []byte(`{"type":"subscribe","channel":"orderbook","depth":`+strconv.Itoa(1+n%2)+
			`,"tokenIds":["`+strings.Join(idsOf(tokens), `","`)+`"]}`))
		cancel()
		if err != nil {
			break
		}
	}
	s.eventually(t, "the client is cut off", func() bool { return s.Stats().Stream.Connections == 0 })
	if n := s.Stats().Stream; len(n.Closes)+len(n.Topics) > 0 {
		t.Errorf("%+v", n)
	}
}

// Clients come, ask and go while the market moves, faults change and the venue restarts; in the end a book is what it is.
func TestStreamUnderLoad(t *testing.T) {
	s := open(t, Config{Markets: 200, MarketEvery: 10 * pace, Heartbeat: time.Millisecond})
	tokens := openTokens(t, s.Venue, 40)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for n := range 6 {
		clients.Go(func() {
			r := rng(n)
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := s.load(t, &clients)
				for range 60 {
					tok := tokens[r.intn(len(tokens))]
					channel := channelNames[r.intn(int(tokenChannels))]
					verb := []string{"subscribe", "subscribe", "resync", "unsubscribe"}[r.intn(4)]
					message := `{"type":"` + verb + `","channel":"` + channel + `","tokenIds":["` + tok.id + `"],"depth":` + strconv.Itoa(r.between(1, 300)) + `}`
					switch r.intn(8) {
					case 0:
						message = `{"type":"auth","address":"` + medium + `","credentials":{"apiKey":"demo","secret":"demo","passphrase":"demo"}}`
					case 1:
						message = `{"type":"` + verb + `","channel":"user","address":"` + medium + `"}`
					case 2:
						message = `{"type":"` + verb + `","channel":"market","marketIds":["` + tok.market.id + `"]}`
					}
					if l.Write(t.Context(), websocket.MessageText, []byte(message)) != nil {
						break
					}
				}
				_ = l.CloseNow()
			}
		})
	}
	for n := range 300 {
		s.Step()
		switch n % 100 {
		case 20:
			if err := s.SetFaults([]Fault{
				{Path: StreamPath, Kind: FaultDrop, Probability: 0.1}, {Path: StreamPath, Kind: FaultReorder, Probability: 0.1},
				{Path: StreamPath, Kind: FaultSlowSnapshot, DelayMs: 2, Probability: 0.3}, {Path: StreamPath, Kind: FaultStall, Probability: 0.001, DelayMs: 5},
				{Path: StreamPath, Kind: FaultNewEpoch, Probability: 0.001}, {Path: StreamPath, Kind: FaultLostTail, Probability: 0.01},
			}); err != nil {
				t.Fatal(err)
			}
		case 70:
			s.Reset()
		case 90:
			s.Restart([]int{0, CloseShed}[n/100%2])
		}
		s.Stats()
	}
	s.Reset()
	close(stop)
	clients.Wait()
	l := s.dial(t)
	l.subscribe("orderbook", 0, idsOf(tokens)...)
	for _, f := range l.settle() {
		b := &copied{}
		b.take(t, f)
		b.check(t, s, f["tokenId"].(string), 200, l.epoch)
	}
	_ = l.ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "all have gone", func() bool {
		n := s.Stats().Stream
		return n.Connections == 0 && len(n.Topics)+len(n.Subscriptions) == 0
	})
	if held := s.stream.held.Load(); held != 0 || len(s.stream.users) > 0 {
		t.Errorf("%d frames are held, %d wallets watched", held, len(s.stream.users))
	}
}

// load opens a stream of which all is read, and thrown away.
func (s *stage) load(t testing.TB, readers *sync.WaitGroup) *websocket.Conn {
	ws, _, err := websocket.Dial(t.Context(), s.url+StreamPath, &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		t.Error(err)
		panic(err)
	}
	ws.SetReadLimit(-1)
	readers.Go(func() {
		for {
			if _, _, err := ws.Read(context.Background()); err != nil {
				return
			}
		}
	})
	return ws
}

// Connections are bounded, and Close ends them all.
func TestConnections(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) { l.connections = 3 })
	var listeners []*listener
	for range 3 {
		listeners = append(listeners, s.dial(t))
	}
	refused := func() (int, string) {
		_, response, err := websocket.Dial(t.Context(), s.url+StreamPath, &websocket.DialOptions{HTTPClient: s.client})
		if err == nil || response == nil {
			t.Fatalf("%v, %v", response, err)
		}
		return response.StatusCode, response.Header.Get("Retry-After")
	}
	if status, after := refused(); status != 503 || after == "" {
		t.Errorf("the fourth: %d, %q", status, after)
	}
	_ = listeners[0].ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "one has gone", func() bool { return s.Stats().Stream.Connections == 2 })
	listeners[0] = s.dial(t)

	done := make(chan int, len(listeners))
	for _, l := range listeners {
		go func() { done <- l.closed() }()
	}
	s.Close()
	for range listeners {
		if code := <-done; code != int(websocket.StatusGoingAway) {
			t.Errorf("closed with %d", code)
		}
	}
	if n := s.Stats().Stream; n.Connections != 0 || n.Closes["1001"] != 3 {
		t.Errorf("after Close: %+v", n)
	}
	if status, _ := refused(); status != 503 {
		t.Errorf("after Close: %d", status)
	}
	if w := send(s, "/api/exchange/market-search"); w.Code != 200 {
		t.Errorf("REST after Close: %d", w.Code)
	}
	s.Close()
}

// A client that does not answer the goodbye is cut off.
func TestCloseWithoutAnswer(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) { l.goodbye = 10 * time.Millisecond })
	s.dial(t) // and never reads
	s.Close()
}

// A restart begins a new epoch in which all counts start again.
func TestRestart(t *testing.T) {
	s := open(t, Config{Control: true})
	tok := openTokens(t, s.Venue, 1)[0]
	for range 5 {
		s.nudge(t, tok)
	}
	l := s.dial(t)
	l.subscribe("orderbook", 10, tok.id)
	b := &copied{}
	if b.take(t, l.take("orderbook_snapshot")); b.seq != 6 {
		t.Fatalf("state %d", b.seq)
	}
	l.subscribe("prices", 0, tok.id)
	l.take("price_update")
	l.subscribeUser(small, "demo")
	if w := post(s.Venue, "restart", `{"code":4003}`); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if code := l.closed(); code != CloseShed {
		t.Errorf("closed with %d", code)
	}
	again := s.dial(t)
	if again.epoch == l.epoch || again.epoch != s.Epoch() {
		t.Errorf("epoch %s after %s", again.epoch, l.epoch)
	}
	again.subscribe("orderbook", 10, tok.id)
	if b.take(t, again.take("orderbook_snapshot")); b.seq != 1 {
		t.Errorf("state %d", b.seq)
	}
	b.check(t, s, tok.id, 10, again.epoch)
	again.subscribe("prices", 0, tok.id)
	again.take("price_update")
	again.subscribe("trades", 0, tok.id)
	again.take("trades_snapshot")
	again.subscribe("market", 0, tok.market.id)
	again.subscribeUser(small, "demo")

	// Behind open streams: a hello and all there is, again.
	s.nudge(t, tok)
	again.settle()
	s.Restart(0)
	again.greeted(again.take("hello"))
	states := map[any]uint64{}
	for _, f := range again.settle() {
		states[f["type"]] = number(t, f, "seq")
		if f["type"] == "orderbook_snapshot" {
			b.take(t, f)
		}
	}
	want := map[any]uint64{"orderbook_snapshot": 1, "price_update": 1, "trades_snapshot": 1, "market_update": 1, "user_snapshot": 1}
	if !maps.Equal(states, want) || again.epoch != s.Epoch() {
		t.Errorf("epoch %s, states %v", again.epoch, states)
	}
	b.check(t, s, tok.id, 10, again.epoch)
	s.nudge(t, tok)
	for _, f := range again.settle() {
		if f["type"] == "orderbook_update" && !b.take(t, f) {
			t.Errorf("a gap: %v", f)
		}
	}
	b.check(t, s, tok.id, 10, again.epoch)
	for _, body := range []string{``, `{"code":1006}`, `{"code":5000}`, `{"cod":1}`} {
		if w := post(s.Venue, "restart", body); w.Code != 400 {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
}
