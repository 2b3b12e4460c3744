package polymarket

import (
	"fmt"
	"slices"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

var marketM = topic(messages.ChannelMarket, "M")

// acks returns the topics that the next tick confirms.
func (s *socket) acks() (topics []string) {
	events, _ := s.tick(s.now)
	for _, e := range events {
		if e.Kind == stream.EventAck {
			for _, t := range e.Topics {
				topics = append(topics, string(t.Channel)+" "+t.ID)
			}
		}
	}
	return topics
}

func (s *socket) expectAcks(want ...string) {
	s.t.Helper()
	if got := s.acks(); !slices.Equal(got, want) {
		s.t.Errorf("the codec confirms %q, want %q", got, want)
	}
}

// TestMarketChanges checks the changes of a market whose outcomes are the names of teams. The frames have the form that the venue's
// SDKs for TypeScript and Python read (bindings/src/subscriptions/clob.ts, models/clob/market_events.py).
func TestMarketChanges(t *testing.T) {
	s := newSocket(t, marketM)
	tick := func(asset string, at int) string {
		return fmt.Sprintf(`{"event_type":"tick_size_change","market":"M","asset_id":%q,"old_tick_size":"0.01","new_tick_size":"0.001","timestamp":"%d"}`, asset, epochMs+at)
	}
	s.expect(s.frame(tick("A", 1)), fmt.Sprintf(`market M 1 TICK_SIZE  won by  "" at %d tick 0.001`, epochMs+1))
	s.expect(s.frame(tick("B", 1)), fmt.Sprintf(`market M 2 TICK_SIZE  won by  "" at %d tick 0.001`, epochMs+1)) // the other token of the market
	s.expect(s.frame(tick("C", 1)), fmt.Sprintf(`market M 3 TICK_SIZE  won by  "" at %d tick 0.001`, epochMs+1)) // by its id
	s.expect(s.frame(fmt.Sprintf(`{"event_type":"market_resolved","id":"7","market":"M","assets_ids":["A","B"],"winning_asset_id":"B","winning_outcome":"Team B","timestamp":"%d"}`, epochMs+9)),
		fmt.Sprintf(`market M 4 RESOLVED RESOLVED won by B "Team B" at %d`, epochMs+9))
	s.expect(s.frame(`{"event_type":"new_market","id":"8","market":"other","assets_ids":["D","E"],"timestamp":"9"}`))
	s.expect(s.frame(`{"event_type":"market_resolved","market":"other","assets_ids":["D","E"],"winning_asset_id":"D","timestamp":"9"}`))
	s.expect(s.frame(`{"event_type":"tick_size_change","market":"M","asset_id":"A","new_tick_size":"0","timestamp":"10"}`), `market M 5 TICK_SIZE  won by  "" at 10000`)
}

// TestMarketWithAPaddedID checks that the tokens of a frame decide to which market it belongs. In the recorded session of
// adriancova/polymarket-bot-v2 (ws-market-v2-session.jsonl), the market of a frame has 64 hexadecimal digits, also where REST writes
// a shorter id.
func TestMarketWithAPaddedID(t *testing.T) {
	s := newSocket(t, marketM)
	for i, frame := range []string{
		`{"event_type":"tick_size_change","market":"0x00M","asset_id":"A","new_tick_size":"0.01","timestamp":"5"}`,
		`{"event_type":"market_resolved","market":"0x00M","winning_asset_id":"A","winning_outcome":"Team A","timestamp":"5"}`,
		`{"event_type":"market_resolved","market":"0x00M","assets_ids":["B","A"],"timestamp":"5"}`,
	} {
		if got, want := s.frame(frame), fmt.Sprintf("market M %d ", i+1); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("the frame %s gives %q, want a change of M", frame, got)
		}
	}
	s.expect(s.frame(`{"event_type":"market_resolved","market":"0x00M","timestamp":"5"}`))
}

