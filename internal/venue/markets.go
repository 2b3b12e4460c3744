package venue

import (
	"context"
	"slices"
	"strings"

	"oddsgraph/internal/market"
)

var (
	fieldMarketID        = names("marketId", "conditionId", "id")
	fieldSlug            = names("slug", "marketSlug")
	fieldQuestion        = names("question", "title")
	fieldGroupItemTitle  = names("groupItemTitle")
	fieldDescription     = names("description")
	fieldImage           = names("image", "imageUrl", "icon")
	fieldCategory        = names("category")
	fieldTags            = names("tags")
	fieldStatus          = names("status", "state")
	fieldActive          = names("active")
	fieldClosed          = names("closed")
	fieldAcceptingOrders = names("acceptingOrders")
	fieldStartDate       = names("startDate", "startsAt", "startDateIso")
	fieldEndDate         = names("endDate", "endsAt", "endDateIso")
	fieldVolume          = names("volume", "volumeNum")
	fieldVolume24h       = field{"volume24h", "volume_24h", "volume24hr", "volume_24hr"}
	fieldLiquidity       = names("liquidity", "liquidityNum")
	fieldTickSize        = names("tickSize", "minimumTickSize", "orderPriceMinTickSize")
	fieldMinOrderSize    = names("minOrderSize", "minimumOrderSize", "orderMinSize")
	fieldEventID         = names("eventId")
	fieldEventSlug       = names("eventSlug")
	fieldEventTitle      = names("eventTitle")
	fieldResolution      = names("resolution")
	fieldUpdatedAt       = names("updatedAt", "lastUpdated")

	fieldOutcomes      = names("outcomes")
	fieldTokens        = names("tokens")
	fieldOutcomePrices = names("outcomePrices")
	fieldTokenIDs      = names("clobTokenIds", "tokenIds")
	fieldOutcome       = names("outcome", "label", "name", "title")
	fieldOutcomeToken  = names("tokenId", "clobTokenId", "assetId", "id")
	fieldWinner        = names("winner", "isWinner")

	fieldResolvedAt = names("resolvedAt", "timestamp")
	fieldSource     = names("source")

	fieldEvent    = names("event")
	fieldEvents   = names("events")
	fieldTagLabel = names("label", "name", "slug")
)

// MarketsByID returns markets with description and resolution, one result an id and in their order; the Value of an
// unknown market is nil. Errors are as with Prices.
func (c *Client) MarketsByID(ctx context.Context, ids []string) ([]market.Result[*market.Market], error) {
	l := lookup[market.Market]{
		endpoint: EndpointMarketsByID,
		list:     "ids", single: "id", lone: true,
		learned: &c.marketIDs,
		decode:  decodeMarketsByID,
	}
	return l.all(ctx, c, ids)
}

// MarketsByToken returns the markets that the tokens are outcomes of, aligned with tokenIDs; tokens of one market have
// markets that are equal but may not be the same. Errors are as with Prices.
func (c *Client) MarketsByToken(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Market], error) {
	l := lookup[market.Market]{
		endpoint: EndpointMarketsByToken,
		list:     "tokenIds", single: "tokenId",
		learned: &c.marketTokens,
		decode:  decodeMarketsByToken,
	}
	return l.all(ctx, c, tokenIDs)
}

// MarketBySlug returns a market with description and resolution, or nil when the venue does not know the slug.
func (c *Client) MarketBySlug(ctx context.Context, slug string) (*market.Market, error) {
	const e = EndpointMarketBySlug
	if err := checkID(e, slug); err != nil {
		return nil, err
	}
	rq := &request{endpoint: e, keys: 1}
	rq.query.set("slug", slug)
	payload, err := c.get(ctx, rq)
	if err != nil || payload == nil {
		return nil, orAbsent(err)
	}
	var n notes
	defer func() { c.report(e, n) }()
	rows, ok := marketRows(payload)
	if !ok {
		return nil, unknownForm(e, "no market and no list of markets")
	}
	for _, v := range rows {
		r := newRow(v, &n)
		if fieldSlug.of(r.fields) != slug {
			continue
		}
		m := readMarket(r, nil)
		if r.err != nil {
			n.add("bad element")
			return nil, badElement(e, r.err)
		}
		return m, nil
	}
	if len(rows) > 0 {
		return nil, unknownForm(e, "the market of another slug")
	}
	return nil, nil
}

