package codec

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

const goldenDir = "../../../../tests/testdata/venue/stream"

// golden returns the frame, or the list of frames, in a golden file. The result is compact JSON with the original notation of
// numbers.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(goldenDir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Frame, Frames json.RawMessage }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatalf("the golden file %s is unreadable: %v", name, err)
	}
	frame := file.Frame
	if frame == nil {
		frame = file.Frames
	}
	var b bytes.Buffer
	if err := json.Compact(&b, frame); err != nil {
		t.Fatalf("the golden file %s is unreadable: %v", name, err)
	}
	return b.Bytes()
}

func goldenNames(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(goldenDir, dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files in %s: %v", dir, err)
	}
	for i, p := range paths {
		paths[i] = dir + "/" + strings.TrimSuffix(filepath.Base(p), ".json")
	}
	return paths
}

const address = "0x1111111111111111111111111111111111111111"

// user is the topic of the decoder's account.
var user = messages.Topic{Channel: messages.ChannelUser, ID: address, Scope: "s1"}

// observer records drifts. If quiet is true, it records nothing.
type observer struct {
	drifts []string
	quiet  bool
}

func (o *observer) Frame(string)     {}
func (o *observer) Reconnect(string) {}
func (o *observer) Drift(what string) {
	if !o.quiet {
		o.drifts = append(o.drifts, what)
	}
}

var received = time.Date(2026, 3, 14, 15, 9, 30, 0, time.UTC)

// markets contains the markets that a decoder of testDecoder knows.
var markets = map[string]*market.Market{
	"M1": {MarketID: "M1", Outcomes: []market.Outcome{{Label: "YES", TokenID: "T1"}, {Label: "NO", TokenID: "T2"}}},
	"M2": {MarketID: "M2", Outcomes: []market.Outcome{{Label: "Chelsea", TokenID: "T3"}, {Label: "Arsenal", TokenID: "T4"}}},
}

// testDecoder returns a decoder and its observer. The decoder has the epoch k3f9.
func testDecoder(t testing.TB, identity messages.Topic) (*decoder, *observer) {
	t.Helper()
	o := &observer{}
	d := newDecoder(identity, stream.Env{Observer: o, Market: func(id string) *market.Market { return markets[id] }})
	d.epoch = "k3f9"
	return d, o
}

// show returns the fields of an event that the tests compare, as text.
func show(e stream.Event) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	switch e.Kind {
	case stream.EventLife:
		say("life")
	case stream.EventGarbage:
		say("garbage")
	case stream.EventHello:
		h := e.Hello
		say("hello %s heartbeat %s topics %d depth %d frames %d bytes %d", e.Epoch, h.Heartbeat, h.Topics, h.Depth, h.FramesPerSecond, h.FrameBytes)
	case stream.EventAck:
		say("ack %s", e.Rid)
	case stream.EventError:
		say("error %s %s %v %s", e.Rid, e.Code, e.IDs, e.RetryAfter)
	case stream.EventHeartbeat:
		say("heartbeat %s", e.Epoch)
		topics := slices.SortedFunc(maps.Keys(e.Seqs), func(a, b messages.Topic) int {
			return strings.Compare(string(a.Channel)+a.ID, string(b.Channel)+b.ID)
		})
		for _, t := range topics {
			say(" %s:%s%s=%d", t.Channel, t.ID, t.Scope, e.Seqs[t])
		}
	case stream.EventBad:
		say("bad %s:%s", e.Topic.Channel, e.Topic.ID)
	case stream.EventMessage:
		m := e.Message
		say("%s:%s", m.Topic.Channel, m.Topic.ID)
		if m.Topic.Scope != "" {
			say("@%s", m.Topic.Scope)
		}
		say(" %d %s/%d<%d at %s:", m.Kind, m.Epoch, m.Seq, m.PrevSeq, tool.Text(m.Time))
		if !m.ReceivedAt.Equal(received) {
			say(" received at %s", m.ReceivedAt)
		}
		for _, part := range []any{m.Price, m.Spread, m.Book, m.Changes, m.Trades, m.Market, m.Orders, m.Positions, m.Balance} {
			if text, _ := json.Marshal(part); string(text) != "null" {
				say("\n    %s", text)
			}
		}
	}
	return b.String()
}

