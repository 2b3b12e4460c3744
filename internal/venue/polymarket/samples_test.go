package polymarket

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// short shortens the long ids in a text.
func short(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		if label, id, ok := strings.Cut(w, "="); ok && len(id) > 20 {
			words[i] = label + "=" + id[:5] + "…" + id[strings.IndexAny(id+"@", "@")-3:]
		} else if len(w) > 24 {
			words[i] = w[:6] + "…" + w[len(w)-4:]
		}
	}
	return strings.Join(words, " ")
}

func TestRecordedMarkets(t *testing.T) {
	dir := tool.PolymarketSamples(t)
	read := func(name string) string {
		m, undecided := readMarket(wire.NewRow(parse(t, dir, "gamma", name), ignore), nil)
		return short(fmt.Sprintf("%s event=%s volume=%s tick=%s undecided=%t", showMarket(m), m.EventID, tool.Text(m.Volume), tool.Text(m.TickSize), undecided != nil))
	}
	equal(t, []string{read("gamma_market.json"), read("gamma_market_closed_binary_accepting_true.json")},
		"0x7844…a63b btc-updown-5m-1773307200 OPEN/ Up=10423…875@0.505/- Down=71183…351@0.495/- event=260654 volume=9.999997 tick=0.01 undecided=false",
		"0xd57e…479e russia…2027 CLOSED/ Yes=22978…807@1/- No=10826…629@0/- summary event= volume=192817.4904490008 tick=0.01 undecided=true")

	v := parse(t, dir, "gamma", "gamma_market_closed_binary_accepting_true.json")
	m, undecided := readMarket(wire.NewRow(v, ignore), nil)
	end, err := readClobResult(parse(t, dir, "clob", "market_resolved.json"), m.MarketID, ignore)
	if err != nil {
		t.Fatal(err)
	}
	end.apply(m, undecided)
	equal(t, []string{string(m.Status), m.Winner().Label, tool.Text(m.Resolution.ResolvedAt), m.Resolution.Source},
		"RESOLVED", "Yes", "2026-05-09T02:07:01Z", "0x65070BE91477460D8A7AeEb94ef92fe056C2f2A7")

	var got []string
	for _, row := range parse(t, dir, "clob", "markets_page_trimmed.json").Member("data").Elements() {
		end, err := readClobResult(row, row.Member("condition_id").Text(), ignore)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, short(end.winner))
	}
	equal(t, got, "800854…0758", "")
}

func TestRecordedEvents(t *testing.T) {
	dir := tool.PolymarketSamples(t)
	list := append(parse(t, dir, "gamma", "gamma_event.json").Elements(), parse(t, dir, "gamma", "public_search.json").Member("events").Elements()...)
	var got []string
	for _, v := range list {
		e, err := readEvent(v, ignore)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.event.EventID, " ", e.event.Title, " exclusive=", tool.Text(e.event.Exclusive)))
		for _, row := range e.rows {
			got = append(got, short(showMarket(row.market))+" "+row.market.GroupItemTitle+" "+tool.Text(row.market.Volume24h)+" "+strings.Join(row.market.Tags[:2], ","))
		}
	}
	equal(t, got,
		"30829 Democratic Presidential Nominee 2028 exclusive=true",
		"0xc8f1…2e47 will-s…-914 OPEN/ Yes=60590…807@0.0105/- No=76005…812@0.9895/- Stephen A. Smith 129642.785175 World Elections,Global Elections",
		"0xe39a…620f will-g…-676 OPEN/ Yes=57761…468@0.0145/- No=64300…598@0.9855/- Gretchen Whitmer 14323.58006 World Elections,Global Elections",
		"246060 Bitcoin above ___ on March 11? exclusive=false",
		"0x647f…09a8 bitcoi…h-11 OPEN/ Yes=82555…122@0.9995/- No=11486…599@0.0005/- 64,000 941687.1459820003 Bitcoin,Weekly")
}

func TestRecordedBooks(t *testing.T) {
	dir := tool.PolymarketSamples(t)
	var got []string
	for _, name := range []string{"book.json", "book_empty_ask.json"} {
		r := wire.NewRow(parse(t, dir, "clob", name), ignore)
		b := readBook(r, r.ID(wire.FieldTokenID))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		got = append(got, short(showBook(b)))
	}
	equal(t, got,
		"233609…7848 bids 0.1*125 0.09*294 0.08*120 0.06*200 0.01*1000 asks 0.14*705 0.2*70 0.38*192.3 0.46*10 0.47*50 0.5*30 0.98*5000 spread 0.04 top 0.1/0.14 at 2024-10-13T06:03:38.26Z hash 2fc4a3…7412 depth 200",
		"726105…3692 bids 0.002*6.99 0.001*667.12 asks spread - top 0.002/- at 2026-08-03T05:21:08.581Z hash d7df88…f04e depth 200")
}