// marketRows finds the rows of a market-details answer: a list, or one market.
func marketRows(payload any) ([]any, bool) {
	m, isObject := payload.(map[string]any)
	if isObject && isMarket(m) {
		return []any{m}, true
	}
	if list, ok := rowsOf(payload, "markets"); ok {
		return list.rows, true
	}
	for _, key := range []string{"market", "data"} {
		if inside, ok := m[key].(map[string]any); ok && isMarket(inside) {
			return []any{inside}, true
		}
	}
	return nil, false
}

func isMarket(m map[string]any) bool {
	_, nested := fieldMarketID.of(m).(map[string]any)
	return !nested && fieldMarketID.in(m) && (fieldOutcomes.in(m) || fieldTokens.in(m) || fieldQuestion.in(m) || fieldSlug.in(m))
}

func decodeMarketsByID(payload any, asked []string, n *notes) (answers[market.Market], error) {
	return decodeMarkets(EndpointMarketsByID, payload, asked, n, func(r *row, m *market.Market) []string {
		var ids []string
		for _, name := range fieldMarketID {
			// A venue may know a market by more than one id; it is known here by the one that was asked for.
			if id, ok := idOf(r.fields[name]); ok && slices.Contains(asked, id) {
				if ids = append(ids, id); m != nil {
					m.MarketID = id
				}
				break
			}
		}
		return ids
	})
}

func decodeMarketsByToken(payload any, asked []string, n *notes) (answers[market.Market], error) {
	return decodeMarkets(EndpointMarketsByToken, payload, asked, n, func(r *row, m *market.Market) []string {
		return slices.DeleteFunc(tokensOf(r), func(id string) bool { return !slices.Contains(asked, id) })
	})
}

// decodeMarkets reads a market-details answer. keysOf returns the asked ids that a row is about; its market is nil when
// the row is bad.
func decodeMarkets(e Endpoint, payload any, asked []string, n *notes, keysOf func(*row, *market.Market) []string) (answers[market.Market], error) {
	rows, ok := marketRows(payload)
	if !ok {
		return answers[market.Market]{}, unknownForm(e, "no market and no list of markets")
	}
	if _, list := rowsOf(payload, "markets"); !list && len(asked) > 1 {
		return answers[market.Market]{}, unknownForm(e, "one market for several ids")
	}
	out := newAnswers[market.Market](len(asked))
	for _, v := range rows {
		r := newRow(v, n)
		var m *market.Market
		if r.err == nil {
			m = readMarket(r, nil)
		}
		var result market.Result[*market.Market]
		if r.err != nil {
			n.add("bad element")
			result.Err, m = badElement(e, r.err), nil
		}
		keys := keysOf(r, m)
		for _, key := range keys {
			result.Value = m
			out.of[key] = result
		}
		switch {
		case len(keys) > 0:
		case r.err != nil && (e == EndpointMarketsByToken || !hasID(r)):
			out.lost = true
		default:
			out.foreign = true
		}
	}
	return out, nil
}

func hasID(r *row) bool {
	id, ok := idOf(fieldMarketID.of(r.fields))
	return ok && id != ""
}

// eventOf is what the markets inside an event inherit from it.
type eventOf struct {
	id, slug, title, image, category string
	tags                             []string
	fields                           map[string]any
}

func readEvent(m map[string]any, n *notes) *eventOf {
	r := newRow(m, n)
	return &eventOf{
		id:       r.id(names("eventId", "id")),
		slug:     r.text(names("eventSlug", "slug")),
		title:    r.text(names("eventTitle", "title", "name")),
		image:    r.text(fieldImage),
		category: r.text(fieldCategory),
		tags:     r.tags(),
		fields:   m,
	}
}

