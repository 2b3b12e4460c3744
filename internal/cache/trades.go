package cache

import (
	"context"
	"strings"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// tradesKind is the kind of pages of the trades of accounts.
type tradesKind struct {
	ofUser[tradesKey, queries.TradePage]
}

// tradesKey is the key of a page of an account's trades for one caller.
type tradesKey struct {
	userKey
	Query queries.Trades
}

func (k tradesKey) own() tradesKey {
	k.userKey = k.userKey.own()
	k.Query.MarketID, k.Query.Page = strings.Clone(k.Query.MarketID), strings.Clone(k.Query.Page)
	return k
}

func (tradesKind) about(cfg *Config) about {
	return about{kind: upstream.KindTrades, ttl: cfg.User, routes: []route{{upstream.EndpointTrades, upstream.PriorityUser}}}
}

func (tradesKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []tradesKey) ([]upstream.Result[*queries.TradePage], error) {
	return answer(v.Trades(ctx, call, keys[0].Address, keys[0].Query))
}

// Trades returns the source of pages of an account's trades. It reads them for the caller in ctx.
func (c *Cache) Trades() reads.Source[queries.TradesKey, queries.TradePage] {
	return freshSource[queries.TradesKey, queries.TradePage]{userSource[queries.TradesKey, tradesKey, queries.TradePage]{
		c.trades, func(ctx context.Context, key queries.TradesKey) tradesKey {
			return tradesKey{c.scope.keyFor(ctx, key.Address), key.Query}
		}}}
}
