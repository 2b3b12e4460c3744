// Package loaders reads all data of a response.
//
// A Set belongs to one response and one goroutine. Each event of a subscription is a response, too. A Set stores the value of each
// key that it has read, so all fields of a response get the same value for a key.
//
// A response is made in passes: the executor in graph/exec executes the operation repeatedly until all values have arrived.
// Reads do not block. A read returns a value from the cache or from an earlier pass. If there is no such value, the key is
// missing, and the read returns ErrPending. During a pass the Set collects the missing keys. After the pass, Fetch fetches
// them, and the next pass reads their values. Keys of the same kind are one batch if one upstream call can fetch several of
// them. The output of the first pass without ErrPending is the response.
//
// The cache, not this package, shares upstream calls between responses. The cancellation of one response does not affect the
// others.
package loaders
