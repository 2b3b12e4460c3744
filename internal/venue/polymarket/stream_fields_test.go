package polymarket

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/tests/tool"
)

// seen is an observer that records the types of frames and the drift.
type seen struct{ list []string }

func (s *seen) Frame(kind string) { s.list = append(s.list, kind) }
func (s *seen) Drift(what string) { s.list = append(s.list, "drift "+what) }
func (*seen) Reconnect(string)    {}

// whole returns all fields of a message as text.
func whole(m *messages.Message) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return fmt.Sprint(t.UnixMilli() - epochMs)
	}
	out := fmt.Sprintf("%s/%s %d epoch %s seq %d at %s received %d", m.Topic.Channel, m.Topic.ID, m.Kind, m.Epoch, m.Seq, at(m.Time), m.ReceivedAt.UnixMilli())
	if b := m.Book; b != nil {
		out += fmt.Sprintf(" book %s %d/%d at %s epoch %s seq %d", b.TokenID, b.Bids.Len(), b.Asks.Len(), at(b.Timestamp), b.Epoch, b.Seq)
	}
	for _, c := range m.Changes {
		out += fmt.Sprintf(" change %s %s*%s", c.Side, c.Price, c.Size)
	}
	if s := m.Spread; s != nil {
		out += fmt.Sprintf(" spread %s %s/%s=%s at %s", s.TokenID, tool.Text(s.BestBid), tool.Text(s.BestAsk), tool.Text(s.Spread), at(s.Timestamp))
	}
	if p := m.Price; p != nil {
		out += fmt.Sprintf(" price %s %s %s at %s", p.TokenID, p.Price, p.Basis, at(p.Timestamp))
	}
	for _, t := range m.Trades {
		out += fmt.Sprintf(" trade %s %s %s/%s %s*%s at %s in %s id %d", t.MarketID, t.TokenID, t.Side, t.SideRaw, t.Price, t.Size, at(t.Timestamp), t.TransactionHash, len(t.TradeID))
	}
	if c := m.Market; c != nil {
		out += fmt.Sprintf(" market %s %s/%s winner %s %s tick %v at %d", c.Kind, c.Status, c.StatusRaw, c.Outcome, c.WinningTokenID, c.TickSize, c.At.UnixMilli()-epochMs)
	}
	return out
}

// TestEveryFieldOfAMessage decodes one frame of each type and compares all fields of its messages.
func TestEveryFieldOfAMessage(t *testing.T) {
	s, o := newSocket(t, bookA, priceA, tapeA, topic(messages.ChannelMarket, "M")), &seen{}
	s.env.Observer = o
	ms := func(n int) string { return fmt.Sprint(epochMs + n) }
	var got []string
	for _, text := range []string{
		`{"event_type":"book","market":"M","asset_id":"A","timestamp":"` + ms(1) + `","hash":"h","bids":[{"price":"0.4","size":"10"}],"asks":[{"price":"0.6","size":"11"},{"price":"0.7","size":"1"}]}`,
		`{"event_type":"price_change","market":"M","timestamp":"` + ms(2) + `","price_changes":[{"asset_id":"A","price":"0.5","size":"7","side":"SELL","hash":"h2","best_bid":"0.4","best_ask":"0.5"},{"asset_id":"B","price":"0.5","size":"7","side":"BUY","best_bid":"0.5","best_ask":"0.6"}]}`,
		`{"event_type":"best_bid_ask","market":"M","asset_id":"A","best_bid":"0.42","best_ask":"0.5","spread":"0.08","timestamp":"` + ms(3) + `"}`,
		`{"event_type":"last_trade_price","market":"M","asset_id":"A","price":"0.5","size":"2","side":"BUY","fee_rate_bps":"0","timestamp":"` + ms(4) + `","transaction_hash":"0xt"}`,
		`{"event_type":"tick_size_change","market":"M","asset_id":"A","old_tick_size":"0.01","new_tick_size":"0.001","timestamp":"` + ms(5) + `"}`,
		`{"event_type":"new_market","market":"M","timestamp":"` + ms(6) + `"}`,
		`{"event_type":"market_resolved","market":"M","winning_asset_id":"B","winning_outcome":"No","timestamp":"` + ms(7) + `"}`,
	} {
		for _, e := range s.Decode([]byte(text), s.now) {
			if e.Kind == stream.EventMessage {
				got = append(got, whole(e.Message))
			}
		}
	}
	book, delta, price, trade, change := messages.KindBookSnapshot, messages.KindBookDelta, messages.KindPrice, messages.KindTrade, messages.KindMarket
	equal(t, got,
		fmt.Sprintf("orderbook/A %d epoch E seq 1 at 1 received 50000 book A 1/2 at 1 epoch E seq 1", book),
		fmt.Sprintf("prices/A %d epoch E seq 1 at 1 received 50000 spread A 0.4/0.6=0.2 at 1 price A 0.5 MIDPOINT at 1", price),
		fmt.Sprintf("orderbook/A %d epoch E seq 2 at 2 received 50000 change SELL 0.5*7", delta),
		fmt.Sprintf("prices/A %d epoch E seq 2 at 2 received 50000 spread A 0.4/0.5=0.1 at 2 price A 0.45 MIDPOINT at 2", price),
		fmt.Sprintf("prices/A %d epoch E seq 3 at 3 received 50000 spread A 0.42/0.5=0.08 at 3 price A 0.46 MIDPOINT at 3", price),
		fmt.Sprintf("trades/A %d epoch E seq 1 at 4 received 50000 trade M A BUY/BUY 0.5*2 at 4 in 0xt id 32", trade),
		fmt.Sprintf("market/M %d epoch E seq 1 at 5 received 50000 market TICK_SIZE / winner   tick 0.001 at 5", change),
		fmt.Sprintf("market/M %d epoch E seq 2 at 6 received 50000 market CREATED / winner   tick <nil> at 6", change),
		fmt.Sprintf("market/M %d epoch E seq 3 at 7 received 50000 market RESOLVED RESOLVED/RESOLVED winner No B tick <nil> at 7", change))
	equal(t, o.list, "book", "price_change", "best_bid_ask", "last_trade_price", "tick_size_change", "new_market", "market_resolved")
}