// readMarket reads a market in any of its forms; event may be nil. The market is a summary when it has neither
// description nor resolution.
func readMarket(r *row, event *eventOf) *market.Market {
	m := &market.Market{
		MarketID:        r.requireID(fieldMarketID),
		Slug:            r.text(fieldSlug),
		Question:        r.text(fieldQuestion),
		GroupItemTitle:  r.text(fieldGroupItemTitle),
		Description:     r.text(fieldDescription),
		Image:           r.text(fieldImage),
		Category:        r.text(fieldCategory),
		Tags:            r.tags(),
		AcceptingOrders: r.flag(fieldAcceptingOrders),
		StartsAt:        r.time(fieldStartDate),
		EndsAt:          r.time(fieldEndDate),
		Volume:          r.decimal(fieldVolume),
		Volume24h:       r.decimal(fieldVolume24h),
		Liquidity:       r.decimal(fieldLiquidity),
		TickSize:        r.decimal(fieldTickSize),
		MinOrderSize:    r.decimal(fieldMinOrderSize),
		EventID:         r.id(fieldEventID),
		EventSlug:       r.text(fieldEventSlug),
		EventTitle:      r.text(fieldEventTitle),
		Outcomes:        r.outcomes(),
		Resolution:      r.resolution(),
		UpdatedAt:       r.time(fieldUpdatedAt),
	}
	m.Status, m.StatusRaw = r.status(m)
	settle(m)
	if event == nil {
		event = r.ownEvent()
	}
	if event != nil {
		inherit(m, event, r.notes)
	}
	return m
}

// ownEvent returns the event that a market names inside itself, as event:{…} or events:[{…}].
func (r *row) ownEvent() *eventOf {
	v := fieldEvent.of(r.fields)
	if list, ok := fieldEvents.of(r.fields).([]any); ok && v == nil && len(list) > 0 {
		v = list[0]
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	e := readEvent(m, r.notes)
	return &eventOf{id: e.id, slug: e.slug, title: e.title}
}

func inherit(m *market.Market, e *eventOf, n *notes) {
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
	r := newRow(e.fields, n)
	if e.fields != nil && m.StartsAt.IsZero() {
		m.StartsAt = r.time(fieldStartDate)
	}
	if e.fields != nil && m.EndsAt.IsZero() {
		m.EndsAt = r.time(fieldEndDate)
	}
}

// tags reads a list of texts, or of objects with a label.
func (r *row) tags() []string {
	v := fieldTags.of(r.fields)
	if v == nil || v == "" {
		return nil
	}
	list, ok := listOf(v)
	if !ok {
		r.note(fieldTags)
		return nil
	}
	tags := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if m, isObject := v.(map[string]any); isObject {
			s, ok = fieldTagLabel.of(m).(string)
		}
		if !ok || s == "" {
			r.note(fieldTags)
			continue
		}
		tags = append(tags, s)
	}
	return tags
}

// status reads the status, or works it out of active and closed where the venue has only those.
func (r *row) status(m *market.Market) (market.Status, string) {
	switch raw := fieldStatus.of(r.fields).(type) {
	case string:
		return market.ParseStatus(raw), raw
	case nil:
	default:
		r.note(fieldStatus)
		return market.StatusUnknown, ""
	}
	closed, active := r.flag(fieldClosed), r.flag(fieldActive)
	switch {
	case closed != nil && *closed && (m.Winner() != nil || m.Resolution != nil):
		return market.StatusResolved, ""
	case closed != nil && *closed:
		return market.StatusClosed, ""
	case active != nil && *active:
		return market.StatusOpen, ""
	}
	return market.StatusUnknown, ""
}

// settle takes the winners away that venues write as false while nothing is decided.
func settle(m *market.Market) {
	if m.Status == market.StatusResolved || m.Winner() != nil {
		return
	}
	for i := range m.Outcomes {
		m.Outcomes[i].Winner = nil
	}
}

// resolution reads {outcome,resolvedAt,source}, or the winning label alone.
func (r *row) resolution() *market.Resolution {
	switch v := fieldResolution.of(r.fields).(type) {
	case nil:
	case map[string]any:
		in := newRow(v, r.notes)
		return &market.Resolution{Outcome: in.text(fieldOutcome), ResolvedAt: in.time(fieldResolvedAt), Source: in.text(fieldSource)}
	case string:
		if v != "" {
			return &market.Resolution{Outcome: v}
		}
	default:
		r.note(fieldResolution)
	}
	return nil
}

