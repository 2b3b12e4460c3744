package kalshi

import (
	"cmp"
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

// The number of markets on a page, of events on a page, and of events on a page that Categories requests. Kalshi allows 200 events.
const defaultPageSize, eventsOnPage, eventsPerCategoriesPage = 20, 50, 200

// list requests {"name of f":[…],"cursor":…} and returns the list and the cursor of the next page.
func (d *Driver) list(ctx context.Context, call upstream.Call, rq *rest.Request, f wire.Field) (list []wire.Value, cursor string, err error) {
	payload, err := d.Get(ctx, call, rq)
	if err != nil {
		return nil, "", err
	}
	list, ok := f.Of(payload).List()
	if !ok {
		return nil, "", rest.UnknownForm(rq.Endpoint, "no list of "+f.String())
	}
	next := payload.Member("cursor")
	if cursor = next.Text(); next.Kind() != wire.String && !next.IsNull() || len(cursor) > rest.MaxCursor {
		return nil, "", rest.UnknownForm(rq.Endpoint, "the cursor is not a text of at most 1024 bytes")
	}
	return list, cursor, nil
}

type page[T any] struct {
	rows   []T
	bad    rest.RowErrors
	cursor string
}

// readPage is like list, and reads the rows; see rest.ReadRows.
func readPage[T any](ctx context.Context, d *Driver, call upstream.Call, rq *rest.Request, f wire.Field, read func(*wire.Row) T) (p page[T], err error) {
	list, cursor, err := d.list(ctx, call, rq, f)
	if err != nil {
		return p, err
	}
	var n rest.Drift
	p.cursor = cursor
	p.rows, p.bad = rest.ReadRows(list, n.Add, read)
	d.Report(rq.Endpoint, n)
	return p, nil
}

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
	var at position
	q.Limit = cmp.Or(q.Limit, defaultPageSize)
	if q.Category != "" {
		return nil, unsupported("search by category")
	}
	if _, err := filterOf(q); err != nil {
		return nil, err
	}
	if err := rest.ParsePage(e, q.Page, &at); err != nil {
		return nil, err
	}
	rq := searchRequest(q, at)
	return rest.WithBackoff(d.Client, e, rq.Path+"?"+rq.Query.String(), func() (*queries.SearchPage, error) {
		p, err := readPage(ctx, d, call, rq, fieldMarkets, marketOf)
		if err != nil {
			return nil, rest.BadIfNotFound(e, err)
		}
		found := slices.DeleteFunc(p.rows, func(m *market.Market) bool { return !q.MatchesState(m) })
		if at.Archived && len(found) > 0 {
			if found, err = d.withoutListed(ctx, call, found); err != nil {
				return nil, err
			}
		}
		out := &queries.SearchPage{Markets: found, LeftOut: p.bad.LeftOut(e)}
		if cursor := rest.NextCursor(p.cursor, at.Cursor); cursor != "" || mayBeArchived(q) {
			out.Next = at.next(cursor)
		}
		return out, nil
	})
}

