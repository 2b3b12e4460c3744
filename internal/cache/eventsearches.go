package cache

import (
	"context"
	"slices"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// eventSearchKind is the kind of pages of event searches.
type eventSearchKind struct {
	plain[queries.SearchKey, queries.EventPage]
	names *marketNames
}

func (eventSearchKind) about(cfg *Config) about {
	return about{kind: upstream.KindEventSearch, ttl: cfg.Search, routes: []route{{upstream.EndpointEventSearch, upstream.PrioritySearch}}, unkeyed: true}
}

func (eventSearchKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []queries.SearchKey) ([]upstream.Result[*queries.EventPage], error) {
	return answer(v.SearchEvents(ctx, call, keys[0].Search()))
}

func (eventSearchKind) own(key queries.SearchKey, _ *queries.EventPage) queries.SearchKey {
	return ownSearch(key)
}

// weight counts the matches of a whole event once, although they are in its markets too.
func (eventSearchKind) weight(p *queries.EventPage) int {
	bytes := weigh(p)
	for i := range p.Events {
		if e := &p.Events[i]; e.Whole {
			for _, m := range e.Matches {
				bytes -= weigh(m)
			}
		}
	}
	return bytes
}

func (eventSearchKind) sound(_ queries.SearchKey, p *queries.EventPage) bool {
	return len(p.LeftOut) == 0 && !slices.ContainsFunc(p.Events, func(e queries.FoundEvent) bool { return !soundEvent(e.Event) || !soundMarkets(e.Matches) })
}

func (k eventSearchKind) learn(p *queries.EventPage) {
	for _, e := range p.Events {
		k.names.learn(e.Markets...)
		k.names.learn(e.Matches...)
	}
}

// EventSearches returns the source of pages of event searches.
func (c *Cache) EventSearches() reads.Source[queries.SearchKey, queries.EventPage] {
	return c.eventSearches
}
