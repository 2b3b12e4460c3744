package venue

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
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
	queries.SortEndsAt:    "endsAt",
}

// Search returns one page of the venue's search. Unreadable rows are reported in LeftOut. Rows that do not match the filters
// are dropped, so a page may be short or empty although there is a next page. A page is longer than requested if the venue
// ignores the limit. The error is UNSUPPORTED if the venue ignores a filter or the sort, or if the rows lack the field of a
// filter.
func (c *Client) Search(ctx context.Context, q queries.Search) (*queries.SearchPage, error) {
	const e = reqctx.EndpointSearch
	at, err := checkSearch(q)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = defaultPageSize
	}
	key := c.backoffs.digest(searchRequest(q, at, false).query.b.String())
	return withBackoff(c, e, key, func() (*queries.SearchPage, error) { return c.search(ctx, q, at) })
}

// searchRequest returns the request for a page. A plain request has neither sort nor page size.
func searchRequest(q queries.Search, at pageStart, plain bool) *request {
	statuses := make([]string, len(q.Status))
	for i, s := range q.Status {
		statuses[i] = string(s)
	}
	rq := &request{endpoint: reqctx.EndpointSearch, keys: 1}
	rq.query.set("q", q.Text).list("status", statuses).set("category", q.Category).set("tag", q.Tag).
		instant("endsAfter", q.EndsAfter).instant("endsBefore", q.EndsBefore).
		set("eventId", q.EventID).set("eventSlug", q.EventSlug)
	if !plain {
		rq.query.set("sort", sortNames[q.Sort]).set("order", strings.ToLower(string(q.Direction))).
			set("limit", strconv.Itoa(q.Limit))
	}
	at.setQuery(&rq.query)
	return rq
}

// fetchSearch requests a page. If the venue refuses a parameter, fetchSearch requests the page once more without sort and page
// size, and remembers the refusal.
func (c *Client) fetchSearch(ctx context.Context, q queries.Search, at pageStart) (wire.Value, error) {
	traits, now := &c.traits[reqctx.EndpointSearch], c.cfg.Clock.Now()
	plain := traits.plain(now)
	payload, err := c.get(ctx, searchRequest(q, at, plain))
	if plain || !refusesParameter(err) {
		return payload, err
	}
	found, failed := c.get(ctx, searchRequest(q, at, true))
	if failed != nil {
		return payload, err // the parameters are not the reason
	}
	traits.refuseOptions(now)
	c.cfg.Log.Info("the venue refuses optional parameters of a list: they are omitted", "endpoint", reqctx.EndpointSearch.String())
	return found, nil
}

func (c *Client) search(ctx context.Context, q queries.Search, at pageStart) (*queries.SearchPage, error) {
	const e = reqctx.EndpointSearch
	payload, err := c.fetchSearch(ctx, q, at)
	if at.guessed && refused(err) { // only the length of the last page suggested this page, and the venue does not have it
		return &queries.SearchPage{}, nil
	}
	if err != nil {
		return nil, badIfNotFound(e, err)
	}
	if yes, no, ok := tokenPair(payload); ok {
		return c.searchPair(ctx, q, yes, no)
	}
	var n drift
	page, err := decodeSearch(payload, q, at, &c.traits[e], &n)
	c.report(e, n)
	return page, err
}

func checkSearch(q queries.Search) (pageStart, error) {
	const e = reqctx.EndpointSearch
	if q.Limit < 0 || q.Limit > maxPageSize {
		return pageStart{}, badInput(e, "a page has 1 to 100 markets")
	}
	if len(q.Text) > maxText || len(q.Category) > market.MaxIDLength || len(q.Tag) > market.MaxIDLength {
		return pageStart{}, badInput(e, "a text to search for is too long")
	}
	for _, id := range []string{q.EventID, q.EventSlug} {
		if id != "" {
			if err := checkID(e, id); err != nil {
				return pageStart{}, err
			}
		}
	}
	if q.Sort != "" && sortNames[q.Sort] == "" {
		return pageStart{}, badInput(e, "the sort is not known")
	}
	return parsePageToken(e, q.Page)
}

