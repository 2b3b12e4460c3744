package polymarket

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	defaultPageSize = 20
	maxPageSize     = 100
	maxText         = 1024
	// eventsOnPage is the number of events on a page of the search by text. It does not depend on q.Limit, because the cursor of a
	// page is only the page's number, and a client may send the cursor with a different limit.
	eventsOnPage = 10
	maxPage      = 10_000
)

// Search returns one page of markets. If q has a text, the page comes from Polymarket's search, which finds events. All matching
// markets of an event are on the same page, so a page may be longer than q.Limit. If q has no text, the page comes from the list of
// markets. A page may be short or empty although there is a next page. The error is UNSUPPORTED for a search by category, and for a
// sort other than relevance of a search by text.
func (d *Driver) Search(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	if err := checkSearch(&q); err != nil {
		return nil, err
	}
	return rest.WithBackoff(d.gamma, upstream.EndpointSearch, d.gamma.Digest(fmt.Sprintf("%+v", q.Key())), func() (*queries.SearchPage, error) {
		if q.Text != "" {
			return d.searchText(ctx, call, q)
		}
		return d.listMarkets(ctx, call, q)
	})
}

func checkSearch(q *queries.Search) error {
	const e = upstream.EndpointSearch
	sortable := orders[q.Sort] != ""
	switch {
	case q.Limit < 0 || q.Limit > maxPageSize:
		return rest.BadInput(e, "a page has 1 to 100 markets")
	case len(q.Text) > maxText || len(q.Tag) > market.MaxIDLength:
		return rest.BadInput(e, "a text to search for is too long")
	case q.Category != "":
		return unsupported("Polymarket groups markets by tags, not by categories")
	case q.Sort != "" && q.Sort != queries.SortRelevance && !sortable:
		return rest.BadInput(e, "the sort is not known")
	case q.Text != "" && sortable:
		return unsupported("Polymarket's search by text sorts events, not markets")
	}
	if q.Limit == 0 {
		q.Limit = defaultPageSize
	}
	return nil
}

func unsupported(what string) *market.Error {
	return market.Errorf(market.CodeUnsupported, "%s (%s)", what, upstream.EndpointSearch)
}

// matches reports whether a market meets the conditions of a search, except the text.
func matches(m *market.Market, q queries.Search) bool {
	return q.MatchesState(m) && (q.Tag == "" || slices.ContainsFunc(m.Tags, func(tag string) bool { return slugOf(tag) == slugOf(q.Tag) }))
}

func (d *Driver) searchText(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	payload, next, err := d.textPage(ctx, call, e, q, eventsOnPage)
	if err != nil {
		return nil, err
	}
	var n rest.Drift
	page, err := readSearch(payload, q, &n)
	d.gamma.Report(e, n)
	if err == nil {
		page.Next = next
	}
	return page, err
}

// textPage requests one page of events by text. next is the token of the next page, or empty on the last page.
func (d *Driver) textPage(ctx context.Context, call upstream.Call, e upstream.Endpoint, q queries.Search, events int) (payload wire.Value, next string, err error) {
	number := 1
	if q.Page != "" {
		if number, err = strconv.Atoi(q.Page); err != nil || number < 2 || number > maxPage {
			return payload, "", rest.BadPage(e)
		}
	}
	rq := &rest.Request{Endpoint: e, Path: pathSearch, Keys: 1}
	rq.Query.Set("q", q.Text).Set("limit_per_type", strconv.Itoa(events)).Set("page", strconv.Itoa(number)).
		Set("search_tags", "false").Set("search_profiles", "false")
	if _, closed := sides(q.Status); closed {
		rq.Query.Set("keep_closed_markets", "1")
	} else {
		rq.Query.Set("events_status", "active")
	}
	if payload, err = d.gamma.Get(ctx, call, rq); err != nil {
		return payload, "", rest.BadIfNotFound(e, err)
	}
	if isTrue((&wire.Row{Object: fieldPagination.Of(payload), Note: func(string) {}}).Bool(fieldHasMore)) && number < maxPage {
		next = strconv.Itoa(number + 1)
	}
	return payload, next, nil
}

// readSearch reads {events:[{markets:[…]}]} and returns the markets that match q.
func readSearch(payload wire.Value, q queries.Search, n *rest.Drift) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	events, err := readEvents(payload)
	if err != nil {
		return nil, formError(e, err)
	}
	page, seen := &queries.SearchPage{}, make(map[string]bool)
	var bad rest.RowErrors
	good := 0
	for i, v := range events {
		where := "row " + strconv.Itoa(i+1)
		event, err := readEvent(v, n.Add)
		if err != nil {
			n.Add("bad row")
			bad = append(bad, rest.RowError{Where: where, Err: err})
			continue
		}
		for j, row := range event.rows {
			switch m := row.market; {
			case m == nil:
				bad = append(bad, rest.RowError{Where: "market " + strconv.Itoa(j+1) + " of " + where, Err: row.row.Err})
			case !seen[m.MarketID]:
				seen[m.MarketID] = true
				if good++; matches(m, q) {
					page.Markets = append(page.Markets, m)
				}
			}
		}
	}
	if good == 0 && len(bad) > 0 {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	page.LeftOut = bad.LeftOut(e)
	return page, nil
}

// sides reports which of Gamma's two lists may contain a market with one of the statuses. Without any, it is both.
func sides(statuses []market.Status) (open, closed bool) {
	for _, s := range statuses {
		switch s {
		case market.StatusClosed, market.StatusResolved, market.StatusCancelled:
			closed = true
		case market.StatusDisputed:
			open, closed = true, true
		default:
			open = true
		}
	}
	return open || len(statuses) == 0, closed || len(statuses) == 0
}

// orders are Gamma's names of the fields by which it sorts markets.
var orders = map[queries.Sort]string{
	queries.SortVolume: "volumeNum", queries.SortVolume24h: "volume24hr", queries.SortLiquidity: "liquidityNum",
	queries.SortStartsAt: "startDate", queries.SortEndsAt: "endDate", queries.SortPriceChange24h: "oneDayPriceChange",
}

const (
	tagLife = 24 * time.Hour
	maxTags = 2000
)

// tagID contains the id of a tag. If Polymarket does not know the slug, the id is empty.
type tagID struct {
	id    string
	until time.Time
}

// tagID returns the id of a tag by the tag's slug or label, and whether Polymarket knows the tag. A search without a tag has no id.
func (d *Driver) tagID(ctx context.Context, call upstream.Call, tag string) (id string, known bool, err error) {
	const e = upstream.EndpointSearch
	slug := slugOf(tag)
	if slug == "" {
		return "", tag == "", nil
	}
	if t, ok := d.tags.Get(slug); ok && d.gamma.Now().Before(t.until) {
		return t.id, t.id != "", nil
	}
	payload, err := d.gamma.Get(ctx, call, &rest.Request{Endpoint: e, Path: pathTag + slug, Keys: 1})
	if err = rest.NilIfNotFound(err); err != nil {
		return "", false, err
	}
	id, ok := fieldID.Of(payload).ID()
	if !payload.IsNull() && (!ok || id == "" || !wire.FieldSlug.Of(payload).Is(slug)) {
		return "", false, rest.UnknownForm(e, "no tag with the requested slug")
	}
	d.tags.Add(slug, tagID{id, d.gamma.Now().Add(tagLife)})
	return id, id != "", nil
}
