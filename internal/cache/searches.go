package cache

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
)

// Searches returns the source of pages of market searches.
func (c *Cache) Searches() Source[queries.SearchKey, queries.SearchPage] { return c.searches }

// EventSearches returns the source of pages of event searches.
func (c *Cache) EventSearches() Source[queries.SearchKey, queries.EventPage] { return c.eventSearches }

// Categories returns the source of the venue's categories. Its only key is the empty struct.
func (c *Cache) Categories() Source[struct{}, queries.Categories] { return c.categories }

// MarketTrades returns the source of pages of the public trades of markets.
func (c *Cache) MarketTrades() Source[queries.MarketTrades, queries.TradePage] {
	return freshSource[queries.MarketTrades, queries.TradePage]{c.marketTrades}
}

// The fresh time of categories is categoriesFactor times the fresh time of searches, because a read of the categories takes several
// calls.
const categoriesFactor = 20

// buildSearches builds the stores of searches, events, categories and public trades.
func (c *Cache) buildSearches(b *builder) {
	v, cfg := c.venue, b.cfg
	c.searches = newStore(b, reqctx.KindSearch, cfg.Search, func(*queries.SearchPage) time.Time { return time.Time{} }, ownSearch,
		route[queries.SearchKey, queries.SearchPage]{reqctx.EndpointSearch, reqctx.PrioritySearch,
			singleKey(func(ctx context.Context, key queries.SearchKey) (*queries.SearchPage, error) {
				return v.Search(ctx, key.Search())
			})})
	c.searches.learn = func(p *queries.SearchPage) { c.learn(p.Markets...) }
	c.events = newStore(b, reqctx.KindEvent, cfg.Search, func(*market.Event) time.Time { return time.Time{} }, ownEvent,
		route[market.EventRef, market.Event]{reqctx.EndpointEvent, reqctx.PrioritySearch, singleKey(v.Event)})
	c.events.learn = func(e *market.Event) { c.learn(e.Markets...) }
	c.eventSearches = newStore(b, reqctx.KindEventSearch, cfg.Search, func(*queries.EventPage) time.Time { return time.Time{} }, ownSearch,
		route[queries.SearchKey, queries.EventPage]{reqctx.EndpointEventSearch, reqctx.PrioritySearch,
			singleKey(func(ctx context.Context, key queries.SearchKey) (*queries.EventPage, error) {
				return v.SearchEvents(ctx, key.Search())
			})})
	c.eventSearches.learn = func(p *queries.EventPage) {
		for _, e := range p.Events {
			c.learn(e.Markets...)
			c.learn(e.Matches...)
		}
	}
	ttl := TTL{categoriesFactor * cfg.Search.Fresh, cfg.Search.Stale}
	c.categories = newStore(b, reqctx.KindCategories, ttl, func(*queries.Categories) time.Time { return time.Time{} },
		func(key struct{}, _ *queries.Categories) struct{} { return key },
		route[struct{}, queries.Categories]{reqctx.EndpointCategories, reqctx.PrioritySearch,
			singleKey(func(ctx context.Context, _ struct{}) (*queries.Categories, error) { return v.Categories(ctx) })})
	c.marketTrades = newStore(b, reqctx.KindMarketTrades, cfg.Search, func(*queries.TradePage) time.Time { return time.Time{} }, ownMarketTrades,
		route[queries.MarketTrades, queries.TradePage]{reqctx.EndpointMarketTrades, reqctx.PrioritySearch, singleKey(v.MarketTrades)})
}
