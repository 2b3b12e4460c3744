package kalshi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/tests/tool"
)

// The frames of this file have the members of Kalshi's AsyncAPI description. The repository TexasCoding/kalshi-python-sdk has a
// copy of it, as specs/asyncapi.yaml. The values are invented.

// These are the venue's ids of the subscriptions that newFrameRig opens.
const (
	sidBooks = iota + 4
	sidPrices
	sidTrades
	sidMarkets
)

// newFrameRig returns a rig with confirmed subscriptions to both tokens of the market KXRAIN-1 on every channel.
func newFrameRig(t *testing.T) *rig {
	r := newRig(t)
	for i, channel := range []messages.Channel{messages.ChannelOrderbook, messages.ChannelPrices, messages.ChannelTrades, messages.ChannelMarket} {
		topics := []messages.Topic{{Channel: channel, ID: "KXRAIN-1:yes"}, {Channel: channel, ID: "KXRAIN-1:no"}}
		if channel == messages.ChannelMarket {
			topics = []messages.Topic{{Channel: channel, ID: "KXRAIN-1"}}
		}
		r.request(stream.VerbSubscribe, topics...)
		r.frame(fmt.Sprintf(`{"id":%d,"type":"subscribed","msg":{"channel":%q,"sid":%d}}`, i+1, channels[channel], sidBooks+i))
	}
	return r
}

// describeMessage returns the fields of a message as text, and of its MarketChange the fields that Kalshi's frames can set.
func describeMessage(m *messages.Message) string {
	out := fmt.Sprintf("%s %s kind %d %s:%d<%d at %s received %s", m.Topic.Channel, m.Topic.ID, m.Kind, m.Epoch, m.Seq, m.PrevSeq, tool.Text(m.Time), tool.Text(m.ReceivedAt))
	if p := m.Price; p != nil {
		out += fmt.Sprintf("; price %s %s of %s at %s", p.Price, p.Basis, p.TokenID, tool.Text(p.Timestamp))
	}
	if s := m.Spread; s != nil {
		out += fmt.Sprintf("; spread %s of %s %s for %s at %s", tool.Text(s.Spread), tool.Text(s.BestBid), tool.Text(s.BestAsk), s.TokenID, tool.Text(s.Timestamp))
	}
	if b := m.Book; b != nil {
		out += fmt.Sprintf("; book %s: %s | %s | %s, %s:%d at %s depth %d", b.TokenID, levelText(b.Bids.Levels()), levelText(b.Asks.Levels()), tool.Text(b.Spread),
			b.Epoch, b.Seq, tool.Text(b.Timestamp), b.Depth)
	}
	for _, c := range m.Changes {
		out += fmt.Sprintf("; change %s %s×%s depth %d", c.Side, c.Price, c.Size, m.Depth)
	}
	for _, x := range m.Trades {
		out += "; trade " + describeTrade(x)
	}
	if c := m.Market; c != nil {
		out += fmt.Sprintf("; market %s %s %q winner %q %s", c.Kind, c.Status, c.StatusRaw, c.Outcome, c.WinningTokenID)
	}
	return out
}

// expect decodes a frame and compares the events and the drift with texts.
func (r *rig) expect(frame string, notes string, want ...string) {
	r.t.Helper()
	r.notes = nil
	var got []string
	for _, e := range r.frame(frame) {
		if e.Kind == stream.EventMessage {
			got = append(got, describeMessage(e.Message))
		} else {
			got = append(got, describe(e))
		}
	}
	if !slices.Equal(got, want) || strings.Join(r.notes, ", ") != notes {
		r.t.Errorf("the frame %s causes the events\n%s\nand the drift %q, want\n%s\nand %q", frame, strings.Join(got, "\n"), r.notes, strings.Join(want, "\n"), notes)
	}
}

const received1 = " received 2026-11-26T10:00:00Z"

