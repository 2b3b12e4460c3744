package venue

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/wire"
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
	const e = market.EndpointSearch
	at, err := checkSearch(q)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	rq := &request{endpoint: e, keys: 1}
	searchQuery(&rq.query, q)
	at.apply(&rq.query)
	return guarded(c, e, c.backoffs.digest(rq.query.b.String()), func() (*market.SearchPage, error) { return c.search(ctx, rq, q, at) })
}

func (c *Client) search(ctx context.Context, rq *request, q market.Search, at place) (*market.SearchPage, error) {
	const e = market.EndpointSearch
	payload, err := c.get(ctx, rq)
	if err != nil {
		return nil, orBad(e, err)
	}
	if yes, no, ok := tokenPair(payload); ok {
		return c.searchPair(ctx, q, yes, no)
	}
	var n notes
	page, err := decodeSearch(payload, q, at, &n)
	c.report(e, n)
	return page, err
}

// searchPair makes a page of an answer that names nothing but the two tokens of one market, which takes a call more.
func (c *Client) searchPair(ctx context.Context, q market.Search, yes, no string) (*market.SearchPage, error) {
	results, err := c.MarketsByToken(ctx, []string{yes})
	if err != nil {
		return nil, err
	}
	m := results[0].Value
	switch {
	case results[0].Err != nil:
		return nil, results[0].Err
	case m == nil, m.OutcomeByToken(no) == nil:
		return nil, unknownForm(market.EndpointSearch, "two tokens that are not of one market")
	case !fits(m, q):
		return &market.SearchPage{}, nil
	}
	return &market.SearchPage{Markets: []*market.Market{m}}, nil
}

// tokenPair reads {yes,no} of two tokens that come without their market's question, be they ids or objects.
func tokenPair(payload wire.Value) (yes, no string, ok bool) {
	pair := pairIn(payload)
	if fieldQuestion.In(pair) {
		return "", "", false
	}
	var ids [2]string
	for i, v := range []wire.Value{pair.Member("yes"), pair.Member("no")} {
		if isMarket(v) {
			return "", "", false
		}
		if v.Kind() == wire.Object {
			v = wire.FieldTokenID.Of(v)
		}
		if ids[i], ok = v.ID(); !ok || ids[i] == "" {
			return "", "", false
		}
	}
	return ids[0], ids[1], true
}

// pairIn returns the object that may have yes and no.
func pairIn(payload wire.Value) wire.Value {
	if inside := payload.Member("data"); inside.Kind() == wire.Object {
		return inside
	}
	return payload
}

func checkSearch(q market.Search) (place, error) {
	const e = market.EndpointSearch
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

func searchQuery(to *query, q market.Search) {
	statuses := make([]string, len(q.Status))
	for i, s := range q.Status {
		statuses[i] = string(s)
	}
	to.set("q", q.Text).list("status", statuses).set("category", q.Category).set("tag", q.Tag).
		instant("endsAfter", q.EndsAfter).instant("endsBefore", q.EndsBefore).
		set("eventId", q.EventID).set("eventSlug", q.EventSlug).
		set("sort", sortNames[q.Sort]).set("order", strings.ToLower(string(q.Direction))).
		set("limit", strconv.Itoa(q.Limit))
}

// decodeSearch reads one page and holds it against the question.
func decodeSearch(payload wire.Value, q market.Search, at place, n *notes) (*market.SearchPage, error) {
	const e = market.EndpointSearch
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

// pairRows reads {yes,no}: two markets, or the two tokens of one.
func pairRows(pair wire.Value) []wire.Value {
	yes, no := pair.Member("yes"), pair.Member("no")
	if yes.IsNull() || no.IsNull() {
		return nil
	}
	if isMarket(yes) && isMarket(no) {
		if id, _ := fieldMarketID.Of(yes).ID(); fieldMarketID.Of(no).Is(id) {
			return []wire.Value{yes}
		}
		return []wire.Value{yes, no}
	}
	// What is said beside yes and no comes after what is said in yes, and so counts.
	text := []byte{'{'}
	if inside := inObject(yes); len(inside) > 0 {
		text = append(append(text, inside...), ',')
	}
	text = fmt.Appendf(text, `%s,%q:[%s,%s]}`, inObject(pair), fieldOutcomes, side(yes, "YES"), side(no, "NO"))
	m, err := wire.Parse(text)
	if err != nil {
		return nil // it has too many values now
	}
	return []wire.Value{m}
}

// inObject returns the text between the braces of an object; nothing for any other value.
func inObject(v wire.Value) []byte {
	if v.Kind() != wire.Object {
		return nil
	}
	text := v.JSON()
	return bytes.TrimSpace(text[1 : len(text)-1])
}

// side writes an outcome of one side of {yes,no}, which is a token's id or an object.
func side(v wire.Value, label string) []byte {
	text := fmt.Appendf(nil, `{%q:%q`, fieldOutcome, label)
	say := func(f wire.Field, v wire.Value) {
		if !v.IsNull() {
			text = fmt.Appendf(text, `,%q:%s`, f, v.JSON())
		}
	}
	if v.Kind() == wire.Object {
		say(fieldOutcomeToken, wire.FieldTokenID.Of(v))
		say(fieldOutcome, fieldOutcome.Of(v))
		say(wire.FieldPrice, wire.FieldPrice.Of(v))
		say(fieldWinner, fieldWinner.Of(v))
	} else {
		say(fieldOutcomeToken, v)
	}
	return append(text, '}')
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
	return market.Errorf(market.CodeUnsupported, "%s (%s)", what, market.EndpointSearch)
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
