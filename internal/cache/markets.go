package cache

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
)

// marketKind is the kind of markets, by id, slug or token. An entry is stored under the market's id.
type marketKind struct {
	plain[market.MarketRef, market.Market]
	names *marketNames
}

// about lists the routes in the order of market.MarketRefKind.
func (marketKind) about(cfg *Config) about {
	return about{kind: reqctx.KindMarket, ttl: cfg.Market, routes: []route{
		{reqctx.EndpointMarketsByID, reqctx.PriorityMarkets},
		{reqctx.EndpointMarketBySlug, reqctx.PriorityMarkets},
		{reqctx.EndpointMarketsByToken, reqctx.PriorityMarkets},
	}}
}

func (marketKind) route(key market.MarketRef) int { return int(key.By) }

func (marketKind) fetch(ctx context.Context, v Venue, e reqctx.Endpoint, keys []market.MarketRef) ([]market.Result[*market.Market], error) {
	if e == reqctx.EndpointMarketBySlug {
		return answer(v.MarketBySlug(ctx, keys[0].Value))
	}
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = key.Value
	}
	if e == reqctx.EndpointMarketsByToken {
		return v.MarketsByToken(ctx, ids)
	}
	return v.MarketsByID(ctx, ids)
}

func (marketKind) own(key market.MarketRef, m *market.Market) market.MarketRef {
	key.Value = ownID(key.Value, m, func(m *market.Market) string { return m.MarketID })
	return key
}

func (k marketKind) canonical(key market.MarketRef) market.MarketRef {
	if key.By != market.ByMarketID {
		if known := k.names.find(key); known.bytes != 0 {
			return known.id
		}
	}
	return key
}

func (marketKind) alias(key market.MarketRef) bool { return key.By != market.ByMarketID }

// forget implements kind for the id, the slug or a token of a market. It also forgets the name.
func (k marketKind) forget(id string) func(market.MarketRef) bool {
	if id == "" {
		k.names.removeAll(func(market.MarketRef) bool { return true })
		return nil
	}
	var meant []market.MarketRef
	for _, by := range []market.MarketRefKind{market.ByMarketID, market.BySlug, market.ByToken} {
		ref := market.MarketRef{By: by, Value: id}
		meant = append(meant, ref)
		if known := k.names.get(ref); known.bytes != 0 {
			meant = append(meant, known.id)
			k.names.remove(ref)
		}
	}
	return func(key market.MarketRef) bool { return slices.Contains(meant, key) }
}

func (marketKind) asOf(m *market.Market) time.Time { return m.UpdatedAt }

func (marketKind) sound(key market.MarketRef, m *market.Market) bool {
	return soundMarket(m) && (key.By != market.ByMarketID || m.MarketID == key.Value)
}

func (k marketKind) learn(m *market.Market) { k.names.learn(m) }

func (marketKind) amend(m *market.Market, by *announced) (amended *market.Market, contradicts bool) {
	return by.apply(m)
}

// Markets returns the source of markets.
func (c *Cache) Markets() queries.Source[market.MarketRef, market.Market] { return c.markets }

// StreamMarket records a streamed change of a market, so that the next read fetches the market again. If this fetch fails, the read
// returns the cached market. For restLag, a status, winner or tick size in the change overrides that of REST values. A market with
// an overridden value is marked stale. change is nil if the stream sent no values.
func (c *Cache) StreamMarket(marketID string, change *market.MarketChange) {
	c.markets.markChanged(market.MarketRef{By: market.ByMarketID, Value: marketID}, change)
}

// CachedMarket returns a market of the cache, of any age, or nil. It never calls the venue.
func (c *Cache) CachedMarket(marketID string) *market.Market {
	e := c.markets.entries.get(market.MarketRef{By: market.ByMarketID, Value: marketID})
	if e == nil {
		return nil
	}
	return e.read.Value
}
