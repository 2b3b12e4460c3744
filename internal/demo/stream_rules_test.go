package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// openTokens returns n tradable tokens of different markets.
func openTokens(t testing.TB, v *Venue, n int) (tokens []*token) {
	t.Helper()
	for _, m := range v.listing.markets {
		if m.status == statusOpen && len(tokens) < n {
			tokens = append(tokens, m.tokens[0])
		}
	}
	if len(tokens) < n {
		t.Fatalf("only %d markets are open, want %d", len(tokens), n)
	}
	return tokens
}

func idsOf(tokens []*token) (ids []string) {
	for _, t := range tokens {
		ids = append(ids, t.id)
	}
	return ids
}

// nudge changes the price of a token by five ticks. Such a change always changes the order book of the token too.
func (s *testVenue) nudge(t testing.TB, tok *token) {
	t.Helper()
	price := tok.lastPrice() + 5*tok.tick
	if tok.lastPrice() > payout/2 {
		price = tok.lastPrice() - 5*tok.tick
	}
	if err := s.SetPrice(tok.id, price); err != nil {
		t.Fatal(err)
	}
}

func TestHello(t *testing.T) {
	s := open(t, Config{}, func(s *streams) { s.framesPerSecond = framesPerSecond })
	hello := s.dial(t).hello
	want := `map[epoch:` + s.Epoch() + ` heartbeatMs:15000 limits:map[depth:200 frameBytes:65536 framesPerSecond:20 topics:500] type:hello]`
	if fmt.Sprint(hello) != want {
		t.Errorf("got %v, want %s", hello, want)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		w := handle(s, httptest.NewRequest(method, StreamPath, nil))
		if w.Code < 400 || w.Code > 499 {
			t.Errorf("%s without an upgrade: got %d, want a client error", method, w.Code)
		}
	}
}

