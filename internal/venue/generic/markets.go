package generic

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// MarketsByID returns markets with description and resolution.
func (c *Client) MarketsByID(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Market], error) {
	return c.reading(call).marketsByID().read(ctx, ids)
}

func (c reading) marketsByID() *lookup[market.Market] {
	l := &lookup[market.Market]{
		reading: c, endpoint: upstream.EndpointMarketsByID,
		list: c.listParameter(settingMarketIDs), setting: settingMarketIDs, decode: decodeMarketsByID,
	}
	if l.list == "" {
		l.single = c.value(settingMarketID)
	}
	return l
}

// MarketsByToken returns the markets of tokens. The results of two tokens of one market may be two copies of the market.
func (c *Client) MarketsByToken(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Market], error) {
	return c.reading(call).marketsByToken().read(ctx, tokenIDs)
}

func (c reading) marketsByToken() *lookup[market.Market] {
	l := &lookup[market.Market]{
		reading: c, endpoint: upstream.EndpointMarketsByToken,
		list: c.listParameter(settingMarketTokens), setting: settingMarketTokens, decode: decodeMarketsByToken,
	}
	if l.list == "" {
		l.single = c.value(settingMarketToken)
	}
	return l
}

// MarketBySlug returns a market with description and resolution, or nil if the venue does not know the slug.
func (c *Client) MarketBySlug(ctx context.Context, call upstream.Call, slug string) (*market.Market, error) {
	const e = upstream.EndpointMarketBySlug
	if err := rest.CheckID(e, slug); err != nil {
		return nil, err
	}
	told := c.reading(call)
	rq := &rest.Request{Endpoint: e, Keys: 1}
	rq.Query.Set(told.value(settingMarketSlug), slug)
	return readOne(ctx, told, slug, rq, func(payload wire.Value, drift *rest.Drift) (*market.Market, error) {
		rows, ok := marketRows(payload)
		if !ok {
			return nil, rest.UnknownForm(e, "no market and no list of markets")
		}
		for _, v := range rows {
			r := wire.NewRow(v, drift.Add)
			if !r.Of(wire.FieldSlug).Is(slug) {
				continue
			}
			m := readMarket(r, nil)
			if r.Err != nil {
				drift.Add("bad element")
				return nil, rest.BadElement(e, r.Err)
			}
			return m, nil
		}
		if len(rows) > 0 {
			return nil, rest.UnknownForm(e, "the market of another slug")
		}
		return nil, nil
	})
}

func marketRows(payload wire.Value) ([]wire.Value, bool) {
	if isMarket(payload) {
		return []wire.Value{payload}, true
	}
	if list, ok := rest.RowsOf(payload, "markets"); ok {
		return list.Rows, true
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
		(wire.FieldOutcomes.PresentIn(v) || wire.FieldTokens.PresentIn(v) || wire.FieldQuestion.PresentIn(v) || wire.FieldSlug.PresentIn(v))
}

func decodeMarketsByID(payload wire.Value, requested []string, note func(string)) (rest.Values[market.Market], error) {
	names := fieldMarketID.Names()
	return decodeMarkets(upstream.EndpointMarketsByID, payload, requested, note, func(r *wire.Row, m *market.Market) []string {
		for _, name := range names {
			// A venue may use several ids for a market. The market gets the requested id.
			id, _ := r.Object.Member(name).ID()
			if i := slices.Index(requested, id); i >= 0 {
				m.MarketID = id
				return requested[i : i+1]
			}
		}
		return nil
	})
}

func decodeMarketsByToken(payload wire.Value, requested []string, note func(string)) (rest.Values[market.Market], error) {
	return decodeMarkets(upstream.EndpointMarketsByToken, payload, requested, note, func(r *wire.Row, m *market.Market) []string {
		return slices.DeleteFunc(outcomeTokens(r), func(id string) bool { return !slices.Contains(requested, id) })
	})
}

// decodeMarkets reads a market-details response. keysOf returns the requested ids of a row's market.
func decodeMarkets(e upstream.Endpoint, payload wire.Value, requested []string, note func(string), keysOf func(*wire.Row, *market.Market) []string) (rest.Values[market.Market], error) {
	rows, ok := marketRows(payload)
	if !ok {
		return nil, rest.UnknownForm(e, "no market and no list of markets")
	}
	if _, isList := rest.RowsOf(payload, "markets"); !isList && len(requested) > 1 {
		return nil, rest.UnknownForm(e, "one market for several ids")
	}
	out := make(rest.Values[market.Market], len(requested))
	for _, v := range rows {
		r := wire.NewRow(v, note)
		m := readMarket(r, nil)
		keys := keysOf(r, m)
		switch {
		case len(keys) > 0:
		case r.Err != nil && (e == upstream.EndpointMarketsByToken || !hasID(r)):
			keys = []string{""}
		default:
			keys = []string{rest.OtherID}
		}
		for _, key := range keys {
			out.Put(key, m, r)
		}
	}
	return out, nil
}

func hasID(r *wire.Row) bool {
	id, ok := r.Of(fieldMarketID).ID()
	return ok && id != ""
}
