package cache

import (
	"context"
	"strings"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// userHistoryKind is the kind of pages of the histories of accounts.
type userHistoryKind struct {
	ofUser[historyKey, queries.HistoryPage]
}

// historyKey is the key of a page of an account's history for one caller.
type historyKey struct {
	userKey
	key queries.HistoryKey
}

func (k historyKey) own() historyKey {
	k.userKey = k.userKey.own()
	k.key.Address = k.Address
	k.key.Kinds, k.key.Page.Page = strings.Clone(k.key.Kinds), strings.Clone(k.key.Page.Page)
	return k
}

func (userHistoryKind) about(cfg *Config) about {
	return about{kind: upstream.KindUserHistory, ttl: cfg.User, routes: []route{{upstream.EndpointHistory, upstream.PriorityUser}}}
}

func (userHistoryKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []historyKey) ([]upstream.Result[*queries.HistoryPage], error) {
	return answer(v.History(ctx, call, keys[0].Address, keys[0].key.Query()))
}

// Records returns the source of pages of an account's history. It reads them for the caller in ctx.
func (c *Cache) Records() reads.Source[queries.HistoryKey, queries.HistoryPage] {
	return freshSource[queries.HistoryKey, queries.HistoryPage]{userSource[queries.HistoryKey, historyKey, queries.HistoryPage]{
		c.userHistories, func(ctx context.Context, key queries.HistoryKey) historyKey {
			return historyKey{c.scope.keyFor(ctx, key.Address), key}
		}}}
}
