package generic

import (
	"context"
	"slices"
	"strconv"
	"strings"

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
)

var sortNames = map[queries.Sort]string{
	queries.SortRelevance: "relevance",
	queries.SortVolume:    "volume",
	queries.SortVolume24h: "volume24h",
	queries.SortLiquidity: "liquidity",
	queries.SortStartsAt:  "startsAt",
	queries.SortEndsAt:    "endsAt",
}

// Search returns one page of the venue's search. Unreadable rows are reported in LeftOut. Rows that do not match the filters are
// dropped, so a page may be short or empty although there is a next page. If the venue ignores the limit, it may be longer. If no row
// has the field that a filter compares, or the venue ignores the requested sort, the error is UNSUPPORTED.
func (c *Client) Search(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	start, err := checkSearch(q)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = defaultPageSize
	}
	key := c.Digest(searchRequest(q, start, false).Query.String())
	return rest.WithBackoff(c.Client, e, key, func() (*queries.SearchPage, error) { return c.reading(call).search(ctx, q, start) })
}

func searchRequest(q queries.Search, start pageStart, plain bool) *rest.Request {
	statuses := make([]string, len(q.Status))
	for i, s := range q.Status {
		statuses[i] = string(s)
	}
	rq := &rest.Request{Endpoint: upstream.EndpointSearch, Keys: 1}
	rq.Query.Set("q", q.Text).List("status", statuses).Set("category", q.Category).Set("tag", q.Tag).
		Instant("endsAfter", q.EndsAfter).Instant("endsBefore", q.EndsBefore).
		Set("eventId", q.EventID).Set("eventSlug", q.EventSlug)
	if !plain {
		rq.Query.Set("sort", sortNames[q.Sort]).Set("order", strings.ToLower(string(q.Direction))).
			Set("limit", strconv.Itoa(q.Limit))
	}
	start.setQuery(&rq.Query)
	return rq
}

func (c reading) search(ctx context.Context, q queries.Search, start pageStart) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	payload, err := c.Get(ctx, c.call, searchRequest(q, start, c.value(settingSearchOptions) == no))
	if start.Guessed && rest.Refused(err) { // the client had only guessed that this page exists
		return &queries.SearchPage{}, nil
	}
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	if yes, no, ok := tokenPair(payload); ok {
		return c.searchPair(ctx, q, yes, no)
	}
	var drift rest.Drift
	page, err := c.decodeSearch(payload, q, start, &drift)
	c.Report(e, drift)
	return page, err
}

func checkSearch(q queries.Search) (pageStart, error) {
	const e = upstream.EndpointSearch
	if q.Limit < 0 || q.Limit > maxPageSize {
		return pageStart{}, rest.BadInput(e, "a page has 1 to 100 markets")
	}
	if len(q.Text) > maxText || len(q.Category) > market.MaxIDLength || len(q.Tag) > market.MaxIDLength {
		return pageStart{}, rest.BadInput(e, "a text to search for is too long")
	}
	for _, id := range []string{q.EventID, q.EventSlug} {
		if id != "" {
			if err := rest.CheckID(e, id); err != nil {
				return pageStart{}, err
			}
		}
	}
	if q.Sort != "" && sortNames[q.Sort] == "" {
		return pageStart{}, unsupportedError("the venue's search does not sort by " + string(q.Sort))
	}
	return parsePageToken(e, q.Page)
}

// searchPages is the list of the search. Its rows are markets or events.
var searchPages = pagedList{
	endpoint: upstream.EndpointSearch, paging: settingSearchPaging, id: wire.NewField("marketId", "conditionId", "id", "slug", "eventId"),
}

