package codec

import (
	"bytes"
	"encoding/json"
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
		if p := m.Price; p != nil {
			say(" price %s %s %s %s", p.TokenID, &p.Price, p.Basis, tool.Text(p.Timestamp))
		}
		if s := m.Spread; s != nil {
			say(" spread %s %s/%s=%s %s", s.TokenID, tool.Text(s.BestBid), tool.Text(s.BestAsk), tool.Text(s.Spread), tool.Text(s.Timestamp))
		}
		if k := m.Book; k != nil {
			say(" book %s %s/%d depth %d spread %s hash %q %s bids", k.TokenID, k.Epoch, k.Seq, k.Depth, tool.Text(k.Spread), k.Hash, tool.Text(k.Timestamp))
			for _, l := range k.Bids.Levels() {
				say(" %s×%s", &l.Price, &l.Size)
			}
			say(" asks")
			for _, l := range k.Asks.Levels() {
				say(" %s×%s", &l.Price, &l.Size)
			}
		}
		for _, c := range m.Changes {
			say(" %s %s×%s", c.Side, &c.Price, &c.Size)
		}
		for _, t := range m.Trades {
			say(" trade %s %s/%s %s %s %s %s×%s fee %s %s %s", t.TradeID, t.MarketID, t.TokenID, t.Outcome, t.Side, t.SideRaw,
				&t.Price, &t.Size, tool.Text(t.Fee), tool.Text(t.Timestamp), t.TransactionHash)
		}
		if c := m.Market; c != nil {
			say(" {Kind:%s Status:%s StatusRaw:%s Outcome:%s WinningTokenID:%s} resolved %s", c.Kind, c.Status, c.StatusRaw, c.Outcome, c.WinningTokenID, tool.Text(c.At))
		}
		for _, o := range m.Orders {
			say(" order %s %s/%s %s %s %s %s×%s filled %s %s %s %s", o.OrderID, o.MarketID, o.TokenID, o.Side, o.SideRaw, o.Outcome,
				&o.Price, &o.Size, &o.FilledSize, o.Status, o.StatusRaw, tool.Text(o.CreatedAt))
		}
		for _, p := range m.Positions {
			say(" position %s/%s %s %s avg %s now %s pnl %s", p.MarketID, p.TokenID, p.Outcome, &p.Size,
				tool.Text(p.AvgPrice), tool.Text(p.CurrentPrice), tool.Text(p.UnrealizedPnl))
		}
		if a := m.Balance; a != nil {
			say(" balance %s+%s (%s) = %s %s", tool.Text(a.PortfolioValue), tool.Text(a.CashBalance), tool.Text(a.PositionsValue),
				tool.Text(a.TotalValue), tool.Text(a.UpdatedAt))
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

// TestGoldenFrames checks the decoded events of all golden frames.
func TestGoldenFrames(t *testing.T) {
	const at26, at27, at28 = "2026-03-14T15:09:26Z", "2026-03-14T15:09:27Z", "2026-03-14T15:09:28Z"
	me := "user:" + address + "@s1"
	want := map[string]string{
		"frames/hello":                  "hello k3f9 heartbeat 15s topics 500 depth 200 frames 20 bytes 65536",
		"frames/subscribed-orderbook":   "ack 1",
		"frames/subscribed-market":      "ack 4",
		"frames/subscribed-user":        "ack 5",
		"frames/unsubscribed-orderbook": "ack 6",
		"frames/authenticated":          "ack 10",
		"frames/pong":                   "life",
		"frames/heartbeat":              "heartbeat k3f9 market:M1=3 orderbook:T1=42 trades:T1=4",
		"frames/heartbeat-user":         "heartbeat k3f9 user:" + address + "s1=13",
		"frames/error-unknown-token":    "error 1 UNKNOWN_TOKEN [T2] 0s",
		"frames/error-rate-limited":     "error 1 RATE_LIMITED [] 2s",
		"frames/error-unauthenticated":  "error 10 UNAUTHENTICATED [] 0s",
		"frames/orderbook-snapshot": "orderbook:T1 2 k3f9/41<0 at " + at26 + ": book T1 k3f9/41 depth 200 spread 0.02 hash \"\" " + at26 +
			" bids 0.64×1000 0.63×250.5 asks 0.66×800",
		"frames/orderbook-snapshot-empty": "orderbook:T2 2 k3f9/1<0 at " + at26 + ": book T2 k3f9/1 depth 200 spread - hash \"\" " + at26 + " bids asks",
		"frames/orderbook-update":         "orderbook:T1 3 k3f9/42<41 at 2026-03-14T15:09:26.5Z: BUY 0.64×0 SELL 0.65×120.25",
		"frames/price-update": "prices:T1 1 k3f9/7<0 at " + at26 + ": price T1 0.65 VENUE " + at26 +
			" spread T1 0.64/0.66=0.02 " + at26,
		"frames/price-update-empty-side": "prices:T1 1 k3f9/8<0 at " + at27 + ": price T1 0.65 VENUE " + at27 + " spread T1 0.64/-=- " + at27,
		"frames/trades-snapshot": "trades:T1 4 k3f9/3<0 at -: trade t-1 M1/T1 YES SELL SELL 0.63×10 fee - 2026-03-14T15:09:20Z " +
			" trade t-2 M1/T1 YES BUY BUY 0.64×20 fee - 2026-03-14T15:09:21Z ",
		"frames/trade":           "trades:T1 5 k3f9/4<3 at " + at26 + ": trade t-3 M1/T1 YES BUY BUY 0.65×100 fee - " + at26 + " ",
		"frames/market-update":   "market:M1 6 k3f9/2<0 at " + at26 + ": {Kind:STATUS Status:CLOSED StatusRaw:CLOSED Outcome: WinningTokenID:} resolved -",
		"frames/market-resolved": "market:M1 6 k3f9/3<0 at " + at27 + ": {Kind:RESOLVED Status:RESOLVED StatusRaw:RESOLVED Outcome:YES WinningTokenID:T1} resolved " + at27,
		"frames/user-snapshot": me + " 7 k3f9/9<0 at " + at26 + ": order o-1 M1/T1 BUY BUY YES 0.6×100 filled 25 PARTIALLY_FILLED PARTIALLY_FILLED 2026-03-14T15:00:00Z" +
			" position M1/T1 YES 150.5 avg 0.52 now 0.65 pnl 19.565 balance 97.825+8738.360955 (-) = 8836.185955 " + at26,
		"frames/order-update":    me + " 8 k3f9/10<9 at " + at28 + ": order o-1 M1/T1 BUY BUY YES 0.6×100 filled 100 FILLED FILLED 2026-03-14T15:00:00Z",
		"frames/fill":            me + " 9 k3f9/11<10 at " + at28 + ": trade t-4 M1/T1 YES BUY BUY 0.6×75 fee 0.045 " + at28 + " 0xabc",
		"frames/position-update": me + " 10 k3f9/12<11 at " + at28 + ": position M1/T1 YES 225.5 avg 0.546607538802661 now 0.65 pnl 23.315",
		"frames/balance-update":  me + " 11 k3f9/13<12 at " + at28 + ": balance 146.575+8693.315955 (-) = 8839.890955 " + at28,

		"forms/orderbook-snapshot-strings": "orderbook:T1 2 k3f9/41<0 at 2026-08-13T06:54:32.222Z: book T1 k3f9/41 depth 200 spread 0.04 hash \"ed47eb91\" 2026-08-13T06:54:32.222Z" +
			" bids 0.62×70281.2 0.01×3149725.72 asks 0.66×0.75 0.99×156606.14",
		"forms/orderbook-snapshot-null-side": "orderbook:T1 2 k3f9/5<0 at -: book T1 k3f9/5 depth 200 spread - hash \"\" - bids 0.8100000092466668×25814545.294374414 asks",
		"forms/orderbook-update-whole": "orderbook:T1 2 k3f9/0<0 at 2024-11-26T12:26:40Z: book T1 k3f9/0 depth 200 spread 0.1 hash \"\" 2024-11-26T12:26:40Z" +
			" bids 0.4×5 asks 0.5×6",
		"forms/orderbook-update-sides": "orderbook:T1 3 k3f9/42<41 at -: BUY 0.4×5 SELL 0.5×0",
		"forms/price-update-market": "prices:T1 1 k3f9/0<0 at 2024-11-26T12:26:40Z: price T1 0.65 VENUE 2024-11-26T12:26:40Z\n" +
			"prices:T2 1 k3f9/0<0 at 2024-11-26T12:26:40Z: price T2 0.35 VENUE 2024-11-26T12:26:40Z",
		"forms/price-update-outcome": "prices:T2 1 k3f9/0<0 at -: price T2 0.35 VENUE -",
		"forms/price-update-sides-only": "prices:T1 1 k3f9/0<0 at 2024-11-26T12:26:40Z: price T1 0.655 MIDPOINT 2024-11-26T12:26:40Z" +
			" spread T1 0.64/0.67=0.03 2024-11-26T12:26:40Z",
		"forms/subscribe-markets": "ack ",
		"forms/trades-snapshot-newest-first": "trades:T1 4 k3f9/3<0 at -: trade t-1 /T1 YES SELL sell 0.63×10 fee - 2024-11-26T12:26:41Z " +
			" trade t-2 /T1 YES SELL sell 0.63×15 fee - 2024-11-26T12:26:41Z  trade t-3 /T1 YES BUY buy 0.64×20 fee - 2024-11-26T12:26:42Z ",
		"forms/user-snapshot-no-address": me + " 7 k3f9/9<0 at -: order o-1 M1/T1 BUY buy Yes 0.6×100 filled 25 PARTIALLY_FILLED live -" +
			" position M1/ Yes 150.5 avg 0.52 now 0.65 pnl - balance 97.825+2.175 (-) = 100 -",
		"forms/order-update-inline": me + " 8 k3f9/10<0 at -: order o-1 M1/ BUY BUY YES 0.6×100 filled 100 CANCELLED CANCELED -",
		"forms/array": "prices:T1 1 k3f9/7<0 at -: price T1 0.65 VENUE -\nack \n" +
			"trades:T1 5 k3f9/4<3 at 2024-11-26T12:26:40Z: trade t-3 /T1 YES BUY BUY 0.65×100 fee - 2024-11-26T12:26:40Z ",
		"forms/unknown-type":     "ack ",
		"forms/hello-bare":       "hello  heartbeat 0s topics 0 depth 0 frames 0 bytes 0",
		"forms/error-without-id": "error 1 UNKNOWN_TOKEN [] 0s",
		"forms/error-list":       "error 1 UNKNOWN_TOKEN [T2 T3] 0s",
	}
	files := append(goldenNames(t, "frames"), goldenNames(t, "forms")...)
	for _, name := range files {
		expected, ok := want[name]
		if !ok {
			t.Errorf("want has no entry for the golden file %s", name)
			continue
		}
		delete(want, name)
		d, _ := testDecoder(t, user)
		if got := showAll(d.Decode(golden(t, name), received)); got != expected {
			t.Errorf("the golden frame %s decodes to\n%s\nwant\n%s", name, got, expected)
		}
	}
	for name := range want {
		t.Errorf("the golden file %s of an entry in want does not exist", name)
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
		// The decoder delivers crossed books, because the feed handles them.
		{`{"type":"orderbook_snapshot","tokenId":"T1","seq":1,"bids":[{"price":0.6,"size":1}],"asks":[` + level + `]}`,
			`orderbook:T1 2 k3f9/1<0 at -: book T1 k3f9/1 depth 200 spread - hash "" - bids 0.6×1 asks 0.5×1`},
		// Prices.
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":"free"}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":1.01}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"bestBid":null,"bestAsk":null}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":0.5,"bestBid":true}`, "bad prices:T1"},
		{`{"type":"price_update","tokenId":"T1","seq":1,"price":0.5,"bestBid":0.7,"bestAsk":0.6}`, "prices:T1 1 k3f9/1<0 at -: price T1 0.5 VENUE -"},
		{`{"type":"price_update","marketId":"M1","yesPrice":2}`, "bad prices:T1\nbad prices:T2"},
		{`{"type":"price_update","marketId":"M1"}`, "bad prices:T1\nbad prices:T2"},
		{`{"type":"price_update","marketId":"M9","yesPrice":0.5}`, "life"},
		{`{"type":"price_update","marketId":"M1","outcome":"Chelsea","price":0.5}`, "life"},
		// A market may have other outcomes than YES and NO.
		{`{"type":"price_update","marketId":"M2","outcome":"chelsea","price":0.5}`, "prices:T3 1 k3f9/0<0 at -: price T3 0.5 VENUE -"},
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
		{`{"type":"market_update","marketId":"M1","status":"closed"}`, "market:M1 6 k3f9/0<0 at -: {Kind:STATUS Status:CLOSED StatusRaw:closed Outcome: WinningTokenID:} resolved -"},
		{`{"type":"market_update","marketId":"M1"}`, "market:M1 6 k3f9/0<0 at -: {Kind:METADATA Status: StatusRaw: Outcome: WinningTokenID:} resolved -"},
		{`{"type":"market_update","marketId":"M1","change":"resolved","outcome":"NO"}`, "market:M1 6 k3f9/0<0 at -: {Kind:RESOLVED Status:RESOLVED StatusRaw:RESOLVED Outcome:NO WinningTokenID:} resolved -"},
		{`{"type":"market_update","marketId":"M2","change":"resolved","outcome":"Arsenal",` + ts + `}`, "market:M2 6 k3f9/0<0 at 2026-03-14T15:09:26Z: {Kind:RESOLVED Status:RESOLVED StatusRaw:RESOLVED Outcome:Arsenal WinningTokenID:} resolved 2026-03-14T15:09:26Z"},
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
