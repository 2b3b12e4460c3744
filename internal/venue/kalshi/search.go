package kalshi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const defaultPageSize = 20

// filters contains Kalshi's names of the states by which Kalshi can filter its list of markets.
var filters = map[market.Status]string{
	market.StatusUpcoming: "unopened", market.StatusOpen: "open", market.StatusClosed: "closed", market.StatusResolved: "settled",
}

// Search returns one page of markets in the venue's order. It leaves out markets that combine other markets. A page may be short
// although there is a next page. Unreadable rows are reported in LeftOut. After the last page of the list of markets, the pages of
// the archive follow, unless the query asks for a state that archived markets do not have.
//
// Kalshi has no search. So the error is UNSUPPORTED if q has a text, a category, a tag, a sort other than relevance, several
// states, or a state by which Kalshi cannot filter.
func (d *Driver) Search(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	if q.Limit == 0 {
		q.Limit = defaultPageSize
	}
	var at position
	_, err := filterOf(q, "markets")
	switch {
	case q.Text != "":
		return nil, unsupported("search by text")
	case q.Category != "" || q.Tag != "":
		return nil, unsupported("search by category or tag")
	case err != nil:
		return nil, err
	}
	if err := rest.ParsePage(e, q.Page, &at); err != nil {
		return nil, err
	}
	rq := searchRequest(q, at)
	return rest.WithBackoff(d.Client, e, rq.Path+"?"+rq.Query.String(), func() (*queries.SearchPage, error) { return d.search(ctx, call, q, at, rq) })
}

// filterOf returns Kalshi's name of the state by which a list is filtered, or "" for every state. It returns an error if Kalshi can
// neither filter nor sort the list as q requests.
func filterOf(q queries.Search, list string) (string, error) {
	switch {
	case q.Sort != "" && q.Sort != queries.SortRelevance:
		return "", unsupported("order of " + list)
	case len(q.Status) == 0:
		return "", nil
	case len(q.Status) > 1:
		return "", unsupported("search by several states at once")
	case filters[q.Status[0]] == "":
		return "", unsupported("search by the state " + string(q.Status[0]))
	}
	return filters[q.Status[0]], nil
}

func unsupported(what string) error {
	return market.Errorf(market.CodeUnsupported, "Kalshi has no %s (%s)", what, upstream.EndpointSearch)
}

// searchRequest returns the request for a page. Kalshi cannot filter by state and times together. If the query has times, the
// request omits the state, and the driver checks the states of the markets in the response. The archive can filter by neither.
func searchRequest(q queries.Search, at position) *rest.Request {
	rq := &rest.Request{Endpoint: upstream.EndpointSearch, Keys: 1}
	switch {
	case at.Archived:
		rq.Path = pathArchive
	case !q.EndsAfter.IsSet() && !q.EndsBefore.IsSet():
		if len(q.Status) > 0 {
			rq.Query.Set("status", filters[q.Status[0]])
		}
	default:
		rq.Query.Set("min_close_ts", unixBound(q.EndsAfter)).Set("max_close_ts", unixBound(q.EndsBefore))
	}
	rq.Query.Set("mve_filter", "exclude").Set("limit", strconv.Itoa(q.Limit)).Set("cursor", at.Cursor)
	return rq
}

// unix returns the seconds from 1970 to t. If t is before 1970, it returns 1, which selects the same data, because Kalshi has none
// from that time. Kalshi refuses negative numbers.
func unix(t time.Time) string { return strconv.FormatInt(max(t.Unix(), 1), 10) }

func unixBound(b queries.Bound) string {
	t, ok := b.Get()
	if !ok {
		return ""
	}
	return unix(t)
}

func (d *Driver) search(ctx context.Context, call upstream.Call, q queries.Search, at position, rq *rest.Request) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	list, payload, err := d.getMarkets(ctx, call, rq)
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	var n rest.Drift
	defer func() { d.Report(e, n) }()
	rows, bad := rest.ReadRows(list, n.Add, marketOf)
	page := &queries.SearchPage{LeftOut: bad.LeftOut(e)}
	for _, m := range rows {
		if q.MatchesState(m) {
			page.Markets = append(page.Markets, m)
		}
	}
	if at.Archived {
		if page.Markets, err = d.withoutListed(ctx, call, page.Markets); err != nil {
			return nil, err
		}
	}
	if cursor := rest.NextCursor(payload.Member("cursor").Text(), at.Cursor); cursor != "" || mayBeArchived(q) {
		page.Next = at.next(cursor)
	}
	return page, nil
}