// TestBookFrames checks every field of the messages of snapshots and changes. The first snapshots of Kalshi have no time.
func TestBookFrames(t *testing.T) {
	r := newFrameRig(t)
	r.expect(`{"type":"orderbook_snapshot","sid":4,"seq":2,"msg":{"market_ticker":"KXRAIN-1","market_id":"6f1a","yes_dollars_fp":[["0.0600","100.00"],["0.0700","12.00"]],"no_dollars_fp":[["0.1000","30.50"]]}}`, "",
		"orderbook KXRAIN-1:yes kind 2 E:1<0 at -"+received1+"; book KXRAIN-1:yes: 0.07×12 0.06×100 | 0.1×30.5 | 0.03, E:1 at - depth 1000",
		"orderbook KXRAIN-1:no kind 2 E:1<0 at -"+received1+"; book KXRAIN-1:no: 0.9×30.5 | 0.93×12 0.94×100 | 0.03, E:1 at - depth 1000")
	r.expect(`{"type":"orderbook_delta","sid":4,"seq":3,"msg":{"market_ticker":"KXRAIN-1","market_id":"6f1a","price_dollars":"0.0700","delta_fp":"-2.50","side":"yes","ts":"2026-11-26T09:59:58Z","ts_ms":1795687199123}}`, "",
		"orderbook KXRAIN-1:yes kind 3 E:2<0 at 2026-11-26T09:59:59.123Z"+received1+"; change BUY 0.0700×9.50 depth 1000",
		"orderbook KXRAIN-1:no kind 3 E:2<0 at 2026-11-26T09:59:59.123Z"+received1+"; change SELL 0.9300×9.50 depth 1000")
	r.now = start.Add(time.Second)
	r.expect(`{"type":"orderbook_delta","sid":4,"seq":4,"msg":{"market_ticker":"KXRAIN-1","price_dollars":"0.1200","delta_fp":"4.00","side":"no","ts":"2026-11-26T09:59:58Z"}}`, "",
		"orderbook KXRAIN-1:yes kind 3 E:3<0 at 2026-11-26T09:59:58Z received 2026-11-26T10:00:01Z; change SELL 0.1200×4.00 depth 1000",
		"orderbook KXRAIN-1:no kind 3 E:3<0 at 2026-11-26T09:59:58Z received 2026-11-26T10:00:01Z; change BUY 0.8800×4.00 depth 1000")
	r.expect(`{"type":"orderbook_snapshot","sid":4,"seq":5,"msg":{"market_ticker":"KXRAIN-1","yes_dollars_fp":[["0.0500","1.00"]],"ts_ms":1795687200500}}`, "",
		"orderbook KXRAIN-1:yes kind 2 E:4<0 at 2026-11-26T10:00:00.5Z received 2026-11-26T10:00:01Z; book KXRAIN-1:yes: 0.05×1 |  | -, E:4 at 2026-11-26T10:00:00.5Z depth 1000",
		"orderbook KXRAIN-1:no kind 2 E:4<0 at 2026-11-26T10:00:00.5Z received 2026-11-26T10:00:01Z; book KXRAIN-1:no:  | 0.95×1 | -, E:4 at 2026-11-26T10:00:00.5Z depth 1000")
	// The number 5 again, and the market of nobody.
	r.expect(`{"type":"orderbook_delta","sid":4,"seq":5,"msg":{"market_ticker":"KXRAIN-1","price_dollars":"0.0500","delta_fp":"1.00","side":"yes"}}`, "repeated number", "life")
	r.expect(`{"type":"orderbook_delta","sid":4,"seq":6,"msg":{"market_ticker":"KXRAIN-2","price_dollars":"0.0500","delta_fp":"1.00","side":"yes"}}`, "", "life")
}

