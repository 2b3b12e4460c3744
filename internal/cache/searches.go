package cache

import (
	"context"
	"strings"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// searchKind is the kind of pages of market searches.
type searchKind struct {
	plain[queries.SearchKey, queries.SearchPage]
	names *marketNames
}

func (searchKind) about(cfg *Config) about {
	return about{kind: upstream.KindSearch, ttl: cfg.Search, routes: []route{{upstream.EndpointSearch, upstream.PrioritySearch}}, unkeyed: true}
}

func (searchKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []queries.SearchKey) ([]upstream.Result[*queries.SearchPage], error) {
	return answer(v.Search(ctx, call, keys[0].Search()))
}

func (searchKind) own(key queries.SearchKey, _ *queries.SearchPage) queries.SearchKey {
	return ownSearch(key)
}

// ownSearch implements own for both kinds of searches.
func ownSearch(key queries.SearchKey) queries.SearchKey {
	for _, text := range []*string{&key.Venue, &key.Text, &key.Status, &key.Category, &key.Tag, &key.EventID, &key.EventSlug, &key.Page} {
		*text = strings.Clone(*text)
	}
	return key
}

func (searchKind) sound(_ queries.SearchKey, p *queries.SearchPage) bool {
	return len(p.LeftOut) == 0 && soundMarkets(p.Markets) && (p.Total == nil || *p.Total >= 0)
}

func (k searchKind) learn(p *queries.SearchPage) { k.names.learn(p.Markets...) }

// Searches returns the source of pages of market searches.
func (c *Cache) Searches() reads.Source[queries.SearchKey, queries.SearchPage] { return c.searches }
