package generic

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldBuy       = wire.NewField("BUY", "buy", "Buy")
	fieldSell      = wire.NewField("SELL", "sell", "Sell")
	fieldTimestamp = wire.NewField("timestamp", "time", "ts", "t", "updatedAt", "lastUpdated")
)

var priceDecoder = tokenDecoder[market.Price]{
	endpoint:  upstream.EndpointPrices,
	list:      "prices",
	rowFields: []wire.Field{wire.FieldPrice, fieldBuy, fieldSell},
	row:       readPrice,
	fromNumber: func(d market.Decimal, id string) *market.Price {
		return &market.Price{TokenID: id, Price: d, Basis: market.BasisVenue}
	},
}

func (c reading) prices() *lookup[market.Price] {
	return &lookup[market.Price]{reading: c, endpoint: upstream.EndpointPrices, list: "tokenIds", single: "tokenId", setting: settings, decode: priceDecoder.decode}
}

// Prices returns the prices of tokens. The Value of a result is nil if the token has no price.
func (c *Client) Prices(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Price], error) {
	return c.reading(call).prices().read(ctx, tokenIDs)
}

// readPrice reads {price,timestamp} or {BUY,SELL}. SELL is the price that a seller receives, so it is the best bid. BUY is the
// best ask. If the price is null, or both other prices are, readPrice returns nil, because the token has no price.
func readPrice(r *wire.Row, id string) *market.Price {
	p := &market.Price{TokenID: id, Basis: market.BasisVenue, Timestamp: r.Time(fieldTimestamp)}
	if !r.Of(wire.FieldPrice).IsNull() {
		p.Price = r.Price(wire.FieldPrice)
		return p
	}
	var ok bool
	if p.Price, p.Basis, ok = (&market.Spread{BestAsk: r.Unit(fieldBuy), BestBid: r.Unit(fieldSell)}).Price(); ok {
		return p
	}
	isNull := func(f wire.Field) bool { return r.Has(f) && r.Of(f).IsNull() }
	if !isNull(wire.FieldPrice) && !(isNull(fieldBuy) && isNull(fieldSell)) {
		r.Fail(wire.FieldPrice, "is missing")
	}
	return nil
}

var fieldVolumeOfPoint = wire.NewField("volume", "v")

// PriceHistory returns the prices of a token in a period of UTC days, oldest first. The first and the last day are in the period.
// If the venue does not know the token, PriceHistory returns nil. Unreadable points are reported in LeftOut. Points on other days
// are dropped. If the response has points but none of them is usable, the error is UPSTREAM_BAD_RESPONSE. If several points have
// the same time, the last point in the response is used.
func (c *Client) PriceHistory(ctx context.Context, call upstream.Call, tokenID string, from, to market.Date) (*market.PriceHistory, error) {
	if err := rest.CheckID(upstream.EndpointPriceHistory, tokenID); err != nil {
		return nil, err
	}
	if from > to {
		return nil, rest.BadInput(upstream.EndpointPriceHistory, "the first day is after the last")
	}
	rq := &rest.Request{Endpoint: upstream.EndpointPriceHistory, Keys: 1}
	rq.Query.Set("tokenId", tokenID).Set("startDate", from.String()).Set("endDate", to.String())
	return readOne(ctx, c.reading(call), tokenID, rq, func(payload wire.Value, drift *rest.Drift) (*market.PriceHistory, error) {
		return decodePriceHistory(payload, tokenID, from, to, drift)
	})
}

// PriceHistories reads each history with its own call.
func (c *Client) PriceHistories(ctx context.Context, call upstream.Call, histories []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error) {
	return readEach(histories, func(q queries.PriceHistory) (*market.PriceHistory, error) {
		return c.PriceHistory(ctx, call, q.TokenID, q.From, q.To)
	})
}

func decodePriceHistory(payload wire.Value, tokenID string, from, to market.Date, drift *rest.Drift) (*market.PriceHistory, error) {
	list, ok := rest.RowsOf(payload, "history", "prices", "points")
	if !ok {
		return nil, rest.UnknownForm(upstream.EndpointPriceHistory, "no list of points")
	}
	if id, ok := wire.FieldTokenID.Of(list.Object).ID(); ok && id != "" && id != tokenID {
		return nil, rest.UnknownForm(upstream.EndpointPriceHistory, "the history of another token")
	}
	points, bad := rest.ReadRows(list.Rows, drift.Add, readPoint)
	kept := rest.PointsOfDays(points, from, to, drift.Add)
	if len(kept) == 0 && len(list.Rows) > 0 {
		return nil, rest.UnknownForm(upstream.EndpointPriceHistory, bad.WhyEmpty())
	}
	return &market.PriceHistory{TokenID: market.Intern(tokenID), From: from, To: to, Points: kept, LeftOut: bad.LeftOut(upstream.EndpointPriceHistory)}, nil
}

func readPoint(r *wire.Row) market.PricePoint {
	return market.PricePoint{Timestamp: r.RequireTime(fieldTimestamp), Price: r.Price(wire.FieldPrice), Volume: r.Decimal(fieldVolumeOfPoint)}
}
