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
