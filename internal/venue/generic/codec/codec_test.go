package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	"oddsgraph/tests/replay"
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

// TestGoldenFrames compares the decoded events of all golden frames, and of some more, with testdata/frames.golden.
func TestGoldenFrames(t *testing.T) {
	var got strings.Builder
	decode := func(name string, frame []byte) {
		d, _ := testDecoder(t, user)
		fmt.Fprintf(&got, "%s\n%s\n\n", name, replay.ShowAll(d.Decode(frame, received), received))
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
	tool.Golden(t, "testdata/frames.golden", got.String())
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

// TestBadFrames replays frames with bad or missing members, and texts that are not frames.
func TestBadFrames(t *testing.T) {
	replay.Run(t, "testdata/forms/TestBadFrames", func(s *replay.Session) {
		d, _ := testDecoder(t, user)
		d.env.Observer, s.Codec = s, d
	})
	for _, frame := range []string{``, "\xff\xfe", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), `[` + strings.Repeat("[],", wire.MaxValues) + `[]]`, "\xef\xbb\xbf" + `{"type":"pong","rid":8}`} {
		want := "garbage"
		if strings.Contains(frame, "pong") {
			want = "life"
		}
		d, _ := testDecoder(t, user)
		if got := replay.ShowAll(d.Decode([]byte(frame), received), received); got != want {
			t.Errorf("the frame %.300s decodes to\n%s\nwant %s", frame, got, want)
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
		if got := replay.ShowAll(d.Decode(golden(t, name), received), received); got != "life" {
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
			_ = replay.Show(e, received)
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
