package cache

import "oddsgraph/internal/market"

// Streamer opens the stream of tokens that are missing while the venue's budget is scarce.
type Streamer interface {
	// Want names tokens that exist and that somebody waits for the price or the book of. Those that it can stream it is to
	// stream at once, as if they had been asked for again and again; what it stores in the cache then answers, if it comes
	// before the venue does. Tokens may be named repeatedly. It must not wait and is called concurrently.
	Want(tokenIDs []string)
}

// SetStreamer lets a streamer answer, together with the venue, for prices, spreads and books that are missing while less
// than half of the budget is left. Call it before the cache is read.
func (c *Cache) SetStreamer(s Streamer) {
	want := func(tokens []string) {
		exist := make([]string, 0, len(tokens))
		for _, t := range tokens {
			if c.exists(t) {
				exist = append(exist, t)
			}
		}
		if len(exist) > 0 {
			s.Want(exist)
		}
	}
	c.prices.urge, c.spreads.urge = want, want
	c.books.urge = func(queries []market.BookQuery) {
		tokens := make([]string, len(queries))
		for i, q := range queries {
			tokens[i] = q.TokenID
		}
		want(tokens)
	}
}

// exists reports whether the venue is known to have a token: it was named by a market or has had a price or a book. That
// is what keeps those who make ids up from spending watches.
func (c *Cache) exists(token string) bool {
	return c.refs.Contains(market.MarketRef{By: market.ByToken, Value: token}) || c.prices.entries.Contains(token) ||
		c.spreads.entries.Contains(token) || c.books.entries.Contains(market.BookQuery{TokenID: token})
}