func showAll(events []stream.Event) string {
	if len(events) == 0 {
		return "life"
	}
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = show(e)
	}
	return strings.Join(lines, "\n")
}

var update = flag.Bool("update", false, "write testdata/frames.golden anew")

// TestGoldenFrames compares the decoded events of all golden frames, and of some more, with testdata/frames.golden.
func TestGoldenFrames(t *testing.T) {
	var got strings.Builder
	decode := func(name string, frame []byte) {
		d, _ := testDecoder(t, user)
		fmt.Fprintf(&got, "%s\n%s\n\n", name, showAll(d.Decode(frame, received)))
	}
	for _, name := range append(goldenNames(t, "frames"), goldenNames(t, "forms")...) {
		decode(name, golden(t, name))
	}
	for _, frame := range []string{ // the feed handles crossed books, and a market may have other outcomes than YES and NO
		`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[{"price":0.6,"size":1}],"asks":[{"price":0.5,"size":1}]}`,
		`{"type":"price_update","tokenId":"T1","seq":1,"price":0.5,"bestBid":0.7,"bestAsk":0.6}`,
		`{"type":"price_update","marketId":"M2","outcome":"chelsea","price":0.5}`,
		`{"type":"market_update","marketId":"M1","status":"closed"}`,
		`{"type":"market_update","marketId":"M1"}`,
		`{"type":"market_update","marketId":"M1","change":"resolved","outcome":"NO"}`,
		`{"type":"market_update","marketId":"M2","change":"resolved","outcome":"Arsenal","timestamp":"2026-03-14T15:09:26Z"}`,
	} {
		decode(frame, []byte(frame))
	}
	const file = "testdata/frames.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got.String() != string(want) {
		t.Errorf("%s differs (%v); run the test with -update and look at the difference\n%s", file, err, got.String())
	}
}

