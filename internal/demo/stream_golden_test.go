package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// goldenFrames is the directory of the golden files. The tests of internal/venue/stream read the same files.
const goldenFrames = "../../tests/testdata/venue/stream/frames"

// TestFramesHaveTheGoldenShapes checks that, for each golden frame, the venue sends a frame with the same members and types.
func TestFramesHaveTheGoldenShapes(t *testing.T) {
	s := open(t, Config{Heartbeat: 5 * time.Millisecond}, func(s *streams) { s.framesPerSecond = 60 })
	var sent []object
	note := func(f object) object { sent = append(sent, f); return f }
	tok := openTokens(t, s.Venue, 1)[0]

	l := s.dial(t)
	note(l.hello)
	// The test adds this frame itself. listener.subscribe checks the members of frames of this type.
	note(object{"type": "subscribed", "rid": "1", "channel": "orderbook", "tokenIds": []any{"T1"}})
	l.send("subscribe", `"channel":"orderbook","tokenIds":["`+tok.id+`","nobody"]`)
	l.send("subscribe", `"channel":"prices","tokenIds":["`+tok.id+`"]`)
	l.send("subscribe", `"channel":"trades","tokenIds":["`+tok.id+`"]`)
	l.send("subscribe", `"channel":"market","marketIds":["`+tok.market.id+`"]`)
	l.send("ping", "")
	for f := range l.all("pong") {
		note(f)
	}
	for side := range 400 { // enough moves to empty one side of the book
		if err := s.SetPrice(tok.id, payout-tok.tick*Price(1+side%2)); err != nil {
			t.Fatal(err)
		}
	}
	v := s.Venue
	_ = v.change(func(now millis) error {
		v.printTrade(tok, tapeTrade{id: "x", price: tok.lastPrice(), size: share, side: Buy, at: now})
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
	empty.subscribe("orderbook", tok.id)
	note(empty.take("orderbook_snapshot"))

	account := s.dial(t)
	account.subscribeWithoutReading(t)
	for f := range account.all("user_snapshot") {
		note(f)
	}
	for range 60 {
		s.Step()
	}
	for range 2 { // the first heartbeat may lack the user topic
		for f := range account.all("heartbeat") {
			note(f)
		}
	}
	for range 70 {
		account.send("ping", "")
	}
	for f := range account.all("error") {
		note(f)
	}
	e := s.dial(t)
	e.send("auth", `"address":"`+small+`"`)
	note(e.take("error"))

	files, err := filepath.Glob(filepath.Join(goldenFrames, "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatalf("got %d golden files and error %v, want at least 20 files", len(files), err)
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
			t.Errorf("%s: no frame has the members and types of %v; frames of the same type: %v", filepath.Base(file), golden, candidates[:min(len(candidates), 2)])
		}
	}
}

// withoutStamp lists the types of frames that the venue sends without a timestamp. The golden frames of these types may have a
// timestamp, which the client reads.
var withoutStamp = map[string]bool{
	"market_update": true, "market_resolved": true, "user_snapshot": true, "order_update": true, "fill": true,
	"position_update": true, "balance_update": true,
}

// all yields the frames up to and including the first frame of the given type.
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

// sameShape reports whether two JSON values have the same members with the same types. An empty list matches only an empty list.
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

// shapeOfSeqs is sameShape for the member seqs, which maps channels and identifiers to sequence numbers. It requires that a has all
// channels of b.
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

// subscribeWithoutReading subscribes to the smallest demo account without reading the responses.
func (l *listener) subscribeWithoutReading(t testing.TB) {
	t.Helper()
	l.send("auth", `"address":"`+small+`","credentials":{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}`)
	l.send("subscribe", `"channel":"user","address":"`+small+`"`)
}
