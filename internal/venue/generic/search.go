package generic

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
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
	queries.SortEndsAt:    "endsAt",
}

// Search returns one page of the venue's search. Unreadable rows are reported in LeftOut. Rows that do not match the filters are
// dropped, so a page may be short or empty although there is a next page. If the venue ignores the limit, a page may be longer than
// requested. The error is UNSUPPORTED if the page has rows but none of them has the field of a filter, or if the venue ignores the
// requested sort.
func (c *Client) Search(ctx context.Context, q queries.Search) (*queries.SearchPage, error) {
	const e = reqctx.EndpointSearch
	at, err := checkSearch(q)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = defaultPageSize
	}
	key := c.Digest(searchRequest(q, at, false).Query.String())
	return rest.WithBackoff(c.Client, e, key, func() (*queries.SearchPage, error) { return c.search(ctx, q, at) })
}

// searchRequest returns the request for a page. If plain is true, the request has neither a sort nor a page size.
func searchRequest(q queries.Search, at pageStart, plain bool) *rest.Request {
	statuses := make([]string, len(q.Status))
	for i, s := range q.Status {
		statuses[i] = string(s)
	}
	rq := &rest.Request{Endpoint: reqctx.EndpointSearch, Keys: 1}
	rq.Query.Set("q", q.Text).List("status", statuses).Set("category", q.Category).Set("tag", q.Tag).
		Instant("endsAfter", q.EndsAfter).Instant("endsBefore", q.EndsBefore).
		Set("eventId", q.EventID).Set("eventSlug", q.EventSlug)
	if !plain {
		rq.Query.Set("sort", sortNames[q.Sort]).Set("order", strings.ToLower(string(q.Direction))).
			Set("limit", strconv.Itoa(q.Limit))
	}
	at.setQuery(&rq.Query)
	return rq
}

// fetchSearch requests a page. If the venue refuses a parameter, fetchSearch requests the page once more without sort and page
// size. If this request succeeds, fetchSearch remembers the refusal.
func (c *Client) fetchSearch(ctx context.Context, q queries.Search, at pageStart) (wire.Value, error) {
	traits, now := &c.traits[reqctx.EndpointSearch], c.Now()
	plain := traits.plain(now)
	payload, err := c.Get(ctx, searchRequest(q, at, plain))
	if plain || !rest.RefusesParameter(err) {
		return payload, err
	}
	found, failed := c.Get(ctx, searchRequest(q, at, true))
	if failed != nil {
		return payload, err // the request without sort and page size fails, too, so these parameters are not the reason
	}
	traits.refuseOptions(now)
	c.Log().Info("the venue refuses optional parameters of a list: they are omitted", "endpoint", reqctx.EndpointSearch.String())
	return found, nil
}

func (c *Client) search(ctx context.Context, q queries.Search, at pageStart) (*queries.SearchPage, error) {
	const e = reqctx.EndpointSearch
	payload, err := c.fetchSearch(ctx, q, at)
	if at.guessed && rest.Refused(err) { // the client had guessed that there is one more page, but there is none
		return &queries.SearchPage{}, nil
	}
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	if yes, no, ok := tokenPair(payload); ok {
		return c.searchPair(ctx, q, yes, no)
	}
	var n rest.Drift
	page, err := decodeSearch(payload, q, at, &c.traits[e], &n)
	c.Report(e, n)
	return page, err
}

func checkSearch(q queries.Search) (pageStart, error) {
	const e = reqctx.EndpointSearch
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
		return pageStart{}, rest.BadInput(e, "the sort is not known")
	}
	return parsePageToken(e, q.Page)
}

// decodeSearch reads one page, drops the markets that do not match the filters of q, and checks the order of the remaining markets.
func decodeSearch(payload wire.Value, q queries.Search, at pageStart, traits *listTraits, n *rest.Drift) (*queries.SearchPage, error) {
	const e = reqctx.EndpointSearch
	list, ok := searchRows(payload)
	if !ok {
		return nil, rest.UnknownForm(e, "no list of markets or events")
	}
	if at.isRepeated(list.Rows) {
		n.Add("repeated page")
		return &queries.SearchPage{}, nil
	}
	t, err := pageInfoOf(e, list, at, q.Limit)
	if err != nil {
		return nil, err
	}
	traits.trustCount(&t, at)
	markets, bad := searchMarkets(list.Rows, n)
	if len(markets) == 0 && len(bad) > 0 {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	if f := uncheckedFilter(markets, q); f != "" {
		return nil, unsupported("the venue's search does not show " + f + ", so it cannot be filtered by it")
	}
	page := &queries.SearchPage{Markets: markets, Next: t.next.token(), Total: t.total, LeftOut: bad.LeftOut(e)}
	page.Markets = slices.DeleteFunc(markets, func(m *market.Market) bool { return !matchesFilters(m, q) })
	if left := len(markets) - len(page.Markets); left > 0 {
		n.Add("rows outside the filter")
		page.Total = nil
	}
	if err := checkOrder(page.Markets, q, n); err != nil {
		return nil, err
	}
	return page, nil
}

// searchRows finds the rows of a response: a list of markets, a list of events with markets, or the rows that pairRows makes.
func searchRows(payload wire.Value) (rest.RowList, bool) {
	if list, ok := rest.RowsOf(payload, "markets", "events"); ok {
		return list, true
	}
	pair := pairObject(payload)
	rows := pairRows(pair)
	return rest.RowList{Rows: rows, Object: pair}, len(rows) > 0
}

// searchMarkets reads the rows. If several rows describe the same market, searchMarkets returns the market of the first row.
func searchMarkets(rows []wire.Value, n *rest.Drift) (good []*market.Market, bad rest.RowErrors) {
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

// filter is a condition of a search that the client checks.
type filter struct {
	name string
	// isSet reports whether the search has the condition.
	isSet func(q queries.Search) bool
	// isPresent reports whether a market has the field that the condition is about. matches reports whether the market meets the
	// condition.
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
		func(m *market.Market, q queries.Search) bool { return q.MatchesEnd(m.EndsAt) },
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

// uncheckedFilter returns the name of the first condition that cannot be checked, because no market has the field. If all
// conditions can be checked, or there are no markets, uncheckedFilter returns "".
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

// checkOrder checks that markets are sorted as requested. If more than 1/rest.OutOfOrderShare of the pairs of neighbouring markets
// are out of order, the error is UNSUPPORTED. If fewer pairs are out of order, checkOrder sorts the markets. It does not check
// markets without the field of the sort. If checkOrder sorts, it moves these markets to the end.
func checkOrder(markets []*market.Market, q queries.Search, n *rest.Drift) error {
	by, ok := rest.SortFields[q.Sort]
	if !ok || q.Direction == "" {
		return nil
	}
	compare := by.Comparer(q.Direction)
	known := slices.DeleteFunc(slices.Clone(markets), func(m *market.Market) bool { return !by.Has(m) })
	wrong := 0
	for i := 1; i < len(known); i++ {
		if compare(known[i-1], known[i]) > 0 {
			wrong++
		}
	}
	switch {
	case wrong == 0:
		return nil
	case wrong*rest.OutOfOrderShare > len(known)-1:
		return unsupported("the venue's search does not sort by " + sortNames[q.Sort])
	}
	n.Add("rows out of order")
	slices.SortStableFunc(markets, compare)
	return nil
}