// decodeSearch reads one page and checks it against the search.
func decodeSearch(payload wire.Value, q queries.Search, at pageStart, traits *listTraits, n *drift) (*queries.SearchPage, error) {
	const e = reqctx.EndpointSearch
	list, ok := searchRows(payload)
	if !ok {
		return nil, unknownForm(e, "no list of markets or events")
	}
	if at.isRepeated(list.rows) {
		n.add("repeated page")
		return &queries.SearchPage{}, nil
	}
	t, err := pageInfoOf(e, list, at, q.Limit)
	if err != nil {
		return nil, err
	}
	traits.trustCount(&t, at)
	markets, bad := searchMarkets(list.rows, n)
	if len(markets) == 0 && len(bad) > 0 {
		return nil, unknownForm(e, bad.whyEmpty())
	}
	if f := uncheckedFilter(markets, q); f != "" {
		return nil, unsupported("the venue's search does not show " + f + ", so it cannot be filtered by it")
	}
	page := &queries.SearchPage{Markets: markets, Next: t.next.token(), Total: t.total, LeftOut: bad.leftOut(e)}
	page.Markets = slices.DeleteFunc(markets, func(m *market.Market) bool { return !matchesFilters(m, q) })
	if left := len(markets) - len(page.Markets); left > 0 {
		n.add("rows outside the filter")
		page.Total = nil
	}
	if err := checkOrder(page.Markets, q, n); err != nil {
		return nil, err
	}
	return page, nil
}

// searchRows finds the rows of a response: markets, events with markets, or the two tokens {yes,no} of one market.
func searchRows(payload wire.Value) (rowList, bool) {
	if list, ok := rowsOf(payload, "markets", "events"); ok {
		return list, true
	}
	pair := pairObject(payload)
	rows := pairRows(pair)
	return rowList{rows: rows, object: pair}, len(rows) > 0
}

