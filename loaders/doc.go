// Package loaders reads all data of a response.
//
// A Set belongs to one response and one goroutine. An event of a subscription is a response. A Set has one table for each kind
// of data. Within a response every field sees the same value of a key.
//
// A response is made in passes. Reads do not block. A read returns a value from the cache or from an earlier fetch, or
// ErrPending. During a pass the Set collects the missing keys. Fetch sends them, one batch for each kind, and the next pass
// finds their values. A pass without pending reads yields the response.
//
// The cache, not this package, shares calls between responses. Errors are kept for one response only, and cancelling a
// response does not affect another.
package loaders
