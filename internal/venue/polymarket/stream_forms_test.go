package polymarket

import (
	"testing"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// TestStreamOfOutcomesWithoutTokens checks that the socket is never asked for an outcome that has no token in an order book.
func TestStreamOfOutcomesWithoutTokens(t *testing.T) {
	s := newSocket(t)
	s.env.Tokens = func(id string) (string, string, bool) { return outcomeID(id, 0), outcomeID(id, 1), true }
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
