package venue

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/wire"
)

var spreads = keyed[market.Spread]{
	endpoint: market.EndpointSpreads,
	list:     "spreads",
	marks:    []wire.Field{wire.FieldSpread, wire.FieldBestBid, wire.FieldBestAsk},
	row:      readSpread,
	scalar: func(d market.Decimal, id string) *market.Spread {
		return &market.Spread{TokenID: id, Spread: &d}
	},
}

// Spreads returns the tops of tokens' books, one result an id and in their order; the Value of an unknown token is nil,
// and that of a token with an empty book has no sides. Errors are as with Prices.
func (c *Client) Spreads(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error) {
	l := lookup[market.Spread]{
		endpoint: market.EndpointSpreads,
		list:     "tokenIds", single: &tokenID, lone: true,
		learned: &c.spreadTokens,
		decode:  spreads.decode,
	}
	return l.all(ctx, c, tokenIDs)
}

// readSpread reads {bestBid,bestAsk,spread}. One of them must be there, be it null; a missing spread is computed.
func readSpread(r *wire.Row, id string) *market.Spread {
	s := &market.Spread{
		TokenID: id,
		BestBid: r.Unit(wire.FieldBestBid), BestAsk: r.Unit(wire.FieldBestAsk), Spread: r.Unit(wire.FieldSpread),
		Timestamp: r.Time(fieldTimestamp),
	}
	if !r.In(wire.FieldBestBid) && !r.In(wire.FieldBestAsk) && !r.In(wire.FieldSpread) {
		r.Bad(wire.FieldSpread, "is missing")
	}
	if s.BestBid != nil && s.BestAsk != nil {
		if s.BestBid.Cmp(*s.BestAsk) > 0 {
			r.Bad(wire.FieldSpread, "is of a crossed book")
		}
		if s.Spread == nil {
			s.Spread = s.Width()
		}
	}
	return s
}