// TestSubscribe checks that the venue acknowledges a subscribe request, then sends a snapshot of each topic, and then the changes.
// After a repeated subscribe, the venue must send only the acknowledgement. Each unknown identifier must cause one error and not
// affect the other identifiers.
func TestSubscribe(t *testing.T) {
	s := open(t, Config{})
	tokens := openTokens(t, s.Venue, 3)
	a, b := tokens[0], tokens[1]
	l := s.dial(t)

	for channel, snapshot := range map[string]string{"prices": "price_update", "orderbook": "orderbook_snapshot", "trades": "trades_snapshot"} {
		rid := l.send("subscribe", `"channel":"`+channel+`","tokenIds":["`+a.id+`","nobody","`+b.id+`","`+a.id+`","odd"]`)
		if f := l.take("subscribed"); f["rid"] != rid || fmt.Sprint(f["tokenIds"]) != fmt.Sprint([]string{a.id, b.id}) || f["channel"] != channel {
			t.Fatalf("got acknowledgement %v, want tokens %s and %s of %s", f, a.id, b.id, channel)
		}
		for _, id := range []string{"nobody", "odd"} {
			if f := l.take("error"); f["rid"] != rid || f["code"] != "UNKNOWN_TOKEN" || f["tokenId"] != id {
				t.Fatalf("got error %v, want UNKNOWN_TOKEN for %s", f, id)
			}
		}
		for _, tok := range []*token{a, b} {
			if f := l.take(snapshot); f["tokenId"] != tok.id || f["marketId"] != tok.market.id {
				t.Fatalf("got %v, want a snapshot of token %s", f, tok.id)
			}
		}
		l.subscribe(channel, 0, b.id, a.id)
		if frames := l.settle(); len(frames) > 0 {
			t.Fatalf("after a repeated subscribe: got %v, want nothing", frames)
		}
	}
	if n := s.Stats().Stream; n.Topics["orderbook"] != 2 || n.Subscriptions["trades"] != 2 || n.Subscribes["prices"] != 4 || n.Connections != 1 || n.Opened != 1 {
		t.Errorf("after the subscribes: got stats %+v", n)
	}
	s.nudge(t, a)
	frames := l.settle()
	if len(frames) != 2 || frames[0]["type"] != "orderbook_update" || frames[1]["type"] != "price_update" {
		t.Fatalf("after a change of the price: got %v, want an orderbook_update and a price_update", frames)
	}

	// After a subscribe with another depth, the venue sends a new snapshot.
	l.subscribe("orderbook", 1, a.id)
	if f := l.take("orderbook_snapshot"); len(f["bids"].([]any)) != 1 {
		t.Fatalf("got %v, want a snapshot with one bid", f)
	}
	// After a resync, the venue sends a new snapshot.
	for channel, snapshot := range map[string]string{"prices": "price_update", "orderbook": "orderbook_snapshot", "trades": "trades_snapshot"} {
		l.send("resync", `"channel":"`+channel+`","tokenId":"`+a.id+`"`)
		if f := l.take(snapshot); f["tokenId"] != a.id {
			t.Fatalf("after a resync: got %v, want token %s", f, a.id)
		}
	}
	if s.Stats().Stream.Resyncs["trades"] != 1 {
		t.Errorf("after the resyncs: got stats %+v, want 1 resync of trades", s.Stats().Stream)
	}
	rid := l.send("resync", `"channel":"orderbook","tokenId":"`+tokens[2].id+`"`)
	if f := l.take("error"); f["rid"] != rid || f["code"] != "NOT_SUBSCRIBED" || f["tokenId"] != tokens[2].id {
		t.Fatalf("got error %v, want NOT_SUBSCRIBED for %s", f, tokens[2].id)
	}

	// After an unsubscribe, the venue sends only frames of the other topics.
	rid = l.send("unsubscribe", `"channel":"orderbook","tokenIds":["`+a.id+`","`+tokens[2].id+`"]`)
	if f := l.take("unsubscribed"); f["rid"] != rid || f["channel"] != "orderbook" || fmt.Sprint(f["tokenIds"]) != fmt.Sprint([]string{a.id, tokens[2].id}) {
		t.Fatalf("got acknowledgement %v, want tokens %s and %s", f, a.id, tokens[2].id)
	}
	s.nudge(t, a)
	s.nudge(t, b)
	frames = l.settle()
	if len(frames) != 3 || frames[0]["type"] != "price_update" || frames[1]["tokenId"] != b.id {
		t.Fatalf("after the unsubscribe: got %v, want the price of one token, and the book and price of the other", frames)
	}

	// A market id subscribes to all tokens of the market.
	m := a.market
	rid = l.send("subscribe", `"channel":"orderbook","marketIds":["`+m.id+`","none"]`)
	if f := l.take("subscribed"); f["rid"] != rid || len(f["tokenIds"].([]any)) != len(m.tokens) {
		t.Fatalf("got acknowledgement %v, want %d tokens", f, len(m.tokens))
	}
	if f := l.take("error"); f["code"] != "UNKNOWN_MARKET" || f["marketId"] != "none" {
		t.Fatalf("got error %v, want UNKNOWN_MARKET for none", f)
	}
	for range m.tokens {
		l.take("orderbook_snapshot")
	}
	_ = l.ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "the topics are closed", func() bool {
		n := s.Stats().Stream
		return n.Connections == 0 && len(n.Topics)+len(n.Subscriptions) == 0
	})
}

// eventually waits until f returns true, because of a change in another goroutine. It fails the test after the time in patience.
// what describes the state that f waits for.
func (s *testVenue) eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after %v: %s; the stats are %+v", patience, what, s.Stats().Stream)
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
			t.Errorf("request %.80s: got %v, want an error with code %s and rid %q", c.frame, f, c.code, c.rid)
		}
		if frames := l.settle(); len(frames) > 0 {
			t.Errorf("request %.80s: after the error: got %v, want nothing", c.frame, frames)
		}
	}
	if err := l.ws.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if f := l.take("error"); f["code"] != "BAD_REQUEST" {
		t.Errorf("binary frame: got %v, want BAD_REQUEST", f)
	}
	l.raw(`{"type":"ping"}`)
	if f := l.take("pong"); len(f) != 1 {
		t.Errorf("ping without a rid: got %v, want a pong without a rid", f)
	}
	l.raw(`{"type":"ping","rid":"` + strings.Repeat("x", 65<<10) + `"}`)
	if code := l.closed(); code != int(websocket.StatusMessageTooBig) {
		t.Errorf("frame of 65 KB: got close code %d, want 1009", code)
	}
}

