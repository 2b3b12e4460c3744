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

// The bounds of one call.
const (
	maxTickers = 100
	// maxBilled is the greatest number of markets in one call for candlesticks. Kalshi bills such a call for each market.
	maxBilled = 2
	// maxCandles bounds the total number of candlesticks of all markets in one call.
	maxCandles = 10_000
)

// The rate limit of the basic tier is a bucket of 200 tokens that fills at 200 tokens a second. A call for candlesticks costs
// 10 tokens for each market. Any other call costs 10 tokens.
const (
	bucketTokens = 200
	callTokens   = 10
)

var paths = rest.Paths{
	upstream.EndpointPrices:         "/markets",
	upstream.EndpointSpreads:        "/markets",
	upstream.EndpointBook:           "/markets",
	upstream.EndpointPriceHistory:   "/markets/candlesticks",
	upstream.EndpointSearch:         "/markets",
	upstream.EndpointMarketsByID:    "/markets",
	upstream.EndpointMarketsByToken: "/markets",
	upstream.EndpointMarketBySlug:   "/markets",
	upstream.EndpointEvent:          "/events/",
	upstream.EndpointEventSearch:    "/events",
	upstream.EndpointMarketTrades:   "/markets/trades",
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
	return &Driver{
		NoAccounts: "Kalshi shows accounts only to their own API key, which this service does not accept", Client: client, key: key,
	}, nil
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

// Limits returns the documented limit of the basic tier: a bucket of 200 tokens that fills at 200 tokens a second. Kalshi charges a
// call for candlesticks once for each market that the call reads. So books and candlesticks get three quarters of the limit, and all
// other calls get one quarter. Limits assumes that each call reads the greatest number of markets. Each part of the limit allows at
// least three calls at once.
func Limits() []rest.PublishedLimit {
	part := func(tokens, cost float64, endpoints ...upstream.Endpoint) rest.PublishedLimit {
		return rest.PublishedLimit{Endpoints: endpoints, Refill: tokens, Burst: tokens, Cost: cost}
	}
	others := part(bucketTokens*5/20, callTokens)
	for e := range upstream.Endpoint(upstream.Endpoints) {
		if e != upstream.EndpointBook && e != upstream.EndpointPriceHistory {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	return []rest.PublishedLimit{
		part(bucketTokens*9/20, callTokens, upstream.EndpointBook), part(bucketTokens*6/20, maxBilled*callTokens, upstream.EndpointPriceHistory), others,
	}
}
