package venue

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

const (
	defaultLimit = 20
	maxLimit     = 100
	maxText      = 1024
)

var sortNames = map[market.Sort]string{
	market.SortRelevance: "relevance",
	market.SortVolume:    "volume",
	market.SortVolume24h: "volume24h",
	market.SortLiquidity: "liquidity",
	market.SortEndsAt:    "endsAt",
}

// Search returns one page of the venue's search. Rows that cannot be read, of which LeftOut tells, and those that do not fit
// the filter are left out, so a page may be short and even empty while there is a next one; it may be longer than asked for
// where the venue ignores the limit. A filter or sort that the venue's answer shows to be ignored, or that its rows leave no
// way to check, is UNSUPPORTED.
func (c *Client) Search(ctx context.Context, q market.Search) (*market.SearchPage, error) {
	const e = reqctx.EndpointSearch
	at, err := checkSearch(q)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	key := c.backoffs.digest(searchRequest(q, at, false).query.b.String())
	return guarded(c, e, key, func() (*market.SearchPage, error) { return c.search(ctx, q, at) })
}

// searchRequest returns the request for a page. A plain one has no sort and no page size.
func searchRequest(q market.Search, at place, plain bool) *request {
	rq := &request{endpoint: reqctx.EndpointSearch, keys: 1}
	searchQuery(&rq.query, q, plain)
	at.apply(&rq.query)
	return rq
}

// fetchSearch asks for a page, and once more without sort and page size where the venue refuses a parameter, which is remembered.
func (c *Client) fetchSearch(ctx context.Context, q market.Search, at place) (wire.Value, error) {
	habit, now := &c.habits[reqctx.EndpointSearch], c.clock.Now()
	plain := habit.plain(now)
	payload, err := c.get(ctx, searchRequest(q, at, plain))
	if plain || !refusesParameter(err) {
		return payload, err
	}
	found, failed := c.get(ctx, searchRequest(q, at, true))
	if failed != nil {
		return payload, err // the parameters were not why
	}
	habit.refuseOptions(now)
	c.log.Info("the venue refuses parameters of a list and is asked without", "endpoint", reqctx.EndpointSearch.String())
	return found, nil
}

func (c *Client) search(ctx context.Context, q market.Search, at place) (*market.SearchPage, error) {
	const e = reqctx.EndpointSearch
	payload, err := c.fetchSearch(ctx, q, at)
	if at.guessed && refused(err) { // nothing but its length spoke for another page, and the venue knows of none
		return &market.SearchPage{}, nil
	}
	if err != nil {
		return nil, orBad(e, err)
	}
	if yes, no, ok := tokenPair(payload); ok {
		return c.searchPair(ctx, q, yes, no)
	}
	var n notes
	page, err := decodeSearch(payload, q, at, &c.habits[e], &n)
	c.report(e, n)
	return page, err
}

func checkSearch(q market.Search) (place, error) {
	const e = reqctx.EndpointSearch
	if q.Limit < 0 || q.Limit > maxLimit {
		return place{}, badInput(e, "a page has 1 to 100 markets")
	}
	if len(q.Text) > maxText || len(q.Category) > market.MaxIDLength || len(q.Tag) > market.MaxIDLength {
		return place{}, badInput(e, "a text to search for is too long")
	}
	for _, id := range []string{q.EventID, q.EventSlug} {
		if id != "" {
			if err := checkID(e, id); err != nil {
				return place{}, err
			}
		}
	}
	if q.Sort != "" && sortNames[q.Sort] == "" {
		return place{}, badInput(e, "the sort is not known")
	}
	return parsePlace(e, q.Page)
}

func searchQuery(to *query, q market.Search, plain bool) {
	statuses := make([]string, len(q.Status))
	for i, s := range q.Status {
		statuses[i] = string(s)
	}
	to.set("q", q.Text).list("status", statuses).set("category", q.Category).set("tag", q.Tag).
		instant("endsAfter", q.EndsAfter).instant("endsBefore", q.EndsBefore).
		set("eventId", q.EventID).set("eventSlug", q.EventSlug)
	if plain {
		return
	}
	to.set("sort", sortNames[q.Sort]).set("order", strings.ToLower(string(q.Direction))).
		set("limit", strconv.Itoa(q.Limit))
}

// decodeSearch reads one page and holds it against the question.
func decodeSearch(payload wire.Value, q market.Search, at place, habit *habit, n *notes) (*market.SearchPage, error) {
	const e = reqctx.EndpointSearch
	list, ok := searchRows(payload)
	if !ok {
		return nil, unknownForm(e, "no list of markets or events")
	}
	if at.repeats(list.rows) {
		n.add("repeated page")
		return &market.SearchPage{}, nil
	}
	t, err := turnOf(e, list, at, q.Limit)
	if err != nil {
		return nil, err
	}
	habit.trustCount(&t, at)
	markets, bad := searchMarkets(list.rows, n)
	if len(markets) == 0 && len(bad) > 0 {
		return nil, unknownForm(e, bad.whyEmpty())
	}
	if f := unchecked(markets, q); f != "" {
		return nil, unsupported("the venue's search does not show " + f + ", so it cannot be filtered by it")
	}
	page := &market.SearchPage{Markets: markets, Next: t.next.token(), Total: t.total, LeftOut: bad.leftOut(e)}
	page.Markets = slices.DeleteFunc(markets, func(m *market.Market) bool { return !fits(m, q) })
	if left := len(markets) - len(page.Markets); left > 0 {
		n.add("rows outside the filter")
		page.Total = nil
	}
	if err := order(page.Markets, q, n); err != nil {
		return nil, err
	}
	return page, nil
}

