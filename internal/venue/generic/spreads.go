package generic

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var spreadDecoder = tokenDecoder[market.Spread]{
	endpoint:  upstream.EndpointSpreads,
	list:      "spreads",
	rowFields: []wire.Field{wire.FieldSpread, wire.FieldBestBid, wire.FieldBestAsk},
	row:       readSpread,
	fromNumber: func(d market.Decimal, id string) *market.Spread {
		return &market.Spread{TokenID: id, Spread: &d}
	},
}

// Spreads returns the best prices of tokens. If the book of a token is empty, both best prices in the Value are nil. Spreads reads the
// order books of the tokens for which the spreads endpoint fails, or of all tokens if the venue has none. After a call returns
// RATE_LIMITED, it starts no further call.
func (c *Client) Spreads(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Spread], error) {
	r := c.reading(call)
	if r.value(settingSpreads) == byBook {
		return r.topsOfBooks(ctx, tokenIDs)
	}
	results, err := r.spreads().read(ctx, tokenIDs)
	return results, r.fillFromBooks(ctx, tokenIDs, results, err)
}

func (c reading) spreads() *lookup[market.Spread] {
	// fillFromBooks handles an answer that contradicts the setting.
	l := &lookup[market.Spread]{reading: c, endpoint: upstream.EndpointSpreads, single: "tokenId", setting: settings, decode: spreadDecoder.decode}
	if c.value(settingSpreads) == byTokenIDs {
		l.list = "tokenIds"
	}
	return l
}

// fillFromBooks reads the order books of the tokens for which the spreads endpoint failed or may be missing, and until the setting is
// decided, those of the tokens without a result. If such a book cannot be read, its error is the result, because it is not known
// whether the token has a spread. If no order book gives a result, fillFromBooks returns err, which is the error of the endpoint.
func (c reading) fillFromBooks(ctx context.Context, tokenIDs []string, results []upstream.Result[*market.Spread], err error) error {
	decided, contradicts, found := c.decided(settingSpreads), false, false
	var missing []int
	var ids []string
	for i, r := range results {
		absent := mayBeMissing(r.Err)
		if r.Value == nil && (absent || isFailure(r.Err) || r.Err == nil && !decided) {
			missing, ids = append(missing, i), append(ids, tokenIDs[i])
		}
		contradicts = contradicts || decided && absent
	}
	failed := slices.ContainsFunc(results, func(r upstream.Result[*market.Spread]) bool { return isFailure(r.Err) })
	for i, top := range c.topsUnlessDown(ctx, ids, failed) {
		switch r := &results[missing[i]]; {
		// If the endpoint failed for a token without a book, its error stays, because the venue may still know the token.
		case top.Value != nil, top.Err == nil && !isFailure(r.Err):
			*r, err = top, nil
		case r.Err == nil || mayBeMissing(r.Err):
			r.Err = top.Err
		}
		found = found || top.Value != nil
	}
	if contradicts && found {
		c.Report(upstream.EndpointSpreads, rest.Drift{"contradicts " + settingSpreads.String()})
	}
	return err
}

// topsUnlessDown is like topsOfBooks, but it reads the first book before the others. If the venue limits the calls, all books get
// the error of the first book. They also get it if endpointFailed is true and the first book fails, because the venue may be down.
func (c reading) topsUnlessDown(ctx context.Context, tokenIDs []string, endpointFailed bool) []upstream.Result[*market.Spread] {
	if len(tokenIDs) == 0 {
		return nil
	}
	tops, err := c.topsOfBooks(ctx, tokenIDs[:1])
	if err != nil && (endpointFailed || market.CodeOf(err) == market.CodeRateLimited) {
		return slices.Repeat(tops, len(tokenIDs))
	}
	others, _ := c.topsOfBooks(ctx, tokenIDs[1:])
	return append(tops, others...)
}

// isFailure reports whether err is a failure of the venue: no response, an internal error, or an unreadable response. An error that
// may mean that the endpoint is missing is not a failure. The end of the calling function's context is not a failure either.
func isFailure(err error) bool {
	if why, ok := errors.AsType[*rest.CallFailure](err); ok && why.Kind == rest.KindCaller || mayBeMissing(err) {
		return false
	}
	switch market.CodeOf(err) {
	case market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse:
		return true
	}
	return false
}

func mayBeMissing(err error) bool {
	why, ok := errors.AsType[*rest.CallFailure](err)
	return rest.Refused(err) || ok && (why.Status == http.StatusNotFound || why.Status == http.StatusGone)
}

// topsOfBooks reads spreads from the first levels of order books. After RATE_LIMITED, topsOfBooks starts no further call.
func (c reading) topsOfBooks(ctx context.Context, tokenIDs []string) ([]upstream.Result[*market.Spread], error) {
	return readEach(tokenIDs, func(id string) (*market.Spread, error) {
		book, err := c.Book(ctx, c.call, id, 1)
		if book == nil {
			return nil, err
		}
		return rest.SpreadOf(book), err
	})
}

// readSpread reads {bestBid,bestAsk,spread}. At least one of these members must be present, but its value may be null. If only the
// spread is missing, readSpread computes it. If the best bid is above the best ask, the row is bad.
func readSpread(r *wire.Row, id string) *market.Spread {
	s := &market.Spread{
		TokenID: id,
		BestBid: r.Unit(wire.FieldBestBid), BestAsk: r.Unit(wire.FieldBestAsk), Spread: r.Unit(wire.FieldSpread),
		Timestamp: r.Time(fieldTimestamp),
	}
	if !r.Has(wire.FieldBestBid) && !r.Has(wire.FieldBestAsk) && !r.Has(wire.FieldSpread) {
		r.Fail(wire.FieldSpread, "is missing")
	}
	if s.BestBid != nil && s.BestAsk != nil {
		if s.BestBid.Cmp(*s.BestAsk) > 0 {
			r.Fail(wire.FieldSpread, "is of a crossed book")
		}
		if s.Spread == nil {
			s.Spread = s.Width()
		}
	}
	return s
}
