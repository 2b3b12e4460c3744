package kalshi

import (
	"cmp"
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
	// eventsOnPage is the number of events on a page, each with its markets. Kalshi allows 200.
	eventsOnPage = 50
	// eventsPerCategoriesPage is the number of events on each page that Categories requests.
	eventsPerCategoriesPage = 200
)

// SearchEvents returns one page of events in the venue's order, with their markets. Kalshi has no search. So the error is
// UNSUPPORTED if q has a text, a tag, a sort other than relevance, several states, or a state by which Kalshi cannot filter. Kalshi
// also cannot filter by category or end time, so SearchEvents drops events that do not match. A page may therefore be short
// although there is a next page. SearchEvents ignores q.Limit.
//
// The list of events lacks archived markets. An event that has only archived markets is not whole and has no matches.
func (d *Driver) SearchEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	const e = upstream.EndpointEventSearch
	status, err := filterOf(q, "events")
	switch {
	case q.Text != "":
		return nil, unsupported("search by text")
	case q.Tag != "":
		return nil, unsupported("search by tag")
	case err != nil:
		return nil, err
	case len(q.Page) > rest.MaxCursor:
		return nil, rest.BadPage(e)
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