// TestBadBookFrames checks changes and snapshots with a missing or unreadable member, or with a change that makes a level negative.
// The books of both tokens are lost, and changes have no effect until the next snapshot.
func TestBadBookFrames(t *testing.T) {
	const lostYes, lostNo = "bad orderbook KXRAIN-1:yes", "bad orderbook KXRAIN-1:no"
	delta := func(members string) string {
		return `{"type":"orderbook_delta","sid":4,"seq":%d,"msg":{"market_ticker":"KXRAIN-1",` + members + `}}`
	}
	for _, test := range []struct{ frame, notes string }{
		{delta(`"delta_fp":"1.00","side":"yes"`), "bad frame"},
		{delta(`"price_dollars":"1.0500","delta_fp":"1.00","side":"yes"`), "bad frame"},
		{delta(`"price_dollars":"0.0500","side":"yes"`), "bad frame"},
		{delta(`"price_dollars":"0.0500","delta_fp":"more","side":"yes"`), "bad frame"},
		{delta(`"price_dollars":"0.0500","delta_fp":"1.00"`), "bad frame"},
		{delta(`"price_dollars":"0.0500","delta_fp":"1.00","side":"both"`), "bad frame"},
		{delta(`"price_dollars":"0.0500","delta_fp":"-1.01","side":"yes"`), "negative level"},
		{delta(`"price_dollars":"0.0500","delta_fp":"-0.01","side":"no"`), "negative level"},
		{`{"type":"orderbook_snapshot","sid":4,"seq":%d,"msg":{"market_ticker":"KXRAIN-1","yes_dollars_fp":[["0.0500"]]}}`, "bad frame"},
	} {
		r := newFrameRig(t)
		r.frame(`{"type":"orderbook_snapshot","sid":4,"seq":1,"msg":{"market_ticker":"KXRAIN-1","yes_dollars_fp":[["0.0500","1.00"]]}}`)
		r.expect(fmt.Sprintf(test.frame, 2), test.notes, lostYes, lostNo)
		r.expect(fmt.Sprintf(delta(`"price_dollars":"0.0500","delta_fp":"1.00","side":"yes"`), 3), "", "life")
		r.expect(`{"type":"orderbook_snapshot","sid":4,"seq":4,"msg":{"market_ticker":"KXRAIN-1"}}`, "",
			"orderbook KXRAIN-1:yes kind 2 E:3<0 at -"+received1+"; book KXRAIN-1:yes:  |  | -, E:3 at - depth 1000",
			"orderbook KXRAIN-1:no kind 2 E:3<0 at -"+received1+"; book KXRAIN-1:no:  |  | -, E:3 at - depth 1000")
	}
}

// TestFramesWithoutASubject checks frames of a subscription whose type or market cannot be read. Each may be about any market of the
// subscription, so its books are lost, and one command requests all of them. Events that are no changes of a market have no effect.
func TestFramesWithoutASubject(t *testing.T) {
	for _, test := range []struct{ frame, notes, lost string }{
		{`{"type":"orderbook_delta","sid":4,"seq":3,"msg":{"price_dollars":"0.0500","delta_fp":"1.00","side":"yes"}}`, "bad frame", "orderbook KXRAIN-1:yes"},
		{`{"type":"orderbook_delta","sid":4,"seq":3,"msg":{"market_ticker":[],"price_dollars":"0.0500","delta_fp":"1.00","side":"yes"}}`, "bad frame", "orderbook KXRAIN-1:yes"},
		{`{"type":"orderbook_delta","sid":4,"msg":{"market_ticker":""}}`, "bad frame", "orderbook KXRAIN-1:yes"},
		{`{"type":"orderbook_delta","sid":4,"seq":3}`, "bad frame", "orderbook KXRAIN-1:yes"},
		{`{"type":"orderbook_snapshot","sid":4,"seq":3,"msg":{"yes_dollars_fp":[]}}`, "bad frame", "orderbook KXRAIN-1:yes"},
		{`{"sid":4,"seq":3,"msg":{"market_ticker":"KXRAIN-1"}}`, "unknown frame", "orderbook KXRAIN-1:yes"},
		{`{"type":"orderbook_diff","sid":4,"seq":3,"msg":{"market_ticker":"KXRAIN-1"}}`, "unknown frame", "orderbook KXRAIN-1:yes"},
		{`{"type":"trade","sid":6,"seq":1,"msg":{}}`, "bad frame", "trades KXRAIN-1:yes"},
		{`{"type":"market_lifecycle_v2","sid":7,"seq":1,"msg":{}}`, "bad frame", "market KXRAIN-1"},
		{`{"type":"ticker","sid":5,"msg":{}}`, "bad frame", ""}, // a price is whole again with the next frame
		{`{"type":"orderbook_delta","sid":9,"seq":3,"msg":{}}`, "bad frame", ""},
		{`{"type":"event_lifecycle","sid":7,"seq":1,"msg":{"event_ticker":"KXRAIN"}}`, "", ""},
		{`{"type":"event_fee_update","sid":7,"seq":1,"msg":{"event_ticker":"KXRAIN"}}`, "", ""},
	} {
		r := newFrameRig(t)
		r.frame(`{"type":"orderbook_snapshot","sid":4,"seq":2,"msg":{"market_ticker":"KXRAIN-1","yes_dollars_fp":[["0.0500","1.00"]]}}`)
		want := []string{"life"}
		if test.lost != "" {
			want = []string{"bad " + test.lost}
		}
		if ticker, isYes := strings.CutSuffix(test.lost, ":yes"); isYes {
			want = append(want, "bad "+ticker+":no")
		}
		r.expect(test.frame, test.notes, want...)
		requested := r.request(stream.VerbResync, book("KXRAIN-1:yes"))
		if again := r.request(stream.VerbResync, book("KXRAIN-1:no")); len(requested) != 1 || len(again) > 0 {
			t.Errorf("after the frame %s, the resyncs of the two books send %q and %q, want one command", test.frame, requested, again)
		}
	}
}

