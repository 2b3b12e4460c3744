package tool

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// Discard is a feed.Sink that drops all data.
type Discard struct{}

func (Discard) StreamPrice(*reads.Session, *market.Price, reads.Meta)   {}
func (Discard) StreamSpread(*reads.Session, *market.Spread, reads.Meta) {}
func (Discard) StreamBook(*reads.Session, *market.Book, reads.Meta)     {}
func (Discard) StreamStale(messages.Topic)                              {}
func (Discard) StreamMarket(string, *market.MarketChange)               {}
func (Discard) StreamUnread(messages.Topic, messages.Kind)              {}
func (Discard) StreamAccount(*reads.Session, messages.Topic, []market.Order, []market.Position, *market.Balance, reads.Meta) {
}