// filterOf returns Kalshi's name of the state in q, or "" for every state. It returns an error if Kalshi has no such list.
func filterOf(q queries.Search) (string, error) {
	switch {
	case q.Text != "" || q.Tag != "":
		return "", unsupported("search by text or tag")
	case q.Sort != "" && q.Sort != queries.SortRelevance:
		return "", unsupported("sorted lists")
	case len(q.Status) == 0:
		return "", nil
	case len(q.Status) > 1 || filters[q.Status[0]] == "":
		return "", unsupported("search by several states at once, or by the states DISPUTED and CANCELLED")
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
	if t, ok := b.Get(); ok {
		return unix(t)
	}
	return ""
}

// mayBeArchived reports whether archived markets can match a search. Archived markets are settled.
func mayBeArchived(q queries.Search) bool {
	return len(q.Status) == 0 || slices.Contains(q.Status, market.StatusResolved)
}

// withoutListed leaves out the archived markets that Kalshi's list also has, because they are on the earlier pages.
func (d *Driver) withoutListed(ctx context.Context, call upstream.Call, markets []*market.Market) ([]*market.Market, error) {
	tickers := make([]string, len(markets))
	for i, m := range markets {
		tickers[i] = m.MarketID
	}
	const e = upstream.EndpointSearch
	rq := &rest.Request{Endpoint: e, Keys: len(tickers)}
	rq.Query.List("tickers", tickers).Set("limit", strconv.Itoa(len(tickers)))
	listed, err := readPage(ctx, d, call, rq, fieldMarkets, func(r *wire.Row) string { return r.ID(fieldTicker) })
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	return slices.DeleteFunc(markets, func(m *market.Market) bool { return slices.Contains(listed.rows, m.MarketID) }), nil
}

// SearchEvents returns one page of events in the venue's order, with their markets. It is UNSUPPORTED like Search, except that it
// accepts a category. It drops the events that do not match, so a page may be short although there is a next page. It ignores q.Limit.
//
// The list of events lacks archived markets. An event that has only archived markets is not whole and has no matches.
func (d *Driver) SearchEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	status, err := filterOf(q)
	switch {
	case err != nil:
		return nil, err
	case len(q.Page) > rest.MaxCursor:
		return nil, rest.BadPage(upstream.EndpointEventSearch)
	}
	return d.events(ctx, call, q, status, eventsOnPage)
}

// Categories counts the open markets of each category. It reads only the first pages of open events; see queries.CountCategories. A
// market has the category of its event.
func (d *Driver) Categories(ctx context.Context, call upstream.Call) (*queries.Categories, error) {
	return queries.CountCategories(func(next string) (*queries.SearchPage, error) {
		events, err := d.events(ctx, call, queries.Search{Page: next}, filters[market.StatusOpen], eventsPerCategoriesPage)
		if err != nil {
			return nil, err
		}
		page := &queries.SearchPage{Next: events.Next, LeftOut: events.LeftOut}
		for _, e := range events.Events {
			page.Markets, page.LeftOut = append(page.Markets, e.Markets...), append(page.LeftOut, e.LeftOut...)
		}
		return page, nil
	})
}

func (d *Driver) events(ctx context.Context, call upstream.Call, q queries.Search, status string, limit int) (*queries.EventPage, error) {
	const e = upstream.EndpointEventSearch
	rq := &rest.Request{Endpoint: e, Keys: 1}
	rq.Query.Set("status", status).Set("with_nested_markets", "true").Set("limit", strconv.Itoa(limit)).Set("cursor", q.Page)
	return rest.WithBackoff(d.Client, e, rq.Query.String(), func() (*queries.EventPage, error) {
		p, err := readPage(ctx, d, call, rq, wire.FieldEvents, readSummaries)
		if err != nil {
			return nil, rest.BadIfNotFound(e, err)
		}
		page := &queries.EventPage{LeftOut: p.bad.LeftOut(e), Next: rest.NextCursor(p.cursor, q.Page)}
		anyEnd := !q.EndsAfter.IsSet() && !q.EndsBefore.IsSet()
		for _, ev := range p.rows {
			found := slices.DeleteFunc(slices.Clone(ev.Markets), func(m *market.Market) bool { return !q.MatchesState(m) })
			archived := len(ev.Markets) == 0 && len(ev.LeftOut) == 0 // the list of events lacks archived markets
			switch {
			case q.Category != "" && !strings.EqualFold(ev.Category, q.Category):
			case len(found) > 0, archived && anyEnd && mayBeArchived(q):
				page.Events = append(page.Events, queries.FoundEvent{Event: ev, Whole: !archived, Matches: found})
			default:
				page.LeftOut = append(page.LeftOut, ev.LeftOut...) // the unreadable markets may match
			}
		}
		return page, nil
	})
}

