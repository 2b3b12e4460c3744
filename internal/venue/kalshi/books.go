package kalshi

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// Books returns the book of each query, in the order of the queries. One call returns the books of both tokens of a market. It is
// signed if the driver has a key. Each book has up to queries.MaxBookDepth levels a side, even if the query asks for fewer levels. The
// Value of a result is nil if the venue does not know the token.
func (d *Driver) Books(ctx context.Context, call upstream.Call, list []queries.Book) ([]upstream.Result[*market.Book], error) {
	ids := make([]string, len(list))
	for i, q := range list {
		ids[i] = q.TokenID
	}
	l := rest.Lookup[bids]{Client: d.Client, Endpoint: upstream.EndpointBook, Batch: 1, IsID: isTicker, Call: d.readBids}
	return readTokens(ctx, call, l, ids, func(b *bids, ticker string, s side) *market.Book { return b.book(ticker, s, queries.MaxBookDepth) })
}

func (d *Driver) readBids(ctx context.Context, call upstream.Call, tickers []string, note func(string)) (rest.Values[bids], error) {
	rq := &rest.Request{Endpoint: upstream.EndpointBook, Path: pathMarkets + "/" + tickers[0] + "/orderbook", Keys: 1}
	if d.key != nil {
		rq.Sign = func(method, path string) http.Header {
			h, _ := d.key.Headers(method, path, d.Now()) // if the call cannot be signed, the venue may still answer
			return h
		}
	}
	payload, err := d.Get(ctx, call, rq)
	if err != nil || payload.IsNull() {
		return nil, rest.NilIfNotFound(err)
	}
	r := wire.NewRow(payload, note)
	book := r.Child(r.Of(fieldBook))
	b, found := readBids(book, false), rest.Values[bids]{}
	r.Err = cmp.Or(r.Err, book.Err)
	found.Put(tickers[0], &b, r)
	return found, nil
}

var (
	fieldBook      = wire.NewField("orderbook_fp")
	fieldYesLevels = wire.NewField("yes_dollars", "yes_dollars_fp")
	fieldNoLevels  = wire.NewField("no_dollars", "no_dollars_fp")
)

// bids contains the bids for YES and the bids for NO of a market. The prices of NO bids are prices of NO, not of YES.
type bids [2]market.Side

// readBids reads the bids of both sides. A missing or null side is empty. If a side is not a list or any level is unreadable,
// readBids marks r as bad. If unified is true, the NO levels of r have prices of YES, and readBids converts them to prices of NO.
func readBids(r *wire.Row, unified bool) (b bids) {
	for s, f := range [...]wire.Field{yes: fieldYesLevels, no: fieldNoLevels} {
		var levels []market.Level
		if !r.Of(f).IsNull() {
			levels = r.LevelsOf(f)
		}
		if unified {
			for i := range levels {
				levels[i].Price = side(s).price(levels[i].Price)
			}
		}
		// The order of levels in Kalshi's responses differs from the documented order.
		slices.SortFunc(levels, func(a, b market.Level) int { return b.Price.Cmp(a.Price) })
		b[s] = market.NewSide(r.Merge(levels))
	}
	return b
}

// book returns the book of an outcome, with at most depth levels on each side. The bids of the book are the bids for the outcome.
// The asks of the book come from the bids for the other outcome: a bid at p is an ask at 1 − p. If the best bid is above the best
// ask, the book has no spread.
func (b bids) book(ticker string, s side, depth int) *market.Book {
	out := &market.Book{TokenID: s.token(ticker), Bids: b[s].Cut(depth), Depth: depth}
	var asks []market.Level
	for bid := range b[s.other()].Cut(depth).All() {
		asks = append(asks, market.Level{Price: one.Sub(bid.Price), Size: bid.Size})
	}
	out.Asks = market.NewSide(asks)
	if w := out.Width(); w != nil && w.Sign() >= 0 {
		out.Spread = w
	}
	return out
}

// add adds a signed change to the bids of a side and returns the new total at the price. If the total would be negative, add changes
// nothing and returns false.
func (b *bids) add(s side, price, delta market.Decimal) (total market.Decimal, ok bool) {
	total = delta
	for l := range b[s].All() {
		if l.Price.Cmp(price) == 0 {
			total = l.Size.Add(delta)
			break
		}
	}
	if total.Sign() < 0 {
		return total, false
	}
	b[s] = b[s].Set(market.SideBuy, market.Level{Price: price, Size: total})
	return total, true
}

// changeOf returns the change of an outcome's book when the bids for bidder at a price get a new total.
func changeOf(outcome, bidder side, price, total market.Decimal) market.LevelChange {
	c := market.LevelChange{Side: market.SideBuy, Level: market.Level{Price: price, Size: total}}
	if outcome != bidder {
		c.Side, c.Price = market.SideSell, one.Sub(price)
	}
	return c
}
