// Package venue declares what the drivers of venues have in common. Package drivers opens them.
package venue

import (
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
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
