package cache

import (
	"context"
	"net/url"
	"time"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
)

// builder builds stores with a common configuration.
type builder struct {
	cfg   Config
	venue Venue
	// notFound is the time for which an absence is cached. For user data, notFound is at most cfg.User.Fresh.
	notFound time.Duration
	values   *pool
	absences *pool
	tasks    *tasks
	scope    *scope
}

// route is one way to fetch keys of a store: an endpoint with its priority.
type route[K comparable, T any] struct {
	endpoint reqctx.Endpoint
	priority reqctx.Priority
	fetch    func(ctx context.Context, keys []K) ([]market.Result[*T], error)
}

// bounds returns the greatest number of keys in one call of an endpoint and the greatest number of concurrent calls; see
// Config.InFlight.
func (b *builder) bounds(e reqctx.Endpoint) (keys, calls int) {
	keys = max(b.venue.MaxKeys(e), 1)
	switch {
	case e.User():
		return keys, 16 * b.cfg.InFlight
	case keys == 1:
		return keys, 4 * b.cfg.InFlight
	}
	return keys, b.cfg.InFlight
}

// newStore returns a store with the given routes.
func newStore[K comparable, T any](b *builder, kind reqctx.Kind, ttl TTL, asOf func(*T) time.Time, own func(K, *T) K, routes ...route[K, T]) *store[K, T] {
	s := &store[K, T]{
		kind: kind, ttl: ttl, notFound: b.notFound, clock: b.cfg.Clock, tasks: b.tasks, asOf: asOf, ownKey: own,
	}
	if ttl.Stale > 0 {
		s.stretch = b.cfg.Stretch
	}
	s.entries, s.absent = newList[K](b.values, s.expired), newList[K](b.absences, s.expired)
	if b.cfg.Shared != nil && !kind.User() {
		s.shared = &sharedCache[K, T]{Shared: b.cfg.Shared, store: s, kind: kind.String()}
	}
	for _, l := range routes {
		keys, calls := b.bounds(l.endpoint)
		c := &coalescer[K, T]{
			kind: kind, observer: b.cfg.Observer, fetch: l.fetch, accept: s.accept, cached: s.fresh, admission: b.cfg.Admission, clock: b.cfg.Clock, maxKeys: keys, unsupported: b.venue.Can(l.endpoint),
			priority: l.priority, endpoint: l.endpoint, counters: &s.counters, tasks: b.tasks, shared: s.shared, slots: make(chan struct{}, calls),
			changes: &s.changes, flights: make(map[K]*flight[K, T]), cost: func(keys, bytes int) int { return b.venue.Cost(l.endpoint, keys, bytes) },
		}
		if l.endpoint.User() && !b.scope.public {
			c.scope = b.scope.credentials
		}
		s.routes = append(s.routes, c)
	}
	return s
}

// bytesOf returns the length of a key's id in a URL. It returns 0 if no URL contains several keys of this type.
func bytesOf(key any) int {
	switch k := key.(type) {
	case string:
		return len(url.QueryEscape(k))
	case market.MarketRef:
		return len(url.QueryEscape(k.Value))
	}
	return 0
}

// bytesOfAll returns the sum of bytesOf.
func bytesOfAll[K any](keys []K) (sum int) {
	for _, key := range keys {
		sum += bytesOf(key)
	}
	return sum
}

