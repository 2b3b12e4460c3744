package venue

import (
	"context"

	"oddsgraph/internal/market"
)

var (
	fieldBestBid = names("bestBid", "bid")
	fieldBestAsk = names("bestAsk", "ask")
	fieldSpread  = names("spread")
)

var spreads = keyed[market.Spread]{
	endpoint: EndpointSpreads,
	list:     "spreads",
	marks:    []field{fieldSpread, fieldBestBid, fieldBestAsk},
	row:      readSpread,
	scalar: func(d market.Decimal, id string) *market.Spread {
		return &market.Spread{TokenID: id, Spread: &d}
	},
}

// Spreads returns the tops of tokens' books, one result an id and in their order; the Value of an unknown token is nil,
// and that of a token with an empty book has no sides. Errors are as with Prices.
func (c *Client) Spreads(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error) {
	l := lookup[market.Spread]{
		endpoint: EndpointSpreads,
		list:     "tokenIds", single: "tokenId", lone: true,
		learned: &c.spreadTokens,
		decode:  spreads.decode,
	}
	return l.all(ctx, c, tokenIDs)
}

// readSpread reads {bestBid,bestAsk,spread}. One of them must be there, be it null; a missing spread is computed.
func readSpread(r *row, id string) *market.Spread {
	s := &market.Spread{
		TokenID: id,
		BestBid: r.unit(fieldBestBid), BestAsk: r.unit(fieldBestAsk), Spread: r.unit(fieldSpread),
		Timestamp: r.time(fieldTimestamp),
	}
	if !fieldBestBid.in(r.fields) && !fieldBestAsk.in(r.fields) && !fieldSpread.in(r.fields) {
		r.bad(fieldSpread, "is missing")
	}
	if s.BestBid != nil && s.BestAsk != nil {
		if s.BestBid.Cmp(*s.BestAsk) > 0 {
			r.bad(fieldSpread, "is of a crossed book")
		}
		if s.Spread == nil {
			d := s.BestAsk.Sub(*s.BestBid).Reduce()
			s.Spread = &d
		}
	}
	return s
}
