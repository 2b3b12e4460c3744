package venue

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldBuy       = wire.NewField("BUY", "buy", "Buy")
	fieldSell      = wire.NewField("SELL", "sell", "Sell")
	fieldTimestamp = wire.NewField("timestamp", "time", "ts", "t", "updatedAt", "lastUpdated")
)

var prices = keyed[market.Price]{
	endpoint: reqctx.EndpointPrices,
	list:     "prices",
	marks:    []wire.Field{wire.FieldPrice, fieldBuy, fieldSell},
	row:      readPrice,
	scalar: func(d market.Decimal, id string) *market.Price {
		return &market.Price{TokenID: id, Price: d, Basis: market.BasisVenue}
	},
}

var pricesByToken = lookup[market.Price]{
	endpoint: reqctx.EndpointPrices,
	list:     "tokenIds", single: &tokenID, lone: true,
	decode: prices.decode,
}

// Prices returns the prices of tokens, one result an id and in their order; the Value of a token without price is nil.
// A refused id or a bad element costs its own result. The error is not nil only when no call was answered, which the
// results say too.
func (c *Client) Prices(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Price], error) {
	return pricesByToken.all(ctx, c, tokenIDs)
}

// readPrice reads {price,timestamp} or {BUY,SELL}: what one gets for a share is the best bid, what one pays the best ask.
func readPrice(r *wire.Row, id string) *market.Price {
	p := &market.Price{TokenID: id, Basis: market.BasisVenue, Timestamp: r.Time(fieldTimestamp)}
	if !r.Of(wire.FieldPrice).IsNull() {
		p.Price = r.Price(wire.FieldPrice)
		return p
	}
	var ok bool
	if p.Price, p.Basis, ok = (&market.Spread{BestAsk: r.Unit(fieldBuy), BestBid: r.Unit(fieldSell)}).Price(); !ok {
		r.Fail(wire.FieldPrice, "is missing")
	}
	return p
}