// TestGoldenRequests checks that encoded requests equal the golden frames, byte for byte.
func TestGoldenRequests(t *testing.T) {
	topic := func(c messages.Channel, ids ...string) (out []messages.Topic) {
		for _, id := range ids {
			out = append(out, messages.Topic{Channel: c, ID: id})
		}
		return out
	}
	demo, err := market.ParseCredentials([]byte(`{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]stream.Request{
		"subscribe-orderbook":   {Verb: stream.VerbSubscribe, Rid: "1", Topics: topic(messages.ChannelOrderbook, "T1", "T2"), Depth: 200},
		"subscribe-prices":      {Verb: stream.VerbSubscribe, Rid: "2", Topics: topic(messages.ChannelPrices, "T1")},
		"subscribe-trades":      {Verb: stream.VerbSubscribe, Rid: "3", Topics: topic(messages.ChannelTrades, "T1")},
		"subscribe-market":      {Verb: stream.VerbSubscribe, Rid: "4", Topics: topic(messages.ChannelMarket, "M1")},
		"subscribe-user":        {Verb: stream.VerbSubscribe, Rid: "5", Topics: topic(messages.ChannelUser, address)},
		"unsubscribe-orderbook": {Verb: stream.VerbUnsubscribe, Rid: "6", Topics: topic(messages.ChannelOrderbook, "T2")},
		"unsubscribe-market":    {Verb: stream.VerbUnsubscribe, Rid: "7", Topics: topic(messages.ChannelMarket, "M1")},
		"resync-orderbook":      {Verb: stream.VerbResync, Rid: "8", Topics: topic(messages.ChannelOrderbook, "T1")},
		"resync-user":           {Verb: stream.VerbResync, Rid: "9", Topics: topic(messages.ChannelUser, address)},
		"auth": {Verb: stream.VerbAuth, Rid: "10", Topics: topic(messages.ChannelUser, address),
			Credentials: demo},
		"ping": {Verb: stream.VerbPing, Rid: "11"},
	}
	for _, name := range goldenNames(t, "requests") {
		r, ok := want[strings.TrimPrefix(name, "requests/")]
		if !ok {
			t.Errorf("want has no entry for the golden file %s", name)
			continue
		}
		delete(want, strings.TrimPrefix(name, "requests/"))
		if got, expected := string(encode(&r)), string(golden(t, name)); got != expected {
			t.Errorf("the request %s is encoded as\n%s\nwant\n%s", name, got, expected)
		}
	}
	for name := range want {
		t.Errorf("the golden file %s of an entry in want does not exist", name)
	}
}

// TestBadFrames checks the events of frames with bad or missing members, and of texts that are not frames. A bad optional member
// must count as missing.
func TestBadFrames(t *testing.T) {
	const level, ts = `{"price":0.5,"size":1}`, `"timestamp":"2026-03-14T15:09:26Z"`
	order := `{"orderId":"o","marketId":"M1","side":"BUY","outcome":"YES","price":0.6,"size":100,"filledSize":0,"status":"OPEN"}`
	for _, test := range []struct{ frame, want string }{
		// Books.
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[` + level + `,{"price":"x","size":1}],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[{"price":1.5,"size":1}],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[{"price":0.5,"size":-1}],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[[0.5]],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[7],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":{},"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":-1,"bids":[],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1.5,"bids":[],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[{"price":1e99999,"size":1}],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[{"price":"NaN","size":1}],"asks":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":[{"side":"BUY","price":0.5,"size":1},{"side":"UP","price":0.5,"size":1}]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":[{"side":"BUY","price":0.5}]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":null}`, "bad orderbook:T1"},
		{`{"type":"orderbook_update","tokenId":"T1","seq":"x","prevSeq":1,"changes":[]}`, "bad orderbook:T1"},
		{`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"bids":[],"asks":[]}`, "bad orderbook:T1"},
		// Prices.
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":"free"}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":1.01}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"bestBid":null,"bestAsk":null}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":0.5,"bestBid":true}`, "bad prices:T1"},
		{`{"type":"price_update","marketId":"M1","yesPrice":2}`, "bad prices:T1\nbad prices:T2"},
		{`{"type":"price_update","marketId":"M1"}`, "bad prices:T1\nbad prices:T2"},
		{`{"type":"price_update","marketId":"M9","yesPrice":0.5}`, "life"},
		{`{"type":"price_update","marketId":"M1","outcome":"Chelsea","price":0.5}`, "life"},
		{`{"type":"price_update","marketId":"M2","outcome":"YES","price":0.5}`, "life"},
		{`{"type":"price_update","marketId":"M2","yesPrice":0.5}`, "life"},
		{`{"type":"price_update","price":0.5}`, "life"},
		// If the token is unreadable, the decoder must not use the market's YES token instead.
		{`{"type":"orderbook_update","tokenId":1.5,"marketId":"M1","bids":[],"asks":[]}`, "life"},
		{`{"type":"price_update","tokenId":"","marketId":"M1","yesPrice":0.5}`, "life"},
		{`{"type":"trade","tokenId":"a,b","price":0.5,"size":1,` + ts + `}`, "life"},
		// Trades.
		{`{"type":"trade","tokenId":"T1","seq":2,"price":0.5,"size":1}`, "bad trades:T1"},
		{`{"type":"trade","tokenId":"T1","seq":2,"price":0.5,"size":-1,` + ts + `}`, "bad trades:T1"},
		{`{"type":"trade","marketId":"M1","seq":2,"price":0.5,"size":1,` + ts + `}`, "life"},
		{`{"type":"trades_snapshot","tokenId":"T1","seq":2,"trades":[{"price":0.5,"size":1,` + ts + `},{}]}`, "bad trades:T1"},
		{`{"type":"trades_snapshot","tokenId":"T1","seq":2,"trades":[{"tokenId":"T2","price":0.5,"size":1,` + ts + `}]}`, "bad trades:T1"},
		{`{"type":"trades_snapshot","tokenId":"T1","seq":2}`, "bad trades:T1"},
		// Markets.
		{`{"type":"market_update","seq":2,"status":"CLOSED"}`, "life"},
		{`{"type":"market_update","marketId":"M1","seq":{},"status":"CLOSED"}`, "bad market:M1"},
		{`{"type":"market_snapshot","markets":[7]}`, "life"},
		// Accounts. One bad row makes the whole frame bad. A frame of another account has no effect.
		{`{"type":"user_snapshot","seq":1,"orders":[` + order + `,{}],"positions":[]}`, "bad user:" + address},
		{`{"type":"user_snapshot","seq":1,"orders":[]}`, "bad user:" + address},
		{`{"type":"user_snapshot","seq":1,"orders":null,"positions":[]}`, "bad user:" + address},
		{`{"type":"user_snapshot","seq":1,"orders":[],"positions":[],"balance":{"cashBalance":"much"}}`, "bad user:" + address},
		{`{"type":"order_update","seq":1,"order":7}`, "bad user:" + address},
		{`{"type":"fill","seq":1,"trade":{"price":0.5,"size":1,` + ts + `}}`, "bad user:" + address},
		{`{"type":"balance_update","seq":1,"balance":{}}`, "bad user:" + address},
		{`{"type":"position_update","address":"0x2222222222222222222222222222222222222222","seq":1,"position":{"marketId":"M1","outcome":"YES","size":1}}`, "life"},
		{`{"type":"position_update","address":7,"seq":1,"position":{"marketId":"M1","outcome":"YES","size":1}}`, "life"},
		// Texts that are not JSON, and frames without a known type.
		{``, "garbage"},
		{`{`, "garbage"},
		{`{"type":"pong"} {"type":"pong"}`, "garbage"},
		{`PONG`, "garbage"},
		{"\xff\xfe", "garbage"},
		{strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "garbage"},
		{`[` + strings.Repeat("[],", wire.MaxValues) + `[]]`, "garbage"},
		{`null`, "ack "},
		{`7`, "ack "},
		{`"pong"`, "ack "},
		{`[]`, "life"},
		{`{"type":7}`, "ack "},
		{`{"event_type":"book","rid":"5"}`, "ack 5"},
		{`{"type":"hello","epoch":7,"heartbeatMs":-1,"limits":{"topics":1e9,"depth":"100","framesPerSecond":0}}`,
			"hello 7 heartbeat 0s topics 0 depth 100 frames 0 bytes 0"},
		{`{"type":"hello","heartbeatMs":1,"limits":[]}`, "hello  heartbeat 0s topics 0 depth 0 frames 0 bytes 0"},
		{`{"type":"heartbeat","seqs":{"orderbook":{"T1":-1,"T2":"5","T3":null},"trades":7},"epoch":"z"}`, "heartbeat z orderbook:T2=5"},
		{`{"type":"heartbeat","seqs":[]}`, "heartbeat k3f9"},
		{`{"type":"error","code":` + `"` + strings.Repeat("X", 100) + `"}`, "error   [] 0s"},
		{`{"type":"error","rid":{},"code":429,"tokenIds":"[\"T1\"]","retryAfterMs":99999999999999}`, "error  429 [T1] 5m0s"},
		{"\xef\xbb\xbf" + `{"type":"pong","rid":8}`, "life"},
	} {
		d, _ := testDecoder(t, user)
		if got := showAll(d.Decode([]byte(test.frame), received)); got != test.want {
			frame := test.frame
			if len(frame) > 300 {
				frame = frame[:300]
			}
			t.Errorf("the frame %s decodes to\n%s\nwant\n%s", frame, got, test.want)
		}
	}
}

