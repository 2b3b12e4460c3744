package generic

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// SearchEvents searches for one page of maxPageSize markets and returns their events, because the documented API has no search for
// events. It ignores q.Limit. If a search finds markets of an event on several pages, each of these pages contains the event.
func (c *Client) SearchEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	q.Limit = maxPageSize
	page, err := c.Search(ctx, call, q)
	if err != nil {
		return nil, err
	}
	return queries.GroupByEvent(page), nil
}

// Categories counts the open markets of each category on the first pages of the venue's search, because the documented API has no
// list of categories.
func (c *Client) Categories(ctx context.Context, call upstream.Call) (*queries.Categories, error) {
	q := queries.Search{Status: []market.Status{market.StatusOpen}, Sort: queries.SortRelevance, Direction: queries.Descending, Limit: maxPageSize}
	return queries.CountCategories(func(page string) (*queries.SearchPage, error) {
		q.Page = page
		return c.Search(ctx, call, q)
	})
}

const maxEventPages = 5

// Event builds an event from a search for its markets, by its id or else its slug. If the search finds no market, Event returns nil. If
// the markets are on more than maxEventPages pages, it returns an error, because sums over a part of them would be wrong.
func (c *Client) Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error) {
	q := queries.Search{EventID: ref.EventID, EventSlug: ref.EventSlug, Sort: queries.SortRelevance, Direction: queries.Descending, Limit: maxPageSize}
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