// readSummaries reads an event. Its markets are summaries, because the list lacks the tags and sources of their series.
func readSummaries(r *wire.Row) *market.Event {
	event := readEvent(r)
	markets, bad := rest.ReadRows(r.Of(fieldMarkets).Elements(), r.Note, func(r *wire.Row) *market.Market {
		m := readMarket(r, event)
		m.Summary, m.Description = true, ""
		return m
	})
	return event.with(markets, bad.LeftOut(upstream.EndpointEventSearch))
}

var (
	fieldSeriesTicker = wire.NewField("series_ticker").Interned()
	fieldSubTitle     = wire.NewField("sub_title")
	fieldTags         = wire.NewField("tags")
	fieldExclusive    = wire.NewField("mutually_exclusive")
	fieldMarkets      = wire.NewField("markets")
	fieldSources      = wire.NewField("settlement_sources")
	fieldSourceName   = wire.NewField("name")
)

// eventRow is an event without its markets, and what its series has.
type eventRow struct {
	market.Event
	series, source string
	tags           []string
}

func readEvent(r *wire.Row) *eventRow {
	e := &eventRow{Event: market.Event{
		EventID: r.RequireID(fieldEventTicker), Title: r.Text(fieldTitle), Category: r.Text(wire.FieldCategory), Exclusive: r.Bool(fieldExclusive),
	}, series: r.ID(fieldSeriesTicker)}
	e.Slug = slug(e.EventID)
	if sub := r.Text(fieldSubTitle); sub != "" && !strings.Contains(e.Title, sub) {
		e.Title = strings.TrimSpace(e.Title + " " + sub)
	}
	return e
}

// readSeries reads what the event's series has. The category in the event itself is deprecated.
func (e *eventRow) readSeries(r *wire.Row) {
	e.Category = cmp.Or(r.Text(wire.FieldCategory), e.Category)
	e.tags = r.Labels(fieldTags, wire.Field{})
	var names []string
	for _, v := range r.Of(fieldSources).Elements() {
		if name := fieldSourceName.Of(v).Text(); name != "" {
			names = append(names, name)
		}
	}
	e.source = strings.Join(names, ", ")
}

func (e *eventRow) with(markets []*market.Market, leftOut market.LeftOut) *market.Event {
	e.LeftOut = leftOut
	for _, m := range markets {
		if m.Resolution != nil {
			m.Resolution.Source = e.source
		}
		e.Include(m)
	}
	return &e.Event
}

// Event returns an event with its markets, or nil if the venue does not know the event.
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
	if r.Err != nil || event.EventID != ticker {
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
	markets, bad := rest.ReadRows(r.Of(fieldMarkets).Elements(), n.Add, read)
	leftOut := bad.LeftOut(e)
	archive, err := d.archived(ctx, call, ticker, read)
	switch {
	case err == nil:
	case len(markets) == 0 || ctx.Err() != nil || market.CodeOf(err) == market.CodeRateLimited:
		return nil, err
	default:
		leftOut = append(leftOut, err) // the archive fails, but the event has other markets
	}
	for _, m := range archive.rows {
		if !slices.ContainsFunc(markets, func(known *market.Market) bool { return known.MarketID == m.MarketID }) {
			markets = append(markets, m)
		}
	}
	return event.with(markets, append(leftOut, archive.bad.LeftOut(e)...)), nil
}

// archived reads the archived markets of an event. The event itself lacks the markets that settled before the archive's cutoff.
func (d *Driver) archived(ctx context.Context, call upstream.Call, event string, read func(*wire.Row) *market.Market) (page[*market.Market], error) {
	rq := &rest.Request{Endpoint: upstream.EndpointEvent, Path: pathArchive, Keys: 1}
	rq.Query.Set("event_ticker", event).Set("limit", "1000")
	p, err := readPage(ctx, d, call, rq, fieldMarkets, read)
	if err == nil && p.cursor != "" {
		err = rest.UnknownForm(rq.Endpoint, "more than 1000 archived markets of one event")
	}
	return p, rest.NilIfNotFound(err)
}