// TestDepth checks that books and changes have the depth in the venue's hello, or else stream.AssumedDepth.
func TestDepth(t *testing.T) {
	for _, test := range []struct{ venue, want int }{{150, 150}, {300, 300}, {0, stream.AssumedDepth}} {
		d, _ := testDecoder(t, messages.Topic{})
		d.Decode(fmt.Appendf(nil, `{"type":"hello","limits":{"depth":%d}}`, test.venue), received)
		book := d.Decode([]byte(`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[],"asks":[]}`), received)[0].Message
		changes := d.Decode([]byte(`{"type":"orderbook_update","tokenId":"T1","seq":2,"changes":[]}`), received)[0].Message
		if book.Book.Depth != test.want || changes.Depth != test.want {
			t.Errorf("with the depth %d in the hello, the book has the depth %d and the changes %d, want %d", test.venue, book.Book.Depth, changes.Depth, test.want)
		}
	}
}

// TestNoIdentity checks that account frames have no effect on a public connection.
func TestNoIdentity(t *testing.T) {
	d, o := testDecoder(t, messages.Topic{})
	for _, name := range []string{"frames/user-snapshot", "forms/user-snapshot-no-address", "frames/balance-update"} {
		if got := showAll(d.Decode(golden(t, name), received)); got != "life" {
			t.Errorf("the frame %s decodes to %q, want \"life\"", name, got)
		}
	}
	if len(o.drifts) != 3 {
		t.Errorf("the observer got the drifts %q, want 3 drifts", o.drifts)
	}
}

