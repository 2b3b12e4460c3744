package generic

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// SearchEvents returns the events of one page of maxPageSize markets, because the documented API has no search for events. It
// ignores q.Limit. If the markets of an event are on several pages, the event is on each of these pages.
func (c *Client) SearchEvents(ctx context.Context, q queries.Search) (*queries.EventPage, error) {
	q.Limit = maxPageSize
	page, err := c.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	return queries.GroupByEvent(page), nil
}

// Categories counts the open markets of each category on the first pages of the venue's search, because the documented API has no
// list of categories.
func (c *Client) Categories(ctx context.Context) (*queries.Categories, error) {
	q := queries.Search{Status: []market.Status{market.StatusOpen}, Sort: queries.SortRelevance, Direction: queries.Descending, Limit: maxPageSize}
	return queries.CountCategories(func(page string) (*queries.SearchPage, error) {
		q.Page = page
		return c.Search(ctx, q)
	})
}