func (c reading) decodeSearch(payload wire.Value, q queries.Search, start pageStart, drift *rest.Drift) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	list, ok := searchRows(payload)
	if !ok {
		return nil, rest.UnknownForm(e, "no list of markets or events")
	}
	if searchPages.repeats(start, list.Rows) {
		if c.decided(settingSearchPaging) && !start.Guessed { // a cursor that was guessed may be older than the decision
			return nil, c.repeatedPage(e, settingSearchPaging)
		}
		drift.Add("repeated page")
		return &queries.SearchPage{}, nil
	}
	t, err := c.pageInfo(&searchPages, list, start, q.Limit)
	if err != nil {
		return nil, err
	}
	markets, bad := searchMarkets(list.Rows, drift)
	if len(markets) == 0 && len(bad) > 0 {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	if f := uncheckableFilter(markets, q); f != "" {
		return nil, unsupportedError("the venue's search does not return " + f + " of markets, so markets cannot be filtered by " + f)
	}
	page := &queries.SearchPage{Markets: markets, Next: t.next.token(), Total: t.total, LeftOut: bad.LeftOut(e)}
	page.Markets = slices.DeleteFunc(markets, func(m *market.Market) bool { return !matchesFilters(m, q) })
	if left := len(markets) - len(page.Markets); left > 0 {
		drift.Add("rows outside the filter")
		page.Total = nil
	}
	if err := ensureOrder(page.Markets, q, drift); err != nil {
		return nil, err
	}
	return page, nil
}

func searchRows(payload wire.Value) (rest.RowList, bool) {
	if list, ok := rest.RowsOf(payload, "markets", "events"); ok {
		return list, true
	}
	pair := pairObject(payload)
	rows := pairRows(pair)
	return rest.RowList{Rows: rows, Object: pair}, len(rows) > 0
}

// searchMarkets reads the rows. Of several rows for one market, the first counts.
func searchMarkets(rows []wire.Value, drift *rest.Drift) (good []*market.Market, bad rest.RowErrors) {
	seen := make(map[string]bool, len(rows))
	for i, v := range rows {
		markets, failed := readSearchRow(v, i, drift)
		bad = append(bad, failed...)
		for _, m := range markets {
			if !seen[m.MarketID] {
				seen[m.MarketID] = true
				good = append(good, m)
			}
		}
	}
	return good, bad
}

func unsupportedError(what string) *market.Error {
	return market.Errorf(market.CodeUnsupported, "%s (%s)", what, upstream.EndpointSearch)
}

// condition is a filter of a search that the client checks: whether the search has it, and whether a market has the field that it is
// about, and meets it.
type condition struct {
	name                      string
	isSet, isPresent, matches bool
}

func conditions(m *market.Market, q queries.Search) [6]condition {
	hasTag := slices.ContainsFunc(m.Tags, func(tag string) bool { return strings.EqualFold(tag, q.Tag) })
	return [...]condition{
		{"the status", len(q.Status) > 0, m.Status != market.StatusUnknown || m.StatusRaw != "", slices.Contains(q.Status, m.Status)},
		{"the category", q.Category != "", m.Category != "", strings.EqualFold(m.Category, q.Category)},
		{"the tags", q.Tag != "", m.Tags != nil, hasTag},
		{"the end", q.EndsAfter.IsSet() || q.EndsBefore.IsSet(), !m.EndsAt.IsZero(), q.MatchesEnd(m.EndsAt)},
		{"the event id", q.EventID != "", m.EventID != "", m.EventID == q.EventID},
		{"the event slug", q.EventSlug != "", m.EventSlug != "", m.EventSlug == q.EventSlug},
	}
}

func uncheckableFilter(markets []*market.Market, q queries.Search) string {
	for i, c := range conditions(&market.Market{}, q) {
		if len(markets) > 0 && c.isSet && !slices.ContainsFunc(markets, func(m *market.Market) bool { return conditions(m, q)[i].isPresent }) {
			return c.name
		}
	}
	return ""
}

func matchesFilters(m *market.Market, q queries.Search) bool {
	for _, c := range conditions(m, q) {
		if c.isSet && !c.matches {
			return false
		}
	}
	return true
}

// ensureOrder checks that the markets are sorted as requested. If the venue probably ignores the sort, the error is UNSUPPORTED. If
// few pairs are out of order, ensureOrder sorts, and markets without the field of the sort come last.
func ensureOrder(markets []*market.Market, q queries.Search, drift *rest.Drift) error {
	field, ok := queries.SortFields[q.Sort]
	if !ok || q.Direction == "" {
		return nil
	}
	compare := field.Comparer(q.Direction)
	known := slices.DeleteFunc(slices.Clone(markets), func(m *market.Market) bool { return !field.Has(m) })
	switch wrong, ignored := queries.OutOfOrder(known, compare); {
	case wrong == 0:
		return nil
	case ignored:
		return unsupportedError("the venue's search does not sort by " + sortNames[q.Sort])
	}
	drift.Add("rows out of order")
	slices.SortStableFunc(markets, compare)
	return nil
}
