package polymarket

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldMarkets       = wire.NewField("markets")
	fieldNegRisk       = wire.NewField("negRisk")
	fieldAugmented     = wire.NewField("negRiskAugmented")
	fieldOther         = wire.NewField("negRiskOther")
	fieldKeysetCursor  = wire.NewField("next_cursor")
	errNoMarkets       = errors.New("no list of markets")
	errNoEvents        = errors.New("no list of events")
	placeholder        = regexp.MustCompile(`(^|\s)[A-Z]{1,2}$`)
	errUnreadablePager = errors.New("the cursor is not a text of at most 1024 bytes")
)

type marketRow struct {
	row    *wire.Row
	market *market.Market
	// undecided is not nil if the market is closed but its row does not state the winner; see readMarket.
	undecided *market.Resolution
}

// readMarkets reads {markets:[…]}, and the cursor of the next page. A bad row has no market.
func readMarkets(payload wire.Value, note func(string)) (rows []marketRow, next string, err error) {
	list, ok := listOf(payload, fieldMarkets)
	if !ok {
		return nil, "", errNoMarkets
	}
	if next, err = keysetCursor(payload); err != nil {
		return nil, "", err
	}
	return marketRows(list, nil, note), next, nil
}

// listOf returns the list in a field, and whether there is one. Null is an empty list.
func listOf(payload wire.Value, f wire.Field) ([]wire.Value, bool) {
	list := f.Of(payload)
	return list.Elements(), list.Kind() == wire.List || list.IsNull() && f.PresentIn(payload)
}

func keysetCursor(payload wire.Value) (string, error) {
	v := fieldKeysetCursor.Of(payload)
	if next := v.Text(); (v.IsNull() || v.Kind() == wire.String) && len(next) <= rest.MaxCursor {
		return next, nil
	}
	return "", errUnreadablePager
}

// marketRows reads a list of markets. If the list is in the object of an event, event is that object. Otherwise event is nil.
func marketRows(list []wire.Value, event *wire.Row, note func(string)) []marketRow {
	rows := make([]marketRow, 0, len(list))
	for _, v := range list {
		r := wire.NewRow(v, note)
		row := marketRow{row: r}
		if r.Err == nil {
			row.market, row.undecided = readMarket(r, event)
		}
		if r.Err != nil {
			note("bad row")
			row.market, row.undecided = nil, nil
		}
		rows = append(rows, row)
	}
	return rows
}

type eventRow struct {
	event *market.Event
	rows  []marketRow
}

// readEvent reads an event of the Gamma API. In an augmented event, the markets exclude each other, and some of them may be
// placeholders. readEvent leaves out the placeholders.
func readEvent(v wire.Value, note func(string)) (eventRow, error) {
	r := wire.NewRow(v, note)
	e := &market.Event{EventID: r.RequireID(fieldID), Slug: r.Text(wire.FieldSlug), Title: r.Text(fieldTitle), Exclusive: r.Bool(fieldNegRisk)}
	e.Image, e.Description, e.Category = r.Text(wire.FieldImage), r.Text(wire.FieldDescription), r.Text(wire.FieldCategory)
	list := r.Of(fieldMarkets)
	if list.Kind() != wire.List {
		r.Fail(fieldMarkets, "are missing")
	}
	if r.Err != nil {
		return eventRow{}, r.Err
	}
	out := eventRow{event: e}
	augmented := isTrue(r.Bool(fieldAugmented))
	for _, row := range marketRows(list.Elements(), r, note) {
		if augmented && isPlaceholder(row) {
			continue
		}
		out.rows = append(out.rows, row)
	}
	return out, nil
}

// isPlaceholder reports whether a market of an augmented event represents the outcome "Other", or an outcome that has no name yet,
// such as "Person A". A market of the second kind is not active and has no volume. Names of real outcomes may have the same form, such
// as "Plan B".
func isPlaceholder(row marketRow) bool {
	if row.row.Object.Kind() != wire.Object {
		return false
	}
	if isTrue(row.row.Bool(fieldOther)) {
		return true
	}
	m, active := row.market, row.row.Bool(wire.FieldActive)
	return m != nil && active != nil && !*active && placeholder.MatchString(m.GroupItemTitle) && (m.Volume == nil || m.Volume.IsZero())
}

// isListed reports whether a row of a list of markets belongs into the list. Polymarket's site shows no placeholders.
func isListed(row marketRow) bool {
	events := row.row.Of(wire.FieldEvents).Elements()
	return len(events) == 0 || !isTrue(row.row.Child(events[0]).Bool(fieldAugmented)) || !isPlaceholder(row)
}

// Event returns an event with its markets, or nil if Polymarket does not know the event. If ref has an id, Event ignores the slug.
func (d *Driver) Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error) {
	const e = upstream.EndpointEvent
	parameter, id := "id", ref.EventID
	if id == "" {
		parameter, id = "slug", ref.EventSlug
	}
	if err := rest.CheckID(e, id); err != nil {
		return nil, err
	}
	if parameter == "id" && !isToken(id) {
		return nil, nil // Gamma's ids are numbers
	}
	return rest.WithBackoff(d.gamma, e, parameter+"="+id, func() (*market.Event, error) {
		for _, closed := range []string{"false", "true"} { // one call returns either open or closed events
			rq := &rest.Request{Endpoint: e, Keys: 1}
			rq.Query.Set(parameter, id).Set("closed", closed).Set("limit", "1")
			payload, err := d.gamma.Get(ctx, call, rq)
			if err != nil {
				return nil, rest.NilIfNotFound(err)
			}
			var n rest.Drift
			found, err := findEvent(payload, ref, &n)
			d.gamma.Report(e, n)
			if found != nil || err != nil {
				return found, err
			}
		}
		return nil, nil
	})
}

func findEvent(payload wire.Value, ref market.EventRef, n *rest.Drift) (*market.Event, error) {
	const e = upstream.EndpointEvent
	list, err := readEvents(payload)
	if err != nil || len(list) == 0 {
		return nil, formError(e, err)
	}
	found, err := readEvent(list[0], n.Add)
	switch {
	case err != nil:
		return nil, rest.BadElement(e, err)
	case ref.EventID != "" && found.event.EventID != ref.EventID, ref.EventID == "" && found.event.Slug != ref.EventSlug:
		return nil, rest.UnknownForm(e, errIgnoredFilter.Error())
	}
	return found.toEvent(e), nil
}

func (f eventRow) toEvent(e upstream.Endpoint) *market.Event {
	var bad rest.RowErrors
	for i, row := range f.rows {
		if row.market == nil {
			bad = append(bad, rest.RowError{Where: "market " + strconv.Itoa(i+1), Err: row.row.Err})
			continue
		}
		f.event.Include(row.market)
	}
	f.event.LeftOut = bad.LeftOut(e)
	return f.event
}

func readEvents(payload wire.Value) (events []wire.Value, err error) {
	events, ok := listOf(payload, wire.FieldEvents)
	if !ok {
		return nil, errNoEvents
	}
	return events, nil
}