// outcomes reads the outcomes in whichever form is there. Every outcome needs a token and a label.
func (r *row) outcomes() []market.Outcome {
	var list []market.Outcome
	if rows, ok := r.outcomeRows(); ok {
		list = r.outcomesOfRows(rows)
	} else {
		list = r.outcomesOfLists()
	}
	seen := make(map[string]bool, len(list))
	for _, o := range list {
		if seen[o.TokenID] {
			r.bad(fieldOutcomes, "name a token twice")
		}
		seen[o.TokenID] = true
	}
	return list
}

// outcomeRows returns outcomes:[{…}] or tokens:[{…}].
func (r *row) outcomeRows() ([]any, bool) {
	for _, f := range []field{fieldOutcomes, fieldTokens} {
		list, ok := listOf(f.of(r.fields))
		if !ok {
			continue
		}
		if len(list) == 0 && f[0] == fieldOutcomes[0] && (fieldTokens.in(r.fields) || fieldTokenIDs.in(r.fields)) {
			continue
		}
		if len(list) == 0 {
			return list, true
		}
		if _, ok := list[0].(map[string]any); ok {
			return list, true
		}
	}
	return nil, false
}

func (r *row) outcomesOfRows(list []any) []market.Outcome {
	out := make([]market.Outcome, 0, len(list))
	for _, v := range list {
		in := newRow(v, r.notes)
		o := market.Outcome{TokenID: in.requireID(fieldOutcomeToken), Label: in.text(fieldOutcome), Price: in.unit(fieldPrice), Winner: in.flag(fieldWinner)}
		if o.Label == "" {
			in.bad(fieldOutcome, "is missing")
		}
		if in.err != nil {
			r.bad(fieldOutcomes, "have a bad one: "+in.err.Error())
			return nil
		}
		out = append(out, o)
	}
	return out
}

// outcomesOfLists reads outcomes, clobTokenIds and outcomePrices as lists side by side, each of which may be JSON inside
// a string.
func (r *row) outcomesOfLists() []market.Outcome {
	labels, ok := listOf(fieldOutcomes.of(r.fields))
	tokens, ok2 := listOf(fieldTokenIDs.of(r.fields))
	if !ok || !ok2 || len(labels) != len(tokens) {
		r.bad(fieldOutcomes, "are missing or do not match their tokens")
		return nil
	}
	prices, priced := listOf(fieldOutcomePrices.of(r.fields))
	if priced && len(prices) != len(labels) {
		r.bad(fieldOutcomePrices, "do not match the outcomes")
		return nil
	}
	rows := make([]any, len(labels))
	for i := range labels {
		in := map[string]any{fieldOutcome[0]: labels[i], fieldOutcomeToken[0]: tokens[i]}
		if priced {
			in[fieldPrice[0]] = prices[i]
		}
		rows[i] = in
	}
	return r.outcomesOfRows(rows)
}

// tokensOf returns the readable token ids of a market's row, be the row bad.
func tokensOf(r *row) []string {
	var ids []string
	add := func(v any) {
		if id, ok := idOf(v); ok && id != "" {
			ids = append(ids, id)
		}
	}
	for _, f := range []field{fieldOutcomes, fieldTokens} {
		list, _ := listOf(f.of(r.fields))
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				add(fieldOutcomeToken.of(m))
			}
		}
	}
	list, _ := listOf(fieldTokenIDs.of(r.fields))
	for _, v := range list {
		add(v)
	}
	return ids
}

// marketsOf reads one row of a search answer: a market, or an event with markets. Bad ones are returned as errors.
func marketsOf(v any, n *notes) (good []*market.Market, bad []error) {
	rows, event := []any{v}, (*eventOf)(nil)
	m, _ := v.(map[string]any)
	if inside, ok := m["markets"].([]any); ok {
		rows, event = inside, readEvent(m, n)
	}
	return readRows(rows, n, func(r *row) *market.Market {
		one := readMarket(r, event)
		one.Summary = !fieldDescription.in(r.fields) && !fieldResolution.in(r.fields)
		return one
	})
}

// sameText compares without regard to case, as venues do with labels, tags and categories.
func sameText(a, b string) bool { return strings.EqualFold(a, b) }
