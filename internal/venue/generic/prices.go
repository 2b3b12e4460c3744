package generic

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
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