// searchMarkets reads the rows. If several rows are about the same market, the first one counts.
func searchMarkets(rows []wire.Value, n *drift) (good []*market.Market, bad rowErrors) {
	seen := make(map[string]bool, len(rows))
	for i, v := range rows {
		markets, failed := readSearchRow(v, i, n)
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

func unsupported(what string) *market.Error {
	return market.Errorf(market.CodeUnsupported, "%s (%s)", what, reqctx.EndpointSearch)
}

// filter is one condition of a search.
type filter struct {
	name string
	// isSet reports whether the search has the condition.
	isSet func(q queries.Search) bool
	// isPresent reports whether a market has the field of the condition. matches reports whether the market meets the condition.
	isPresent, matches func(m *market.Market, q queries.Search) bool
}

var filters = []filter{
	{
		"the status", func(q queries.Search) bool { return len(q.Status) > 0 },
		func(m *market.Market, _ queries.Search) bool {
			return m.Status != market.StatusUnknown || m.StatusRaw != ""
		},
		func(m *market.Market, q queries.Search) bool { return slices.Contains(q.Status, m.Status) },
	},
	{
		"the category", func(q queries.Search) bool { return q.Category != "" },
		func(m *market.Market, _ queries.Search) bool { return m.Category != "" },
		func(m *market.Market, q queries.Search) bool { return strings.EqualFold(m.Category, q.Category) },
	},
	{
		"tags", func(q queries.Search) bool { return q.Tag != "" },
		func(m *market.Market, _ queries.Search) bool { return m.Tags != nil },
		func(m *market.Market, q queries.Search) bool {
			return slices.ContainsFunc(m.Tags, func(tag string) bool { return strings.EqualFold(tag, q.Tag) })
		},
	},
	{
		"the end", func(q queries.Search) bool { return !q.EndsAfter.IsZero() || !q.EndsBefore.IsZero() },
		func(m *market.Market, _ queries.Search) bool { return !m.EndsAt.IsZero() },
		func(m *market.Market, q queries.Search) bool {
			return !m.EndsAt.IsZero() && !m.EndsAt.Before(q.EndsAfter) && (q.EndsBefore.IsZero() || !m.EndsAt.After(q.EndsBefore))
		},
	},
	{
		"the event's id", func(q queries.Search) bool { return q.EventID != "" },
		func(m *market.Market, _ queries.Search) bool { return m.EventID != "" },
		func(m *market.Market, q queries.Search) bool { return m.EventID == q.EventID },
	},
	{
		"the event's slug", func(q queries.Search) bool { return q.EventSlug != "" },
		func(m *market.Market, _ queries.Search) bool { return m.EventSlug != "" },
		func(m *market.Market, q queries.Search) bool { return m.EventSlug == q.EventSlug },
	},
}

// uncheckedFilter returns the name of the first condition that cannot be checked because no market has its field, or "".
func uncheckedFilter(markets []*market.Market, q queries.Search) string {
	for _, f := range filters {
		if len(markets) > 0 && f.isSet(q) && !slices.ContainsFunc(markets, func(m *market.Market) bool { return f.isPresent(m, q) }) {
			return f.name
		}
	}
	return ""
}

// matchesFilters reports whether a market meets all conditions.
func matchesFilters(m *market.Market, q queries.Search) bool {
	for _, f := range filters {
		if f.isSet(q) && !f.matches(m, q) {
			return false
		}
	}
	return true
}

// One of outOfOrderShare pairs of neighbours may be out of order, because a venue may sort by values that are a few seconds
// old. If more pairs are out of order, the venue counts as ignoring the sort.
const outOfOrderShare = 10

// checkOrder checks that markets are sorted as requested, and sorts them if a few are out of order. It ignores markets without
// the field.
func checkOrder(markets []*market.Market, q queries.Search, n *drift) error {
	by := sortFields[q.Sort]
	if by.has == nil || q.Direction == "" {
		return nil
	}
	compare := by.compare
	if q.Direction == queries.Descending {
		compare = func(a, b *market.Market) int { return by.compare(b, a) }
	}
	known := slices.DeleteFunc(slices.Clone(markets), func(m *market.Market) bool { return !by.has(m) })
	wrong := 0
	for i := 1; i < len(known); i++ {
		if compare(known[i-1], known[i]) > 0 {
			wrong++
		}
	}
	switch {
	case wrong == 0:
		return nil
	case wrong*outOfOrderShare > len(known)-1:
		return unsupported("the venue's search does not sort by " + sortNames[q.Sort])
	}
	n.add("rows out of order")
	slices.SortStableFunc(known, compare)
	unknown := slices.DeleteFunc(slices.Clone(markets), by.has)
	copy(markets[copy(markets, known):], unknown)
	return nil
}

// sortField is the field of a sort.
type sortField struct {
	has     func(*market.Market) bool
	compare func(a, b *market.Market) int
}

// sortFields are the fields by sort. Relevance has none, because only the venue knows it.
var sortFields = map[queries.Sort]sortField{
	queries.SortVolume:    byDecimal(func(m *market.Market) *market.Decimal { return m.Volume }),
	queries.SortVolume24h: byDecimal(func(m *market.Market) *market.Decimal { return m.Volume24h }),
	queries.SortLiquidity: byDecimal(func(m *market.Market) *market.Decimal { return m.Liquidity }),
	queries.SortEndsAt: {
		has:     func(m *market.Market) bool { return !m.EndsAt.IsZero() },
		compare: func(a, b *market.Market) int { return a.EndsAt.Compare(b.EndsAt) },
	},
}

func byDecimal(of func(*market.Market) *market.Decimal) sortField {
	return sortField{
		has:     func(m *market.Market) bool { return of(m) != nil },
		compare: func(a, b *market.Market) int { return of(a).Cmp(*of(b)) },
	}
}
