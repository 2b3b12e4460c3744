// Package loaders reads all data of a response.
//
// A Set belongs to one response and one goroutine. Each event of a subscription is a response. A Set has a table for each kind
// of data. So within a response every field sees the same value of a key.
//
// A response is made in passes. Reads do not block: a read returns a value from the cache or from an earlier fetch, or
// ErrPending. During a pass the Set collects the missing keys. Fetch fetches them, with one batch for each kind, and the next
// pass finds their values. The output of the first pass without pending reads is the response.
//
// Calls are shared between responses in the cache, not in this package. An error or a cancellation affects only one response.
package loaders
