package venue

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

var spreads = keyed[market.Spread]{
	endpoint: reqctx.EndpointSpreads,
	list:     "spreads",
	marks:    []wire.Field{wire.FieldSpread, wire.FieldBestBid, wire.FieldBestAsk},
	row:      readSpread,
	scalar: func(d market.Decimal, id string) *market.Spread {
		return &market.Spread{TokenID: id, Spread: &d}
	},
}

// Spreads returns the tops of tokens' books, one result an id and in their order; the Value of an unknown token is nil,
// and that of a token with an empty book has no sides. Errors are as with Prices. Where the venue has no spreads, or fails to
// answer for them, the order books are read instead, with a call for each token. Its rate limit remains an error.
func (c *Client) Spreads(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error) {
	if !c.spreadsExist.lists(c.clock.Now()) {
		return c.topsOfBooks(ctx, tokenIDs)
	}
	l := lookup[market.Spread]{
		endpoint: reqctx.EndpointSpreads,
		list:     "tokenIds", single: &tokenID, lone: true,
		learned: &c.spreadTokens,
		decode:  spreads.decode,
	}
	results, err := l.all(ctx, c, tokenIDs)
	return results, c.fillFromBooks(ctx, tokenIDs, results, err)
}

// fillFromBooks reads the order books of the tokens for which the spreads endpoint gave no answer, and returns the error of the
// read as a whole. err is the endpoint's own. Only a venue that answered without any spread, while it has a book, is taken to have no
// such endpoint: a failure passes.
func (c *Client) fillFromBooks(ctx context.Context, tokenIDs []string, results []market.Result[*market.Spread], err error) error {
	failures := 0
	for _, r := range results {
		switch {
		case r.Value != nil:
			c.spreadsExist.confirmed.Store(true)
		case unanswered(r.Err):
			failures++
		}
	}
	exists := err == nil && c.spreadsExist.confirmed.Load()
	var missing []int
	var ids []string
	for i, r := range results {
		if r.Value == nil && (unanswered(r.Err) || !exists && (r.Err == nil || saysMissing(r.Err))) {
			missing, ids = append(missing, i), append(ids, tokenIDs[i])
		}
	}
	if len(missing) == 0 {
		return err
	}
	tops, failed := c.topsOfBooks(ctx, ids[:1])
	if failed != nil {
		return err // the books fail too
	}
	rest, _ := c.topsOfBooks(ctx, ids[1:])
	found := false
	for i, top := range append(tops, rest...) {
		// That a book is not there does not make a failure an absence.
		if at := missing[i]; top.Value != nil || top.Err == nil && !unanswered(results[at].Err) {
			results[at], err = top, nil
		}
		found = found || top.Value != nil
	}
	if found && failures == 0 {
		c.spreadsExist.refuse(c.clock.Now())
		c.log.Info("the venue has no spreads and is asked for order books instead", "endpoint", reqctx.EndpointSpreads.String())
	}
	return err
}

// unanswered reports whether err is a failure of the venue's: no answer, an error of its own, or an answer that could not be read.
func unanswered(err error) bool {
	var why *cause
	if errors.As(err, &why) && why.kind == causeCaller || saysMissing(err) {
		return false
	}
	switch market.CodeOf(err) {
	case market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse:
		return true
	}
	return false
}

// saysMissing reports whether an answer may mean that the venue does not have an endpoint. A page of a web server says so too.
func saysMissing(err error) bool {
	var why *cause
	return refused(err) || errors.As(err, &why) && (why.status == http.StatusNotFound || why.status == http.StatusGone)
}

// topsOfBooks reads spreads from the first levels of order books. After the venue's rate limit was met no further call is made.
func (c *Client) topsOfBooks(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error) {
	results, errs := make([]market.Result[*market.Spread], len(tokenIDs)), make([]error, len(tokenIDs))
	var limited atomic.Pointer[error]
	each(len(tokenIDs), func(i int) {
		var book *market.Book
		var err error
		if known := limited.Load(); known != nil {
			err = *known
		} else if book, err = c.Book(ctx, tokenIDs[i], 1); market.CodeOf(err) == market.CodeRateLimited {
			limited.Store(&err)
		}
		if results[i].Err, errs[i] = err, err; book != nil {
			results[i].Value = topOf(book)
		}
	})
	return results, allFailed(errs)
}

// topOf returns the best prices of a book.
func topOf(b *market.Book) *market.Spread {
	s := &market.Spread{TokenID: b.TokenID, Spread: b.Spread, Timestamp: b.Timestamp, FromBook: true}
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
