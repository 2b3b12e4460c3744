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
// and that of a token with an empty book has no sides. Errors are as with Prices. Where the venue refuses spreads or
// does not have them, they are those of the order books, which take a call for each token.
func (c *Client) Spreads(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error) {
	if !c.spreadsExist.lists(c.clock.Now()) {
		return c.topsOfBooks(ctx, tokenIDs)
	}
	l := lookup[market.Spread]{
		endpoint: market.EndpointSpreads,
		list:     "tokenIds", single: &tokenID, lone: true,
		learned: &c.spreadTokens,
		decode:  spreads.decode,
	}
	results, err := l.all(ctx, c, tokenIDs)
	var missing []int
	for i, r := range results {
		switch {
		case r.Value != nil:
			c.spreadsExist.confirmed.Store(true)
		case r.Err == nil || refused(r.Err):
			missing = append(missing, i)
		}
	}
	if err == nil && c.spreadsExist.confirmed.Load() || err != nil && !refused(err) || len(missing) == 0 {
		return results, err
	}
	ids := make([]string, len(missing))
	for i, at := range missing {
		ids[i] = tokenIDs[at]
	}
	first, firstErr := c.topsOfBooks(ctx, ids[:1])
	if firstErr != nil {
		return results, err // the books fail too
	}
	rest, _ := c.topsOfBooks(ctx, ids[1:])
	found := false
	for i, top := range append(first, rest...) {
		if top.Err == nil {
			results[missing[i]] = top
		}
		found = found || top.Value != nil
	}
	if found {
		c.spreadsExist.refuse(c.clock.Now())
		c.log.Info("the venue has no spreads and is asked for order books instead", "endpoint", market.EndpointSpreads.String())
	}
	return results, nil
}

// topsOfBooks reads spreads from the first levels of order books.
func (c *Client) topsOfBooks(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error) {
	results, errs := make([]market.Result[*market.Spread], len(tokenIDs)), make([]error, len(tokenIDs))
	each(len(tokenIDs), func(i int) {
		book, err := c.Book(ctx, tokenIDs[i], 1)
		if results[i].Err, errs[i] = err, err; book != nil {
			results[i].Value = topOf(book)
		}
	})
	return results, allFailed(errs)
}

// topOf returns the best prices of a book.
func topOf(b *market.Book) *market.Spread {
	s := &market.Spread{TokenID: b.TokenID, Spread: b.Spread, Timestamp: b.Timestamp}
	if len(b.Bids) > 0 {
		s.BestBid = &b.Bids[0].Price
	}
	if len(b.Asks) > 0 {
		s.BestAsk = &b.Asks[0].Price
	}
	return s
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
