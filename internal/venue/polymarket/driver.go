package polymarket

import (
	"cmp"
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// The addresses of Polymarket's APIs.
const (
	GammaURL = "https://gamma-api.polymarket.com"
	ClobURL  = "https://clob.polymarket.com"
	DataURL  = "https://data-api.polymarket.com"
)

// The greatest numbers of ids in one call.
const (
	maxTokens    = 500
	maxHistories = 20
	// maxMarketIDs ids of 78 digits each fit into a URL of less than 4 KiB. If all of them are conditions of protocol V2, each with two
	// forms, the URL has less than 7 KiB.
	maxMarketIDs = 40
)

// Driver reads Polymarket. It is safe for concurrent use.
type Driver struct {
	gamma, clob, data *rest.Client
	// tags contains the ids of tags by slug.
	tags *lru.Cache[string, tagID]
}

// New returns a driver. cfg.BaseURL is an address that serves all three APIs, such as the address of a proxy. If cfg.BaseURL is
// empty, the driver uses Polymarket's addresses. The driver sends no credentials, so it ignores cfg.CredentialsMode. New makes no
// call.
func New(cfg rest.Config) (*Driver, error) {
	cfg.CredentialsMode = rest.CredentialsNone
	if cfg.Transport == nil {
		cfg.Transport = rest.NewTransport() // the clients of the three APIs share connections
	}
	tags, err := lru.New[string, tagID](maxTags)
	if err != nil {
		return nil, err
	}
	d := &Driver{tags: tags}
	for _, api := range []struct {
		client **rest.Client
		url    string
		paths  rest.Paths
	}{{&d.gamma, GammaURL, gammaPaths}, {&d.clob, ClobURL, clobPaths}, {&d.data, DataURL, dataPaths}} {
		own := cfg
		own.BaseURL, own.Paths = cmp.Or(cfg.BaseURL, api.url), api.paths
		client, err := rest.New(own)
		if err != nil {
			return nil, err
		}
		*api.client = client
	}
	return d, nil
}

var (
	gammaPaths = rest.Paths{
		upstream.EndpointSearch:         "/markets/keyset",
		upstream.EndpointMarketsByID:    "/markets/keyset",
		upstream.EndpointMarketsByToken: "/markets/keyset",
		upstream.EndpointMarketBySlug:   "/markets/keyset",
		upstream.EndpointEvent:          "/events/keyset",
		upstream.EndpointEventSearch:    "/events/keyset",
	}
	clobPaths = rest.Paths{
		upstream.EndpointPrices:       "/midpoints",
		upstream.EndpointSpreads:      "/books",
		upstream.EndpointBook:         "/books",
		upstream.EndpointPriceHistory: "/batch-prices-history",
		upstream.EndpointMarketsByID:  "/markets/",
	}
	dataPaths = rest.Paths{
		upstream.EndpointMarketTrades: "/v2/trades",
		upstream.EndpointBalance:      "/v2/value",
		upstream.EndpointPositions:    "/v2/positions",
		upstream.EndpointTrades:       "/v2/trades",
		upstream.EndpointHistory:      "/v2/activity",
	}
)

// Some calls use one of these paths instead of the path of their endpoint.
const (
	pathLastTrades = "/last-trades-prices"
	pathSearch     = "/public-search"
	pathTag        = "/tags/slug/"
)

// MaxKeys returns the greatest number of ids in one call of an endpoint.
func (d *Driver) MaxKeys(e upstream.Endpoint) int {
	switch e {
	case upstream.EndpointPrices, upstream.EndpointSpreads, upstream.EndpointBook:
		return maxTokens
	case upstream.EndpointPriceHistory:
		return maxHistories
	case upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken:
		return maxMarketIDs
	}
	return 1
}

// Cost returns the least number of calls for a read of the given number of ids. Prices of tokens without a midpoint, closed
// markets and further pages need further calls.
func (d *Driver) Cost(e upstream.Endpoint, keys, _ int) int {
	return rest.CeilDiv(keys, d.MaxKeys(e))
}

// Circuits returns the states of the circuit breakers of all three APIs.
func (d *Driver) Circuits() []rest.Circuit {
	return append(append(d.gamma.Circuits(), d.clob.Circuits()...), d.data.Circuits()...)
}

// Close closes idle connections. Calls in flight are not affected.
func (d *Driver) Close() { d.gamma.Close() }

// Orders returns UNSUPPORTED, because a request for open orders must be signed with the account's key.
func (d *Driver) Orders(context.Context, upstream.Call, market.Address) ([]market.Order, error) {
	return nil, d.Can(upstream.EndpointOrders)
}

// Can returns nil if the driver serves an endpoint, or an UNSUPPORTED error with the reason.
func (d *Driver) Can(e upstream.Endpoint) error {
	if e == upstream.EndpointOrders {
		return market.Errorf(market.CodeUnsupported, "Polymarket shows open orders only to the key of the account (%s)", e)
	}
	return nil
}

// CanReadCash returns UNSUPPORTED, because the cash of an account is a balance on the blockchain.
func (d *Driver) CanReadCash() error {
	return market.Errorf(market.CodeUnsupported, "the cash of a Polymarket account is on the blockchain, and Polymarket's API does not contain it (%s)",
		upstream.EndpointBalance)
}

// Limits returns the documented limits. Polymarket first delays calls above a limit, and only later refuses them. So the client
// cannot learn the limits from errors. Endpoints with the same path share a limit, except the two endpoints for events.
// EndpointEvent has its own limit of 200 calls, and EndpointEventSearch shares a limit of 300 calls with other endpoints. So the
// two endpoints together make at most 500 calls, which is Polymarket's limit for their path.
//
// The Data API also has a limit of 1,000 calls for all its paths together. Its paths for the value and for the activity of an account
// have no limits of their own, so they share what the other two limits leave of it.
func Limits() []rest.PublishedLimit {
	limit := func(calls int, endpoints ...upstream.Endpoint) rest.PublishedLimit {
		return rest.PublishedLimit{Endpoints: endpoints, Calls: calls, Span: 10 * time.Second}
	}
	const data, positions, trades = 1000, 150, 200
	return []rest.PublishedLimit{
		limit(500, upstream.EndpointPrices),
		limit(500, upstream.EndpointSpreads, upstream.EndpointBook),
		limit(1000, upstream.EndpointPriceHistory),
		limit(300, upstream.EndpointSearch, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken, upstream.EndpointMarketBySlug,
			upstream.EndpointEventSearch, upstream.EndpointCategories),
		limit(200, upstream.EndpointEvent), // with EndpointEventSearch above, at most 500 calls to the path of events
		limit(positions, upstream.EndpointPositions),
		limit(trades, upstream.EndpointTrades, upstream.EndpointMarketTrades),
		limit(data-positions-trades, upstream.EndpointBalance, upstream.EndpointHistory),
	}
}