// mayBeArchived reports whether archived markets can match a search. Archived markets are settled.
func mayBeArchived(q queries.Search) bool {
	return len(q.Status) == 0 || slices.Contains(q.Status, market.StatusResolved)
}

// withoutListed leaves out the archived markets that Kalshi's list also has, because they are on the earlier pages.
func (d *Driver) withoutListed(ctx context.Context, call upstream.Call, markets []*market.Market) ([]*market.Market, error) {
	if len(markets) == 0 {
		return nil, nil
	}
	tickers := make([]string, len(markets))
	for i, m := range markets {
		tickers[i] = m.MarketID
	}
	const e = upstream.EndpointSearch
	rq := &rest.Request{Endpoint: e, Keys: len(tickers)}
	rq.Query.List("tickers", tickers).Set("limit", strconv.Itoa(len(tickers)))
	list, _, err := d.getMarkets(ctx, call, rq)
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	listed := make(map[string]bool, len(list))
	for _, v := range list {
		ticker, _ := fieldTicker.Of(v).ID()
		listed[ticker] = true
	}
	return slices.DeleteFunc(markets, func(m *market.Market) bool { return listed[m.MarketID] }), nil
}

// Event returns an event with its markets, or nil if the venue does not know the event. The slug of an event is its ticker in lower
// case.
func (d *Driver) Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error) {
	const e = upstream.EndpointEvent
	ticker := ref.EventID
	if ticker == "" {
		if ticker = strings.ToUpper(ref.EventSlug); slug(ticker) != ref.EventSlug {
			return nil, nil
		}
	}
	if !isTicker(ticker) {
		return nil, rest.CheckID(e, ticker)
	}
	return rest.WithBackoff(d.Client, e, ticker, func() (*market.Event, error) { return d.event(ctx, call, ticker) })
}

func (d *Driver) event(ctx context.Context, call upstream.Call, ticker string) (*market.Event, error) {
	const e = upstream.EndpointEvent
	rq := &rest.Request{Endpoint: e, Path: paths[e] + ticker, Keys: 1}
	rq.Query.Set("with_nested_markets", "true")
	payload, err := d.Get(ctx, call, rq)
	if err != nil || payload.IsNull() {
		return nil, rest.NilIfNotFound(err)
	}
	var n rest.Drift
	defer func() { d.Report(e, n) }()
	r := wire.NewRow(payload.Member("event"), n.Add)
	event := readEvent(r)
	if r.Err != nil || event.ticker != ticker {
		return nil, rest.UnknownForm(e, "the response does not contain the requested event")
	}
	if isTicker(event.series) {
		series, err := d.Get(ctx, call, &rest.Request{Endpoint: e, Path: pathSeries + event.series, Keys: 1})
		if err != nil {
			return nil, rest.BadIfNotFound(e, err)
		}
		event.readSeries(r.Child(series.Member("series")))
	}
	read := func(r *wire.Row) *market.Market { return readMarket(r, event) }
	markets, bad := rest.ReadRows(fieldMarkets.Of(r.Object).Elements(), n.Add, read)
	leftOut := bad.LeftOut(e)
	list, err := d.archived(ctx, call, ticker)
	switch {
	case err == nil:
	case len(markets) == 0 || ctx.Err() != nil || market.CodeOf(err) == market.CodeRateLimited:
		return nil, err
	default:
		leftOut = append(leftOut, err) // the archive fails, but the event has other markets
	}
	archived, bad := rest.ReadRows(list, n.Add, read)
	for _, m := range archived {
		if !slices.ContainsFunc(markets, func(known *market.Market) bool { return known.MarketID == m.MarketID }) {
			markets = append(markets, m)
		}
	}
	return event.toEvent(markets, append(leftOut, bad.LeftOut(e)...)), nil
}

// archived returns the archived markets of an event. The event itself lacks the markets that settled before the archive's cutoff.
func (d *Driver) archived(ctx context.Context, call upstream.Call, event string) ([]wire.Value, error) {
	const e = upstream.EndpointEvent
	rq := &rest.Request{Endpoint: e, Path: pathArchive, Keys: 1}
	rq.Query.Set("event_ticker", event).Set("limit", "1000")
	list, payload, err := d.getMarkets(ctx, call, rq)
	if err != nil {
		return nil, rest.NilIfNotFound(err)
	}
	if payload.Member("cursor").Text() != "" {
		return nil, rest.UnknownForm(e, "more than 1000 archived markets of one event")
	}
	return list, nil
}
