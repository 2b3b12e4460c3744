package venue

import (
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// Book returns a token's order book with at most depth levels a side, or nil when the venue does not know the token. A
// book with two empty sides is a book without levels. Repeated levels of one price are summed, levels of size 0 left
// out. A level that cannot be read, and a best bid above the best ask, make the answer UPSTREAM_BAD_RESPONSE: a book is
// used as a whole.
func (c *Client) Book(ctx context.Context, tokenID string, depth int) (*market.Book, error) {
	if err := checkID(reqctx.EndpointBook, tokenID); err != nil {
		return nil, err
	}
	if depth < 1 {
		return nil, badInput(reqctx.EndpointBook, "depth is at least 1")
	}
	return guarded(c, reqctx.EndpointBook, tokenID, func() (*market.Book, error) {
		rq := &request{endpoint: reqctx.EndpointBook, keys: 1}
		rq.query.set("tokenId", tokenID).set("depth", strconv.Itoa(depth))
		payload, err := c.get(ctx, rq)
		if err != nil || payload.IsNull() {
			return nil, orAbsent(err)
		}
		var n notes
		b, err := decodeBook(payload, tokenID, depth, &n)
		c.report(reqctx.EndpointBook, n)
		return b, err
	})
}

func decodeBook(payload wire.Value, tokenID string, depth int, n *notes) (*market.Book, error) {
	m, ok := objectOf(payload, "orderbook", "book")
	if !ok {
		return nil, unknownForm(reqctx.EndpointBook, "not an object")
	}
	r := wire.NewRow(m, n.add)
	if id := r.ID(wire.FieldTokenID); id != "" && id != tokenID {
		return nil, unknownForm(reqctx.EndpointBook, "the book of another token")
	}
	b := &market.Book{
		TokenID:   wire.Intern(tokenID),
		Timestamp: r.Time(fieldTimestamp),
		Epoch:     r.TextOrNumber(wire.FieldEpoch),
		Seq:       sequence(r),
		Hash:      r.Text(wire.FieldHash),
		Depth:     depth,
		Rendered:  new(market.Rendered),
	}
	b.Bids, b.Asks = r.Levels()
	b.Spread = spreadOf(r, b)
	if r.Err != nil {
		n.add("bad element")
		return nil, unknownForm(reqctx.EndpointBook, r.Err.Error())
	}
	return b.Cut(depth), nil
}

// spreadOf is the venue's figure, else the difference of the best prices; nil when a side is empty.
func spreadOf(r *wire.Row, b *market.Book) *market.Decimal {
	if len(b.Bids) == 0 || len(b.Asks) == 0 {
		return nil
	}
	if b.Bids[0].Price.Cmp(b.Asks[0].Price) > 0 {
		r.Note("crossed book")
		r.Fail(wire.FieldBids, "cross the asks")
		return nil
	}
	if stated := r.Unit(wire.FieldSpread); stated != nil {
		return stated
	}
	return b.Width()
}

// sequence reads the book's number; one that is unreadable is taken as missing, since a book from REST stands alone.
func sequence(r *wire.Row) uint64 {
	n, ok := r.Of(wire.FieldSeq).Uint()
	if !ok {
		r.Unreadable(wire.FieldSeq)
		return 0
	}
	return n
}