// singleKey returns a batch function that fetches a key with read. The batch must contain exactly one key.
func singleKey[K comparable, T any](read func(ctx context.Context, key K) (*T, error)) func(context.Context, []K) ([]market.Result[*T], error) {
	return func(ctx context.Context, keys []K) ([]market.Result[*T], error) {
		value, err := read(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		return []market.Result[*T]{{Value: value}}, nil
	}
}

// build builds the stores of all kinds.
func (c *Cache) build(b *builder) {
	v, cfg := c.venue, b.cfg
	c.prices = newStore(b, reqctx.KindPrice, cfg.Price, func(p *market.Price) time.Time { return p.Timestamp }, ownPrice,
		route[string, market.Price]{reqctx.EndpointPrices, reqctx.PriorityPrices, v.Prices})
	c.spreads = newStore(b, reqctx.KindSpread, cfg.Spread, func(s *market.Spread) time.Time { return s.Timestamp }, ownSpread,
		route[string, market.Spread]{reqctx.EndpointSpreads, reqctx.PriorityPrices, v.Spreads})
	c.books = newStore(b, reqctx.KindBook, cfg.Book, func(b *market.Book) time.Time { return b.Timestamp }, ownBook,
		route[queries.Book, market.Book]{reqctx.EndpointBook, reqctx.PriorityBooks, v.Books})
	c.books.canonical = func(q queries.Book) queries.Book {
		return queries.Book{TokenID: q.TokenID, Depth: queries.BookDepthStep(q.Depth)}
	}
	c.books.slot = func(q queries.Book) queries.Book { return queries.Book{TokenID: q.TokenID} }
	c.books.covers = func(q queries.Book, b *market.Book) bool { return b.Covers(q.Depth) }
	c.books.widen = func(q queries.Book, b *market.Book) queries.Book {
		return queries.Book{TokenID: q.TokenID, Depth: max(q.Depth, b.Depth)}
	}
	c.books.keep = func(old, fetched *market.Book) bool {
		return old.Depth > fetched.Depth && old.Seq != 0 && old.Epoch == fetched.Epoch && old.Seq >= fetched.Seq
	}
	c.prices.older, c.spreads.older, c.books.older = olderPrice, olderSpread, olderBook
	c.histories = newStore(b, reqctx.KindHistory, cfg.History, func(h *market.PriceHistory) time.Time { return time.Time{} }, ownHistory,
		route[queries.PriceHistory, market.PriceHistory]{reqctx.EndpointPriceHistory, reqctx.PriorityHistory, v.PriceHistories})
	c.books.queries = func(slot queries.Book) []queries.Book {
		var out []queries.Book
		for depth := 0; depth < queries.MaxBookDepth; {
			depth = queries.BookDepthStep(depth + 1)
			out = append(out, queries.Book{TokenID: slot.TokenID, Depth: depth})
		}
		return out
	}
	c.buildMarkets(b)
	c.buildSearches(b)
	c.buildUsers(b)
}

// buildMarkets builds the store of markets. The routes of markets are in the order of market.MarketRefKind.
func (c *Cache) buildMarkets(b *builder) {
	v, cfg := c.venue, b.cfg
	values := func(keys []market.MarketRef) []string {
		out := make([]string, len(keys))
		for i, k := range keys {
			out[i] = k.Value
		}
		return out
	}
	updated := func(m *market.Market) time.Time { return m.UpdatedAt }
	c.markets = newStore(b, reqctx.KindMarket, cfg.Market, updated, ownMarket,
		route[market.MarketRef, market.Market]{reqctx.EndpointMarketsByID, reqctx.PriorityMarkets,
			func(ctx context.Context, keys []market.MarketRef) ([]market.Result[*market.Market], error) {
				return v.MarketsByID(ctx, values(keys))
			}},
		route[market.MarketRef, market.Market]{reqctx.EndpointMarketBySlug, reqctx.PriorityMarkets,
			singleKey(func(ctx context.Context, key market.MarketRef) (*market.Market, error) {
				return v.MarketBySlug(ctx, key.Value)
			})},
		route[market.MarketRef, market.Market]{reqctx.EndpointMarketsByToken, reqctx.PriorityMarkets,
			func(ctx context.Context, keys []market.MarketRef) ([]market.Result[*market.Market], error) {
				return v.MarketsByToken(ctx, values(keys))
			}})
	c.markets.routeIndex = func(key market.MarketRef) int { return int(key.By) }
	c.markets.canonical = func(key market.MarketRef) market.MarketRef {
		if key.By != market.ByMarketID {
			if known := c.refs.find(key); known.bytes != 0 {
				return known.id
			}
		}
		return key
	}
	c.markets.alias = func(key market.MarketRef) bool { return key.By != market.ByMarketID }
	c.markets.amend = (*announced).apply
	c.markets.changed = newChanges[market.MarketRef](cfg.Changes)
	c.markets.learn = func(m *market.Market) { c.learn(m) }
}

// named is an item of Cache.refs: the id of the market with a slug or a token. All names of a market share the memory of the id. But
// each of them counts it, because each may be the last one that keeps it in memory.
type named struct {
	id    market.MarketRef
	bytes int
}

func (n named) size() int  { return n.bytes }
func (n named) live() bool { return false }
func (n named) leave()     {}

// learn maps the slug and the tokens of each market to the market's id. If the slug or a token was remembered as unknown, learn
// removes that absence.
func (c *Cache) learn(markets ...*market.Market) {
	for _, m := range markets {
		id := market.MarketRef{By: market.ByMarketID, Value: m.MarketID}
		is := func(by market.MarketRefKind, value string) {
			if value != "" && m.MarketID != "" {
				ref := market.MarketRef{By: by, Value: value}
				c.refs.put(ref, named{id, overhead(&ref, int(unsafe.Sizeof(named{}))) + allocated(len(id.Value))})
				c.markets.absent.remove(ref)
			}
		}
		is(market.BySlug, m.Slug)
		for i := range m.Outcomes {
			is(market.ByToken, m.Outcomes[i].TokenID)
		}
	}
}

// buildUsers builds the stores of user data. If Config.PublicAccounts is set, all callers share the entries. Otherwise callers with
// different credentials never share an entry, because the keys contain an HMAC of the caller's credentials.
func (c *Cache) buildUsers(b *builder) {
	v, cfg := c.venue, b.cfg
	b.notFound = min(cfg.NotFound, cfg.User.Fresh)
	c.balances = newStore(b, reqctx.KindBalance, cfg.User, func(x *market.Balance) time.Time { return x.UpdatedAt }, ownUser,
		route[userKey, market.Balance]{reqctx.EndpointBalance, reqctx.PriorityUser,
			singleKey(func(ctx context.Context, key userKey) (*market.Balance, error) { return v.Balance(ctx, key.address) })})
	c.positions = newStore(b, reqctx.KindPositions, cfg.User, func(*[]market.Position) time.Time { return time.Time{} }, ownUser,
		route[userKey, []market.Position]{reqctx.EndpointPositions, reqctx.PriorityUser,
			singleKey(func(ctx context.Context, key userKey) (*[]market.Position, error) {
				return pointerTo(v.Positions(ctx, key.address))
			})})
	c.orders = newStore(b, reqctx.KindOrders, cfg.User, func(*[]market.Order) time.Time { return time.Time{} }, ownUser,
		route[userKey, []market.Order]{reqctx.EndpointOrders, reqctx.PriorityUser,
			singleKey(func(ctx context.Context, key userKey) (*[]market.Order, error) {
				return pointerTo(v.Orders(ctx, key.address))
			})})
	c.trades = newStore(b, reqctx.KindTrades, cfg.User, func(*queries.TradePage) time.Time { return time.Time{} }, ownTrades,
		route[tradesKey, queries.TradePage]{reqctx.EndpointTrades, reqctx.PriorityUser,
			singleKey(func(ctx context.Context, key tradesKey) (*queries.TradePage, error) {
				return v.Trades(ctx, key.address, key.query)
			})})
	c.userHistories = newStore(b, reqctx.KindUserHistory, cfg.User, func(*queries.HistoryPage) time.Time { return time.Time{} }, ownUserHistory,
		route[historyKey, queries.HistoryPage]{reqctx.EndpointHistory, reqctx.PriorityUser,
			singleKey(func(ctx context.Context, key historyKey) (*queries.HistoryPage, error) {
				return v.History(ctx, key.address, key.key.Query())
			})})
	c.balances.user, c.positions.user, c.orders.user = userKey.user, userKey.user, userKey.user
	for _, changed := range []**lru.Cache[userKey, *change]{&c.balances.changed, &c.positions.changed, &c.orders.changed} {
		*changed = newChanges[userKey](cfg.Changes)
	}
	c.trades.user, c.userHistories.user = tradesKey.user, historyKey.user
}

// pointerTo returns a pointer to rows. It returns nil if err is not nil.
func pointerTo[T any](rows []T, err error) (*[]T, error) {
	if err != nil {
		return nil, err
	}
	return &rows, nil
}
