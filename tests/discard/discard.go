// Package discard has a sink for tests of feeds.
package discard

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// Sink is a feed.Sink that drops all data that the feed passes to the cache.
type Sink struct{}

func (Sink) StreamPrice(*market.Session, *market.Price, market.Meta)    {}
func (Sink) StreamSpread(*market.Session, *market.Spread, market.Meta)  {}
func (Sink) StreamBook(*market.Session, *market.Book, market.Meta)      {}
func (Sink) StreamStale(messages.Topic)                                 {}
func (Sink) StreamMarket(*market.Session, string, *market.MarketChange) {}
func (Sink) StreamAccount(*market.Session, messages.Topic, []market.Order, []market.Position, *market.Balance, market.Meta) {
}