func TestTopicLimit(t *testing.T) {
	s := open(t, Config{Markets: 200})
	l := s.dial(t)
	all := idsOf(s.listing.tokens[:300])
	l.subscribe("prices", 0, all...)
	rid := l.send("subscribe", `"channel":"trades","tokenIds":["`+strings.Join(all[:250], `","`)+`"]`)
	if n := len(l.until("subscribed")["tokenIds"].([]any)); n != 200 {
		t.Errorf("got %d of 250 tokens accepted, want 200", n)
	}
	f := l.take("error")
	if f["rid"] != rid || f["code"] != "TOO_MANY_TOPICS" || fmt.Sprint(f["tokenIds"]) != fmt.Sprint(all[200:250]) {
		t.Errorf("got error %v, want TOO_MANY_TOPICS for the last 50 tokens", f)
	}
	l.settle()
	l.subscribe("prices", 0, all[5]) // a repeated subscribe is allowed
	l.send("unsubscribe", `"channel":"prices","tokenIds":["`+all[5]+`"]`)
	l.take("unsubscribed")
	l.subscribe("orderbook", 0, all[0])
	l.take("orderbook_snapshot")
	if n := s.Stats().Stream.Subscriptions; n["prices"]+n["trades"]+n["orderbook"] != 500 {
		t.Errorf("got subscriptions %v, want 500 in total", n)
	}
}

// TestFrameRate checks that the venue refuses the frames of a client that exceeds the rate limit. If the client sends more than
// twice the limit, the venue must disconnect it.
func TestFrameRate(t *testing.T) {
	s := open(t, Config{}, func(s *streams) { s.framesPerSecond = framesPerSecond })
	l := s.dial(t)
	for range 41 {
		l.send("ping", "")
	}
	for n := range 41 {
		f := l.next()
		if n < 20 && f["type"] != "pong" || n >= 20 && (f["type"] != "error" || f["code"] != "RATE_LIMITED") || f["rid"] != strconv.Itoa(n+1) {
			t.Fatalf("response %d: got %v, want 20 pongs and then RATE_LIMITED", n+1, f)
		}
		if n >= 20 && n < 40 {
			if wait := number(t, f, "retryAfterMs"); wait < 1 || wait > 1001 {
				t.Fatalf("response %d: got %v, want retryAfterMs from 1 to 1001", n+1, f)
			}
		}
	}
	if code := l.closed(); code != CloseAbuse {
		t.Errorf("got close code %d, want %d", code, CloseAbuse)
	}
	if n := s.Stats().Stream.Closes; n["4008"] != 1 || len(n) != 1 {
		t.Errorf("got numbers of closes by code %v, want 1 with 4008", n)
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
			t.Errorf("auth for %s: got error %v, want %s", c.address, f, c.code)
		}
	}
	l.subscribeUser(small, "demo-3")
	rid := l.send("subscribe", `"channel":"user","address":"`+medium+`"`)
	if f := l.take("error"); f["code"] != "FORBIDDEN" || f["rid"] != rid || f["address"] != medium {
		t.Errorf("subscribe to another wallet: got error %v, want FORBIDDEN", f)
	}
	l.send("subscribe", `"channel":"user","address":"`+small+`"`)
	l.take("subscribed") // a repeated subscribe causes no snapshot
	l.send("resync", `"channel":"user","address":"`+small+`"`)
	l.take("user_snapshot")
	l.subscribeUser(other, "demo") // a second account on the same connection
	l.send("unsubscribe", `"channel":"user","address":"`+small+`"`)
	if f := l.take("unsubscribed"); f["address"] != small {
		t.Errorf("got acknowledgement %v, want the address %s", f, small)
	}
	for i, credentials := range []string{``, `,"credentials":null`, `,"credentials":"x"`, key("nobody"),
		`,"credentials":{"apiKey":"demo-3","secret":"x","passphrase":"demo"}`, `,"credentials":{"apiKey":"` + strings.Repeat("x", 5000) + `"}`} {
		l := s.dial(t)
		rid := l.send("auth", `"address":"`+small+`"`+credentials)
		if f := l.take("error"); f["code"] != "UNAUTHENTICATED" || f["rid"] != rid {
			t.Errorf("credentials %d: got error %v, want UNAUTHENTICATED", i, f)
		}
		if code := l.closed(); code != CloseCredentials {
			t.Errorf("credentials %d: got close code %d, want %d", i, code, CloseCredentials)
		}
	}
}
