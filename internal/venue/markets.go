package venue

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
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

	// The fields by which an event names itself.
	fieldOwnEventID    = wire.NewField("eventId", "id").Interned()
	fieldOwnEventSlug  = wire.NewField("eventSlug", "slug")
	fieldOwnEventTitle = wire.NewField("eventTitle", "title", "name")
)

// MarketsByID returns markets with description and resolution, one result an id and in their order; the Value of an
// unknown market is nil. Errors are as with Prices.
func (c *Client) MarketsByID(ctx context.Context, ids []string) ([]market.Result[*market.Market], error) {
	l := lookup[market.Market]{
		endpoint: reqctx.EndpointMarketsByID,
		list:     c.marketIDs.name, single: &c.marketID, lone: true,
		learned: &c.marketIDs,
		decode:  decodeMarketsByID,
	}
	return l.all(ctx, c, ids)
}

// MarketsByToken returns the markets that the tokens are outcomes of, aligned with tokenIDs; tokens of one market have
// markets that are equal but may not be the same. Errors are as with Prices.
func (c *Client) MarketsByToken(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Market], error) {
	l := lookup[market.Market]{
		endpoint: reqctx.EndpointMarketsByToken,
		list:     c.marketTokens.name, single: &c.marketToken,
		learned: &c.marketTokens,
		decode:  decodeMarketsByToken,
	}
	return l.all(ctx, c, tokenIDs)
}

// MarketBySlug returns a market with description and resolution, or nil when the venue does not know the slug.
func (c *Client) MarketBySlug(ctx context.Context, slug string) (*market.Market, error) {
	const e = reqctx.EndpointMarketBySlug
	if err := checkID(e, slug); err != nil {
		return nil, err
	}
	return guarded(c, e, slug, func() (*market.Market, error) { return c.marketBySlug(ctx, slug) })
}

func (c *Client) marketBySlug(ctx context.Context, slug string) (*market.Market, error) {
	const e = reqctx.EndpointMarketBySlug
	rq := &request{endpoint: e, keys: 1}
	rq.query.set(c.marketSlug.names[0], slug)
	payload, err := c.get(ctx, rq)
	if err != nil || payload.IsNull() {
		return nil, orAbsent(err)
	}
	var n notes
	defer func() { c.report(e, n) }()
	rows, ok := marketRows(payload)
	if !ok {
		return nil, unknownForm(e, "no market and no list of markets")
	}
	for _, v := range rows {
		r := wire.NewRow(v, n.add)
		if !r.Of(fieldSlug).Is(slug) {
			continue
		}
		m := readMarket(r, nil)
		if r.Err != nil {
			n.add("bad element")
			return nil, badElement(e, r.Err)
		}
		return m, nil
	}
	if len(rows) > 0 {
		return nil, unknownForm(e, "the market of another slug")
	}
	return nil, nil
}

// marketRows finds the rows of a market-details answer: a list, or one market.
func marketRows(payload wire.Value) ([]wire.Value, bool) {
	if isMarket(payload) {
		return []wire.Value{payload}, true
	}
	if list, ok := rowsOf(payload, "markets"); ok {
		return list.rows, true
	}
	for _, key := range []string{"market", "data"} {
		if inside := payload.Member(key); isMarket(inside) {
			return []wire.Value{inside}, true
		}
	}
	return nil, false
}

func isMarket(v wire.Value) bool {
	return fieldMarketID.PresentIn(v) && fieldMarketID.Of(v).Kind() != wire.Object &&
		(fieldOutcomes.PresentIn(v) || fieldTokens.PresentIn(v) || fieldQuestion.PresentIn(v) || fieldSlug.PresentIn(v))
}

func decodeMarketsByID(payload wire.Value, asked []string, n *notes) (answers[market.Market], error) {
	names := fieldMarketID.Names()
	return decodeMarkets(reqctx.EndpointMarketsByID, payload, asked, n, func(r *wire.Row, m *market.Market) []string {
		for _, name := range names {
			// A venue may know a market by more than one id; it is known here by the one that was asked for.
			id, _ := r.Object.Member(name).ID()
			if at := slices.Index(asked, id); at >= 0 {
				if m != nil {
					m.MarketID = id
				}
				return asked[at : at+1]
			}
		}
		return nil
	})
}

func decodeMarketsByToken(payload wire.Value, asked []string, n *notes) (answers[market.Market], error) {
	return decodeMarkets(reqctx.EndpointMarketsByToken, payload, asked, n, func(r *wire.Row, m *market.Market) []string {
		return slices.DeleteFunc(tokensOf(r), func(id string) bool { return !slices.Contains(asked, id) })
	})
}

