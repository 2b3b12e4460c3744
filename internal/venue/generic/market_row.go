package generic

import (
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldMarketID   = wire.NewField("marketId", "conditionId", "id").Interned()
	fieldEventID    = wire.NewField("eventId").Interned()
	fieldEventSlug  = wire.NewField("eventSlug").Interned()
	fieldEventTitle = wire.NewField("eventTitle").Interned()
	fieldResolution = wire.NewField("resolution")
	fieldEvent      = wire.NewField("event")

	fieldTokenIDs     = wire.NewField("clobTokenIds", "tokenIds")
	fieldOutcome      = wire.NewField("outcome", "label", "name", "title").Interned()
	fieldOutcomeToken = wire.NewField("tokenId", "clobTokenId", "assetId", "id").Interned()
	fieldWinner       = wire.NewField("winner", "isWinner")

	fieldResolvedAt = wire.NewField("resolvedAt", "timestamp")
	fieldSource     = wire.NewField("source")
)

// readMarket reads a market in any known form. event is the row of its event. If it is nil, the market may name its event: event:{…}
// or events:[{…}].
func readMarket(r, event *wire.Row) *market.Market {
	id := r.RequireID(fieldMarketID)
	m := r.Market()
	m.MarketID, m.Outcomes, m.Resolution = id, outcomes(r), resolution(r)
	m.EventID, m.EventSlug, m.EventTitle = r.ID(fieldEventID), r.Text(fieldEventSlug), r.Text(fieldEventTitle)
	m.Status, m.StatusRaw = status(r, m)
	dropFalseWinners(m)
	if event != nil {
		event.Inherit(m)
		return m
	}
	own := r.Of(fieldEvent)
	if list := r.Of(wire.FieldEvents).Elements(); own.IsNull() && len(list) > 0 {
		own = list[0]
	}
	if own.Kind() == wire.Object {
		r.Child(own).NameEvent(m)
	}
	return m
}

func status(r *wire.Row, m *market.Market) (market.Status, string) {
	if !r.Of(wire.FieldStatus).IsNull() {
		raw := r.Text(wire.FieldStatus)
		return market.ParseStatus(raw), raw
	}
	closed, active := r.Bool(wire.FieldClosed), r.Bool(wire.FieldActive)
	switch {
	case closed != nil && *closed && (hasWinner(m) || m.Resolution != nil):
		return market.StatusResolved, ""
	case closed != nil && *closed:
		return market.StatusClosed, ""
	case active != nil && *active:
		return market.StatusOpen, ""
	}
	return market.StatusUnknown, ""
}

// dropFalseWinners removes the flags if none is true: while there is no winner, venues send false for every outcome.
func dropFalseWinners(m *market.Market) {
	if hasWinner(m) {
		return
	}
	for i := range m.Outcomes {
		m.Outcomes[i].Winner = nil
	}
}

func hasWinner(m *market.Market) bool {
	return slices.ContainsFunc(m.Outcomes, func(o market.Outcome) bool { return o.Winner != nil && *o.Winner })
}

// resolution reads {outcome,resolvedAt,source}, or a field with only the winning label.
func resolution(r *wire.Row) *market.Resolution {
	v := r.Of(fieldResolution)
	if v.Kind() == wire.Object {
		in := r.Child(v)
		return &market.Resolution{Outcome: in.Text(fieldOutcome), ResolvedAt: in.Time(fieldResolvedAt), Source: in.Text(fieldSource)}
	}
	if label := r.Text(fieldResolution); label != "" {
		return &market.Resolution{Outcome: label}
	}
	return nil
}

// outcomes reads the outcomes. If one has no token or no label, or two have the same token, r is bad.
func outcomes(r *wire.Row) []market.Outcome {
	rows := outcomeRows(r)
	list, seen := make([]market.Outcome, 0, len(rows)), make(map[string]bool, len(rows))
	for _, in := range rows {
		o := market.Outcome{
			TokenID: in.RequireID(fieldOutcomeToken), Label: in.RequireText(fieldOutcome),
			Price: in.Unit(wire.FieldPrice), Winner: in.Bool(fieldWinner),
		}
		switch {
		case in.Err != nil:
			r.Fail(wire.FieldOutcomes, "contain a bad outcome: "+in.Err.Error())
			return nil
		case seen[o.TokenID]:
			r.Fail(wire.FieldOutcomes, "name a token twice")
		}
		seen[o.TokenID] = true
		list = append(list, o)
	}
	return list
}

// outcomeRows returns a row for each outcome. The row is an object in outcomes or tokens, or comes from the parallel lists outcomes,
// clobTokenIds and outcomePrices, of which the last may be missing. Each list may be a string that contains JSON.
func outcomeRows(r *wire.Row) (rows []*wire.Row) {
	for i, f := range []wire.Field{wire.FieldOutcomes, wire.FieldTokens} {
		list, ok := r.Of(f).List()
		switch {
		case !ok:
		case len(list) == 0 && i == 0 && (r.Has(wire.FieldTokens) || r.Has(fieldTokenIDs)): // another field has the outcomes
		case len(list) == 0 || list[0].Kind() == wire.Object:
			for _, v := range list {
				rows = append(rows, r.Child(v))
			}
			return rows
		}
	}
	labels, ok := r.Of(wire.FieldOutcomes).List()
	tokens, ok2 := r.Of(fieldTokenIDs).List()
	if !ok || !ok2 || len(labels) != len(tokens) {
		r.Fail(wire.FieldOutcomes, "are missing or do not match their tokens")
		return nil
	}
	prices, hasPrices := r.Of(wire.FieldOutcomePrices).List()
	if hasPrices && len(prices) != len(labels) {
		r.Fail(wire.FieldOutcomePrices, "do not match the outcomes")
		return nil
	}
	for i := range labels {
		in := &wire.Row{Note: r.Note}
		in.Set(fieldOutcome, labels[i])
		in.Set(fieldOutcomeToken, tokens[i])
		if hasPrices {
			in.Set(wire.FieldPrice, prices[i])
		}
		rows = append(rows, in)
	}
	return rows
}

func outcomeTokens(r *wire.Row) []string {
	var ids []string
	add := func(v wire.Value) {
		if id, ok := v.ID(); ok && id != "" {
			ids = append(ids, id)
		}
	}
	for _, f := range []wire.Field{wire.FieldOutcomes, wire.FieldTokens} {
		list, _ := r.Of(f).List()
		for _, v := range list {
			add(fieldOutcomeToken.Of(v))
		}
	}
	list, _ := r.Of(fieldTokenIDs).List()
	for _, v := range list {
		add(v)
	}
	return ids
}

func readSearchRow(v wire.Value, i int, drift *rest.Drift) (good []*market.Market, bad rest.RowErrors) {
	rows, event := []wire.Value{v}, (*wire.Row)(nil)
	inside := v.Member("markets")
	isEvent := inside.Kind() == wire.List
	if isEvent {
		rows, event = inside.Elements(), wire.NewRow(v, drift.Add)
	}
	good, bad = rest.ReadRows(rows, drift.Add, func(r *wire.Row) *market.Market {
		m := readMarket(r, event)
		m.Summary = !r.Has(wire.FieldDescription) && !r.Has(fieldResolution)
		return m
	})
	for j := range bad {
		where := "row " + strconv.Itoa(i+1)
		if isEvent {
			where = "market " + strings.TrimPrefix(bad[j].Where, "row ") + " of " + where
		}
		bad[j].Where = where
	}
	return good, bad
}
