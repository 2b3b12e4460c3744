package generic

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldMarketID        = wire.NewField("marketId", "conditionId", "id").Interned()
	fieldSlug            = wire.NewField("slug", "marketSlug")
	fieldQuestion        = wire.NewField("question", "title")
	fieldGroupItemTitle  = wire.NewField("groupItemTitle")
	fieldDescription     = wire.NewField("description")
	fieldImage           = wire.NewField("image", "imageUrl", "icon")
	fieldCategory        = wire.NewField("category").Interned()
	fieldTags            = wire.NewField("tags")
	fieldActive          = wire.NewField("active")
	fieldClosed          = wire.NewField("closed")
	fieldAcceptingOrders = wire.NewField("acceptingOrders")
	fieldStartDate       = wire.NewField("startDate", "startsAt", "startDateIso")
	fieldEndDate         = wire.NewField("endDate", "endsAt", "endDateIso")
	fieldVolume          = wire.NewField("volume", "volumeNum")
	fieldVolume24h       = wire.NewField("volume24h", "volume_24h", "volume24hr", "volume_24hr")
	fieldLiquidity       = wire.NewField("liquidity", "liquidityNum")
	fieldTickSize        = wire.NewField("tickSize", "minimumTickSize", "orderPriceMinTickSize")
	fieldMinOrderSize    = wire.NewField("minOrderSize", "minimumOrderSize", "orderMinSize")
	fieldEventID         = wire.NewField("eventId").Interned()
	fieldEventSlug       = wire.NewField("eventSlug").Interned()
	fieldEventTitle      = wire.NewField("eventTitle").Interned()
	fieldResolution      = wire.NewField("resolution")

	fieldOutcomes      = wire.NewField("outcomes")
	fieldTokens        = wire.NewField("tokens")
	fieldOutcomePrices = wire.NewField("outcomePrices")
	fieldTokenIDs      = wire.NewField("clobTokenIds", "tokenIds")
	fieldOutcome       = wire.NewField("outcome", "label", "name", "title").Interned()
	fieldOutcomeToken  = wire.NewField("tokenId", "clobTokenId", "assetId", "id").Interned()
	fieldWinner        = wire.NewField("winner", "isWinner")

	fieldResolvedAt = wire.NewField("resolvedAt", "timestamp")
	fieldSource     = wire.NewField("source")

	fieldEvent    = wire.NewField("event")
	fieldEvents   = wire.NewField("events")
	fieldTagLabel = wire.NewField("label", "name", "slug")

	// These fields are in the object of an event, not in the object of a market.
	fieldOwnEventID    = wire.NewField("eventId", "id").Interned()
	fieldOwnEventSlug  = wire.NewField("eventSlug", "slug")
	fieldOwnEventTitle = wire.NewField("eventTitle", "title", "name")
)

// marketEvent is the event of a market. Empty fields of the market get their values from the event.
type marketEvent struct {
	id, slug, title, image, category string
	tags                             []string
	object                           wire.Value
}

func readEvent(r *wire.Row) *marketEvent {
	return &marketEvent{
		id:       r.ID(fieldOwnEventID),
		slug:     r.Text(fieldOwnEventSlug),
		title:    r.Text(fieldOwnEventTitle),
		image:    r.Text(fieldImage),
		category: r.Text(fieldCategory),
		tags:     r.Labels(fieldTags, fieldTagLabel),
		object:   r.Object,
	}
}

// readMarket reads a market in any known form. If event is nil, readMarket uses the event in the row, if there is one.
func readMarket(r *wire.Row, event *marketEvent) *market.Market {
	m := &market.Market{
		MarketID:        r.RequireID(fieldMarketID),
		Slug:            r.Text(fieldSlug),
		Question:        r.Text(fieldQuestion),
		GroupItemTitle:  r.Text(fieldGroupItemTitle),
		Description:     r.Text(fieldDescription),
		Image:           r.Text(fieldImage),
		Category:        r.Text(fieldCategory),
		Tags:            r.Labels(fieldTags, fieldTagLabel),
		AcceptingOrders: r.Bool(fieldAcceptingOrders),
		StartsAt:        r.Time(fieldStartDate),
		EndsAt:          r.Time(fieldEndDate),
		Volume:          r.Decimal(fieldVolume),
		Volume24h:       r.Decimal(fieldVolume24h),
		Liquidity:       r.Decimal(fieldLiquidity),
		TickSize:        r.Decimal(fieldTickSize),
		MinOrderSize:    r.Decimal(fieldMinOrderSize),
		EventID:         r.ID(fieldEventID),
		EventSlug:       r.Text(fieldEventSlug),
		EventTitle:      r.Text(fieldEventTitle),
		Outcomes:        outcomes(r),
		Resolution:      resolution(r),
		CreatedAt:       r.Time(wire.FieldCreatedAt),
		UpdatedAt:       r.Time(wire.FieldUpdatedAt),
	}
	m.Status, m.StatusRaw = status(r, m)
	dropFalseWinners(m)
	if event == nil {
		event = ownEvent(r)
	}
	if event != nil {
		inheritFromEvent(m, event, r)
	}
	return m
}