// TestPriceFrames checks every field of the messages of a ticker frame, and its times: ts_ms has milliseconds, ts and time have
// seconds.
func TestPriceFrames(t *testing.T) {
	r := newFrameRig(t)
	const prices = `"market_id":"6f1a","market_ticker":"KXRAIN-1","price_dollars":"0.0800","yes_bid_dollars":"0.0700","yes_ask_dollars":"0.1000","volume_fp":"33.00",
		"open_interest_fp":"20.00","dollar_volume":16,"dollar_open_interest":10,"yes_bid_size_fp":"20.00","yes_ask_size_fp":"3.00","last_trade_size_fp":"1.00"`
	for i, test := range []struct{ times, want string }{
		{`,"ts":1795687201,"ts_ms":1795687201500,"time":"2026-11-26T10:00:02Z"`, "2026-11-26T10:00:01.5Z"},
		{`,"ts":1795687201,"time":"2026-11-26T10:00:02Z"`, "2026-11-26T10:00:01Z"},
		{`,"time":"2026-11-26T10:00:02Z"`, "2026-11-26T10:00:02Z"},
		{``, "-"},
	} {
		r.expect(`{"type":"ticker","sid":5,"msg":{`+prices+test.times+`}}`, "",
			fmt.Sprintf("prices KXRAIN-1:yes kind 1 E:%d<0 at %s%s; price 0.085 MIDPOINT of KXRAIN-1:yes at %[2]s; spread 0.03 of 0.0700 0.1000 for KXRAIN-1:yes at %[2]s", i+1, test.want, received1),
			fmt.Sprintf("prices KXRAIN-1:no kind 1 E:%d<0 at %s%s; price 0.915 MIDPOINT of KXRAIN-1:no at %[2]s; spread 0.03 of 0.9000 0.9300 for KXRAIN-1:no at %[2]s", i+1, test.want, received1))
	}
	r.expect(`{"type":"ticker","sid":5,"msg":{"market_ticker":"KXRAIN-1","price_dollars":"0.0800","yes_bid_dollars":"0.0000","yes_ask_dollars":"0.1000","ts_ms":1795687203000}}`, "",
		"prices KXRAIN-1:yes kind 1 E:5<0 at 2026-11-26T10:00:03Z"+received1+"; price 0.0800 LAST of KXRAIN-1:yes at 2026-11-26T10:00:03Z; spread - of - 0.1000 for KXRAIN-1:yes at 2026-11-26T10:00:03Z",
		"prices KXRAIN-1:no kind 1 E:5<0 at 2026-11-26T10:00:03Z"+received1+"; price 0.9200 LAST of KXRAIN-1:no at 2026-11-26T10:00:03Z; spread - of 0.9000 - for KXRAIN-1:no at 2026-11-26T10:00:03Z")
	r.expect(`{"type":"ticker","sid":5,"msg":{"market_ticker":"KXRAIN-1","price_dollars":"8","yes_bid_dollars":"0.0700","yes_ask_dollars":"0.1000"}}`, "bad frame",
		"bad prices KXRAIN-1:yes", "bad prices KXRAIN-1:no")
	r.expect(`{"type":"ticker","sid":5,"msg":{"market_ticker":"KXRAIN-2","price_dollars":"0.0800"}}`, "", "life")
}

