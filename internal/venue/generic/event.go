package generic

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

const (
	eventPageSize = 100
	maxEventPages = 5
)

// Event builds an event from a search for its markets, by its id or else its slug. If the search finds no market, Event returns nil. If
// the markets are on more than maxEventPages pages, it returns an error, because sums over a part of them would be wrong.
func (c *Client) Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error) {
	q := queries.Search{EventID: ref.EventID, EventSlug: ref.EventSlug, Sort: queries.SortRelevance, Direction: queries.Descending, Limit: eventPageSize}
	if q.EventID != "" {
		q.EventSlug = ""
	}
	var e *market.Event
	var leftOut market.LeftOut
	seen := make(map[string]bool) // a market may move to a later page while the pages are read
	for range maxEventPages {
		page, err := c.Search(ctx, call, q)
		if err != nil {
			return nil, err
		}
		leftOut = append(leftOut, page.LeftOut...)
		for _, m := range page.Markets {
			if seen[m.MarketID] {
				continue
			}
			seen[m.MarketID] = true
			if e == nil {
				e = &market.Event{EventID: m.EventID, Slug: m.EventSlug, Title: m.EventTitle}
			}
			e.Include(m)
		}
		if q.Page = page.Next; q.Page == "" {
			if e != nil {
				e.LeftOut = leftOut
			}
			return e, nil
		}
	}
	return nil, market.Errorf(market.CodeUpstreamBadResponse, "the markets of the event take more than %d pages", maxEventPages)
}