// FuzzFrame checks that arbitrary bytes cause no panic and no inconsistent message.
func FuzzFrame(f *testing.F) {
	for _, dir := range []string{"frames", "forms", "requests"} {
		for _, name := range goldenNames(f, dir) {
			f.Add(golden(f, name))
		}
	}
	d, _ := testDecoder(f, user)
	d.env.Observer = &observer{quiet: true}
	f.Fuzz(func(t *testing.T, frame []byte) {
		d.epoch, d.depth = "k3f9", 200
		events := d.Decode(frame, received)
		for _, e := range events {
			if e.Kind == stream.EventBad && market.CheckID(e.Topic.ID) != nil {
				t.Fatalf("an EventBad has the invalid topic %v", e.Topic)
			}
			if e.Kind == stream.EventMessage {
				checkMessage(t, e.Message)
			}
			_ = show(e)
		}
	})
}

// checkMessage fails the test if a message is inconsistent.
func checkMessage(t *testing.T, m *messages.Message) {
	if market.CheckID(m.Topic.ID) != nil {
		t.Fatalf("a message has the invalid topic %v", m.Topic)
	}
	sorted := func(levels []market.Level, sign int) {
		for i, l := range levels {
			if !wire.InUnit(l.Price) || l.Size.Sign() <= 0 {
				t.Fatalf("a book has the invalid level %s×%s", &l.Price, &l.Size)
			}
			if i > 0 && levels[i-1].Price.Cmp(l.Price)*sign >= 0 {
				t.Fatal("the levels of a book are not in order")
			}
		}
	}
	ok := true
	switch m.Kind {
	case messages.KindPrice:
		ok = m.Price != nil && wire.InUnit(m.Price.Price) && m.Price.TokenID == m.Topic.ID
	case messages.KindBookSnapshot:
		ok = m.Book != nil && m.Book.Seq == m.Seq && m.Book.TokenID == m.Topic.ID
		sorted(m.Book.Bids.Levels(), -1)
		sorted(m.Book.Asks.Levels(), 1)
	case messages.KindBookDelta:
		ok = m.Changes != nil
		for _, c := range m.Changes {
			ok = ok && wire.InUnit(c.Price) && c.Size.Sign() >= 0 && (c.Side == market.SideBuy || c.Side == market.SideSell)
		}
	case messages.KindTradesSnapshot:
		ok = m.Trades != nil && slices.IsSortedFunc(m.Trades, func(a, b market.Trade) int { return a.Timestamp.Compare(b.Timestamp) })
	case messages.KindTrade, messages.KindFill:
		ok = len(m.Trades) == 1 && !m.Trades[0].Timestamp.IsZero()
	case messages.KindMarket:
		ok = m.Market != nil && m.Market.Kind != ""
	case messages.KindUserSnapshot:
		ok = m.Orders != nil && m.Positions != nil
	case messages.KindOrder:
		ok = len(m.Orders) == 1 && m.Orders[0].OrderID != ""
	case messages.KindPosition:
		ok = len(m.Positions) == 1 && m.Positions[0].MarketID != ""
	case messages.KindBalance:
		ok = m.Balance != nil
	default:
		ok = false
	}
	if !ok {
		t.Fatalf("a message of kind %d is inconsistent: %+v", m.Kind, m)
	}
}
