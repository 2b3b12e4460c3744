package generic

import (
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// Book returns the order book of a token, or nil if the venue does not know the token. depth is the greatest number of levels on
// each side, and must be at least 1. The sizes of levels with the same price are summed. Levels of size 0 are left out. If a level
// is unreadable, or the best bid is above the best ask, the error is UPSTREAM_BAD_RESPONSE.
func (c *Client) Book(ctx context.Context, call upstream.Call, tokenID string, depth int) (*market.Book, error) {
	if err := rest.CheckID(upstream.EndpointBook, tokenID); err != nil {
		return nil, err
	}
	if depth < 1 {
		return nil, rest.BadInput(upstream.EndpointBook, "depth is at least 1")
	}
	rq := &rest.Request{Endpoint: upstream.EndpointBook, Keys: 1}
	rq.Query.Set("tokenId", tokenID).Set("depth", strconv.Itoa(depth))
	return readOne(ctx, c.reading(call), tokenID, rq, func(payload wire.Value, drift *rest.Drift) (*market.Book, error) {
		return decodeBook(payload, tokenID, depth, drift)
	})
}

// Books reads each book with its own call.
func (c *Client) Books(ctx context.Context, call upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error) {
	return readEach(books, func(q queries.Book) (*market.Book, error) { return c.Book(ctx, call, q.TokenID, q.Depth) })
}

// readEach reads the keys until a call is RATE_LIMITED. If every call failed, it also returns the error for the first key.
func readEach[K, T any](keys []K, read func(K) (*T, error)) ([]upstream.Result[*T], error) {
	results, errs := make([]upstream.Result[*T], len(keys)), make([]error, len(keys))
	rest.ForEachUntilLimited(errs, func(i int) (err error) {
		results[i].Value, err = read(keys[i])
		return err
	})
	for i, err := range errs {
		results[i].Err = err
	}
	return results, rest.ErrorIfAllFailed(errs)
}

func decodeBook(payload wire.Value, tokenID string, depth int, drift *rest.Drift) (*market.Book, error) {
	m, ok := rest.SingleObject(payload, "orderbook", "book")
	if !ok {
		return nil, rest.UnknownForm(upstream.EndpointBook, "not an object")
	}
	r := wire.NewRow(m, drift.Add)
	if id := r.ID(wire.FieldTokenID); id != "" && id != tokenID {
		return nil, rest.UnknownForm(upstream.EndpointBook, "the book of another token")
	}
	b := &market.Book{
		TokenID:   market.Intern(tokenID),
		Timestamp: r.Time(fieldTimestamp),
		Epoch:     r.TextOrNumber(wire.FieldEpoch),
		Seq:       sequence(r),
		Hash:      r.Text(wire.FieldHash),
		Depth:     depth,
	}
	b.Bids, b.Asks = r.Levels()
	b.Spread = spreadOf(r, b)
	if r.Err != nil {
		drift.Add("bad element")
		return nil, rest.UnknownForm(upstream.EndpointBook, r.Err.Error())
	}
	return b.Cut(depth), nil
}

// spreadOf returns the venue's spread, or else that of the book, or nil if a side is empty. A crossed book makes r bad.
func spreadOf(r *wire.Row, b *market.Book) *market.Decimal {
	bid, ask := b.BestBid(), b.BestAsk()
	if bid == nil || ask == nil {
		return nil
	}
	if bid.Cmp(*ask) > 0 {
		r.Note("crossed book")
		r.Fail(wire.FieldBids, "cross the asks")
		return nil
	}
	if stated := r.Unit(wire.FieldSpread); stated != nil {
		return stated
	}
	return b.Width()
}

// sequence returns 0 for an unreadable number, because a book from REST is usable without one.
func sequence(r *wire.Row) uint64 {
	n, ok := r.Of(wire.FieldSeq).Uint()
	if !ok {
		r.Unreadable(wire.FieldSeq)
		return 0
	}
	return n
}
