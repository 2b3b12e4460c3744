package generic

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/generic/codec"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
)

// The defaults of Config.
const (
	DefaultMaxIDs = 100
	DefaultMaxURL = 2 << 10
)

// minURL and maxMaxURL bound the setting max-url.
const minURL, maxMaxURL = 256, 64 << 10

// Config configures a Client. The zero value of a field means its default.
type Config struct {
	// Config says where the venue is. New sets the field Paths.
	rest.Config
	// MaxIDs is the greatest number of ids in one list call. The client splits longer lists.
	MaxIDs int
	// Table says how the venue is asked. Probe decides what the table leaves undecided.
	Table Table
}

// Client calls the venue. It is safe for concurrent use. The only goroutines that outlive a call belong to idle connections, which
// Close ends. A method that reads several ids or queries returns an error, besides the results, if every call failed.
type Client struct {
	*rest.Client
	cfg Config
	// table is never changed. Only Probe replaces it, and uses unclear: the unclear answers about each setting.
	table   atomic.Pointer[Table]
	unclear [settings]int
}

// New returns a client of the venue that cfg describes. It makes no call.
func New(cfg Config) (*Client, error) {
	cfg.MaxIDs = cmp.Or(cfg.MaxIDs, DefaultMaxIDs)
	if cfg.MaxIDs < 0 {
		return nil, errors.New("venue: the number of ids must be positive")
	}
	cfg.Paths = paths
	client, err := rest.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	c := &Client{Client: client, cfg: cfg}
	c.table.Store(&cfg.Table)
	return c, nil
}

// paths are the URL paths of the endpoints. market-details counts as three endpoints, one for each kind of id, because a venue may
// not support every kind.
var paths = rest.Paths{
	upstream.EndpointPrices:         "/api/exchange/prices",
	upstream.EndpointSpreads:        "/api/exchange/spreads",
	upstream.EndpointBook:           "/api/exchange/orderbook",
	upstream.EndpointPriceHistory:   "/api/exchange/price-history",
	upstream.EndpointSearch:         "/api/exchange/market-search",
	upstream.EndpointMarketsByID:    "/api/exchange/market-details",
	upstream.EndpointMarketsByToken: "/api/exchange/market-details",
	upstream.EndpointMarketBySlug:   "/api/exchange/market-details",
	upstream.EndpointBalance:        "/api/user/balance",
	upstream.EndpointPositions:      "/api/user/positions",
	upstream.EndpointOrders:         "/api/user/orders",
	upstream.EndpointTrades:         "/api/user/trades",
	upstream.EndpointHistory:        "/api/user/history",
}

// Cost implements venue.Reader. It counts neither the calls for further pages of positions and orders, nor those that read the halves of
// a refused list.
func (c *Client) Cost(endpoint upstream.Endpoint, keys, bytes int) int {
	switch r := c.reading(upstream.Call{}); {
	case endpoint == upstream.EndpointPrices,
		endpoint == upstream.EndpointSpreads && r.value(settingSpreads) == byTokenIDs,
		endpoint == upstream.EndpointMarketsByID && r.listParameter(settingMarketIDs) != "",
		endpoint == upstream.EndpointMarketsByToken && r.listParameter(settingMarketTokens) != "":
		return r.listCost(endpoint, keys, bytes)
	}
	return max(keys, 0)
}

// Can returns an error for the endpoint of public trades, which the documented API lacks, and without credentials for those of accounts.
// A venue may lack other endpoints, too, but only a call can show this.
func (c *Client) Can(e upstream.Endpoint) error {
	switch {
	case e == upstream.EndpointMarketTrades:
		return market.Errorf(market.CodeUnsupported, "the venue's API has no list of public trades; tradesAdded streams them (%s)", e)
	case e.User() && c.cfg.NoCredentials:
		return market.Errorf(market.CodeUnsupported, "accounts of this venue need credentials, which only the first venue takes (%s)", e)
	}
	return nil
}

// CanReadCash returns nil: the documented API sends the cash of an account.
func (c *Client) CanReadCash() error { return nil }

// Stream implements venue.Driver.
func (c *Client) Stream() (address string, p *stream.Protocol) { return "", codec.Protocol() }

// MarketTrades returns UNSUPPORTED.
func (c *Client) MarketTrades(context.Context, upstream.Call, queries.MarketTrades) (*queries.TradePage, error) {
	return nil, c.Can(upstream.EndpointMarketTrades)
}

// MaxKeys implements venue.Reader. The client may send shorter lists, because the length of a URL is limited, or ids one by one. Cost
// takes this into account.
func (c *Client) MaxKeys(e upstream.Endpoint) int {
	switch e {
	case upstream.EndpointPrices, upstream.EndpointSpreads, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken:
		return c.cfg.MaxIDs
	}
	return 1
}
