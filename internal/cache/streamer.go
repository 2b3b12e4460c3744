package cache

import "oddsgraph/internal/market"

// Streamer opens the stream of tokens that are missing while the venue's budget is scarce.
type Streamer interface {
	// AutoWatch streams tokens whose price or book a caller waits for. The tokens exist, and may be named repeatedly. A streamed value
	// is stored in the cache and answers the caller if it arrives before the venue's response. AutoWatch must not wait, and is called
	// concurrently.
	AutoWatch(caller string, c market.Channel, tokenIDs []string)
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
			s.AutoWatch(caller, channel, exist)
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
