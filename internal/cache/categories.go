package cache

import (
	"context"
	"slices"
	"strings"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// categoriesKind is the kind of the venue's list of categories. Its only key is the name of the venue.
type categoriesKind struct {
	plain[string, queries.Categories]
}

// The fresh time of categories is categoriesFactor times the fresh time of searches, because a read of the categories takes several
// calls.
const categoriesFactor = 20

func (categoriesKind) about(cfg *Config) about {
	ttl := TTL{categoriesFactor * cfg.Search.Fresh, cfg.Search.Stale}
	return about{kind: upstream.KindCategories, ttl: ttl, routes: []route{{upstream.EndpointCategories, upstream.PrioritySearch}}, unkeyed: true}
}

func (categoriesKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, _ []string) ([]upstream.Result[*queries.Categories], error) {
	return answer(v.Categories(ctx, call))
}

func (categoriesKind) own(key string, _ *queries.Categories) string { return strings.Clone(key) }

func (categoriesKind) sound(_ string, all *queries.Categories) bool {
	return !slices.ContainsFunc(all.List, func(c queries.Category) bool { return c.Name == "" || c.OpenMarkets < 0 })
}

// Categories returns the source of the venue's categories. Its only key is the name of the venue, which is empty for the first one.
func (c *Cache) Categories() reads.Source[string, queries.Categories] { return c.categories }
