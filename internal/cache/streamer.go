package cache

import "oddsgraph/internal/market"

// Streamer opens the stream of tokens that are missing while the venue's budget is scarce.
type Streamer interface {
	// Want names tokens that exist and that a caller waits for what the channel tells of. What it can stream it is to stream
	// at once, as if they had been asked for again and again; what it stores in the cache then answers, if it comes
	// before the venue does. Tokens may be named repeatedly. It must not wait and is called concurrently.
	Want(caller string, c market.Channel, tokenIDs []string)
}

// SetStreamer lets a streamer answer, together with the venue, for prices, spreads and books that are missing while less
// than half of the budget is left. Call it before the cache is read.
func (c *Cache) SetStreamer(s Streamer) {
	want := func(caller string, channel market.Channel, tokens []string) {
		exist := make([]string, 0, len(tokens))
		for _, t := range tokens {
			if c.exists(t) {
				exist = append(exist, t)
			}
		}
		if len(exist) > 0 {
			s.Want(caller, channel, exist)
		}
	}
	prices := func(caller string, tokens []string) { want(caller, market.ChannelPrices, tokens) }
	c.prices.urge, c.spreads.urge = prices, prices
	c.books.urge = func(caller string, queries []market.BookQuery) {
		want(caller, market.ChannelOrderbook, tokensOf(queries))
	}
}

// exists reports whether the venue is known to have a token: it was named by a market or has had a price or a book. That
// is what keeps those who make ids up from spending watches.
func (c *Cache) exists(token string) bool {
	return c.refs.Contains(market.MarketRef{By: market.ByToken, Value: token}) || c.prices.entries.get(token) != nil ||
		c.spreads.entries.get(token) != nil || c.books.entries.get(market.BookQuery{TokenID: token}) != nil
}
