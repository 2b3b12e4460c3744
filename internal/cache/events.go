package cache

import (
	"context"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// eventKind is the kind of events with their markets.
type eventKind struct {
	plain[market.EventRef, market.Event]
	names *marketNames
}

func (eventKind) about(cfg *Config) about {
	return about{kind: upstream.KindEvent, ttl: cfg.Search, routes: []route{{upstream.EndpointEvent, upstream.PrioritySearch}}}
}

func (eventKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []market.EventRef) ([]upstream.Result[*market.Event], error) {
	return answer(v.Event(ctx, call, keys[0]))
}

func (eventKind) own(key market.EventRef, _ *market.Event) market.EventRef {
	return market.EventRef{EventID: strings.Clone(key.EventID), EventSlug: strings.Clone(key.EventSlug)}
}

func (eventKind) forget(id string) func(market.EventRef) bool {
	return func(key market.EventRef) bool { return key.EventID == id || key.EventSlug == id }
}

func (eventKind) sound(_ market.EventRef, e *market.Event) bool {
	return len(e.LeftOut) == 0 && soundEvent(e)
}

func soundEvent(e *market.Event) bool {
	return e != nil && (e.EventID != "" || e.Slug != "") && soundMarkets(e.Markets)
}

func (k eventKind) learn(e *market.Event) { k.names.learn(e.Markets...) }

// Events returns the source of events with their markets.
func (c *Cache) Events() reads.Source[market.EventRef, market.Event] { return c.events }
