package cache

import (
	"context"
	"slices"
	"time"
	"unsafe"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// marketKind is the kind of markets, by id, slug or token. An entry is stored under the market's id.
type marketKind struct {
	plain[market.MarketRef, market.Market]
	names *marketNames
}

// about lists the routes in the order of market.MarketRefKind.
func (marketKind) about(cfg *Config) about {
	return about{kind: upstream.KindMarket, ttl: cfg.Market, routes: []route{
		{upstream.EndpointMarketsByID, upstream.PriorityMarkets},
		{upstream.EndpointMarketBySlug, upstream.PriorityMarkets},
		{upstream.EndpointMarketsByToken, upstream.PriorityMarkets},
	}}
}

func (marketKind) route(key market.MarketRef) int { return int(key.By) }

func (marketKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, e upstream.Endpoint, keys []market.MarketRef) ([]upstream.Result[*market.Market], error) {
	if e == upstream.EndpointMarketBySlug {
		return answer(v.MarketBySlug(ctx, call, keys[0].Value))
	}
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = key.Value
	}
	if e == upstream.EndpointMarketsByToken {
		return v.MarketsByToken(ctx, call, ids)
	}
	return v.MarketsByID(ctx, call, ids)
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

var states = []market.Status{
	market.StatusUpcoming, market.StatusOpen, market.StatusClosed, market.StatusDisputed, market.StatusResolved, market.StatusCancelled, market.StatusUnknown,
}

func soundMarket(m *market.Market) bool {
	if m == nil || market.CheckID(m.MarketID) != nil || !slices.Contains(states, m.Status) {
		return false
	}
	return !slices.ContainsFunc(m.Outcomes, func(o market.Outcome) bool {
		return o.Label == "" || o.TokenID != "" && market.CheckID(o.TokenID) != nil || !inUnit(o.Price)
	})
}

func soundMarkets(list []*market.Market) bool {
	return !slices.ContainsFunc(list, func(m *market.Market) bool { return !soundMarket(m) })
}

func (k marketKind) learn(m *market.Market) { k.names.learn(m) }

func (marketKind) amend(m *market.Market, by *announced) (amended *market.Market, contradicts bool) {
	return by.apply(m)
}

// marketNames maps the slugs and tokens of markets to the ids of their markets.
type marketNames struct {
	*list[market.MarketRef, named]
	// unknown contains the absences of markets.
	unknown *list[market.MarketRef, *entry[market.Market]]
}

// named is an item of marketNames: the id of the market with a slug or a token. All names of a market share the memory of the id. But each
// of them counts it, because each may be the last one that keeps it in memory.
type named struct {
	id    market.MarketRef
	bytes int
}

func (n named) size() int  { return n.bytes }
func (n named) live() bool { return false }
func (n named) leave()     {}

// learn maps the slug and the tokens of each market to the market's id. If the slug or a token was remembered as unknown, learn
// removes that absence.
func (n *marketNames) learn(markets ...*market.Market) {
	for _, m := range markets {
		id := market.MarketRef{By: market.ByMarketID, Value: m.MarketID}
		is := func(by market.MarketRefKind, value string) {
			if value != "" && m.MarketID != "" {
				ref := market.MarketRef{By: by, Value: value}
				n.put(ref, named{id, overhead(&ref, int(unsafe.Sizeof(named{}))) + allocated(len(id.Value))})
				n.unknown.remove(ref)
			}
		}
		is(market.BySlug, m.Slug)
		for i := range m.Outcomes {
			is(market.ByToken, m.Outcomes[i].TokenID)
		}
	}
}

// Markets returns the source of markets.
func (c *Cache) Markets() reads.Source[market.MarketRef, market.Market] { return c.markets }

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