// decodeMarkets reads a market-details answer. keysOf returns the asked ids that a row is about; its market is nil when
// the row is bad.
func decodeMarkets(e reqctx.Endpoint, payload wire.Value, asked []string, n *notes, keysOf func(*wire.Row, *market.Market) []string) (answers[market.Market], error) {
	rows, ok := marketRows(payload)
	if !ok {
		return answers[market.Market]{}, unknownForm(e, "no market and no list of markets")
	}
	if _, list := rowsOf(payload, "markets"); !list && len(asked) > 1 {
		return answers[market.Market]{}, unknownForm(e, "one market for several ids")
	}
	out, note := newAnswers[market.Market](len(asked)), n.add
	for _, v := range rows {
		r := wire.NewRow(v, note)
		var m *market.Market
		if r.Err == nil {
			m = readMarket(r, nil)
		}
		var result market.Result[*market.Market]
		if r.Err != nil {
			n.add("bad element")
			result.Err, m = badElement(e, r.Err), nil
		}
		keys := keysOf(r, m)
		for _, key := range keys {
			result.Value = m
			out.of[key] = result
		}
		switch {
		case len(keys) > 0:
		case r.Err != nil && (e == reqctx.EndpointMarketsByToken || !hasID(r)):
			out.lost = true
		default:
			out.foreign = true
		}
	}
	return out, nil
}

func hasID(r *wire.Row) bool {
	id, ok := r.Of(fieldMarketID).ID()
	return ok && id != ""
}

// eventOf is what the markets inside an event inherit from it.
type eventOf struct {
	id, slug, title, image, category string
	tags                             []string
	object                           wire.Value
}

func readEvent(r *wire.Row) *eventOf {
	return &eventOf{
		id:       r.ID(fieldOwnEventID),
		slug:     r.Text(fieldOwnEventSlug),
		title:    r.Text(fieldOwnEventTitle),
		image:    r.Text(fieldImage),
		category: r.Text(fieldCategory),
		tags:     tags(r),
		object:   r.Object,
	}
}

// readMarket reads a market in any of its forms; event may be nil. The market is a summary when it has neither
// description nor resolution.
func readMarket(r *wire.Row, event *eventOf) *market.Market {
	m := &market.Market{
		MarketID:        r.RequireID(fieldMarketID),
		Slug:            r.Text(fieldSlug),
		Question:        r.Text(fieldQuestion),
		GroupItemTitle:  r.Text(fieldGroupItemTitle),
		Description:     r.Text(fieldDescription),
		Image:           r.Text(fieldImage),
		Category:        r.Text(fieldCategory),
		Tags:            tags(r),
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
		UpdatedAt:       r.Time(wire.FieldUpdatedAt),
	}
	m.Status, m.StatusRaw = status(r, m)
	settle(m)
	if event == nil {
		event = ownEvent(r)
	}
	if event != nil {
		inherit(m, event, r)
	}
	return m
}

// ownEvent returns the event that a market names inside itself, as event:{…} or events:[{…}].
func ownEvent(r *wire.Row) *eventOf {
	v := r.Of(fieldEvent)
	if list := r.Of(fieldEvents).Elements(); v.IsNull() && len(list) > 0 {
		v = list[0]
	}
	if v.Kind() != wire.Object {
		return nil
	}
	e := readEvent(r.Child(v))
	return &eventOf{id: e.id, slug: e.slug, title: e.title}
}

