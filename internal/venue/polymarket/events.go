package polymarket

import (
	"context"
	"fmt"
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

// eventsListed is the number of events on a page of SearchEvents, each with its markets.
const eventsListed = 50

// eventsStart is the start of a page in the list of open events or in that of closed events. At is the cursor of the venue.
type eventsStart struct {
	Closed bool   `json:"x,omitempty"`
	At     string `json:"c,omitempty"`
}

// eventOrders are Gamma's names of the fields by which it sorts events.
var eventOrders = map[queries.Sort]string{
	queries.SortVolume: "volume", queries.SortVolume24h: "volume24hr", queries.SortLiquidity: "liquidity",
	queries.SortStartsAt: "startDate", queries.SortEndsAt: "endDate",
}

// SearchEvents returns one page of events with their markets. If q has a text, the events come from Polymarket's search. If q has
// no text, the events come from Polymarket's two lists of events, open events first. A page may be short although there is a next
// page. SearchEvents ignores q.Limit. The error is UNSUPPORTED for a search by category. It is also UNSUPPORTED for a search by
// text with a sort other than relevance, and for a sort of open and closed events together.
func (d *Driver) SearchEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	q.Limit = 0
	if err := checkSearch(&q); err != nil {
		return nil, err
	}
	const e = upstream.EndpointEventSearch
	return rest.WithBackoff(d.gamma, e, d.gamma.Digest(fmt.Sprintf("%+v", q.Key())), func() (*queries.EventPage, error) {
		if q.Text != "" {
			return d.findEvents(ctx, call, q)
		}
		return d.listEvents(ctx, call, q)
	})
}

// Categories counts open markets by tag. It reads only the first pages of the list of open markets. The list begins with the
// markets that have the greatest volume in the last 24 hours.
func (d *Driver) Categories(ctx context.Context, call upstream.Call) (*queries.Categories, error) {
	q := queries.Search{Status: []market.Status{market.StatusOpen}, Limit: maxPageSize}
	return queries.CountCategories(func(page string) (*queries.SearchPage, error) {
		q.Page = page
		return d.Search(ctx, call, q)
	})
}

func (d *Driver) findEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	payload, next, err := d.textPage(ctx, call, upstream.EndpointEventSearch, q, eventsListed)
	if err != nil {
		return nil, err
	}
	page, err := d.readFound(payload, q)
	if err == nil {
		page.Next = next
	}
	return page, err
}

func (d *Driver) listEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	const e = upstream.EndpointEventSearch
	open, closed := sides(q.Status)
	order, sorted := eventOrders[q.Sort]
	if !sorted && q.Sort != "" && q.Sort != queries.SortRelevance {
		return nil, unsupported("Polymarket does not sort events so")
	}
	if open && closed && sorted {
		return nil, unsupported("Polymarket lists open and closed events separately, so sorting them needs a status")
	}
	if !sorted {
		order, q.Direction = eventOrders[queries.SortVolume24h], queries.Descending
	}
	start := eventsStart{Closed: !open}
	if err := rest.ParsePage(e, q.Page, &start); err != nil {
		return nil, err
	}
	tag, known, err := d.tagID(ctx, call, q.Tag)
	if err != nil || !known {
		return &queries.EventPage{}, err
	}
	rq := &rest.Request{Endpoint: e, Keys: 1}
	rq.Query.Set("closed", strconv.FormatBool(start.Closed)).Set("order", order).Set("ascending", strconv.FormatBool(q.Direction == queries.Ascending)).
		Set("tag_id", tag).Set("end_date_min", q.EndsAfter.Format(time.RFC3339)).Set("end_date_max", q.EndsBefore.Format(time.RFC3339)).
		Set("limit", strconv.Itoa(eventsListed)).Set("after_cursor", start.At)
	payload, err := d.gamma.Get(ctx, call, rq)
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	cursor, err := keysetCursor(payload)
	if err != nil {
		return nil, formError(e, err)
	}
	page, err := d.readFound(payload, q)
	if err == nil && sorted {
		err = checkEventOrder(payload, order, q.Direction)
	}
	switch next := rest.NextCursor(cursor, start.At); {
	case err != nil:
		return nil, err
	case next != "":
		page.Next = rest.PageToken(eventsStart{start.Closed, next})
	case !start.Closed && closed:
		page.Next = rest.PageToken(eventsStart{Closed: true})
	}
	return page, nil
}

// readFound reads {events:[{markets:[…]}]} and returns the events with a market that matches q.
func (d *Driver) readFound(payload wire.Value, q queries.Search) (*queries.EventPage, error) {
	const e = upstream.EndpointEventSearch
	list, err := readEvents(payload)
	if err != nil {
		return nil, formError(e, err)
	}
	var n rest.Drift
	defer func() { d.gamma.Report(e, n) }()
	page, seen := &queries.EventPage{}, make(map[string]bool)
	var bad rest.RowErrors
	for i, v := range list {
		row, err := readEvent(v, n.Add)
		if err != nil {
			n.Add("bad row")
			bad = append(bad, rest.RowError{Where: "row " + strconv.Itoa(i+1), Err: err})
			continue
		}
		found := queries.FoundEvent{Event: row.toEvent(e), Whole: true}
		for _, m := range found.Markets {
			m.Summary, m.Description = true, "" // the descriptions of all markets would fill the cache
		}
		found.Matches = slices.DeleteFunc(slices.Clone(found.Markets), func(m *market.Market) bool { return !matches(m, q) })
		if len(found.Matches) > 0 && !seen[found.EventID] {
			seen[found.EventID] = true
			page.Events = append(page.Events, found)
		}
	}
	if len(list) > 0 && len(bad) == len(list) {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	page.LeftOut = bad.LeftOut(e)
	return page, nil
}

// checkEventOrder returns an error if at least two pairs of neighbours are out of order, and Gamma has probably ignored the sort. It
// skips events without the requested field.
func checkEventOrder(payload wire.Value, order string, direction queries.Direction) error {
	list, _ := readEvents(payload)
	field := wire.NewField(order)
	var values []market.Decimal
	for _, v := range list {
		r := &wire.Row{Object: v, Note: func(string) {}}
		if at := r.Time(field); strings.HasSuffix(order, "Date") && !at.IsZero() {
			values = append(values, market.NewDecimal(at.Unix(), 0))
		} else if d := r.Decimal(field); d != nil {
			values = append(values, *d)
		}
	}
	wrong, ignored := queries.OutOfOrder(values, func(a, b market.Decimal) int {
		if direction == queries.Ascending {
			return a.Cmp(b)
		}
		return b.Cmp(a)
	})
	if wrong > 1 && ignored {
		return unsupported("the list of events is not sorted by " + order)
	}
	return nil
}
