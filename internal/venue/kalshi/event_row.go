package kalshi

import (
	"cmp"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

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

// readSeries reads the category, the tags and the settlement sources of the event's series. The category in the event itself is
// deprecated.
func (e *eventRow) readSeries(r *wire.Row) {
	e.category = cmp.Or(r.Text(fieldCategory), e.category)
	for _, v := range r.Of(fieldTags).Elements() {
		if v.Kind() == wire.String && !v.Is("") {
			e.tags = append(e.tags, v.Interned())
		}
	}
	var names []string
	for _, v := range r.Of(fieldSources).Elements() {
		if name := fieldSourceName.Of(v).Text(); name != "" {
			names = append(names, name)
		}
	}
	e.source = strings.Join(names, ", ")
}

// fill sets the fields of a market that come from its event.
func (e *eventRow) fill(m *market.Market) {
	m.EventID, m.EventSlug = e.ticker, slug(e.ticker)
	m.EventTitle, m.Category, m.Tags = e.title, e.category, e.tags
	m.Question = cmp.Or(m.Question, e.title)
}

// toEvent returns the event with its markets. It also sets the source in the resolutions of the markets.
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
