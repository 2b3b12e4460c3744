// Package drivers is the registry of drivers. It opens the driver of a venue.
package drivers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/generic"
	"oddsgraph/internal/venue/kalshi"
	"oddsgraph/internal/venue/polymarket"
	"oddsgraph/internal/venue/rest"
)

// Generic is the name of the default driver. It reads venues with the API that docs/venues/generic.md describes.
const Generic = "generic"

// Config configures a driver.
type Config struct {
	// Driver is one of the names that Names returns. If Driver is empty, the driver is Generic.
	Driver string
	rest.Config
	// MaxIDs is that of generic.Config, and Table has the elements of generic.ParseTable. Other drivers ignore both.
	MaxIDs int
	Table  []string
	// Key is the operator's API key at the venue. Only the driver kalshi uses it, and it may be empty.
	Key APIKey
}

// APIKey is an API key at a venue. PEM is the text of its private key. If the operator has no key, ID and PEM are empty.
type APIKey struct {
	ID  string
	PEM []byte
}

// Kind is a kind of venue that has a driver.
type Kind struct {
	open func(Config) (venue.Driver, error)
	// Limits returns the limits that the venue documents for its endpoints. For Generic, it returns nil, because the limits of such a
	// venue are configured.
	Limits func() []rest.PublishedLimit
	// PublicAccounts reports whether the driver works without credentials of the client. This is true if the venue shows accounts
	// to everybody, or if the driver serves no account data.
	PublicAccounts bool
	// Currency is the unit of the venue's money: a code of ISO 4217 or the venue's own unit. It is empty if venues with this driver
	// use different units.
	Currency string
	// MarketID converts the id of a market, in any form that the venue accepts, into the form that the data of the driver have. It
	// is nil if there is only one form.
	MarketID func(id string) string
	// Searches is what the venue's search can do.
	Searches queries.Searches
	// Variant returns the name of the variant of a market. It is nil if the data of all markets have the same forms.
	Variant func(m *market.Market) string
}

// What searches have in common.
var (
	anySort    = []queries.Sort{queries.SortRelevance, queries.SortVolume, queries.SortVolume24h, queries.SortLiquidity, queries.SortStartsAt, queries.SortEndsAt}
	anyFilter  = append([]queries.Filter{queries.FilterCategory}, noCategory...)
	noCategory = []queries.Filter{queries.FilterText, queries.FilterStatus, queries.FilterTag, queries.FilterEndsAt}
)

var registry = map[string]Kind{
	Generic: {
		open: func(c Config) (venue.Driver, error) {
			table, err := generic.ParseTable(c.Table)
			if err != nil {
				return nil, fmt.Errorf("venue: %w", err)
			}
			return generic.New(generic.Config{Config: c.Config, MaxIDs: c.MaxIDs, Table: table})
		},
		Limits: func() []rest.PublishedLimit { return nil },
		Searches: queries.Searches{
			MarketSorts: anySort, EventSorts: anySort,
			MarketFilters: anyFilter, EventFilters: anyFilter,
		},
	},
	"kalshi": {
		open: openKalshi, Limits: kalshi.Limits, PublicAccounts: true, Currency: "USD",
		Searches: queries.Searches{
			MarketSorts: anySort[:1], EventSorts: anySort[:1],
			MarketFilters: []queries.Filter{queries.FilterStatus, queries.FilterEndsAt},
			EventFilters:  []queries.Filter{queries.FilterStatus, queries.FilterCategory, queries.FilterEndsAt},
		},
	},
	"polymarket": {
		open:           func(c Config) (venue.Driver, error) { return polymarket.New(c.Config) },
		Limits:         polymarket.Limits,
		PublicAccounts: true, Currency: "USDC", MarketID: polymarket.MarketID, Variant: polymarket.Version,
		Searches: queries.Searches{
			MarketSorts: append([]queries.Sort{queries.SortPriceChange24h}, anySort...), EventSorts: anySort,
			MarketFilters: noCategory, EventFilters: noCategory,
		},
	},
}

// openKalshi returns a driver for Kalshi. Its errors contain no part of the key.
func openKalshi(c Config) (venue.Driver, error) {
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

// CheckKey checks a key for a driver. Its errors contain no part of the key.
func CheckKey(driver string, k APIKey) error {
	if len(k.PEM) > 0 && driver != "kalshi" {
		return fmt.Errorf("the driver %q uses no API key", driver)
	}
	_, err := kalshiKey(k)
	return err
}

// CheckTable checks the settings of Config.Table for a driver.
func CheckTable(driver string, table []string) error {
	if len(table) > 0 && driver != Generic {
		return fmt.Errorf("the driver %s knows how its venue is asked", driver)
	}
	_, err := generic.ParseTable(table)
	return err
}

// Names returns the names of the drivers in order.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// Of returns the kind of venue of the driver with a name. It returns the zero Kind if there is no such driver.
func Of(driver string) Kind { return registry[driver] }

// Open returns the driver that cfg names. It makes no call.
func Open(cfg Config) (venue.Driver, error) {
	name := cmp.Or(cfg.Driver, Generic)
	d, ok := registry[name]
	if !ok {
		return nil, fmt.Errorf("venue: there is no driver %q; the drivers are %s", name, strings.Join(Names(), ", "))
	}
	return d.open(cfg)
}