// ownEvent returns the id, the slug and the title of the event in the object of a market: event:{…} or events:[{…}]. If there is no
// such event, ownEvent returns nil.
func ownEvent(r *wire.Row) *marketEvent {
	v := r.Of(fieldEvent)
	if list := r.Of(fieldEvents).Elements(); v.IsNull() && len(list) > 0 {
		v = list[0]
	}
	if v.Kind() != wire.Object {
		return nil
	}
	e := readEvent(r.Child(v))
	return &marketEvent{id: e.id, slug: e.slug, title: e.title}
}

func inheritFromEvent(m *market.Market, e *marketEvent, in *wire.Row) {
	m.EventID, m.EventSlug, m.EventTitle = cmp.Or(m.EventID, e.id), cmp.Or(m.EventSlug, e.slug), cmp.Or(m.EventTitle, e.title)
	m.Image, m.Category = cmp.Or(m.Image, e.image), cmp.Or(m.Category, e.category)
	if len(m.Tags) == 0 {
		m.Tags = e.tags
	}
	r := in.Child(e.object)
	if m.StartsAt.IsZero() {
		m.StartsAt = r.Time(fieldStartDate)
	}
	if m.EndsAt.IsZero() {
		m.EndsAt = r.Time(fieldEndDate)
	}
}

func status(r *wire.Row, m *market.Market) (market.Status, string) {
	if !r.Of(wire.FieldStatus).IsNull() {
		raw := r.Text(wire.FieldStatus)
		return market.ParseStatus(raw), raw
	}
	closed, active := r.Bool(fieldClosed), r.Bool(fieldActive)
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

// dropFalseWinners removes the winner flags if none of them is true. Venues also send false for every outcome while the winner
// is unknown, and for markets without a winner.
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

// outcomes reads the outcomes in any known form. If an outcome has no token or no label, or two outcomes have the same token,
// outcomes marks the row r as bad.
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
			r.Fail(fieldOutcomes, "contain a bad outcome: "+in.Err.Error())
			return nil
		case seen[o.TokenID]:
			r.Fail(fieldOutcomes, "name a token twice")
		}
		seen[o.TokenID] = true
		list = append(list, o)
	}
	return list
}

// outcomeRows returns a row for each outcome. The row is an object in outcomes or tokens, or comes from the parallel lists outcomes,
// clobTokenIds and outcomePrices, of which the last may be missing. Each list may be a string that contains JSON.
func outcomeRows(r *wire.Row) (rows []*wire.Row) {
	for i, f := range []wire.Field{fieldOutcomes, fieldTokens} {
		list, ok := r.Of(f).List()
		switch {
		case !ok:
		case len(list) == 0 && i == 0 && (r.Has(fieldTokens) || r.Has(fieldTokenIDs)): // another field has the outcomes
		case len(list) == 0 || list[0].Kind() == wire.Object:
			for _, v := range list {
				rows = append(rows, r.Child(v))
			}
			return rows
		}
	}
	labels, ok := r.Of(fieldOutcomes).List()
	tokens, ok2 := r.Of(fieldTokenIDs).List()
	if !ok || !ok2 || len(labels) != len(tokens) {
		r.Fail(fieldOutcomes, "are missing or do not match their tokens")
		return nil
	}
	prices, hasPrices := r.Of(fieldOutcomePrices).List()
	if hasPrices && len(prices) != len(labels) {
		r.Fail(fieldOutcomePrices, "do not match the outcomes")
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
	for _, f := range []wire.Field{fieldOutcomes, fieldTokens} {
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
	rows, event := []wire.Value{v}, (*marketEvent)(nil)
	inside := v.Member("markets")
	isEvent := inside.Kind() == wire.List
	if isEvent {
		rows, event = inside.Elements(), readEvent(wire.NewRow(v, drift.Add))
	}
	good, bad = rest.ReadRows(rows, drift.Add, func(r *wire.Row) *market.Market {
		m := readMarket(r, event)
		m.Summary = !r.Has(fieldDescription) && !r.Has(fieldResolution)
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