func TestRecordedAccount(t *testing.T) {
	dir := tool.PolymarketSamples(t)
	rows := func(name string) []wire.Value { return parse(t, dir, "data_v2", name).Elements() }
	shorten := func(lines []string) []string {
		for i, l := range lines {
			lines[i] = short(l)
		}
		return lines
	}
	equal(t, shorten(showRows(rows("positions_rows.json"), readPosition, showPosition)),
		`0x7ad4…c422 944768…8323 "No" 400000.0 avg 0.5 now 0.7545 pnl 101800.0`,
		`0x7ad4…c422 160400…1627 "Yes" 400000.0 avg 0.5 now 0.2455 pnl -101800.0`)
	equal(t, shorten(showRows(rows("trades_rows.json"), (*wire.Row).UserTrade, showTrade)),
		`0xc8a2…8387 100621…4616 BUY 0.62*78.55 "Yes" at 2026-09-08T17:03:34Z in 0x8b2f…4a95`,
		`0xe505…0449 105697…7324 SELL 0.84*0.07 "No" at 2026-09-08T17:03:34Z in 0x146b…c52e`)
	equal(t, shorten(showRows(rows("activity_rows.json"), readRecord, showRecord)),
		`TRADE/TRADE 2026-09-08T16:56:49Z amount 13.285715 0x0a91…2f15 982553…4172 "Yes" BUY 0.9300000035*14.285715`,
		`TRADE/TRADE 2026-09-08T16:47:06Z amount 13.89215 0x706b…cd7f 488060…4499 "Yes" BUY 0.0864503644*155.03`)
	b, err := readValue(parse(t, dir, "data_v2", "value.json"), market.Address("0x7c3db723f1d4d8cb9c550095203b686cb11e5c6b"), ignore)
	if err != nil || tool.Text(b.PositionsValue) != "684953.8942" {
		t.Errorf("readValue returns %+v and the error %v, want 684953.8942", b, err)
	}
	var got []string
	day, _ := market.ParseDate("2026-09-07")
	points, _ := readPoints(rows("prices-history_rows.json"), day, day, ignore)
	for _, p := range points {
		got = append(got, tool.Text(p.Timestamp)+" "+p.Price.String())
	}
	equal(t, got, "2026-09-07T17:04:00Z 0.955", "2026-09-07T17:05:00Z 0.955")
}

const recordedAsset = "76670567130917723816490572615540605537878462672464291990940067659127658071111"

func TestRecordedRun(t *testing.T) {
	s := newSocket(t, topic(messages.ChannelOrderbook, recordedAsset))
	frames := recorded(t, "market_book_then_price_changes.json")
	if n := play(t, s, recordedAsset, frames); n != len(frames) {
		t.Errorf("%d frames cause %d messages, want one message for each frame", len(frames), n)
	}
}

// TestRecordedBurst replays the recorded frames of a marketable order. The recording does not contain the book before the order, so
// the test derives it from the book after the order.
func TestRecordedBurst(t *testing.T) {
	frames := recorded(t, "market_crossing_burst_end.json")
	var after struct {
		Bids, Asks []map[string]string
	}
	last := frames[len(frames)-1]
	if err := json.Unmarshal(last, &after); err != nil {
		t.Fatal(err)
	}
	after.Asks = slices.DeleteFunc(after.Asks, func(l map[string]string) bool { return l["price"] == "0.301" })
	for _, p := range []string{"0.301", "0.311"} {
		after.Bids = append(after.Bids, map[string]string{"price": p, "size": "45.83"})
	}
	before, err := json.Marshal(map[string]any{"event_type": "book", "asset_id": recordedAsset, "timestamp": "1790658826000", "bids": after.Bids, "asks": after.Asks})
	if err != nil {
		t.Fatal(err)
	}
	s := newSocket(t, topic(messages.ChannelOrderbook, recordedAsset))
	if n := play(t, s, recordedAsset, append([]json.RawMessage{before}, frames...)); n != 2 {
		t.Errorf("the frames cause %d messages; want 2, the book and one change, because the last book equals the changed book", n)
	}
}
