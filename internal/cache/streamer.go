package cache

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// Streamer subscribes to tokens on the venue's stream. While calls would have to wait, the cache tells the Streamer which tokens are
// missing from the cache.
type Streamer interface {
	// AutoWatch subscribes to tokens whose price, spread or book a request is waiting for. All tokens exist at the venue; a token may
	// occur repeatedly. If a streamed value arrives in the cache before the REST response, the request gets the streamed value.
	// AutoWatch must not wait. It is called concurrently.
	AutoWatch(c messages.Channel, tokenIDs []string)
}

// SetStreamer sets the Streamer that is told about missing prices, spreads and books while calls would have to wait. SetStreamer must
// be called before the first read.
func (c *Cache) SetStreamer(s Streamer) {
	known := knownTokens{c, s}
	c.prices.streamer, c.spreads.streamer, c.books.streamer = known, known, known
}

// knownTokens is a Streamer of the tokens that the venue has.
type knownTokens struct {
	cache *Cache
	Streamer
}

// AutoWatch implements Streamer.
func (k knownTokens) AutoWatch(channel messages.Channel, tokens []string) {
	exist := make([]string, 0, len(tokens))
	for _, t := range tokens {
		if k.cache.isKnownToken(t) {
			exist = append(exist, t)
		}
	}
	if len(exist) > 0 {
		k.Streamer.AutoWatch(channel, exist)
	}
}

// isKnownToken reports whether a cached market, price, spread or book shows that the venue has a token. With this check, the
// Streamer never gets ids that a client has invented.
func (c *Cache) isKnownToken(token string) bool {
	return c.names.get(market.MarketRef{By: market.ByToken, Value: token}).bytes != 0 || c.prices.entries.get(token) != nil ||
		c.spreads.entries.get(token) != nil || c.books.entries.get(queries.Book{TokenID: token}) != nil
}