// TestFormsOfFrames checks the events and what the observer sees for frames without a message, and for unreadable ones.
func TestFormsOfFrames(t *testing.T) {
	for text, want := range map[string]string{
		`PONG`: "; pong", `{`: "garbage; garbage", ``: "garbage; garbage", `[]`: "; ", `[{"event_type":"x"},{}]`: "; unknown, unknown", `7`: "; unknown",
		`{"asset_id":"A","bids":[],"asks":[]}`:                                                                                  "message; book",
		`{"event_type":"book","asset_id":"A","bids":[]}`:                                                                        "bad; book, drift bad frame",
		`{"event_type":"book","asset_id":"Z","bids":[]}`:                                                                        "; book",
		`{"event_type":"book","bids":[],"asks":[]}`:                                                                             "; book",
		`{"event_type":"price_change"}`:                                                                                         "; price_change, drift price_change without price_changes",
		`{"event_type":"price_change","price_changes":[7]}`:                                                                     "; price_change",
		`{"event_type":"price_change","price_changes":[{"asset_id":"A","side":"BUY","price":"0.5"}]}`:                           "bad; price_change, drift bad frame",
		`{"event_type":"price_change","price_changes":[{"asset_id":"A","side":"BUY","price":"5","size":"1"}]}`:                  "bad; price_change, drift bad frame",
		`{"event_type":"price_change","price_changes":[{"asset_id":"A","price":"0.5","size":"1"}]}`:                             "bad; price_change, drift bad frame",
		`{"event_type":"price_change","price_changes":[{"asset_id":"A","side":"BUY","price":"0.5","size":"1","best_bid":"7"}]}`: "bad; price_change, drift bad frame",
		`{"event_type":"best_bid_ask","asset_id":"A","best_bid":"7"}`:                                                           "; best_bid_ask",
		`{"event_type":"best_bid_ask","asset_id":"Z","best_bid":"0.5","best_ask":"0.6"}`:                                        "; best_bid_ask",
		`{"event_type":"last_trade_price","asset_id":"A","price":"0.5","size":"1","side":"BUY"}`:                                "bad; last_trade_price, drift bad trade",
		`{"event_type":"last_trade_price","asset_id":"A","price":"5","size":"1","side":"BUY","timestamp":"5"}`:                  "bad; last_trade_price, drift bad trade",
		`{"event_type":"last_trade_price","asset_id":"Z","price":"0.5","size":"1","side":"BUY","timestamp":"5"}`:                "; last_trade_price",
		`{"event_type":"market_resolved","winning_asset_id":"A"}`:                                                               "message; market_resolved",
		`{"event_type":"market_resolved","market":"Z","winning_asset_id":"A"}`:                                                  "message; market_resolved",
	} {
		s, o := newSocket(t, bookA, priceA, tapeA, topic(messages.ChannelMarket, "M")), &seen{}
		s.env.Observer = o
		s.assets["A"].owed = nil
		var got []string
		for _, e := range s.Decode([]byte(text), s.now) {
			got = append(got, map[stream.EventKind]string{
				stream.EventGarbage: "garbage", stream.EventMessage: "message", stream.EventBad: "bad",
			}[e.Kind])
		}
		if shown := strings.Join(got, " ") + "; " + strings.Join(o.list, ", "); shown != want {
			t.Errorf("%s\n got %s\nwant %s", text, shown, want)
		}
	}
}

