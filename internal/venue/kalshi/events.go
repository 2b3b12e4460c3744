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
		payload, err := d.Get(ctx, call, rq)
		if err != nil {
			return nil, rest.BadIfNotFound(e, err)
		}
		list, ok := payload.Member("events").List()
		if !ok {
			return nil, rest.UnknownForm(e, "no list of events")
		}
		var n rest.Drift
		defer func() { d.Report(e, n) }()
		rows, bad := rest.ReadRows(list, n.Add, func(r *wire.Row) *market.Event { return wholeEvent(r, &n) })
		page := &queries.EventPage{LeftOut: bad.LeftOut(e), Next: rest.NextCursor(payload.Member("cursor").Text(), q.Page)}
		anyEnd := !q.EndsAfter.IsSet() && !q.EndsBefore.IsSet()
		for _, ev := range rows {
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

// wholeEvent reads an event. Its markets are summaries, because the list lacks the tags and sources of their series.
func wholeEvent(r *wire.Row, n *rest.Drift) *market.Event {
	event := readEvent(r)
	markets, bad := rest.ReadRows(fieldMarkets.Of(r.Object).Elements(), n.Add, func(r *wire.Row) *market.Market {
		m := readMarket(r, event)
		m.Summary, m.Description = true, ""
		return m
	})
	return event.toEvent(markets, bad.LeftOut(upstream.EndpointEventSearch))
}

var (
	fieldSeriesTicker = wire.NewField("series_ticker").Interned()
	fieldSubTitle     = wire.NewField("sub_title")
	fieldCategory     = wire.NewField("category").Interned()
	fieldTags         = wire.NewField("tags")
	fieldExclusive    = wire.NewField("mutually_exclusive")
	fieldMarkets      = wire.NewField("markets")
	fieldSources      = wire.NewField("settlement_sources")
	fieldSourceName   = wire.NewField("name")
)

type eventRow struct {
	ticker, series, title string
	category, source      string
	tags                  []string
	exclusive             *bool
}

func readEvent(r *wire.Row) *eventRow {
	e := &eventRow{
		ticker: r.RequireID(fieldEventTicker), series: r.ID(fieldSeriesTicker),
		title: r.Text(fieldTitle), category: r.Text(fieldCategory), exclusive: r.Bool(fieldExclusive),
	}
	if sub := r.Text(fieldSubTitle); sub != "" && !strings.Contains(e.title, sub) {
		e.title = strings.TrimSpace(e.title + " " + sub)
	}
	return e
}

// readSeries reads what the event's series has. The category in the event itself is deprecated.
func (e *eventRow) readSeries(r *wire.Row) {
	e.category = cmp.Or(r.Text(fieldCategory), e.category)
	e.tags = r.Labels(fieldTags, wire.Field{})
	var names []string
	for _, v := range r.Of(fieldSources).Elements() {
		if name := fieldSourceName.Of(v).Text(); name != "" {
			names = append(names, name)
		}
	}
	e.source = strings.Join(names, ", ")
}

func (e *eventRow) fill(m *market.Market) {
	m.EventID, m.EventSlug = e.ticker, slug(e.ticker)
	m.EventTitle, m.Category, m.Tags = e.title, e.category, e.tags
	m.Question = cmp.Or(m.Question, e.title)
}

func (e *eventRow) toEvent(markets []*market.Market, leftOut market.LeftOut) *market.Event {
	out := &market.Event{EventID: e.ticker, Slug: slug(e.ticker), Title: e.title, Category: e.category, Exclusive: e.exclusive, LeftOut: leftOut}
	for _, m := range markets {
		if m.Resolution != nil {
			m.Resolution.Source = e.source
		}
		out.Include(m)
	}
	return out
}
