package polymarket

import (
	"cmp"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldConditionID = wire.NewField("conditionId").Interned()
	fieldVersion     = wire.NewField("version").Interned()
	fieldTokenIDs    = wire.NewField("clobTokenIds")
	fieldPositionIDs = wire.NewField("positionIds")
	fieldID          = wire.NewField("id").Interned()
	fieldTitle       = wire.NewField("title").Interned()
	fieldDayChange   = wire.NewField("oneDayPriceChange")
)

// noChange is the change of a price that Gamma omits. All these markets share it.
var noChange = new(market.NewDecimal(0, 0))

// The versions of Polymarket's protocol.
const versionV1, versionV2 = "v1", "v2"

// readMarket reads a market of the Gamma API. If the market is inside an event, event is that event. If event is nil, readMarket
// uses the first event in the row, if there is one. If the market is closed but Gamma does not state the market's winner, undecided
// has the other parts of the result. The CLOB API may state the winner. Otherwise undecided is nil.
func readMarket(r *wire.Row, event *wire.Row) (m *market.Market, undecided *market.Resolution) {
	id := readMarketID(r)
	m = r.Market()
	if m.MarketID = id; m.Question == "" {
		r.Fail(wire.FieldQuestion, "is missing")
	}
	m.Outcomes, m.PriceChange24h = readOutcomes(r, m.MarketID), cmp.Or(r.Decimal(fieldDayChange), noChange)
	if event == nil {
		if events := r.Of(wire.FieldEvents).Elements(); len(events) > 0 {
			event = r.Child(events[0])
		}
	}
	if event != nil {
		event.Inherit(m)
	}
	undecided = readResult(r, m)
	m.Summary = undecided != nil || !r.Has(wire.FieldDescription)
	return m, undecided
}

// readMarketID reads the condition id of a market. If the market has no condition, readMarketID returns its id in the Gamma API.
func readMarketID(r *wire.Row) string {
	if id := r.ID(fieldConditionID); id != "" || r.Err != nil {
		return conditionID(id)
	}
	return r.RequireID(fieldID)
}

// readOutcomes reads the parallel lists of outcomes, tokens and prices of a market. Each list may be a string that contains JSON. If
// the market has no order book, its outcomes have ids from outcomeID. A new market may have no prices. An unreadable price counts as
// missing.
func readOutcomes(r *wire.Row, marketID string) []market.Outcome {
	labels, ok := r.Of(wire.FieldOutcomes).List()
	tokens := readTokenIDs(r)
	prices, _ := r.Of(wire.FieldOutcomePrices).List()
	if !ok || len(labels) == 0 || len(tokens) > 0 && len(tokens) != len(labels) {
		r.Fail(wire.FieldOutcomes, "are missing or do not match their tokens")
		return nil
	}
	if len(prices) != len(labels) {
		prices = nil
	}
	out := make([]market.Outcome, len(labels))
	for i := range labels {
		o := &out[i]
		if o.Label = labels[i].Interned(); o.Label == "" {
			r.Fail(wire.FieldOutcomes, "have no label")
		}
		if o.TokenID = outcomeID(marketID, i); len(tokens) > 0 {
			o.TokenID = tokens[i]
		}
		if prices != nil {
			if p, ok := prices[i].Decimal(); ok && wire.InUnit(p) {
				o.Price = &p
				continue
			}
			r.Unreadable(wire.FieldOutcomePrices)
		}
	}
	return out
}

// readTokenIDs reads the ids of a market's tokens in the order books. A market without an order book has no list, an empty text or
// an empty list. An unreadable list counts as missing. An unreadable or repeated id makes the row bad.
func readTokenIDs(r *wire.Row) []string {
	f, ok := idsField(r)
	if !ok {
		r.Note("market of an unknown version")
		return nil
	}
	v := r.Of(f)
	list, ok := v.List()
	if !ok && !v.IsNull() && !v.Is("") {
		r.Unreadable(f)
	}
	ids := make([]string, 0, len(list))
	for _, v := range list {
		id, ok := v.ID()
		switch {
		case !ok || id == "":
			r.Fail(f, "contain an unreadable or empty id")
		case slices.Contains(ids, id):
			r.Fail(f, "name a token twice")
		}
		ids = append(ids, id)
	}
	return ids
}

// idsField returns the field with the tokens of a market. The version of the protocol decides, because a market of protocol V2 may
// also have the field of V1 with other ids. Old rows have no version. If the version is unknown, ok is false.
func idsField(r *wire.Row) (f wire.Field, ok bool) {
	switch r.Text(fieldVersion) {
	case "", versionV1:
		return fieldTokenIDs, true
	case versionV2:
		return fieldPositionIDs, true
	}
	return f, false
}

// tokenIDs returns the readable ids in both fields of tokens, even if the row is bad. Some of them may not be ids of the market's
// outcomes; see idsField.
func tokenIDs(r *wire.Row) (ids []string) {
	for _, f := range []wire.Field{fieldTokenIDs, fieldPositionIDs} {
		list, _ := r.Of(f).List()
		for _, v := range list {
			if id, ok := v.ID(); ok && id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func slugOf(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}
