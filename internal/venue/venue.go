// Package venue opens the REST driver of a venue and selects the protocol of its stream.
package venue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/generic"
	"oddsgraph/internal/venue/kalshi"
	"oddsgraph/internal/venue/polymarket"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
)

// Driver calls the REST API of one kind of venue. It is safe for concurrent use.
type Driver interface {
	queries.Venue
	// Can returns nil if the driver serves an endpoint, or an UNSUPPORTED error that says what the venue does not serve and why.
	// The result never changes.
	Can(endpoint reqctx.Endpoint) error
	// CanReadCash returns nil if balances contain the account's cash, or an UNSUPPORTED error with the reason. The result never
	// changes.
	CanReadCash() error
	// MaxKeys returns the greatest number of ids in one call of an endpoint. This number never changes.
	MaxKeys(endpoint reqctx.Endpoint) int
	// Cost returns the number of HTTP calls that a read of several ids would make at this time. keys is the number of different
	// ids, and bytes is the sum of their lengths in a URL.
	Cost(endpoint reqctx.Endpoint, keys, bytes int) int
	// Circuits returns the states of the circuit breakers, in a fixed order.
	Circuits() []rest.Circuit
	// Close closes idle connections. Calls in flight are not affected.
	Close()
}

// Streamer is a driver that provides the protocol of its venue's stream.
type Streamer interface {
	// Stream returns the address and the protocol of the venue's stream.
	Stream() (address string, protocol *stream.Protocol)
}

// DetailNames are the names of the query parameters of market-details, an endpoint of the generic driver.
type DetailNames = generic.DetailNames

// Generic is the name of the default driver. It reads venues with the API that docs/venues/generic.md describes.
const Generic = "generic"

// Config configures a driver.
type Config struct {
	// Driver is one of the names that Drivers returns. If Driver is empty, the driver is Generic.
	Driver string
	rest.Config
	// MaxIDs, MaxURL and Names are those of generic.Config. Other drivers ignore them.
	MaxIDs, MaxURL int
	Names          DetailNames
	// Key is the operator's API key at the venue. Only the driver kalshi uses it, and it may be empty.
	Key APIKey
}

// APIKey is an API key at a venue. PEM is the text of its private key. If the operator has no key, ID and PEM are empty.
type APIKey struct {
	ID  string
	PEM []byte
}

type driverEntry struct {
	open           func(Config) (Driver, error)
	publicAccounts bool
	currency       string
	// marketID is the result of MarketID. Nil means that all ids have one form.
	marketID func(id string) string
}

var drivers = map[string]driverEntry{
	Generic: {func(c Config) (Driver, error) {
		return generic.New(generic.Config{Config: c.Config, MaxIDs: c.MaxIDs, MaxURL: c.MaxURL, Names: c.Names})
	}, false, "", nil},
	"kalshi":     {openKalshi, true, "USD", nil},
	"polymarket": {func(c Config) (Driver, error) { return polymarket.New(c.Config) }, true, "USDC", polymarket.MarketID},
}

// openKalshi returns a driver for Kalshi. Its errors contain no part of the key.
func openKalshi(c Config) (Driver, error) {
	key, err := kalshiKey(c.Key)
	if err != nil {
		return nil, err
	}
	return kalshi.New(c.Config, key)
}

// kalshiKey parses a key. It returns nil if the operator has no key.
func kalshiKey(k APIKey) (*kalshi.Key, error) {
	if len(k.PEM) == 0 {
		return nil, nil
	}
	return kalshi.ParseKey(k.ID, k.PEM)
}

// Limits returns the limits that a driver's venue documents for its endpoints. hasKey reports whether the driver has an API key. For
// Generic, Limits returns nil, because the limits of such a venue are configured.
func Limits(driver string, hasKey bool) []rest.PublishedLimit {
	switch driver {
	case "kalshi":
		return kalshi.Limits(hasKey)
	case "polymarket":
		return polymarket.Limits()
	}
	return nil
}

// Drivers returns the names of the drivers in order.
func Drivers() []string { return slices.Sorted(maps.Keys(drivers)) }

// PublicAccounts reports whether a driver works without credentials of the client. This is true if the venue shows accounts to
// everybody, or if the driver serves no account data.
func PublicAccounts(name string) bool { return drivers[name].publicAccounts }

// MarketID returns the function that converts the id of a market, in any form that the venue accepts, into the form that the data of
// a driver have. It returns nil if there is only one form.
func MarketID(name string) func(id string) string { return drivers[name].marketID }

// Currency returns the unit of a driver's money: a code of ISO 4217 or the venue's own unit. If venues with this driver use
// different units, Currency returns "".
func Currency(name string) string { return drivers[name].currency }

// Open returns the driver that cfg names. It makes no call.
func Open(cfg Config) (Driver, error) {
	if cfg.Driver == "" {
		cfg.Driver = Generic
	}
	d, ok := drivers[cfg.Driver]
	if !ok {
		return nil, fmt.Errorf("venue: there is no driver %q; the drivers are %s", cfg.Driver, strings.Join(Drivers(), ", "))
	}
	return d.open(cfg)
}
