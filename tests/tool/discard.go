package tool

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// Discard is a feed.Sink that drops all data.
type Discard struct{}

func (Discard) StreamPrice(*market.Session, *market.Price, market.Meta)   {}
func (Discard) StreamSpread(*market.Session, *market.Spread, market.Meta) {}
func (Discard) StreamBook(*market.Session, *market.Book, market.Meta)     {}
func (Discard) StreamStale(messages.Topic)                                {}
func (Discard) StreamMarket(string, *market.MarketChange)                 {}
func (Discard) StreamUnread(messages.Topic, messages.Kind)                {}
func (Discard) StreamAccount(*market.Session, messages.Topic, []market.Order, []market.Position, *market.Balance, market.Meta) {
}