func inherit(m *market.Market, e *eventOf, in *wire.Row) {
	set := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	set(&m.EventID, e.id)
	set(&m.EventSlug, e.slug)
	set(&m.EventTitle, e.title)
	set(&m.Image, e.image)
	set(&m.Category, e.category)
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

// tags reads a list of texts, or of objects with a label.
func tags(r *wire.Row) []string {
	v := r.Of(fieldTags)
	if v.IsNull() || v.Is("") {
		return nil
	}
	list, ok := v.List()
	if !ok {
		r.Unreadable(fieldTags)
		return nil
	}
	tags := make([]string, 0, len(list))
	for _, v := range list {
		if v.Kind() == wire.Object {
			v = fieldTagLabel.Of(v)
		}
		if v.Kind() != wire.String || v.Is("") {
			r.Unreadable(fieldTags)
			continue
		}
		tags = append(tags, v.Interned())
	}
	return tags
}

// status reads the status, or works it out of active and closed where the venue has only those.
func status(r *wire.Row, m *market.Market) (market.Status, string) {
	if !r.Of(wire.FieldStatus).IsNull() {
		raw := r.Text(wire.FieldStatus)
		return market.ParseStatus(raw), raw
	}
	closed, active := r.Bool(fieldClosed), r.Bool(fieldActive)
	switch {
	case closed != nil && *closed && (flagged(m) || m.Resolution != nil):
		return market.StatusResolved, ""
	case closed != nil && *closed:
		return market.StatusClosed, ""
	case active != nil && *active:
		return market.StatusOpen, ""
	}
	return market.StatusUnknown, ""
}

// settle drops the winner flags where none is true: venues write false for every outcome until they have named the winner, and
// for markets that nobody won.
func settle(m *market.Market) {
	if flagged(m) {
		return
	}
	for i := range m.Outcomes {
		m.Outcomes[i].Winner = nil
	}
}

// flagged reports whether an outcome is flagged as the winner.
func flagged(m *market.Market) bool {
	return slices.ContainsFunc(m.Outcomes, func(o market.Outcome) bool { return o.Winner != nil && *o.Winner })
}

// resolution reads {outcome,resolvedAt,source}, or the winning label alone.
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

// outcomes reads the outcomes in whichever form is there. Every outcome needs a token and a label.
func outcomes(r *wire.Row) []market.Outcome {
	var list []market.Outcome
	if rows, ok := outcomeRows(r); ok {
		list = outcomesOfRows(r, rows)
	} else {
		list = outcomesOfLists(r)
	}
	seen := make(map[string]bool)
	for _, o := range list {
		if seen[o.TokenID] {
			r.Fail(fieldOutcomes, "name a token twice")
		}
		seen[o.TokenID] = true
	}
	return list
}

// outcomeRows returns outcomes:[{…}] or tokens:[{…}].
func outcomeRows(r *wire.Row) ([]wire.Value, bool) {
	for i, f := range []wire.Field{fieldOutcomes, fieldTokens} {
		list, ok := r.Of(f).List()
		switch {
		case !ok:
		case len(list) == 0 && i == 0 && (r.Has(fieldTokens) || r.Has(fieldTokenIDs)):
		case len(list) == 0 || list[0].Kind() == wire.Object:
			return list, true
		}
	}
	return nil, false
}

func outcomesOfRows(r *wire.Row, list []wire.Value) []market.Outcome {
	out := make([]market.Outcome, 0, len(list))
	for _, v := range list {
		o, ok := outcome(r, r.Child(v))
		if !ok {
			return nil
		}
		out = append(out, o)
	}
	return out
}

// outcomesOfLists reads outcomes, clobTokenIds and outcomePrices as lists side by side, each of which may be JSON inside
// a string.
func outcomesOfLists(r *wire.Row) []market.Outcome {
	labels, ok := r.Of(fieldOutcomes).List()
	tokens, ok2 := r.Of(fieldTokenIDs).List()
	if !ok || !ok2 || len(labels) != len(tokens) {
		r.Fail(fieldOutcomes, "are missing or do not match their tokens")
		return nil
	}
	prices, priced := r.Of(fieldOutcomePrices).List()
	if priced && len(prices) != len(labels) {
		r.Fail(fieldOutcomePrices, "do not match the outcomes")
		return nil
	}
	out := make([]market.Outcome, 0, len(labels))
	for i := range labels {
		in := &wire.Row{Note: r.Note}
		in.Set(fieldOutcome, labels[i])
		in.Set(fieldOutcomeToken, tokens[i])
		if priced {
			in.Set(wire.FieldPrice, prices[i])
		}
		o, ok := outcome(r, in)
		if !ok {
			return nil
		}
		out = append(out, o)
	}
	return out
}

// outcome reads one outcome of a market; a bad one makes the market bad.
func outcome(r, in *wire.Row) (o market.Outcome, ok bool) {
	o = market.Outcome{
		TokenID: in.RequireID(fieldOutcomeToken), Label: in.RequireText(fieldOutcome),
		Price: in.Unit(wire.FieldPrice), Winner: in.Bool(fieldWinner),
	}
	if in.Err != nil {
		r.Fail(fieldOutcomes, "have a bad one: "+in.Err.Error())
	}
	return o, in.Err == nil
}

// tokensOf returns the readable token ids of a market's row, be the row bad.
func tokensOf(r *wire.Row) []string {
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

// marketsOf reads row i of a search answer: a market, or an event with markets.
func marketsOf(v wire.Value, i int, n *notes) (good []*market.Market, bad badRows) {
	rows, event := []wire.Value{v}, (*eventOf)(nil)
	inside := v.Member("markets")
	isEvent := inside.Kind() == wire.List
	if isEvent {
		rows, event = inside.Elements(), readEvent(wire.NewRow(v, n.add))
	}
	good, bad = readRows(rows, n, func(r *wire.Row) *market.Market {
		one := readMarket(r, event)
		one.Summary = !r.Has(fieldDescription) && !r.Has(fieldResolution)
		return one
	})
	for j := range bad {
		at := "row " + strconv.Itoa(i+1)
		if isEvent {
			at = "market " + strings.TrimPrefix(bad[j].at, "row ") + " of " + at
		}
		bad[j].at = at
	}
	return good, bad
}