// TestMarketThatNobodyHasRead checks that the codec neither subscribes to nor confirms a market that the service has not read, and
// does both as soon as the service has read it. It must find the subscription again after the cache has evicted the market.
func TestMarketThatNobodyHasRead(t *testing.T) {
	s := newSocket(t)
	m := s.markets["M"]
	delete(s.markets, "M")
	if got := s.request(stream.VerbSubscribe, marketM); got != "" {
		t.Errorf("the codec sends %s for a market without known tokens", got)
	}
	s.expectAcks()
	s.markets["M"] = m
	if got, want := s.request(stream.VerbSubscribe, marketM), `{"assets_ids":["A"],"type":"market","initial_dump":true,"custom_feature_enabled":true}`; got != want {
		t.Errorf("the codec sends %s, want %s", got, want)
	}
	s.expectAcks("market M")
	delete(s.markets, "M")
	s.expect(s.frame(`{"event_type":"tick_size_change","market":"M","asset_id":"A","new_tick_size":"0.01","timestamp":"5"}`), `market M 1 TICK_SIZE  won by  "" at 5000 tick 0.01`)
	if got, want := s.request(stream.VerbUnsubscribe, marketM), `{"assets_ids":["A"],"operation":"unsubscribe"}`; got != want {
		t.Errorf("the codec sends %s, want %s", got, want)
	}
	s.expect(s.frame(`{"event_type":"tick_size_change","market":"M","asset_id":"A","new_tick_size":"0.01","timestamp":"6"}`))
}

// TestMarketSharesASubscription checks that a market topic uses a token that the socket is already subscribed to, whichever it is.
func TestMarketSharesASubscription(t *testing.T) {
	s := newSocket(t, topic(messages.ChannelTrades, "B"))
	s.expectAcks("trades B")
	if got := s.request(stream.VerbSubscribe, marketM); got != "" {
		t.Errorf("the codec sends %s, want nothing", got)
	}
	s.expectAcks("market M")
	s.expectAcks()
	if got := s.request(stream.VerbUnsubscribe, topic(messages.ChannelTrades, "B")); got != "" {
		t.Errorf("the codec sends %s while the market needs the token", got)
	}
}

// TestUnreadableTrade checks that a trade that cannot be read counts as a gap of its topic.
func TestUnreadableTrade(t *testing.T) {
	s := newSocket(t, tapeA)
	s.expect(s.frame(`{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"7","size":"2","side":"BUY","timestamp":"5"}`), "bad trades A")
	s.expect(s.frame(`{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"0.7","size":"2","side":"BUY","timestamp":"5"}`), "trades A 2 BUY 0.7×2")
	s = newSocket(t, bookA)
	s.expect(s.frame(`{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"7","size":"2","side":"BUY","timestamp":"5"}`))
}

// TestTickSizeOfAMarket checks the market to which a new tick size and a resolution were applied.
func TestTickSizeOfAMarket(t *testing.T) {
	s := newSocket(t, marketM)
	m := s.markets["M"]
	for _, frame := range []string{
		`{"event_type":"tick_size_change","market":"M","asset_id":"A","new_tick_size":"0.001","timestamp":"1790000000001"}`,
		`{"event_type":"market_resolved","market":"M","assets_ids":["A","B"],"winning_asset_id":"B","winning_outcome":"Team B","timestamp":"1790000000009"}`,
	} {
		for _, e := range s.Decode([]byte(frame), s.now) {
			if e.Message != nil {
				m = m.With(*e.Message.Market)
			}
		}
	}
	if m.TickSize == nil || m.TickSize.String() != "0.001" || m.Status != market.StatusResolved || m.Winner() == nil || m.Winner().TokenID != "B" ||
		m.Resolution == nil || m.Resolution.Outcome != "Team B" || m.Resolution.ResolvedAt.UnixMilli() != epochMs+9 {
		t.Errorf("the market is %+v with the resolution %+v", m, m.Resolution)
	}
}
