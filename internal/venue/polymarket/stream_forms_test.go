package polymarket

import (
	"testing"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

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
