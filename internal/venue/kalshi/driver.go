// Package kalshi is the driver of Kalshi: its public REST API, version 2, and its WebSocket.
//
// A market of Kalshi has one book with the bids of both sides: a bid for NO at p is an ask for YES at 1 − p. The GraphQL API has a
// token for each side, TICKER:yes and TICKER:no, so one market of the venue has two tokens. The id of a market is its ticker.
// Kalshi has no slugs; the slug of a market or event is its ticker in lower case, as in the addresses of the venue's pages.
package kalshi

import (
	"cmp"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// The addresses of Kalshi's API. StreamPath is the path of the WebSocket. The signature of a handshake covers this path.
const (
	BaseURL    = "https://external-api.kalshi.com/trade-api/v2"
	StreamURL  = "wss://external-api-ws.kalshi.com" + StreamPath
	StreamPath = "/trade-api/ws/v2"
)

// The greatest numbers in one call: of markets, of markets whose candlesticks it reads, and of candlesticks of all markets together.
const maxTickers, maxBilled, maxCandles = 100, 2, 10_000

// The rate limit of the basic tier is a bucket that fills at bucketTokens a second. A call costs callTokens, and one for candlesticks
// costs them for each market.
const bucketTokens, callTokens = 200, 10

var paths = rest.Paths{
	upstream.EndpointPrices: pathMarkets, upstream.EndpointSpreads: pathMarkets, upstream.EndpointBook: pathMarkets,
	upstream.EndpointMarketsByID: pathMarkets, upstream.EndpointMarketsByToken: pathMarkets, upstream.EndpointMarketBySlug: pathMarkets,
	upstream.EndpointSearch:       pathMarkets,
	upstream.EndpointPriceHistory: "/markets/candlesticks",
	upstream.EndpointEvent:        "/events/",
	upstream.EndpointEventSearch:  "/events",
	upstream.EndpointMarketTrades: "/markets/trades",
}

// Some calls use one of these paths instead of the path of their endpoint. Markets that settled long ago are only in the archive.
const (
	pathMarkets        = "/markets"
	pathArchive        = "/historical/markets"
	pathArchivedTrades = "/historical/trades"
	pathSeries         = "/series/"
)

// Driver reads Kalshi's public data. It is safe for concurrent use.
type Driver struct {
	rest.NoAccounts
	*rest.Client
	// key signs the calls for books. It is nil if the operator has no key.
	key *Key
}

// New returns a driver. An empty cfg.BaseURL means BaseURL. The driver sends no credentials of callers, so it ignores
// cfg.CredentialsMode. key may be nil. New makes no call.
func New(cfg rest.Config, key *Key) (*Driver, error) {
	cfg.BaseURL, cfg.CredentialsMode, cfg.Paths = cmp.Or(cfg.BaseURL, BaseURL), rest.CredentialsNone, paths
	client, err := rest.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Driver{"Kalshi shows accounts only to their own API key, which this service does not accept", client, key}, nil
}

// MaxKeys returns the greatest number of ids in one call of an endpoint. Two tokens of one market count as one id.
func (d *Driver) MaxKeys(e upstream.Endpoint) int {
	switch e {
	case upstream.EndpointPrices, upstream.EndpointSpreads, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken:
		return maxTickers
	case upstream.EndpointPriceHistory:
		return maxBilled
	}
	return 1
}

// Cost returns the least number of calls for a read of the given number of ids. Reads of events and of archived markets need further
// calls.
func (d *Driver) Cost(e upstream.Endpoint, keys, _ int) int { return rest.CeilDiv(keys, d.MaxKeys(e)) }

// Limits returns the documented limit of the basic tier, divided: books and candlesticks get three quarters of it, and all other
// calls get one quarter. It assumes that each call reads the greatest number of markets. Each part allows at least three calls at once.
func Limits() []rest.PublishedLimit {
	part := func(twentieths, cost float64, endpoints ...upstream.Endpoint) rest.PublishedLimit {
		tokens := bucketTokens * twentieths / 20
		return rest.PublishedLimit{Endpoints: endpoints, Refill: tokens, Burst: tokens, Cost: cost}
	}
	books, candles, others := part(9, callTokens, upstream.EndpointBook), part(6, maxBilled*callTokens, upstream.EndpointPriceHistory), part(5, callTokens)
	for e := range upstream.Endpoint(upstream.Endpoints) {
		if e != upstream.EndpointBook && e != upstream.EndpointPriceHistory {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	return []rest.PublishedLimit{books, candles, others}
}
