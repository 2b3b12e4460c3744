package cache

import (
	"context"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// marketTradesKind is the kind of pages of the public trades of markets.
type marketTradesKind struct {
	plain[queries.MarketTrades, queries.TradePage]
}

func (marketTradesKind) about(cfg *Config) about {
	return about{kind: upstream.KindMarketTrades, ttl: cfg.Search, routes: []route{{upstream.EndpointMarketTrades, upstream.PrioritySearch}}}
}

func (marketTradesKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []queries.MarketTrades) ([]upstream.Result[*queries.TradePage], error) {
	return answer(v.MarketTrades(ctx, call, keys[0]))
}

func (marketTradesKind) own(key queries.MarketTrades, _ *queries.TradePage) queries.MarketTrades {
	for _, text := range []*string{&key.MarketID, &key.TokenID, &key.Page} {
		*text = strings.Clone(*text)
	}
	return key
}

func (marketTradesKind) forget(id string) func(queries.MarketTrades) bool {
	return func(key queries.MarketTrades) bool { return key.MarketID == id || key.TokenID == id }
}

func (marketTradesKind) sound(_ queries.MarketTrades, p *queries.TradePage) bool {
	return len(p.LeftOut) == 0 && !slices.ContainsFunc(p.Trades, func(t market.Trade) bool { return !soundTrade(&t) })
}

var sides = []market.OrderSide{market.SideBuy, market.SideSell, market.SideUnknown}

func soundTrade(t *market.Trade) bool {
	return inUnit(&t.Price) && t.Size.Sign() >= 0 && !t.Timestamp.IsZero() && slices.Contains(sides, t.Side)
}

// MarketTrades returns the source of pages of the public trades of markets.
func (c *Cache) MarketTrades() reads.Source[queries.MarketTrades, queries.TradePage] {
	return freshSource[queries.MarketTrades, queries.TradePage]{c.marketTrades}
}