// TestBestPricesOfAFrame checks the values by which Polymarket says that a side of a book is empty.
func TestBestPricesOfAFrame(t *testing.T) {
	for fields, want := range map[string]string{
		`"best_bid":"0.4","best_ask":"0.6"`: "0.4 0.6", `"best_bid":"0","best_ask":"1"`: "- -", `"best_bid":"","best_ask":""`: "- -", `"best_ask":"0"`: "- -", ``: "- -",
		`"best_bid":"1","best_ask":"0.999"`: "1 0.999", `"best_bid":null,"best_ask":0.001`: "- 0.001", `"best_bid":"1.1"`: "best_bid is not from 0 to 1",
		`"best_ask":"x"`: "best_ask is not a number",
	} {
		r := rowOf(t, "{"+fields+"}", nil)
		best := readTop(r)
		got := tool.Text(best.bid) + " " + tool.Text(best.ask)
		if r.Err != nil {
			got = r.Err.Error()
		}
		if got != want {
			t.Errorf("%s: the best prices are %s, want %s", fields, got, want)
		}
	}
}

// TestPartsOfTradeIDs checks that each part of a trade changes its id, and that equal numbers with other digits do not.
func TestPartsOfTradeIDs(t *testing.T) {
	base := market.Trade{TokenID: "A", SideRaw: "BUY", Price: market.MustDecimal("0.5"), Size: market.MustDecimal("2"), TransactionHash: "0xab", Timestamp: time.UnixMilli(epochMs)}
	same := base
	same.Price, same.Size, same.TransactionHash, same.SideRaw = market.MustDecimal("0.50"), market.MustDecimal("2.0"), "0xAB", "buy"
	same.Timestamp, same.MarketID = time.UnixMilli(1), "M"
	if tradeID(base) != tradeID(same) || len(tradeID(base)) != 32 {
		t.Errorf("equal trades have the ids %s and %s", tradeID(base), tradeID(same))
	}
	ids := map[string]bool{tradeID(base): true}
	for i := range 6 {
		other := base
		switch i {
		case 0:
			other.TokenID = "B"
		case 1:
			other.SideRaw = "SELL"
		case 2:
			other.Price = market.MustDecimal("0.51")
		case 3:
			other.Size = market.MustDecimal("3")
		case 4:
			other.TransactionHash = "0xac"
		case 5:
			other.TransactionHash = "" // the time counts
		}
		ids[tradeID(other)] = true
	}
	base.TransactionHash, base.Timestamp = "", time.UnixMilli(epochMs+1)
	if ids[tradeID(base)] = true; len(ids) != 8 {
		t.Errorf("8 different trades have %d ids", len(ids))
	}
}

// TestStreamOfOutcomesWithoutTokens checks that the socket is never asked for an outcome that has no token in an order book.
func TestStreamOfOutcomesWithoutTokens(t *testing.T) {
	s := newSocket(t)
	s.markets["0xa1"] = marketWith("0xa1", outcomeID("0xa1", 0), outcomeID("0xa1", 1))
	for _, x := range []messages.Topic{
		topic(messages.ChannelOrderbook, "0xa1:0"), topic(messages.ChannelPrices, "0xa1:1"), topic(messages.ChannelTrades, "503:0"), topic(messages.ChannelMarket, "0xa1"),
	} {
		for _, verb := range []stream.Verb{stream.VerbSubscribe, stream.VerbResync, stream.VerbUnsubscribe} {
			if got := s.request(verb, x); got != "" {
				t.Errorf("the request with verb %d and topic %v sends %s, want nothing", verb, x, got)
			}
		}
	}
}

// TestSidesOfTheStream checks that the case of a side does not matter: Polymarket/ts-sdk and Polymarket/py-sdk ignore it. Any other
// side makes a change unreadable, and a trade gets the side UNKNOWN.
func TestSidesOfTheStream(t *testing.T) {
	for side, want := range map[string]string{"BUY": "orderbook A 2  b0.41×5", "buy": "orderbook A 2  b0.41×5", "Buy": "orderbook A 2  b0.41×5", "BID": "bad orderbook A", "": "bad orderbook A"} {
		s := newSocket(t, bookA)
		s.frame(bookText("A", 1, "0.4", "0.6"))
		s.expect(s.frame(changeText("A", 2, side, "0.41", "5", "0.41", "0.6")), want)
	}
	for side, want := range map[string]string{"SELL": "orderbook A 2  a0.59×5", "sell": "orderbook A 2  a0.59×5"} {
		s := newSocket(t, bookA)
		s.frame(bookText("A", 1, "0.4", "0.6"))
		s.expect(s.frame(changeText("A", 2, side, "0.59", "5", "0.4", "0.59")), want)
	}
	ids := map[string]bool{}
	for side, want := range map[string]string{"SELL": "SELL", "sell": "SELL", "BUY": "BUY", "buy": "BUY", "hold": "UNKNOWN"} {
		s := newSocket(t, tapeA)
		text := `{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"0.6","size":"2","side":"` + side + `","timestamp":"5"}`
		s.expect(s.frame(text), "trades A 1 "+want+" 0.6×2")
		trade := s.Decode([]byte(text), s.now)[0].Message.Trades[0]
		if trade.SideRaw != side {
			t.Errorf("the trade has the side %q as the venue writes it, want %q", trade.SideRaw, side)
		}
		ids[trade.TradeID] = true
	}
	if len(ids) != 3 {
		t.Errorf("the trades of 3 sides have %d ids, want 3", len(ids))
	}
}