// searchRows finds the rows of a search answer: markets, events with markets, or the two tokens {yes,no} of one market.
func searchRows(payload wire.Value) (found, bool) {
	if list, ok := rowsOf(payload, "markets", "events"); ok {
		return list, true
	}
	pair := pairIn(payload)
	rows := pairRows(pair)
	return found{rows: rows, page: pair}, len(rows) > 0
}

// searchMarkets reads the rows; of several rows for one market the first counts.
func searchMarkets(rows []wire.Value, n *notes) (good []*market.Market, bad badRows) {
	seen := make(map[string]bool, len(rows))
	for i, v := range rows {
		markets, failed := marketsOf(v, i, n)
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

// filter is one condition of a search: whether it is asked for, whether a market has what it is about, and whether it
// fits.
type filter struct {
	name       string
	asked      func(q market.Search) bool
	shown, fit func(m *market.Market, q market.Search) bool
}

var filters = []filter{
	{
		"the status", func(q market.Search) bool { return len(q.Status) > 0 },
		func(m *market.Market, _ market.Search) bool {
			return m.Status != market.StatusUnknown || m.StatusRaw != ""
		},
		func(m *market.Market, q market.Search) bool { return slices.Contains(q.Status, m.Status) },
	},
	{
		"the category", func(q market.Search) bool { return q.Category != "" },
		func(m *market.Market, _ market.Search) bool { return m.Category != "" },
		func(m *market.Market, q market.Search) bool { return strings.EqualFold(m.Category, q.Category) },
	},
	{
		"tags", func(q market.Search) bool { return q.Tag != "" },
		func(m *market.Market, _ market.Search) bool { return m.Tags != nil },
		func(m *market.Market, q market.Search) bool {
			return slices.ContainsFunc(m.Tags, func(tag string) bool { return strings.EqualFold(tag, q.Tag) })
		},
	},
	{
		"the end", func(q market.Search) bool { return !q.EndsAfter.IsZero() || !q.EndsBefore.IsZero() },
		func(m *market.Market, _ market.Search) bool { return !m.EndsAt.IsZero() },
		func(m *market.Market, q market.Search) bool {
			return !m.EndsAt.IsZero() && !m.EndsAt.Before(q.EndsAfter) && (q.EndsBefore.IsZero() || !m.EndsAt.After(q.EndsBefore))
		},
	},
	{
		"the event's id", func(q market.Search) bool { return q.EventID != "" },
		func(m *market.Market, _ market.Search) bool { return m.EventID != "" },
		func(m *market.Market, q market.Search) bool { return m.EventID == q.EventID },
	},
	{
		"the event's slug", func(q market.Search) bool { return q.EventSlug != "" },
		func(m *market.Market, _ market.Search) bool { return m.EventSlug != "" },
		func(m *market.Market, q market.Search) bool { return m.EventSlug == q.EventSlug },
	},
}

// unchecked names the first condition that none of the rows can be held against.
func unchecked(markets []*market.Market, q market.Search) string {
	for _, f := range filters {
		if len(markets) > 0 && f.asked(q) && !slices.ContainsFunc(markets, func(m *market.Market) bool { return f.shown(m, q) }) {
			return f.name
		}
	}
	return ""
}

func fits(m *market.Market, q market.Search) bool {
	for _, f := range filters {
		if f.asked(q) && !f.fit(m, q) {
			return false
		}
	}
	return true
}

// tolerated is the share, one in so many, of neighbours that may be out of order before the sort counts as ignored: a
// venue that sorts by an index a few seconds old is not one that ignores the sort.
const tolerated = 10

// order checks that the rows run in the order that was asked for; those without the field do not count. A page with few
// exceptions is put right.
func order(markets []*market.Market, q market.Search, n *notes) error {
	by := sortKeys[q.Sort]
	if by.has == nil || q.Direction == "" {
		return nil
	}
	compare := by.compare
	if q.Direction == market.Descending {
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
	case wrong*tolerated > len(known)-1:
		return unsupported("the venue's search does not sort by " + sortNames[q.Sort])
	}
	n.add("rows out of order")
	slices.SortStableFunc(known, compare)
	unknown := slices.DeleteFunc(slices.Clone(markets), by.has)
	copy(markets[copy(markets, known):], unknown)
	return nil
}

// sortKey is the field that a sort goes by.
type sortKey struct {
	has     func(*market.Market) bool
	compare func(a, b *market.Market) int
}

// sortKeys has no entry for relevance, which only the venue can judge.
var sortKeys = map[market.Sort]sortKey{
	market.SortVolume:    byDecimal(func(m *market.Market) *market.Decimal { return m.Volume }),
	market.SortVolume24h: byDecimal(func(m *market.Market) *market.Decimal { return m.Volume24h }),
	market.SortLiquidity: byDecimal(func(m *market.Market) *market.Decimal { return m.Liquidity }),
	market.SortEndsAt: {
		has:     func(m *market.Market) bool { return !m.EndsAt.IsZero() },
		compare: func(a, b *market.Market) int { return a.EndsAt.Compare(b.EndsAt) },
	},
}

func byDecimal(of func(*market.Market) *market.Decimal) sortKey {
	return sortKey{
		has:     func(m *market.Market) bool { return of(m) != nil },
		compare: func(a, b *market.Market) int { return of(a).Cmp(*of(b)) },
	}
}