// TestTradeFrames checks every field of the messages of a trade frame.
func TestTradeFrames(t *testing.T) {
	r := newFrameRig(t)
	r.expect(`{"type":"trade","sid":6,"seq":1,"msg":{"trade_id":"a7d1","market_ticker":"KXRAIN-1","yes_price_dollars":"0.0800","no_price_dollars":"0.9200","count_fp":"4.50",
		"taker_side":"no","taker_outcome_side":"no","taker_book_side":"ask","is_block_trade":false,"ts":1795687203,"ts_ms":1795687203040}}`, "",
		"trades KXRAIN-1:yes kind 5 E:1<0 at 2026-11-26T10:00:03.04Z"+received1+"; trade a7d1.1 KXRAIN-1 KXRAIN-1:yes Yes SELL no 4.50@0.0800 2026-11-26T10:00:03.04Z",
		"trades KXRAIN-1:no kind 5 E:1<0 at 2026-11-26T10:00:03.04Z"+received1+"; trade a7d1.0 KXRAIN-1 KXRAIN-1:no No BUY no 4.50@0.9200 2026-11-26T10:00:03.04Z")
	for i, row := range []string{`"trade_id":"a7d2"`, `"yes_price_dollars":"0.0800"`, `"trade_id":"a7d2","yes_price_dollars":"0.0800","count_fp":"-4.50","taker_side":"no","ts":1795687203`} {
		r.expect(fmt.Sprintf(`{"type":"trade","sid":6,"seq":%d,"msg":{"market_ticker":"KXRAIN-1",%s}}`, i+2, row), "bad frame", "bad trades KXRAIN-1:yes", "bad trades KXRAIN-1:no")
	}
	r.expect(`{"type":"trade","sid":6,"seq":5,"msg":{"market_ticker":"KXRAIN-2"}}`, "", "life")
}

// TestLifecycleFrames checks every field of the message of a lifecycle frame, for each type of event.
func TestLifecycleFrames(t *testing.T) {
	r := newFrameRig(t)
	for i, test := range []struct{ members, want string }{
		{`"event_type":"created","open_ts":1795687210,"close_ts":1795773610`, `market CREATED  "" winner "" `},
		{`"event_type":"activated","is_deactivated":false`, `market STATUS OPEN "active" winner "" `},
		{`"event_type":"deactivated","is_deactivated":true`, `market STATUS OPEN "inactive" winner "" `},
		{`"event_type":"close_date_updated","close_ts":1795773610`, `market METADATA  "" winner "" `},
		{`"event_type":"determined","result":"yes","settlement_value":"1.0000","determination_ts":1795687210`, `market RESOLVED RESOLVED "determined" winner "Yes" KXRAIN-1:yes`},
		{`"event_type":"determined","result":"no","settlement_value":"0.0000","determination_ts":1795687210`, `market RESOLVED RESOLVED "determined" winner "No" KXRAIN-1:no`},
		{`"event_type":"determined","result":"scalar","settlement_value":"0.3700"`, `market RESOLVED RESOLVED "determined" winner "" `},
		{`"event_type":"determined"`, `market RESOLVED RESOLVED "determined" winner "" `},
		{`"event_type":"settled","settled_ts":1795687212,"result":"yes"`, `market STATUS RESOLVED "finalized" winner "" `},
		{`"event_type":"price_level_structure_updated"`, `market TICK_SIZE  "" winner "" `},
		{`"event_type":"metadata_updated"`, `market METADATA  "" winner "" `},
		{`"event_type":"fee_updated"`, `market FEE_UPDATED  "" winner "" `},
	} {
		r.expect(fmt.Sprintf(`{"type":"market_lifecycle_v2","sid":7,"seq":%d,"msg":{"market_ticker":"KXRAIN-1",%s}}`, i+1, test.members), "",
			fmt.Sprintf("market KXRAIN-1 kind 6 E:%d<0 at -%s; %s", i+1, received1, test.want))
	}
	r.expect(`{"type":"market_lifecycle_v2","sid":7,"seq":13,"msg":{"market_ticker":"KXRAIN-1","result":"yes"}}`, "bad frame", "bad market KXRAIN-1")
	r.expect(`{"type":"market_lifecycle_v2","sid":7,"seq":14,"msg":{"market_ticker":"KXRAIN-2","event_type":"created"}}`, "", "life")
}

// TestOtherFrames checks frames of unknown types and frames that are not JSON.
func TestOtherFrames(t *testing.T) {
	r := newFrameRig(t)
	r.expect(`{"type":"gossip","sid":9,"msg":{}}`, "unknown frame", "life")
	r.expect(`{"msg":{}}`, "unknown frame", "life")
	r.expect(`{"type":`, "", "garbage")
	r.expect(`{"id":99,"type":"ok","msg":[]}`, "", "life")
	r.expect(`{"id":99,"type":"error","msg":{"code":8,"msg":"Unknown channel name"}}`, "", "life")
}

// TestErrorCodes rejects a new subscription with each code of Kalshi's documentation (AsyncAPI 2.0.0, "Error codes"). After the
// codes of temporary errors, a later command of the same form may succeed. In each case the next request for the market subscribes
// again.
func TestErrorCodes(t *testing.T) {
	temporary := map[int]bool{
		1:  true, // unable to process message
		7:  true, // unknown subscription id
		10: true, // channel error
		18: true, // command timeout
		25: true, // subscription buffer overflow
		26: true, // subscription market limit exceeded
		27: true, // too many requests
	}
	for code := range 30 {
		r := newRig(t)
		first := r.request(stream.VerbSubscribe, book("KXRAIN-1:yes"))
		want := "error r1 UNSUPPORTED"
		if temporary[code] {
			want = "error r1 UNAVAILABLE"
		}
		r.expect(fmt.Sprintf(`{"id":1,"type":"error","msg":{"code":%d,"msg":"no"}}`, code), "", want)
		r.expect(fmt.Sprintf(`{"id":1,"type":"error","msg":{"code":%d,"msg":"no"}}`, code), "", "life")
		second := r.request(stream.VerbSubscribe, book("KXRAIN-1:yes"))
		if again := strings.Replace(strings.Join(first, "\n"), `"id":1`, `"id":2`, 1); strings.Join(second, "\n") != again {
			t.Errorf("after the code %d, the next request sends %q, want %q", code, second, again)
		}
	}
}

// TestErrorsOfSubscriptions sends each error code for an open subscription. The codes 7, 10 and 25 end it, so its books are lost.
func TestErrorsOfSubscriptions(t *testing.T) {
	for code := range 30 {
		r := newFrameRig(t)
		frame := fmt.Sprintf(`{"type":"error","sid":4,"seq":3,"msg":{"code":%d,"msg":"no","market_ticker":"KXRAIN-1"}}`, code)
		if code != 7 && code != 10 && code != 25 {
			r.expect(frame, "", "life")
			continue
		}
		r.expect(frame, "subscription ended", "bad orderbook KXRAIN-1:yes", "bad orderbook KXRAIN-1:no")
		want := []string{`{"id":5,"cmd":"subscribe","params":{"channels":["orderbook_delta"],"market_tickers":["KXRAIN-1"],"use_yes_price":true}}`}
		if got := r.request(stream.VerbSubscribe, book("KXRAIN-1:yes")); !slices.Equal(got, want) {
			t.Errorf("after the code %d, the next request sends %q, want %q", code, got, want)
		}
	}
}

// TestErrorsOfAdditions rejects the addition of a market to an open subscription. After code 26, the next market gets a new
// subscription. After code 7, the venue does not know the subscription, so its books are lost.
func TestErrorsOfAdditions(t *testing.T) {
	const (
		add = `{"id":6,"cmd":"update_subscription","params":{"sid":4,"market_tickers":["KXRAIN-2"],"action":"add_markets"}}`
		own = `{"id":6,"cmd":"subscribe","params":{"channels":["orderbook_delta"],"market_tickers":["KXRAIN-2"],"use_yes_price":true}}`
	)
	for _, test := range []struct {
		code   int
		notes  string
		events []string
		next   string
	}{
		{26, "", []string{"error r5 UNAVAILABLE"}, own},
		{27, "", []string{"error r5 UNAVAILABLE"}, add},
		{14, "", []string{"error r5 UNSUPPORTED"}, add},
		{7, "subscription ended", []string{"bad orderbook KXRAIN-1:yes", "bad orderbook KXRAIN-1:no", "error r5 UNAVAILABLE"}, own},
	} {
		r := newFrameRig(t)
		r.request(stream.VerbSubscribe, book("KXRAIN-2:yes"))
		r.expect(fmt.Sprintf(`{"id":5,"type":"error","msg":{"code":%d,"msg":"no"}}`, test.code), test.notes, test.events...)
		if got := r.request(stream.VerbSubscribe, book("KXRAIN-2:yes")); !slices.Equal(got, []string{test.next}) {
			t.Errorf("after the code %d, the next request sends %q, want %q", test.code, got, test.next)
		}
	}
}
